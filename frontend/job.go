package frontend

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/frontend/openai"
	"vllm-vcr/protocol/enginecore"
)

// job is a call that has been given to the engines. end must follow once its answer was made, or given up.
type job struct {
	call      *call
	conn      net.Conn
	ctx       context.Context // ends when the client goes or the server stops; its cause says which
	cancel    context.CancelCauseFunc
	streams   Streams
	watcher   *watcher
	choices   []*choice // as the streams are numbered
	perPrompt int       // choices of each prompt
	left      int       // choices that have not ended
	failed    error     // what comes after the tokens that came with it; nil = nothing

	head       openai.Head
	usage      openai.Usage
	kvTransfer []byte // JSON; nil = none
	once       sync.Once
}

// submit gives requests to the engines, which answer with choices.
func (s *Server) submit(c *call, requests []dispatch.Request, choices []*choice) (*job, error) {
	if !s.gate.enter() {
		return nil, errStopped
	}
	given := false
	defer func() {
		if !given {
			s.gate.leave()
		}
	}()
	streams, err := s.engines.Submit(requests)
	c.endTurn()
	if err != nil {
		return nil, err
	}
	given = true
	j := &job{
		call: c, conn: c.ctx.Conn(), streams: streams,
		choices: choices, perPrompt: len(choices) / len(requests), left: len(choices),
	}
	for i := range requests {
		j.usage.Prompt += len(requests[i].PromptTokens)
	}
	j.ctx, j.cancel = context.WithCancelCause(s.gate.life)
	j.watcher = watch(j.conn, j.abandon)
	return j, nil
}

// abandon ends what is done for a client that has gone, also a write to it that waits.
func (j *job) abandon() {
	j.cancel(errGone)
	j.streams.Cancel()
	_ = j.conn.SetWriteDeadline(time.Unix(1, 0)) // a connection that is closed fails its writes without it
}

// end gives the connection back, and the engines what they still do for the job.
func (j *job) end() {
	j.once.Do(func() {
		j.watcher.stop()
		if j.left > 0 {
			j.streams.Cancel()
		}
		j.cancel(nil)
		j.call.server.gate.leave()
	})
}

// next takes what is next of any choice. The error is io.EOF when all have ended.
func (j *job) next() (*choice, error) {
	if j.left == 0 {
		return nil, io.EOF
	}
	if j.failed != nil {
		return nil, j.failed
	}
	i, chunk, err := j.streams.Next(j.ctx)
	if err != nil {
		return nil, j.cause(err)
	}
	c := j.choices[i]
	if chunk.Finish == enginecore.FinishError {
		j.failed, chunk.Finish = engineFailure(chunk.Error), enginecore.FinishNone
		if len(chunk.Tokens) == 0 {
			return nil, j.failed
		}
	}
	before := c.generated
	c.take(&chunk)
	j.usage.Completion += c.generated - before
	j.note(i, &chunk)
	if c.Finish != "" {
		j.failed = nil // its text reached a stop string before that
		j.left--
		if chunk.Finish == enginecore.FinishNone {
			j.streams.Stop(i)
		}
	}
	return c, nil
}

// cause is why an output didn't come: the end of the context first, since the streams were canceled for it.
func (j *job) cause(err error) error {
	if cause := context.Cause(j.ctx); cause != nil {
		return cause
	}
	if err == io.EOF { // not what a lost connection's error wraps
		return errors.New("the engine's answer ended without a reason")
	}
	return err
}

// note keeps what an output tells about the request as a whole.
func (j *job) note(i int, chunk *dispatch.Chunk) {
	if chunk.Prefill.Set && i%j.perPrompt == 0 {
		j.usage.Cached += int(chunk.Prefill.Value.Cached)
		j.usage.Created += int(chunk.Prefill.Value.CacheCreation)
	}
	if chunk.KVTransfer != nil {
		j.kvTransfer = jsonOf(chunk.KVTransfer)
	}
}

// collect waits for all of the answer.
func (j *job) collect() ([]openai.Choice, error) {
	defer j.end()
	for {
		_, err := j.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	whole := make([]openai.Choice, len(j.choices))
	for i, c := range j.choices {
		whole[i] = *c.seal()
	}
	return whole, nil
}
