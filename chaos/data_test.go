//go:build chaos

package chaos

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/protocol/enginecore"
)

// F44: aborts that come when their requests end by themselves, a moment before or after it.
func TestF44_AbortAtTheEnd(t *testing.T) {
	const tokens, itl = 5, 2 * time.Millisecond
	requests := sized(20_000, 4_000)
	f := listen(t, "tcp://127.0.0.1:0", 1)
	p := f.play(t, 1, "--inter-token-latency", "2", "--max-num-seqs", "1000")
	var racing sync.WaitGroup
	slots := make(chan struct{}, 200)
	for i := range requests {
		slots <- struct{}{}
		id := fmt.Sprintf("r%d", i)
		f.add(t, 0, id, tokens)
		racing.Go(func() {
			defer func() { <-slots }()
			<-time.After((tokens-1)*itl + time.Duration(rand.IntN(2000)-1000)*time.Microsecond)
			if err := f.Client(0).Abort(0, id); err != nil {
				t.Error(err)
			}
		})
	}
	racing.Wait()
	s := p.awaitIdle(t)
	if s.Received != uint64(requests) || s.Failed != 0 {
		t.Errorf("%+v, want %d received and none failed", s, requests)
	}
	if s.Completed == 0 || s.Aborted == 0 {
		t.Errorf("%+v: one side won every race, so nothing was tried", s)
	}
	t.Logf("%d completed, %d aborted", s.Completed, s.Aborted)
	f.wantOnce(t)
	completed := uint64(0)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, ends := range f.ends {
		if ends[0] == enginecore.FinishLength {
			completed++
		}
	}
	if completed != s.Completed {
		t.Errorf("the frontend saw %d requests complete, the engine counts %d", completed, s.Completed)
	}
}

// wantOnce wants that no request was told to have ended twice.
func (f *front) wantOnce(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, ends := range f.ends {
		if len(ends) != 1 {
			t.Errorf("request %s ended %d times: %v", id, len(ends), ends)
		}
	}
}

