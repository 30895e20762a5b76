package frontend

import "runtime"

// turns bound how many requests are made ready for the engines at once. A crowd that comes at once waits for its turns, each
// request having cost no more than the reading of its bytes, so that who asks for less, for the health say, is not behind
// all of its tokens and JSON. There are more turns than cores: a few long prompts don't hold up the short ones.
type turns chan struct{}

const turnCount = 16

func newTurns() turns { return make(turns, turnCount) }

// take waits for a turn. Who had to wait goes behind all that can run at that moment: the runtime has a turn's next holder run
// at once, and so the crowd, one after the other, before everybody else.
func (t turns) take() {
	select {
	case t <- struct{}{}:
	default:
		t <- struct{}{}
		runtime.Gosched()
	}
}

// inTurn has h wait for a turn, which ends when its request is at the engines, or without one when h returns.
func inTurn(h handler) handler {
	return func(s *Server, c *call) error {
		s.turns.take()
		c.inTurn = true
		defer c.endTurn()
		return h(s, c)
	}
}

// endTurn may be called more than once.
func (c *call) endTurn() {
	if c.inTurn {
		c.inTurn = false
		<-c.server.turns
	}
}
