//go:build conformance

package conformance

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// echoed asks for the prompt over and over, which engines with --token-source echo answer: what must come is known to the last byte.
func (s *server) echoed(t *testing.T, prompt string, times int) (q question, want string) {
	t.Helper()
	type tokens struct {
		Count int `json:"count"`
	}
	body := fmt.Sprintf(`{"prompt": %q, "add_special_tokens": false}`, prompt)
	n := decode[tokens](t, s.http.expect(t, http.StatusOK, http.MethodPost, "/tokenize", body)).Count
	q = completion(n * times)
	q.Prompt = prompt
	return q.streamed(), strings.Repeat(prompt, times)
}

// exact returns nil if a is one whole text, this one.
func (a answer) exact(want string, tokens int) error {
	if err := a.complete(1, tokens); err != nil {
		return err
	}
	if got := a.choices[0].text; got != want {
		return fmt.Errorf("text = %.200q, want %.200q", got, want)
	}
	return nil
}

// severed returns nil if f was told of an error and then cut off, with no mark of a good end.
func (f *inFlight) severed() error {
	if f.answer.status != http.StatusOK || f.answer.failure == "" || f.answer.whole || f.err == nil {
		return fmt.Errorf("status = %d, error event = %q, [DONE] = %v, connection: %v; want 200, an event, no [DONE] and a cut",
			f.answer.status, f.answer.failure, f.answer.whole, f.err)
	}
	return nil
}

// TestOwnDeath kills one of three engines under 50 streams and a request without a stream.
func TestOwnDeath(t *testing.T) {
	const streams, victim = 50, 1
	srv := ownServer(t, 3, "--token-source", "echo", "--inter-token-latency", "20")
	flights, wants, questions := make([]*inFlight, streams), make([]string, streams), make([]question, streams)
	for i := range streams {
		questions[i], wants[i] = srv.echoed(t, fmt.Sprintf("This is stream number %d of many.", i), 20)
		questions[i] = questions[i].at(i % 3)
	}
	for i, q := range questions {
		flights[i] = srv.begin(t, q)
	}
	body := srv.begin(t, completion(2000).at(victim))
	srv.awaitRunning(t, streams+1)
	srv.killWorker(t, victim)
	deadline := time.After(time.Second)
	for i := victim; i < streams; i += 3 {
		select {
		case <-flights[i].done:
		case <-deadline:
			t.Fatalf("stream %d of the dead engine has not ended after a second", i)
		}
		if err := flights[i].severed(); err != nil {
			t.Errorf("stream %d of the dead engine: %v", i, err)
		}
	}
	if got := body.wait(t); got.status != http.StatusInternalServerError || got.failure == "" {
		t.Errorf("body of the dead engine: status = %d, error = %q, want %d and an error", got.status, got.failure, http.StatusInternalServerError)
	}
	srv.expectDegraded(t)
	for i, f := range flights {
		if i%3 == victim {
			continue
		}
		if err := f.wait(t).exact(wants[i], questions[i].MaxTokens); err != nil {
			t.Errorf("stream %d of a living engine: %v", i, err)
		}
	}
	for i, got := range srv.askAll(t, completion(5), completion(5), completion(5), completion(5)) {
		if err := got.complete(1, 5); err != nil {
			t.Errorf("new request %d: %v", i, err)
		}
	}
	if got := srv.mustAsk(t, completion(5).at(victim)); got.status < http.StatusInternalServerError {
		t.Errorf("request for the dead engine: status = %d, want 500 or 503", got.status)
	}
}

// expectDegraded waits at most a second for both APIs to say that an engine is missing.
func (s *server) expectDegraded(t *testing.T) {
	t.Helper()
	proctest.Eventually(t, time.Second, func() error {
		health := s.http.call(t, http.MethodGet, "/health", "")
		config := s.control.call(t, http.MethodGet, "/config", "")
		return errors.Join(jsonError(health, http.StatusServiceUnavailable), jsonError(config, http.StatusInternalServerError))
	})
}

// jsonError returns nil if r has that status and a JSON object that tells of an error.
func jsonError(r reply, status int) error {
	if r.status != status || !strings.HasPrefix(r.header.Get("Content-Type"), "application/json") || !strings.Contains(r.body, `"error"`) {
		return fmt.Errorf("status = %d, type = %q, body = %.300q, want %d and an error in JSON", r.status, r.header.Get("Content-Type"), r.body, status)
	}
	return nil
}

// TestOwnDeath_All kills the only engine: whoever asks is sent away at once.
func TestOwnDeath_All(t *testing.T) {
	srv := ownServer(t, 1)
	srv.killWorker(t, 0)
	srv.expectDegraded(t)
	for path, body := range map[string]string{
		"/v1/completions":      `{"prompt": "x"}`,
		"/v1/chat/completions": `{"messages": [{"role": "user", "content": "x"}], "stream": true}`,
		"/v1/embeddings":       `{"input": "x"}`,
		"/v1/responses":        `{"input": "x"}`,
	} {
		if err := jsonError(srv.http.call(t, http.MethodPost, path, body), http.StatusServiceUnavailable); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestOwnDeath_Restart has a killed engine come back.
func TestOwnDeath_Restart(t *testing.T) {
	srv := ownServer(t, 2, "--restart", "on-failure")
	srv.killWorker(t, 1)
	proctest.Eventually(t, 20*time.Second, func() error {
		if e := srv.fleet(t)[1]; e.Restarts != 1 || e.State != "ready" {
			return fmt.Errorf("engine 1: %+v, want it ready after one restart", e)
		}
		return srv.http.healthy("/health")
	})
	if err := srv.mustAsk(t, completion(5).at(1)).complete(1, 5); err != nil {
		t.Error(err)
	}
}

// TestOwnDeath_Frozen stops an engine's process: the control API says so and doesn't hang, the other engine goes on, and once the stopped
// one is continued its streams come to their end as if nothing had been.
func TestOwnDeath_Frozen(t *testing.T) {
	srv := ownServer(t, 2, "--token-source", "echo", "--inter-token-latency", "20", "--control-timeout", "1")
	q, want := srv.echoed(t, "A stream that stops for a while.", 10)
	frozen, other := srv.begin(t, q.at(0)), srv.begin(t, q.at(1))
	srv.awaitRunning(t, 2)
	pid := srv.fleet(t)[0].PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) }) // gone, if the test went well
	proctest.Eventually(t, 2*time.Second, func() error {         // its threads stop one after the other
		start := time.Now()
		err := jsonError(srv.control.call(t, http.MethodGet, "/config", ""), http.StatusGatewayTimeout)
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("control API over a frozen engine took %v, want about 1s", took)
		}
		return err
	})
	srv.awaitState(t, 0, "frozen")
	if r := srv.control.call(t, http.MethodGet, "/health", ""); r.status != http.StatusServiceUnavailable {
		t.Errorf("control health = %d, want %d", r.status, http.StatusServiceUnavailable)
	}
	if err := other.wait(t).exact(want, q.MaxTokens); err != nil {
		t.Errorf("stream of the other engine: %v", err)
	}
	select {
	case <-frozen.done:
		t.Errorf("stream of the frozen engine ended: %+v, %v", frozen.answer, frozen.err)
	default:
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := frozen.wait(t).exact(want, q.MaxTokens); err != nil {
		t.Errorf("stream of the continued engine: %v", err)
	}
	proctest.Eventually(t, 5*time.Second, func() error { return errors.Join(srv.control.healthy("/health"), srv.http.healthy("/health")) })
}
