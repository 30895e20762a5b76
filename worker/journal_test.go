package worker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/worker/engine"
)

func (r *rig) requests(q ipc.RequestQuery) *ipc.Requests {
	r.t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	a := r.call(ipc.Call{Op: ipc.OpRequests, Query: &q})
	if a.Requests == nil {
		r.t.Fatalf("the answer %+v holds no requests", a)
	}
	return a.Requests
}

// ids names requests in the order of an answer.
func ids(list []ipc.Request) []string {
	names := []string{}
	for _, r := range list {
		names = append(names, r.ID)
	}
	return names
}

// Every way to end is told as it was, with what was asked and given, and so is what has not ended.
func TestJournal_States(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.MaxNumSeqs, c.MaxModelLen = 2, 1000 }})
	asked := request("completed", 3)
	asked.ExternalID = "the client's"
	r.add(asked)
	r.outputs.awaitEnd("completed")
	long := request("too long", 2000)
	r.add(long)
	r.outputs.awaitEnd("too long")
	r.patch(1, config.Patch{{Key: "time_to_first_token", Raw: "60000"}})
	for _, id := range []string{"running", "aborted", "waiting"} {
		r.add(request(id, 5))
	}
	r.add(request("running", 5)) // as another one
	r.outputs.awaitEnd("running")
	if err := r.frontend.Client(0).Abort(0, "aborted"); err != nil {
		t.Fatal(err)
	}
	r.outputs.awaitEnd("aborted")
	r.add(request("last", 5))
	r.awaitCounted(7)
	got := r.requests(ipc.RequestQuery{})
	want := []ipc.Request{
		{Number: 7, ID: "last", State: "waiting", PromptTokens: 4, MaxTokens: 5},
		{Number: 6, ID: "running", State: "failed", FinishReason: "error", Cause: "duplicate request id", PromptTokens: 4, MaxTokens: 5},
		{Number: 5, ID: "waiting", State: "running", PromptTokens: 4, MaxTokens: 5},
		{Number: 4, ID: "aborted", State: "aborted", FinishReason: "abort", Cause: "aborted by the frontend", PromptTokens: 4, MaxTokens: 5},
		{Number: 3, ID: "running", State: "running", PromptTokens: 4, MaxTokens: 5},
		{Number: 2, ID: "too long", State: "failed", FinishReason: "length", Cause: "prompt and output exceed max_model_len", PromptTokens: 4, MaxTokens: 2000},
		{Number: 1, ID: "completed", ExternalID: "the client's", State: "completed", FinishReason: "length", PromptTokens: 4, MaxTokens: 3, OutputTokens: 3},
	}
	if diff := cmp.Diff(want, got.List, cmpopts.IgnoreFields(ipc.Request{}, "Arrived", "Admitted", "FirstToken", "Finished")); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if got.Matched != 7 || got.Dropped != 0 {
		t.Errorf("%d matched and %d dropped, want 7 and 0", got.Matched, got.Dropped)
	}
	for _, q := range []struct {
		query ipc.RequestQuery
		want  []string
	}{
		{ipc.RequestQuery{States: []string{"running"}}, []string{"waiting", "running"}},
		{ipc.RequestQuery{States: []string{"waiting", "completed"}}, []string{"last", "completed"}},
		{ipc.RequestQuery{States: []string{"failed"}, Limit: 1}, []string{"running"}},
		{ipc.RequestQuery{ID: "running"}, []string{"running", "running"}},
		{ipc.RequestQuery{ID: "the client's"}, []string{"completed"}},
		{ipc.RequestQuery{ID: "nobody"}, []string{}},
	} {
		if diff := cmp.Diff(q.want, ids(r.requests(q.query).List)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", q.query, diff)
		}
	}
}

// The times of a request are those of the host's clock, in order, and the same at every call.
func TestJournal_Times(t *testing.T) {
	begun := time.Now().UnixNano()
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.TimeToFirstToken, c.InterTokenLatency = 30, 10 }})
	r.add(request("a", 3))
	r.outputs.awaitEnd("a")
	got := r.requests(ipc.RequestQuery{}).List[0]
	if got.Arrived < begun || got.Admitted < got.Arrived || got.Finished > time.Now().UnixNano() {
		t.Errorf("arrived %d, admitted %d, finished %d: not in order, or not of this test's time", got.Arrived, got.Admitted, got.Finished)
	}
	if ttft := got.FirstToken - got.Admitted; ttft < 30e6 {
		t.Errorf("first token %d ns after admission, want 30 ms at least", ttft)
	}
	if whole := got.Finished - got.Admitted; whole < 50e6 || got.Finished <= got.FirstToken { // a first token that is late delays no other
		t.Errorf("finished %d ns after admission and %d after the first token, want 50 ms at least, and after it", whole, got.Finished-got.FirstToken)
	}
	if diff := cmp.Diff(got, r.requests(ipc.RequestQuery{}).List[0]); diff != "" {
		t.Errorf("the same request, asked for again (-first +second):\n%s", diff)
	}
}

