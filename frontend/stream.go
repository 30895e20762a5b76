package frontend

import (
	"errors"
	"io"
	"net/http"

	"vllm-vcr/frontend/openai"
)

// events writes a stream in the form of one route.
type events interface {
	// open appends what comes before the first choice.
	open(b []byte, j *job) []byte

	// choice appends what came for a choice since its last event.
	choice(b []byte, j *job, c *choice) []byte

	// done appends the end of an answer that is complete.
	done(b []byte, j *job) []byte
}

// stream answers with events. It waits for the first output, since that decides the status.
func (j *job) stream(e events) error {
	c := j.call
	defer func() {
		if !c.streamed {
			j.end()
		}
	}()
	first, err := j.next()
	if err != nil {
		return err
	}
	c.streamed = true
	c.ctx.SetStatusCode(http.StatusOK)
	c.ctx.SetContentType("text/event-stream; charset=utf-8")
	b := &body{job: j, events: e, first: first}
	if c.ctx.Request.Header.IsHTTP11() {
		c.ctx.SetBodyStream(b, -1)
		return nil
	}
	return c.whole(b)
}

// whole answers a client that speaks HTTP/1.0, which knows no chunks, with all of a stream at once.
func (c *call) whole(b *body) error {
	defer b.Close()
	all, err := io.ReadAll(b)
	if err != nil {
		c.ctx.SetConnectionClose() // what there is ends with an error
	}
	c.ctx.Response.SetBodyRaw(all)
	return nil
}

// body is a stream that fasthttp pulls. It writes as much as is known in one piece, so that each piece leaves at once.
type body struct {
	job    *job
	events events
	first  *choice // taken already; nil once it was written
	buf    []byte  // of the piece at hand
	read   int     // bytes of buf that Read gave out
	end    error   // what comes after buf; nil = more
}

// SupportsBodyWriteTo has fasthttp use WriteTo.
func (b *body) SupportsBodyWriteTo() bool { return true }

// WriteTo writes the events, each piece by one call of w.Write. The error is nil at the end of a stream that is complete.
func (b *body) WriteTo(w io.Writer) (int64, error) {
	total := int64(0)
	for b.end == nil {
		b.fill()
		n, err := w.Write(b.buf)
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
	if b.end == io.EOF {
		return total, nil
	}
	return total, b.end
}

// Read is WriteTo for whoever wants bytes.
func (b *body) Read(p []byte) (int, error) {
	for b.read == len(b.buf) {
		if b.end != nil {
			return 0, b.end
		}
		b.fill()
	}
	n := copy(p, b.buf[b.read:])
	b.read += n
	return n, nil
}

// Close ends the job. fasthttp calls it whatever became of the stream.
func (b *body) Close() error {
	if b.end == nil { // a write failed: the client has gone
		b.job.call.ended(statusGone)
	}
	b.job.end()
	return nil
}

// fill makes the next piece.
func (b *body) fill() {
	b.buf, b.read = b.buf[:0], 0
	c := b.first
	if c != nil {
		b.first = nil
		b.buf = b.events.open(b.buf, b.job)
	} else {
		var err error
		if c, err = b.job.next(); err != nil {
			b.fail(err)
			return
		}
	}
	b.buf = b.events.choice(b.buf, b.job, c)
	c.reset()
	if b.job.left == 0 {
		b.buf = b.events.done(b.buf, b.job)
		b.end = io.EOF
		b.job.call.ended(http.StatusOK)
	}
}

// fail tells of an error after the beginning of an answer. If the engine itself ended the request the stream comes to its end,
// else it is cut.
func (b *body) fail(err error) {
	b.end = err
	answer := failure(err)
	b.job.call.ended(answer.Status)
	if errors.Is(err, errGone) {
		return
	}
	b.buf = answer.AppendEvent(b.buf)
	if isClean(err) {
		b.buf = append(b.buf, openai.Done...)
		b.end = io.EOF
	}
}