// F45: aborts of requests that never were or are no more, and an id that is in use.
func TestF45_UnknownAndDuplicate(t *testing.T) {
	f := listen(t, "tcp://127.0.0.1:0", 1)
	p := f.play(t, 1, "--inter-token-latency", "10")
	f.add(t, 0, "first", 2)
	f.awaitEnded(t, 1)
	if err := f.Client(0).Abort(0, "first", "nobody", ""); err != nil {
		t.Fatal(err)
	}
	f.add(t, 0, "twin", 20)
	f.add(t, 0, "twin", 20)
	eventually(t, patience, func() error {
		if ends := f.endsOf("twin"); len(ends) != 2 {
			return fmt.Errorf("the twins have ended %v", ends)
		}
		return nil
	})
	if got, want := f.endsOf("twin"), []enginecore.FinishReason{enginecore.FinishError, enginecore.FinishLength}; !slices.Equal(got, want) {
		t.Errorf("the twins ended %v, want %v: the newcomer is refused, the first runs on", got, want)
	}
	if got, want := p.awaitIdle(t), (stats{Received: 3, Completed: 2, Failed: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// F48: a frontend that goes, with requests running, and comes back at the same address.
func TestF48_FrontendReturns(t *testing.T) {
	address := "tcp://127.0.0.1:" + freePorts(t, 1)[0]
	f := listen(t, address, 2)
	p := f.play(t, 2, "--inter-token-latency", "20")
	for i := range 4 {
		f.add(t, i%2, fmt.Sprint(i), 100_000)
	}
	p.awaitRunning(t, 4)
	f.close()
	eventually(t, time.Second, func() error {
		if got, want := p.stats(t), (stats{Received: 4, Aborted: 4}); got != want {
			return fmt.Errorf("%+v, want %+v", got, want)
		}
		return nil
	})
	if err := p.control.want(503, "GET", "/health", "", "reconnecting"); err != nil {
		t.Error(err)
	}
	family := append(children(p.pid()), p.pid())
	used, begun := cpuOf(family), time.Now()
	<-time.After(3 * time.Second)
	if share := (cpuOf(family) - used).Seconds() / time.Since(begun).Seconds(); share > 0.05 {
		t.Errorf("without a frontend it uses %.1f %% of a core, want at most 5", 100*share)
	}
	back := listen(t, address, 2)
	back.awaitReady(t)
	back.add(t, 0, "again0", 3)
	back.add(t, 1, "again1", 3)
	back.awaitEnded(t, 2)
	if got, want := p.awaitIdle(t), (stats{Received: 6, Completed: 2, Aborted: 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// F48: and with --on-frontend-loss exit.
func TestF48_FrontendLost_Exit(t *testing.T) {
	f := listen(t, "tcp://127.0.0.1:0", 2)
	p := f.play(t, 2, "--on-frontend-loss", "exit")
	p.before = children(p.pid())
	f.close()
	p.wantExit(t, 1, 2*time.Second)
	if !strings.Contains(p.printed(t), "the frontend is gone") {
		t.Error("printed nothing about the frontend")
	}
}

func cpuOf(pids []int) (sum time.Duration) {
	for _, pid := range pids {
		sum += cpuTime(pid)
	}
	return sum
}

// F49: messages that are none.
func TestF49_Garbage(t *testing.T) {
	r := newRude(t)
	p := launch{}.start(t, playArgs(r.handshake.Address(), 1)...)
	p.awaitControl(t)
	identity := r.join(r.input.Address())
	p.awaitState(t, patience, 0, "ready")
	pid := p.engines(t)[0].PID
	before, _ := resident(t, pid)
	add := []byte{enginecore.FrameAdd}
	good := encoded("good")
	huge := append([]byte{0xdd}, binary.BigEndian.AppendUint32(nil, 1<<32-1)...)
	messages := [][][]byte{
		{{}}, {add}, {{0, 0}, good}, {{9}, good}, {{255}}, {{}, {}, {}, {}},
		{add, {}}, {add, {0xc1}}, {add, good[:3]}, {add, {0x80}}, {add, {0xc0}},
		{add, bytes.Repeat([]byte{0x91}, 1<<20)}, // a million arrays in one another
		{add, huge},                              // 2^32 − 1 elements in no bytes
		{add, append([]byte{0xdb}, binary.BigEndian.AppendUint32(nil, 1<<32-1)...)},
		{{enginecore.FrameAbort}, {0xc0, 0xc0}}, {{enginecore.FrameAbort}, huge}, {{enginecore.FrameAbort}, {0x91, 1}},
		{{enginecore.FrameUtility}, {0x93, 1, 2}}, {{enginecore.FrameUtility}, {}},
	}
	for _, m := range messages {
		if err := r.input.Send(identity, m...); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.input.Send(identity, add, good); err != nil {
		t.Fatal(err)
	}
	if got := r.next(); string(got.Requests[0].ID) != "good" || got.Requests[0].Finish != enginecore.FinishLength {
		t.Errorf("first output %q with finish %v, want good with length", got.Requests[0].ID, got.Requests[0].Finish)
	}
	if e := p.engines(t)[0]; e.Dropped != uint64(len(messages)) || e.Stats != (stats{Received: 1, Completed: 1}) || e.PID != pid {
		t.Errorf("%+v, want the same process, %d messages dropped, one request completed", e, len(messages))
	}
	if after, _ := resident(t, pid); after > before+32<<20 {
		t.Errorf("resident memory rose by %d MB, want at most 32", (after-before)>>20)
	}
}

func encoded(id string) []byte {
	sampling := enginecore.DefaultSampling()
	sampling.MaxTokens, sampling.IgnoreEOS = 1, true
	return enginecore.AppendRequest(nil, enginecore.Version{}, &enginecore.Request{ID: id, PromptTokens: []uint32{1, 2}, Sampling: &sampling})
}

// F49: bytes that break the transport itself cost the connection, which is made anew.
func TestF49_BrokenTransport(t *testing.T) {
	for name, garbage := range map[string]string{
		"4 GB claimed":             "\x02\x00\x00\x00\x01\x00\x00\x00\x00",
		"2^64 - 1 claimed":         "\x02\xff\xff\xff\xff\xff\xff\xff\xff",
		"reserved flags":           "\xf8\x01x",
		"a command in a message":   "\x01\x01x\x05\x01x",
		"a message without an end": strings.Repeat("\x01\x00", 1<<20),
		"noise":                    "GET / HTTP/1.1\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRude(t)
			wire := tap(t, strings.TrimPrefix(r.input.Address(), "tcp://"))
			p := launch{}.start(t, playArgs(r.handshake.Address(), 1)...)
			p.awaitControl(t)
			identity := r.join("tcp://" + wire.address)
			p.awaitState(t, patience, 0, "ready")
			pid := p.engines(t)[0].PID
			before, _ := resident(t, pid)
			wire.inject(t, garbage)
			if _, _, err := r.input.Recv(); err != nil { // it registers again
				t.Fatal(err)
			}
			eventually(t, patience, func() error { return r.input.Send(identity, []byte{enginecore.FrameAdd}, encoded("good")) })
			if got := r.next(); string(got.Requests[0].ID) != "good" {
				t.Errorf("first output %q, want good", got.Requests[0].ID)
			}
			if after, _ := resident(t, pid); after > before+32<<20 {
				t.Errorf("resident memory rose by %d MB, want at most 32", (after-before)>>20)
			}
		})
	}
}

// wiretap passes connections on, and can put bytes of its own into the one that was made last.
type wiretap struct {
	address string
	mu      sync.Mutex
	last    net.Conn // towards whoever dialled
}

func tap(t *testing.T, to string) *wiretap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wiretap{address: l.Addr().String()}
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close() // nobody is there for it
				continue
			}
			w.mu.Lock()
			w.last = near
			w.mu.Unlock()
			for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
				passing.Go(func() {
					_, _ = io.Copy(way[0], way[1])                  // up to its end, however that comes
					_ = errors.Join(way[0].Close(), way[1].Close()) // both ways end together
				})
			}
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		if w.last != nil {
			_ = w.last.Close() // and with it all else
		}
		passing.Wait()
	})
	return w
}

