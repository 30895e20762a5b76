//go:build conformance

package conformance

import (
	"fmt"
	"net/http"
	"testing"
)

// TestDisconnect has clients go away at every stage of a request.
func TestDisconnect(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, engines: 2})
		srv.patch(t, `{"inter_token_latency": 20}`)
		t.Run("body", func(t *testing.T) { srv.disconnect(t, completion(2000)) })
		t.Run("stream", func(t *testing.T) { srv.disconnect(t, completion(2000).streamed()) })
		t.Run("chat stream", func(t *testing.T) { srv.disconnect(t, chat(2000).streamed()) })
		srv.patch(t, `{"time_to_first_token": 60000}`)
		t.Run("before the first token", func(t *testing.T) { srv.disconnect(t, completion(5).streamed()) })
	})
}

// TestDisconnect_Waiting has a client go away that never got a slot; the one that runs is not disturbed.
func TestDisconnect_Waiting(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, play: []string{"--max-num-seqs", "1", "--inter-token-latency", "20"}})
		running := srv.begin(t, completion(100).streamed())
		srv.awaitRunning(t, 1)
		waiting := srv.begin(t, completion(5))
		srv.awaitStats(t, func(got stats) error {
			if got.Waiting != 1 {
				return fmt.Errorf("waiting = %d, want 1", got.Waiting)
			}
			return nil
		})
		waiting.leave()
		if err := running.wait(t).complete(1, 100); err != nil {
			t.Errorf("running request: %v", err)
		}
		if got, want := srv.awaitIdle(t), (stats{Received: 2, Completed: 1, Aborted: 1}); got != want {
			t.Errorf("stats = %+v, want %+v", got, want)
		}
	})
}

// TestDisconnect_StopString makes the frontend end requests by itself: it cuts the text at the string and aborts the rest.
func TestDisconnect_StopString(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version})
		srv.patch(t, `{"inter_token_latency": 5}`)
		r := srv.http.expect(t, http.StatusOK, http.MethodPost, "/v1/completions",
			fmt.Sprintf(`{"model": %q, "prompt": "Hello world", "max_tokens": 4000, "stop": ["e", "a", "o", "t"]}`, modelName))
		var got answer
		if err := got.add([]byte(r.body)); err != nil {
			t.Fatal(err)
		}
		if c := got.choices[0]; c == nil || c.finish != "stop" {
			t.Errorf("choice = %+v, want one that ended by stop", c)
		}
		if got, want := srv.awaitIdle(t), (stats{Received: 1, Aborted: 1}); got != want {
			t.Errorf("stats = %+v, want %+v", got, want)
		}
	})
}
