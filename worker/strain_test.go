package worker

import (
	"testing"
	"time"

	"vllm-vcr/ipc"
	"vllm-vcr/worker/engine"
)

func newStrain(t *testing.T) *strain {
	t.Helper()
	page, file, err := ipc.NewPage()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = page.Close()
		_ = file.Close()
	})
	return &strain{page: page}
}

// A second of turns that take all the time saturates an engine, and one that waits in between frees it again. Only while it
// is saturated does it have to be looked at for that.
func TestStrain_Busy(t *testing.T) {
	s := newStrain(t)
	var now engine.Time
	turn := func(work, wait time.Duration) (next engine.Time, changed bool) {
		next, changed = s.worked(now, now+work)
		now += work + wait
		return next, changed
	}
	for range 99 {
		if next, changed := turn(10*time.Millisecond, 0); changed || next != engine.Never {
			t.Fatalf("after %v of work: changed %v, next %v, want false, Never", now, changed, next)
		}
	}
	next, changed := turn(10*time.Millisecond, 0)
	if !changed || !s.page.Strain().Saturated || next != now+strainWindow {
		t.Fatalf("after a second of work: changed %v, saturated %v, next %v, want true, true, %v", changed, s.page.Strain().Saturated, next, now+strainWindow)
	}
	for range 100 {
		turn(5*time.Millisecond, 5*time.Millisecond)
	}
	if next, _ := turn(5*time.Millisecond, 0); next != engine.Never || s.page.Strain().Saturated {
		t.Errorf("after a second of half the work: next %v, saturated %v, want Never, false", next, s.page.Strain().Saturated)
	}
}

// More than one output in a hundred that is too late saturates an engine, however little it works.
func TestStrain_Late(t *testing.T) {
	for _, c := range []struct {
		late uint64
		want bool
	}{{1, false}, {2, true}} {
		s := newStrain(t)
		s.left(time.Millisecond, 100-c.late)
		s.left(tooLate+1, c.late)
		if s.worked(strainWindow-1, strainWindow); s.page.Strain().Saturated != c.want {
			t.Errorf("%d of 100 outputs too late: saturated = %v, want %v", c.late, !c.want, c.want)
		}
	}
}

// What an idle engine did long ago doesn't count against a turn of today.
func TestStrain_AfterIdling(t *testing.T) {
	s := newStrain(t)
	s.worked(0, 900*time.Millisecond)
	if s.worked(time.Hour, time.Hour+time.Millisecond); s.page.Strain().Saturated {
		t.Error("saturated after an hour of nothing")
	}
}