// What the ring has no room for is counted, by this process and by those after it.
func TestJournal_Drops(t *testing.T) {
	for _, size := range []uint64{0, 1, 3} {
		r := newRig(t, rigOptions{change: func(c *config.Config) { c.RequestJournal = size }})
		want := []string{}
		for i := range 10 {
			id := fmt.Sprint(i)
			r.add(request(id, 1))
			r.outputs.awaitEnd(id)
			if uint64(10-i) <= size {
				want = append([]string{id}, want...)
			}
		}
		got := r.requests(ipc.RequestQuery{})
		if diff := cmp.Diff(want, ids(got.List)); diff != "" || got.Dropped != 10-size {
			t.Errorf("a journal of %d: %d dropped, want %d; (-want +got):\n%s", size, got.Dropped, 10-size, diff)
		}
		if kept, dropped := r.page.JournalKept.Load(), r.page.JournalDropped.Load(); kept != size || dropped != 10-size {
			t.Errorf("a journal of %d: the page says %d kept, %d dropped, want %d and %d", size, kept, dropped, size, 10-size)
		}
		r.terminate()
		if err := r.awaitStopped(); err != nil {
			t.Fatal(err)
		}
		if r.page.CloseLedger(); newJournal(size, r.page).dropped() != 10 {
			t.Errorf("a journal of %d: the next process begins with %d dropped, want all 10", size, newJournal(size, r.page).dropped())
		}
	}
}

// An id of a megabyte costs the journal no more than any other.
func TestJournal_HugeID(t *testing.T) {
	r := newRig(t, rigOptions{})
	id := strings.Repeat("é", 1<<19)
	r.add(request(id, 1))
	r.outputs.awaitEnd(id)
	got := r.requests(ipc.RequestQuery{ID: id}).List
	if len(got) != 1 || got[0].ID != strings.Repeat("é", maxNoted/2)+"…" {
		t.Errorf("%d requests, want the one, by the beginning of its id", len(got))
	}
}

// The longest list that can be asked for goes into a frame, or as much of it as does.
func TestJournal_FitsIntoAFrame(t *testing.T) {
	for name, tt := range map[string]struct {
		id   string
		want int
	}{
		"ordinary ids":               {"chatcmpl-0123456789abcdef0123456789abcdef", 10_000},
		"ids that JSON makes longer": {strings.Repeat("\x00", 2*maxNoted), 1000},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 10_000
			page, file, err := ipc.NewPage()
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			defer page.Close()
			l := &loop{clock: NewClock(), engine: engine.New(engine.Config{}, nil), strain: &strain{page: page}, outputs: &outputs{journal: newJournal(n, page)}}
			for range n {
				req := &engine.Request{ID: tt.id, Adapter: tt.id, PromptTokens: 1<<64 - 1, MaxTokens: 1<<64 - 1, Caller: &caller{external: tt.id}}
				l.outputs.journal.arrive(req)
				l.outputs.journal.end(1<<62, req, ipc.RequestCompleted, engine.Repetition, causes[engine.TooLong])
			}
			got := l.requests(ipc.RequestQuery{Limit: n})
			frame, err := ipc.Append(nil, ipc.KindAnswer, 1, ipc.Answer{Requests: got})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.List) < tt.want || got.Matched != n {
				t.Errorf("%d of %d requests in a frame of %d bytes, want at least %d of %d", len(got.List), got.Matched, len(frame), tt.want, n)
			}
			if largest := slices.MaxFunc(got.List, func(a, b ipc.Request) int { return mostBytes(&a) - mostBytes(&b) }); len(frame)/len(got.List) > mostBytes(&largest) {
				t.Errorf("%d bytes for a request, want at most %d", len(frame)/len(got.List), mostBytes(&largest))
			}
		})
	}
}

// To note an end allocates nothing.
func TestJournal_EndIsFree(t *testing.T) {
	j, req := benchJournal(t)
	if n := testing.AllocsPerRun(10_000, func() { j.arrive(req); j.end(1, req, ipc.RequestCompleted, engine.Length, "") }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkJournal_End(b *testing.B) {
	j, req := benchJournal(b)
	b.ReportAllocs()
	for b.Loop() {
		j.arrive(req)
		j.end(1, req, ipc.RequestCompleted, engine.Length, "")
	}
}

func benchJournal(t testing.TB) (*journal, *engine.Request) {
	page, file, err := ipc.NewPage()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close(); page.Close() })
	id := "chatcmpl-0123456789abcdef"
	return newJournal(1024, page), &engine.Request{ID: id, Caller: &caller{id: enginecore.EncodeID(id)}}
}
