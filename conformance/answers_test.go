//go:build conformance

package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestAnswers asks in every form that the server knows, over one engine and over several.
func TestAnswers(t *testing.T) {
	forms := map[string]question{
		"completion":          completion(7),
		"completion stream":   completion(7).streamed(),
		"chat":                chat(7),
		"chat stream":         chat(7).streamed(),
		"one token":           completion(1),
		"many tokens":         completion(1000),
		"many tokens, stream": completion(1000).streamed(),
	}
	eachServer(t, func(t *testing.T, version string) {
		for _, engines := range []int{1, 2, 3, 8} {
			t.Run(fmt.Sprintf("%d engines", engines), func(t *testing.T) {
				srv := serve(t, setup{version: version, engines: engines})
				for name, q := range forms {
					if err := srv.mustAsk(t, q).complete(1, q.MaxTokens); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
				got := srv.awaitIdle(t)
				want := stats{Received: uint64(len(forms)), Completed: uint64(len(forms))}
				if got != want {
					t.Errorf("stats = %+v, want %+v", got, want)
				}
			})
		}
	})
}

// TestAnswers_DefaultLength leaves the number of tokens to the frontend, which sends vLLM's default of 16.
func TestAnswers_DefaultLength(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version})
		if err := srv.mustAsk(t, completion(0)).complete(1, 16); err != nil {
			t.Error(err)
		}
	})
}

// TestAnswers_SeveralChoices shows that the server itself refuses n > 1, and that as many requests at once do the same.
func TestAnswers_SeveralChoices(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version})
		twice := completion(5)
		twice.N = 2
		if got := srv.mustAsk(t, twice); got.status != http.StatusBadRequest {
			t.Errorf("n = 2: status = %d, want %d", got.status, http.StatusBadRequest)
		}
		for i, got := range srv.askAll(t, slices.Repeat([]question{completion(5)}, 4)...) {
			if err := got.complete(1, 5); err != nil {
				t.Errorf("request %d: %v", i, err)
			}
		}
	})
}

// TestAnswers_EveryEngine keeps more requests in flight than there are engines: each engine gets its part, and an engine that is
// asked for by its rank gets exactly what was meant for it.
func TestAnswers_EveryEngine(t *testing.T) {
	const engines = 3
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, engines: engines, play: []string{"--time-to-first-token", "200"}})
		srv.askAll(t, slices.Repeat([]question{completion(2)}, 4*engines)...)
		for _, e := range srv.fleet(t) {
			if e.Stats.Received == 0 {
				t.Errorf("engine %d: received = 0 of %d requests", e.Index, 4*engines)
			}
		}
		srv.control.expect(t, http.StatusNoContent, http.MethodPost, "/stats/reset", "")
		srv.askAll(t, slices.Repeat([]question{completion(2).at(1)}, 5)...)
		for _, e := range srv.fleet(t) {
			want := uint64(0)
			if e.Rank == 1 {
				want = 5
			}
			if e.Stats.Received != want {
				t.Errorf("engine %d: received = %d, want %d", e.Index, e.Stats.Received, want)
			}
		}
	})
}

// TestAnswers_TwoHosts has two supervisors serve one frontend, as if on two hosts: rank 0 is the first one's only engine, ranks 1
// and 2 are the second one's engines 0 and 1.
func TestAnswers_TwoHosts(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		first := prepare(t, setup{version: version, engines: 3})
		second := prepare(t, setup{version: version, engines: 2, play: []string{"--data-parallel-start-rank", "1"}})
		first.startFrontend(t)
		first.setup.engines = 1
		second.ports.handshake, second.frontend, second.http = first.ports.handshake, first.frontend, first.http
		first.startEngines(t)
		second.startEngines(t)
		first.waitReady(t)
		second.waitReady(t)
		for rank := range 3 {
			if err := first.mustAsk(t, completion(5).at(rank)).complete(1, 5); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		}
		for rank, e := range append(first.fleet(t), second.fleet(t)...) {
			if e.Rank != rank || e.Stats.Completed != 1 {
				t.Errorf("engine %d: rank = %d, completed = %d, want %d and 1", e.Index, e.Rank, e.Stats.Completed, rank)
			}
		}
	})
}

// TestAnswers_ContextLength shows both limits: the one the engine advertised, which the frontend keeps by itself, and the one it
// has been given since, which cuts the answer to nothing.
func TestAnswers_ContextLength(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, play: []string{"--max-model-len", "64"}})
		short, long := completion(40), completion(100)
		prompt := srv.mustAsk(t, short).usage.PromptTokens
		if err := srv.mustAsk(t, long).complete(1, 64-prompt); err != nil {
			t.Errorf("over the advertised limit, so cut to fit: %v", err)
		}
		long.Prompt = strings.Repeat("Hello world ", 64)
		if got := srv.mustAsk(t, long); got.status != http.StatusBadRequest {
			t.Errorf("prompt over the advertised limit: status = %d, want %d", got.status, http.StatusBadRequest)
		}
		srv.patch(t, `{"max_model_len": 32}`)
		if err := srv.mustAsk(t, short).empty("length"); err != nil {
			t.Errorf("over the limit in force: %v", err)
		}
		srv.patch(t, `{"max_model_len": 0}`)
		if err := srv.mustAsk(t, short).complete(1, short.MaxTokens); err != nil {
			t.Errorf("without a limit: %v", err)
		}
		if got, want := srv.awaitIdle(t), (stats{Received: 4, Completed: 3, Failed: 1}); got != want {
			t.Errorf("stats = %+v, want %+v", got, want)
		}
	})
}

// TestAnswers_Coordinator serves a mixture of experts, over which the server itself coordinates the engines: they subscribe to it and
// tell it their counts, and each has its part of the requests.
func TestAnswers_Coordinator(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, engines: 2, model: "model-moe", play: []string{"--time-to-first-token", "100"}})
		for i, got := range srv.askAll(t, slices.Repeat([]question{completion(5), chat(5).streamed()}, 8)...) {
			if err := got.complete(1, 5); err != nil {
				t.Errorf("request %d: %v", i, err)
			}
		}
		srv.disconnect(t, completion(2000).streamed())
		for _, e := range srv.fleet(t) {
			if e.Stats.Received == 0 {
				t.Errorf("engine %d has received nothing", e.Index)
			}
		}
	})
}
