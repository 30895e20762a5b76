package supervisor

import (
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vllm-vcr/ipc"
)

// from makes an engine's answer of requests that arrived at these times, of more that matched.
func from(matched uint64, arrived ...int64) ipc.Requests {
	l := ipc.Requests{Matched: matched, Dropped: 1}
	for i, at := range arrived {
		l.List = append(l.List, ipc.Request{Arrived: at, Number: uint64(100 - i)})
	}
	return l
}

// Lists of engines become one that has the newest of all, in an order that does not hang on who answered first, and no hole.
func TestMerge(t *testing.T) {
	type shown struct {
		Engine          int
		Arrived, Number int64
	}
	tests := []struct {
		name  string
		limit uint64
		lists []ipc.Requests
		want  []shown
	}{
		{"nothing", 9, []ipc.Requests{from(0), from(0)}, []shown{}},
		{"by time", 9, []ipc.Requests{from(2, 30, 10), from(1, 20)}, []shown{{3, 30, 100}, {4, 20, 100}, {3, 10, 99}}},
		{"at the same time", 9, []ipc.Requests{from(2, 10, 10), from(2, 10, 10)}, []shown{{3, 10, 100}, {3, 10, 99}, {4, 10, 100}, {4, 10, 99}}},
		{"the newest", 2, []ipc.Requests{from(5, 30, 10), from(5, 40, 20)}, []shown{{4, 40, 100}, {3, 30, 100}}},
		{"nothing older than where a list was cut", 9, []ipc.Requests{from(7, 50, 30), from(2, 40, 20)}, []shown{{3, 50, 100}, {4, 40, 100}, {3, 30, 99}}},
		{"nor where another was cut earlier", 9, []ipc.Requests{from(7, 50, 30), from(7, 40)}, []shown{{3, 50, 100}, {4, 40, 100}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := merge(tt.lists, 3, tt.limit)
			list := []shown{}
			for _, r := range got.List {
				list = append(list, shown{r.Engine, r.Arrived, int64(r.Number)})
			}
			if diff := cmp.Diff(tt.want, list); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if want := tt.lists[0].Matched + tt.lists[1].Matched; got.Matched != want || got.Dropped != 2 {
				t.Errorf("%d matched, %d dropped, want %d and 2", got.Matched, got.Dropped, want)
			}
		})
	}
}

// Requests are asked for like anything else: a dead engine is told, a frozen one too, and one engine can be asked alone.
func TestRequests(t *testing.T) {
	t.Parallel()
	r := launch(t, 3, setup{roles: []string{good}})
	q := ipc.RequestQuery{States: []string{ipc.RequestRunning}, ID: "x", Limit: 7}
	got, err := r.Requests(r.soon(), q)
	if err != nil || len(got.List) != 3 || got.List[2].Engine != 2 || got.List[2].ID != "x" || got.List[2].MaxTokens != 7 || got.List[2].State != ipc.RequestRunning {
		t.Errorf("Requests = %+v, %v, want what was asked, of three engines", got, err)
	}
	one, err := r.EngineRequests(r.soon(), 1, q)
	if err != nil || len(one.List) != 1 || one.List[0].Engine != 1 {
		t.Errorf("EngineRequests = %+v, %v, want engine 1's", one, err)
	}
	r.suspend(2)
	_, err = r.EngineRequests(r.within(600*time.Millisecond), 2, q)
	wantSilent(t, "EngineRequests", err, 2)
	_, err = r.Requests(r.soon(), q)
	wantSilent(t, "Requests", err, 2)
	r.kill(1, syscall.SIGKILL)
	r.awaitState(1, StateDead)
	_, err = r.Requests(r.soon(), q)
	wantGone(t, "Requests", err, 1, "signal 9")
	if _, err := r.EngineRequests(r.soon(), 0, q); err != nil {
		t.Errorf("EngineRequests of a living one: %v", err)
	}
}
