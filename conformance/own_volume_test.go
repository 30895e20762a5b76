//go:build conformance

package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"
)

// TestOwnVolume_SlowReader reads nothing at all until the engine has long made all 20,000 tokens, then a little at a time, then the rest: not one
// is missing, and there is one end.
func TestOwnVolume_SlowReader(t *testing.T) {
	const tokens = 20_000
	srv := ownServer(t, 1)
	v := srv.connect(t, "/v1/completions", completion(tokens).streamed())
	srv.awaitStats(t, func(got stats) error {
		if got.Completed != 1 {
			return fmt.Errorf("completed = %d, want 1", got.Completed)
		}
		return nil
	})
	if err := srv.mustAsk(t, completion(100).streamed()).complete(1, 100); err != nil {
		t.Errorf("another client beside a slow one: %v", err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(&trickle{from: v.in, slow: 5 << 10}), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := answer{status: resp.StatusCode}
	if err := got.readEvents(strings.NewReader(string(text))); err != nil {
		t.Fatal(err)
	}
	if err := got.complete(1, tokens); err != nil {
		t.Error(err)
	}
	if n := strings.Count(string(text), "data: [DONE]"); n != 1 {
		t.Errorf("%d end markers, want 1", n)
	}
}

// trickle gives out its first bytes at 10 KiB/s.
type trickle struct {
	from io.Reader
	slow int // bytes
}

func (r *trickle) Read(p []byte) (int, error) {
	if r.slow > 0 {
		<-time.NewTimer(10 * time.Millisecond).C
		p = p[:min(len(p), 100)]
	}
	n, err := r.from.Read(p)
	r.slow -= n
	return n, err
}

// TestOwnVolume_Burst sends 500 requests at once: 500 answers come.
func TestOwnVolume_Burst(t *testing.T) {
	srv := ownServer(t, 3)
	for i, got := range srv.askAll(t, slices.Repeat([]question{completion(20), chat(20).streamed()}, 250)...) {
		if err := got.complete(1, 20); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if got, want := srv.awaitIdle(t), (stats{Received: 500, Completed: 500}); got != want {
		t.Errorf("stats = %+v, want %+v", got, want)
	}
}

// TestOwnVolume_Crowd has 5000 clients come at once and wait, on the same cores.
func TestOwnVolume_Crowd(t *testing.T) {
	srv := ownServer(t, 2, "--time-to-first-token", "300")
	srv.standCrowd(t, 1, func(int) error {
		got, err := srv.ask(t.Context(), completion(1))
		if err != nil {
			return err
		}
		return got.complete(1, 1)
	})
}

// TestOwnVolume_OpenCrowd has 5000 clients whose connections are open already send chats of 3 KB at once.
func TestOwnVolume_OpenCrowd(t *testing.T) {
	srv := ownServer(t, 2, "--time-to-first-token", "300")
	q := chat(1)
	q.Messages[0].Content = strings.Repeat("Tell me a story. ", 3000/17)
	clients := make([]*visitor, crowdSize)
	for i := range clients {
		clients[i] = srv.dial(t)
	}
	srv.standCrowd(t, 3, func(i int) error { return clients[i].chat(q) })
}

// chat asks q, and judges its one answer.
func (v *visitor) chat(q question) error {
	if err := v.send("/v1/chat/completions", q); err != nil {
		return err
	}
	resp, err := http.ReadResponse(v.in, nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	got := answer{status: resp.StatusCode, whole: true}
	if err := got.add(text); err != nil {
		return err
	}
	return got.complete(1, 1)
}

const crowdSize = 5000

// standCrowd has clients ask at once: whoever asks for the health of either API is answered within 200 ms all the time. The best of
// so many crowds counts, since others may want the machine's cores during one.
func (s *server) standCrowd(t *testing.T, crowds int, ask func(client int) error) {
	t.Helper()
	const patience = 200 * time.Millisecond
	for range crowds {
		worst := s.crowd(t, ask)
		t.Logf("slowest health check of both APIs = %v", worst)
		if worst <= patience {
			return
		}
	}
	t.Errorf("a health check took more than %v in each of %d crowds", patience, crowds)
}

// crowd is one, and returns how long the slowest health check took. It is another process that asks, each time over a connection of
// its own, as probes do: the one that is the crowd is late by itself.
func (s *server) crowd(t *testing.T, ask func(client int) error) (worst time.Duration) {
	t.Helper()
	var answered atomic.Int64
	var all sync.WaitGroup
	faults := make(chan error, crowdSize)
	for i := range crowdSize {
		all.Go(func() {
			defer answered.Add(1)
			if err := ask(i); err != nil {
				faults <- err
			}
		})
	}
	for answered.Load() < crowdSize {
		for _, port := range []int{s.ports.http, s.ports.control} {
			worst = max(worst, probe(t, port))
		}
	}
	all.Wait()
	close(faults)
	for err := range faults {
		t.Error(err)
	}
	return worst
}

// probe has curl ask for the health, and returns how long the call took from its first packet to its last.
func probe(t *testing.T, port int) time.Duration {
	t.Helper()
	out, err := exec.Command("curl", "--silent", "--show-error", "--noproxy", "*", "--max-time", "30", "--output", "/dev/null",
		"--write-out", "%{http_code} %{time_total}", fmt.Sprintf("http://127.0.0.1:%d/health", port)).Output()
	var status int
	var seconds float64
	if _, scanErr := fmt.Sscan(string(out), &status, &seconds); err != nil || scanErr != nil || status != http.StatusOK {
		t.Fatalf("curl: %v, %q, want 200", err, out)
	}
	return time.Duration(seconds * float64(time.Second))
}

// TestOwnVolume_RandomText streams a million random tokens: every line is JSON in valid UTF-8 though characters lie across tokens, every id is an
// ordinary one, and what came in pieces is what the ids are as a whole.
func TestOwnVolume_RandomText(t *testing.T) {
	const streams, tokens, ordinary = 50, 20_000, 100_256
	srv := ownServer(t, 2, "--token-source", "random")
	var all sync.WaitGroup
	faults := make(chan error, streams)
	for range streams {
		all.Go(func() {
			if err := srv.randomText(tokens, ordinary); err != nil {
				faults <- err
			}
		})
	}
	all.Wait()
	close(faults)
	for err := range faults {
		t.Error(err)
	}
}

// randomText streams one answer and judges it.
func (s *server) randomText(tokens, ordinary int) error {
	body, err := json.Marshal(completion(tokens).streamed())
	if err != nil {
		return err
	}
	r, err := s.http.try(http.MethodPost, "/v1/completions", string(body))
	if err != nil {
		return err
	}
	var text strings.Builder
	var ids []int
	for data := range strings.SplitSeq(strings.TrimSuffix(r.body, "data: [DONE]\n\n"), "\n\n") {
		if data == "" {
			continue
		}
		if !utf8.ValidString(data) {
			return fmt.Errorf("event %.200q is no UTF-8", data)
		}
		var event struct {
			Choices []struct {
				Text     string `json:"text"`
				TokenIDs []int  `json:"token_ids"`
			} `json:"choices"`
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), &event); err != nil {
			return fmt.Errorf("event %.200q: %w", data, err)
		}
		for _, c := range event.Choices {
			text.WriteString(c.Text)
			ids = append(ids, c.TokenIDs...)
		}
	}
	if len(ids) != tokens || slices.Max(ids) >= ordinary {
		return fmt.Errorf("%d tokens up to id %d, want %d below %d", len(ids), slices.Max(ids), tokens, ordinary)
	}
	return s.isTextOf(text.String(), ids)
}

// isTextOf compares a text with what the server makes of ids at once.
func (s *server) isTextOf(text string, ids []int) error {
	body, err := json.Marshal(map[string][]int{"tokens": ids})
	if err != nil {
		return err
	}
	r, err := s.http.try(http.MethodPost, "/detokenize", string(body))
	if err != nil {
		return err
	}
	var whole struct {
		Prompt string `json:"prompt"`
	}
	if err := json.Unmarshal([]byte(r.body), &whole); err != nil {
		return fmt.Errorf("detokenize: %w", err)
	}
	if whole.Prompt != text {
		return fmt.Errorf("streamed text of %d bytes differs from the %d bytes of its ids", len(text), len(whole.Prompt))
	}
	return nil
}