func (w *wiretap) inject(t *testing.T, garbage string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := io.WriteString(w.last, garbage); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
}

// F50: a reader of an engine's messages that takes nothing. There are no KV events and no publisher of them, so what can get stuck is the
// output: the engine doesn't wait for it, holds a bounded number of bytes, and hands all of it over at last.
func TestF50_StuckReader(t *testing.T) {
	const requests, tokens = 100, 40_000
	f := listen(t, "tcp://127.0.0.1:0", 1)
	p := f.play(t, 1, "--max-num-seqs", "200")
	pid := p.engines(t)[0].PID
	before, _ := resident(t, pid)
	f.mu.Lock() // nothing is taken any more
	for i := range requests {
		if err := f.try(0, fmt.Sprint(i), tokens); err != nil {
			t.Error(err)
		}
	}
	eventually(t, patience, func() error {
		if e := p.engines(t)[0]; e.Held < 1<<20 {
			return fmt.Errorf("%d bytes are held, want more than a MB of them", e.Held)
		}
		return nil
	})
	for range 20 {
		begun := time.Now()
		p.control.must(t, "GET", "/stats", "")
		if took := time.Since(begun); took > 250*time.Millisecond {
			t.Errorf("GET /stats took %v, want at most 250 ms", took)
		}
	}
	if e := p.engines(t)[0]; e.Held > 16<<20 {
		t.Errorf("%d bytes are held, want at most 16 MB", e.Held)
	}
	if after, _ := resident(t, pid); after-before > 64<<20 {
		t.Errorf("resident memory rose by %d MB, want at most 64", (after-before)>>20)
	}
	f.mu.Unlock()
	f.awaitEnded(t, requests)
	for i := range requests {
		f.mu.Lock()
		if got := f.tokens[fmt.Sprint(i)]; got != tokens {
			t.Errorf("request %d: %d tokens, want %d", i, got, tokens)
		}
		f.mu.Unlock()
	}
}

// F52: everything fails, everything is aborted, and the fleet is stopped, all at once.
func TestF52_FailAbortDrain(t *testing.T) {
	f := listen(t, "tcp://127.0.0.1:0", 2)
	p := f.play(t, 2, "--failure-injection-rate", "0.5", "--shutdown-timeout", "1", "--inter-token-latency", "1")
	var sent atomic.Uint64
	stop := make(chan struct{})
	var storm sync.WaitGroup
	for c := range 8 {
		storm.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprintf("%d-%d", c, i)
				if f.try(c%2, id, 1+uint32(i%50)) != nil || f.Client(0).Abort(c%2, id, fmt.Sprintf("%d-%d", c, i-20)) != nil {
					return // the engine has gone
				}
				sent.Add(1)
			}
		})
	}
	eventually(t, patience, func() error {
		if sent.Load() < 20_000 {
			return errors.New("the storm is still weak")
		}
		return nil
	})
	p.control.must(t, "PATCH", "/config", `{"failure_injection_rate": 1}`)
	p.signal(t, syscall.SIGTERM)
	p.wantExit(t, 0, 8*time.Second)
	close(stop)
	storm.Wait()
	l := p.awaitLog(t, "fleet stopped")
	n := func(key string) uint64 { v, _ := l[key].(float64); return uint64(v) }
	if n("received") < 20_000 || n("received") != n("completed")+n("failed")+n("aborted") || n("failed") == 0 || n("aborted") == 0 || n("lost") != 0 {
		t.Errorf("%v, want books that add up, with failed and aborted requests and no lost ones", l)
	}
	f.wantOnce(t)
}
