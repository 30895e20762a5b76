package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"vllm-vcr/ipc"
	"vllm-vcr/logs"
)

// errOrphaned says that the supervisor is gone: its end of the socket was closed.
var errOrphaned = errors.New("the supervisor is gone")

// maxPending is how many frames may wait for the supervisor to read them: answers are few, since it asks one thing at
// a time, and states change seldom. A supervisor that lets more pile up is given up.
const maxPending = 256

// supervisorLink is the worker's end of the socket to its supervisor. Writing never blocks the caller.
type supervisorLink struct {
	conn    net.Conn
	pending chan message
	done    chan struct{} // closed by stop
	once    sync.Once
	log     *logs.Logger
}

// message is a frame before it is encoded, which is the writer's work: a long list of requests must not hold up the loop.
type message struct {
	kind   ipc.Kind
	number uint64
	body   any
}

func newSupervisorLink(conn net.Conn, log *logs.Logger) *supervisorLink {
	return &supervisorLink{conn: conn, pending: make(chan message, maxPending), done: make(chan struct{}), log: log}
}

// read hands the supervisor's calls to the loop until the socket ends, and then returns errOrphaned. Calls that don't
// concern the engine are answered here.
func (s *supervisorLink) read(ctx context.Context, l *loop, root *logs.Root) error {
	var buf []byte
	for {
		var f ipc.Frame
		var err error
		if f, buf, err = ipc.ReadFrame(s.conn, buf); err != nil {
			return s.ended(err)
		}
		var call ipc.Call
		if f.Kind != ipc.KindCall {
			s.log.Warn().Uint8("kind", uint8(f.Kind)).Msg("frame dropped: not a call")
			continue
		}
		if err := f.Decode(&call); err != nil {
			s.log.Warn().Err(err).Msg("frame dropped")
			continue
		}
		if in := s.input(f.Call, call, root); in != nil && !l.send(ctx, in) {
			return nil
		}
	}
}

func (s *supervisorLink) ended(err error) error {
	select {
	case <-s.done:
		return nil
	default:
		return fmt.Errorf("%w: %w", errOrphaned, err)
	}
}

// input is what a call means to the loop, nil where it is done already.
func (s *supervisorLink) input(number uint64, call ipc.Call, root *logs.Root) input {
	switch call.Op {
	case ipc.OpLog:
		s.answer(number, ipc.Answer{Refused: setFilter(root, call.Filter)})
		return nil
	default:
		return callInput{number: number, call: call, answer: s.answer}
	}
}

// setFilter returns why a filter was refused, or "".
func setFilter(root *logs.Root, text string) string {
	f, err := logs.ParseFilter(text)
	if err != nil {
		return err.Error()
	}
	root.SetFilter(f)
	return ""
}

// write sends what is pending until stop.
func (s *supervisorLink) write() error {
	for {
		select {
		case m := <-s.pending:
			if err := s.send(m); err != nil {
				return s.ended(err)
			}
		case <-s.done:
			return nil
		}
	}
}

// stop ends read and write. The socket stays open: to the supervisor its end is the end of the worker.
func (s *supervisorLink) stop() {
	s.once.Do(func() {
		close(s.done)
		_ = s.conn.SetDeadline(time.Unix(1, 0)) // fails only on a closed connection, of which read has heard
	})
}

func (s *supervisorLink) answer(number uint64, a ipc.Answer) { s.enqueue(ipc.KindAnswer, number, a) }

func (s *supervisorLink) report(state ipc.State) { s.enqueue(ipc.KindState, 0, state) }

// send returns the end of the socket only: a frame that cannot be is told in the log.
func (s *supervisorLink) send(m message) error {
	frame, err := ipc.Append(nil, m.kind, m.number, m.body)
	if err != nil {
		s.log.Error().Err(err).Msg("frame not sent")
		return nil
	}
	_, err = s.conn.Write(frame)
	return err
}

// enqueue leaves a frame to write. Nobody may change what body shares.
func (s *supervisorLink) enqueue(kind ipc.Kind, number uint64, body any) {
	select {
	case s.pending <- message{kind, number, body}:
	default:
		s.log.Error().Int("pending", maxPending).Msg("the supervisor does not read: leaving")
		s.stop()
	}
}
