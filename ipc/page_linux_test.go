package ipc

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// newPage makes a page and a second mapping of it, as a supervisor and its worker have them.
func newPage(t *testing.T) (ours, theirs *Page) {
	t.Helper()
	ours, f, err := NewPage()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	theirs, err = OpenPage(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closePages(t, ours, theirs) })
	return ours, theirs
}

func closePages(t *testing.T, pages ...*Page) {
	t.Helper()
	for _, p := range pages {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

// set gives a page counters as an engine would.
func set(p *Page, s Stats) {
	p.Received.Store(s.Received)
	p.Completed.Store(s.Completed)
	p.Failed.Store(s.Failed)
	p.Aborted.Store(s.Aborted)
	p.Running.Store(s.Running)
	p.Waiting.Store(s.Waiting)
}

func TestPage_TwoMappings(t *testing.T) {
	ours, theirs := newPage(t)
	want := Stats{Received: 10, Completed: 4, Failed: 2, Aborted: 1, Running: 2, Waiting: 1}
	set(theirs, want)
	theirs.Generation.Store(9)
	if diff := cmp.Diff(want, ours.Stats()); diff != "" {
		t.Errorf("counters in the other mapping (-want +got):\n%s", diff)
	}
	if got := ours.Generation.Load(); got != 9 {
		t.Errorf("generation = %d, want 9", got)
	}
}

func TestPage_Reset(t *testing.T) {
	ours, theirs := newPage(t)
	set(theirs, Stats{Received: 30, Completed: 10, Failed: 5, Aborted: 5, Running: 8, Waiting: 2})
	theirs.Lost.Store(3)
	theirs.Reset()
	if diff := cmp.Diff(Stats{Running: 8, Waiting: 2}, ours.Stats()); diff != "" {
		t.Errorf("after a reset (-want +got):\n%s", diff)
	}
	if got := ours.Lost.Load(); got != 3 {
		t.Errorf("lost = %d after a reset, want 3", got)
	}
	set(theirs, Stats{Received: 30, Completed: 20, Failed: 5, Aborted: 5})
	if diff := cmp.Diff(Stats{Completed: 10}, ours.Stats()); diff != "" {
		t.Errorf("what ran over the reset (-want +got):\n%s", diff)
	}
	ours.Reset()
	ours.Reset()
	if diff := cmp.Diff(Stats{}, theirs.Stats()); diff != "" {
		t.Errorf("after three resets (-want +got):\n%s", diff)
	}
}

// A kill in the middle of a reset has stored some of the new baseline, and not moved on to it.
func TestPage_Reset_Cut(t *testing.T) {
	ours, theirs := newPage(t)
	want := Stats{Received: 7, Completed: 6, Aborted: 1}
	set(theirs, want)
	next := &theirs.baselines[(theirs.resets.Load()+1)%2]
	next.received.Store(7)
	next.completed.Store(6)
	if diff := cmp.Diff(want, ours.Stats()); diff != "" {
		t.Errorf("after half a reset (-want +got):\n%s", diff)
	}
	ours.Reset()
	if diff := cmp.Diff(Stats{}, theirs.Stats()); diff != "" {
		t.Errorf("after the next reset (-want +got):\n%s", diff)
	}
}

// Readers never see a counter below 0, which would show as an enormous one, while the engine counts and resets.
func TestPage_Reset_NeverNegative(t *testing.T) {
	const requests = 500_000
	ours, theirs := newPage(t)
	var engine sync.WaitGroup
	done := make(chan struct{})
	engine.Go(func() {
		defer close(done)
		for range requests {
			theirs.Received.Add(1)
			theirs.Reset()
		}
	})
	defer engine.Wait()
	for {
		if s := ours.Stats(); s.Received > requests {
			t.Errorf("counters below 0: %+v", s)
			return
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestPage_CloseLedger(t *testing.T) {
	for _, c := range []struct {
		name   string
		before Stats
		after  Stats
		lost   uint64
	}{
		{"idle", Stats{Received: 9, Completed: 7, Failed: 1, Aborted: 1}, Stats{Received: 9, Completed: 7, Failed: 1, Aborted: 1}, 0},
		{"busy", Stats{Received: 9, Completed: 4, Running: 3, Waiting: 2}, Stats{Received: 9, Completed: 4, Failed: 5}, 5},
		{"killed before it stored that the last ended", Stats{Received: 3, Completed: 2, Running: 0}, Stats{Received: 3, Completed: 2, Failed: 1}, 1},
		{"killed before it stored that one had arrived", Stats{Received: 2, Completed: 3}, Stats{Received: 3, Completed: 3}, 0},
		{"nothing", Stats{}, Stats{}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			ours, theirs := newPage(t)
			set(theirs, c.before)
			theirs.HeldBytes.Store(5)
			theirs.JournalKept.Store(c.before.Completed)
			if got := ours.CloseLedger(); got != c.lost {
				t.Errorf("CloseLedger = %d, want %d", got, c.lost)
			}
			if diff := cmp.Diff(c.after, ours.Stats()); diff != "" {
				t.Errorf("counters (-want +got):\n%s", diff)
			}
			if got := ours.Lost.Load(); got != c.lost {
				t.Errorf("lost = %d, want %d", got, c.lost)
			}
			if kept, dropped := ours.JournalKept.Load(), ours.JournalDropped.Load(); kept != 0 || dropped != c.after.Received {
				t.Errorf("the journal keeps %d and has dropped %d, want 0 and %d", kept, dropped, c.after.Received)
			}
			if got := ours.HeldBytes.Load(); got != 0 {
				t.Errorf("held bytes = %d, want 0", got)
			}
			if got := ours.CloseLedger(); got != 0 {
				t.Errorf("second CloseLedger = %d, want 0", got)
			}
		})
	}
}

func TestPage_CloseLedger_AfterReset(t *testing.T) {
	ours, theirs := newPage(t)
	set(theirs, Stats{Received: 10, Completed: 4, Running: 6})
	theirs.Reset()
	theirs.Received.Store(11)
	ours.CloseLedger()
	if diff := cmp.Diff(Stats{Received: 1, Failed: 7}, ours.Stats()); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
}

func TestOpenPage_RefusesOtherFiles(t *testing.T) {
	plain, err := os.Create(filepath.Join(t.TempDir(), "plain"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if err := plain.Truncate(1 << 16); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.MemfdCreate("small", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	small := os.NewFile(uintptr(fd), "small")
	defer small.Close()
	if _, err := unix.FcntlInt(small.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		t.Fatal(err)
	}
	closed, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for name, f := range map[string]*os.File{"a plain file": plain, "a page of no bytes": small, "a closed file": closed} {
		if p, err := OpenPage(f); err == nil {
			closePages(t, p)
			t.Errorf("%s: opened, want an error", name)
		}
	}
}

// Whoever could shrink the file would end every process that reads the page.
func TestNewPage_CannotShrink(t *testing.T) {
	p, f, err := NewPage()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	defer closePages(t, p)
	if err := f.Truncate(0); err == nil {
		t.Error("the file of a page was shrunk, want an error")
	}
}
