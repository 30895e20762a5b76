//go:build conformance || conformance_python

package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// modelName is the name under which every frontend serves the model.
const modelName = "tiny"

// question is an OpenAI request: a chat if it has messages, else a completion.
type question struct {
	Model         string         `json:"model"`
	Prompt        any            `json:"prompt,omitempty"` // text, or token ids
	Messages      []message      `json:"messages,omitempty"`
	MaxTokens     int            `json:"max_tokens,omitempty"` // 0 = left to the frontend
	N             int            `json:"n,omitempty"`
	Stream        bool           `json:"stream,omitempty"`
	StreamOptions *streamOptions `json:"stream_options,omitempty"`
	ReturnIDs     bool           `json:"return_token_ids"`
	XArgs         map[string]any `json:"vllm_xargs,omitempty"` // what the request brings of its own

	rank int // data-parallel rank to ask; 0 = whichever the frontend picks, n = rank n−1
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// completion asks for n tokens after a fixed prompt.
func completion(n int) question {
	return question{Model: modelName, Prompt: "Hello world", MaxTokens: n, ReturnIDs: true}
}

// chat asks for a reply of n tokens to a fixed message.
func chat(n int) question {
	return question{Model: modelName, Messages: []message{{"user", "Tell me a story"}}, MaxTokens: n, ReturnIDs: true}
}

// streamed asks for the same answer as a stream of events.
func (q question) streamed() question {
	q.Stream, q.StreamOptions = true, &streamOptions{IncludeUsage: true}
	return q
}

// at asks the engine of one rank.
func (q question) at(rank int) question {
	q.rank = rank + 1
	return q
}

// answer is what came back, of a stream put together again.
type answer struct {
	status  int
	choices map[int]*choice // by the index of the choice
	usage   usage
	failure string      // what an error object said, in the body or in the stream
	whole   bool        // read to its end: the body, or [DONE]
	arrived []time.Time // when each event that carried text was read
}

// choice is one of the n texts of an answer.
type choice struct {
	text   string
	finish string
	tokens int // ids that came with it
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
}

// ask sends q and reads the answer to its end. The error is the transport's; an HTTP error is an answer.
func (s *server) ask(ctx context.Context, q question) (answer, error) {
	path := "/v1/completions"
	if q.Messages != nil {
		path = "/v1/chat/completions"
	}
	body, err := json.Marshal(q)
	if err != nil {
		return answer{}, err
	}
	header := http.Header{}
	if q.rank > 0 {
		header.Set("X-Data-Parallel-Rank", strconv.Itoa(q.rank-1))
	}
	resp, err := s.http.request(ctx, http.MethodPost, path, string(body), header)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end or given up
	got := answer{status: resp.StatusCode}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		err = got.readEvents(resp.Body)
		return got, err
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return got, err
	}
	got.whole = true
	err = got.add(text)
	return got, err
}

// mustAsk sends q, which must be answered, with whatever status.
func (s *server) mustAsk(t *testing.T, q question) answer {
	t.Helper()
	got, err := s.ask(t.Context(), q)
	if err != nil {
		t.Fatalf("ask: %v", err)
	}
	return got
}

// askAll sends all questions at once and returns their answers in the same order.
func (s *server) askAll(t *testing.T, questions ...question) []answer {
	t.Helper()
	answers, errs := make([]answer, len(questions)), make([]error, len(questions))
	var wg sync.WaitGroup
	for i, q := range questions {
		wg.Go(func() { answers[i], errs[i] = s.ask(t.Context(), q) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("ask: %v", err)
	}
	return answers
}

// inFlight is a question whose answer has not been waited for.
type inFlight struct {
	done   chan struct{} // closed once answer and err are set
	answer answer
	err    error
	leave  context.CancelFunc // the client goes away
}

// begin sends q and returns at once. The request is given up when the test ends.
func (s *server) begin(t *testing.T, q question) *inFlight {
	ctx, cancel := context.WithCancel(context.Background())
	f := &inFlight{done: make(chan struct{}), leave: cancel}
	go func() {
		defer close(f.done)
		f.answer, f.err = s.ask(ctx, q)
	}()
	t.Cleanup(func() {
		cancel()
		<-f.done
	})
	return f
}

// wait returns the answer, which must have come.
func (f *inFlight) wait(t *testing.T) answer {
	t.Helper()
	<-f.done
	if f.err != nil {
		t.Fatalf("ask: %v", f.err)
	}
	return f.answer
}

// readEvents adds every event of a stream up to its end.
func (a *answer) readEvents(stream io.Reader) error {
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			a.whole = true
			continue
		}
		if err := a.add([]byte(data)); err != nil {
			return err
		}
	}
	return lines.Err()
}

// add takes in one body or one event.
func (a *answer) add(text []byte) error {
	var part struct {
		Choices []struct {
			Index   int    `json:"index"`
			Text    string `json:"text"`
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
			Delta struct {
				Content string `json:"content"`
			} `json:"delta"`
			Finish   string `json:"finish_reason"`
			TokenIDs []int  `json:"token_ids"`
		} `json:"choices"`
		Usage *usage          `json:"usage"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(text, &part); err != nil {
		return fmt.Errorf("answer %q: %w", text, err)
	}
	a.failure += string(part.Error)
	if part.Usage != nil {
		a.usage = *part.Usage
	}
	for _, c := range part.Choices {
		if a.choices == nil {
			a.choices = map[int]*choice{}
		}
		if a.choices[c.Index] == nil {
			a.choices[c.Index] = &choice{}
		}
		piece := c.Text + c.Message.Content + c.Delta.Content
		a.choices[c.Index].text += piece
		a.choices[c.Index].finish += c.Finish
		a.choices[c.Index].tokens += len(c.TokenIDs)
		if piece != "" {
			a.arrived = append(a.arrived, time.Now())
		}
	}
	return nil
}

// complete returns nil if a holds choices whole texts of tokens tokens each, all ended by their length.
func (a answer) complete(choices, tokens int) error {
	if a.status != http.StatusOK || a.failure != "" || !a.whole {
		return fmt.Errorf("status = %d, whole = %v, error = %q, want 200, true and none", a.status, a.whole, a.failure)
	}
	if len(a.choices) != choices || a.usage.CompletionTokens != choices*tokens {
		return fmt.Errorf("%d choices of %d tokens together, want %d of %d", len(a.choices), a.usage.CompletionTokens, choices, choices*tokens)
	}
	for index, c := range a.choices {
		if c.finish != "length" || c.tokens != tokens || c.text == "" {
			return fmt.Errorf("choice %d: finish = %q, ids = %d, text = %q, want length, %d and text", index, c.finish, c.tokens, c.text, tokens)
		}
	}
	return nil
}

// empty returns nil if a is one whole choice without a token that ended for the given reason.
func (a answer) empty(finish string) error {
	if a.status != http.StatusOK || !a.whole || a.choices[0] == nil {
		return fmt.Errorf("status = %d, whole = %v, %d choices, want 200, true, 1", a.status, a.whole, len(a.choices))
	}
	if c := a.choices[0]; c.finish != finish || c.tokens != 0 || a.usage.CompletionTokens != 0 {
		return fmt.Errorf("finish = %q, ids = %d, completion tokens = %d, want %q and none", c.finish, c.tokens, a.usage.CompletionTokens, finish)
	}
	return nil
}
