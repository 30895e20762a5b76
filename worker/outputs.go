package worker

import (
	"fmt"
	"time"

	"vllm-vcr/ipc"
	"vllm-vcr/logs"
	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
	"vllm-vcr/worker/engine"
)

// A client that has more than fullBytes of encoded output waiting is held, until less than lowBytes wait.
const (
	fullBytes = 8 << 20
	lowBytes  = 4 << 20
)

// maxQueued is how many bytes of that which is never held may wait as well: ends, and answers to utility calls. A client that asks for
// more of them and reads nothing is given up.
const maxQueued = 256 << 20

// outputs is the engine's sink: it encodes what the engine emits, gathers it by client and sends one message a client
// and turn. It never waits for a reader.
type outputs struct {
	version enginecore.Version
	rank    uint32
	clients []*outlet
	coord   *zmtp.Conn // nil = no coordinator
	told    statsFeed  // the coordinator
	counted statsFeed  // client 0
	strain  *strain
	steps   uint64
	idle    bool // the loop waits after this turn: its messages need nobody else to send them
	verbose bool // log_requests
	log     *logs.Logger
	journal *journal
	now     engine.Time // of the present turn

	// Scratch of one output, so that none is made for each.
	out     enginecore.Output
	events  [2]enginecore.Event
	prefill enginecore.PrefillStats
	scorer  scorer
}

// outlet is one API server of the frontend: the socket to it, and what this turn has for it.
type outlet struct {
	conn   *zmtp.Conn       // nil while it is lost
	told   [][]byte         // messages of their own: answers to utility calls. They leave before all else
	chunks enginecore.Batch // what the step handed over
	ends   enginecore.Batch // requests that ended with no tokens; they leave first, without stats
	queued int64            // what the socket had when this turn first asked, in bytes; -1 = not asked
}

// load is what schedulers and frontends are told of an engine.
type load struct {
	running, waiting, skipped uint64  // requests; waiting includes skipped
	usage                     float64 // of the KV cache
}

// connect replaces the sockets of all clients, and of the coordinator. A client whose socket stays gets what this turn has for it.
func (o *outputs) connect(conns []*zmtp.Conn, coordinator *zmtp.Conn) {
	old := o.clients
	o.clients = make([]*outlet, len(conns))
	for i, conn := range conns {
		if i < len(old) && old[i].conn == conn && conn != nil {
			o.clients[i] = old[i]
			continue
		}
		o.clients[i] = &outlet{conn: conn}
		o.clients[i].reset(o)
	}
	o.coord = coordinator
	o.counted, o.told = statsFeed{}, statsFeed{}
}

// outlet returns the client's, or nil where there is none to send to.
func (o *outputs) outlet(client uint32) *outlet {
	if int(client) >= len(o.clients) || o.clients[client].conn == nil {
		return nil
	}
	return o.clients[client]
}

func (t *outlet) reset(o *outputs) {
	t.chunks.Reset(o.version, o.rank)
	t.ends.Reset(o.version, o.rank)
	t.queued = -1
}

// Late implements engine.Sink.
func (o *outputs) Late(by engine.Time, n int) { o.strain.left(by, uint64(n)) }

// Full implements engine.Sink. A client that is lost takes everything.
func (o *outputs) Full(client uint32) bool {
	t := o.outlet(client)
	return t != nil && t.waiting() >= fullBytes
}

// waiting is the output that the client has yet to read, in bytes. Within a turn the socket is asked once.
func (t *outlet) waiting() int64 {
	if t.queued < 0 {
		t.queued = t.conn.Queued()
	}
	return t.queued + int64(t.chunks.Size())
}

// Chunk implements engine.Sink.
func (o *outputs) Chunk(r *engine.Request, tokens []uint32, finish engine.Finish, first bool) {
	c := r.Caller.(*caller)
	if first {
		c.first = o.now
	}
	if finish != engine.NotFinished {
		o.logFinished(r, finish)
		o.journal.end(o.now, r, ipc.RequestCompleted, finish, "")
	}
	t := o.outlet(r.Client)
	if t == nil {
		return
	}
	if t.chunks.Len() >= enginecore.MaxOutputs {
		o.spill(t, &t.chunks)
	}
	if !first && finish == engine.NotFinished && c.scores == nil {
		t.chunks.Token(c.id, tokens)
		return
	}
	o.out = enginecore.Output{Tokens: tokens, Finish: finishReason(finish)}
	if first {
		o.events[0] = enginecore.Event{Type: enginecore.EventQueued, Time: r.Arrived.Seconds()}
		o.events[1] = enginecore.Event{Type: enginecore.EventScheduled, Time: r.Admitted.Seconds()}
		o.prefill = enginecore.PrefillStats{Prompt: r.PromptTokens, Computed: r.PromptTokens, CacheCreation: r.PromptTokens}
		o.out.Events, o.out.Prefill = o.events[:], &o.prefill
	}
	if finish == engine.Stop {
		o.out.StopReason = c.stop
	}
	o.scorer.fill(&o.out, r, c, first)
	t.chunks.Add(c.id, &o.out)
	if finish != engine.NotFinished {
		t.chunks.Finished(c.id)
	}
}

// End implements engine.Sink.
func (o *outputs) End(r *engine.Request, finish engine.Finish, cause engine.Cause) {
	o.logEnd(r, finish, cause)
	o.journal.end(o.now, r, outcomeStates[cause.Outcome()], finish, causes[cause])
	t := o.outlet(r.Client)
	if t == nil {
		return
	}
	o.out = enginecore.Output{Finish: finishReason(finish)}
	c := r.Caller.(*caller)
	switch cause {
	case engine.PausedByClient:
		o.out.Error = &enginecore.RequestError{Code: "engine_paused", Message: "generation is paused", Retryable: true}
	case engine.UnknownAdapter:
		o.out.Error = &enginecore.RequestError{Code: "validation_error", Message: fmt.Sprintf("LoRA adapter %q is not loaded", r.Adapter)}
	case engine.BadArgument:
		o.out.Error = &enginecore.RequestError{Code: "validation_error", Message: c.fault}
	}
	if t.ends.Len() >= enginecore.MaxOutputs {
		o.spill(t, &t.ends)
	}
	t.ends.Add(c.id, &o.out)
	t.ends.Finished(c.id)
}

// spill sends a batch before its turn is over: it has as many outputs as a frontend has to take in one message.
func (o *outputs) spill(t *outlet, b *enginecore.Batch) {
	_ = t.conn.Send(b.Finish(nil, o.now.Seconds())) // its loss is the business of those who watch the connection
	b.Reset(o.version, o.rank)
	t.queued = -1
}

// flush sends what was gathered; idle says that nothing else is due now. Scheduler stats go to client 0 only: with its
// chunks, or alone where the load has changed and none leave. It returns when it wants to be called again for the sake of
// those.
func (o *outputs) flush(now engine.Time, l load, idle bool) engine.Time {
	o.idle = idle
	stepped := false
	for _, t := range o.clients {
		if t.ends.Len() > 0 && t.conn != nil {
			o.send(t.conn, t.ends.Finish(nil, now.Seconds()))
		}
		stepped = stepped || t.chunks.Len() > 0
	}
	if stepped {
		o.steps++
		o.logStep(l)
	}
	next := o.flushChunks(now, l)
	return min(next, o.flushCoordinator(now, l))
}

func (o *outputs) flushChunks(now engine.Time, l load) engine.Time {
	next := engine.Never
	for i, t := range o.clients {
		var stats *enginecore.SchedulerStats
		if i == 0 && t.conn != nil {
			if next = o.counted.due(now, l, t.chunks.Len() > 0); next <= now {
				stats, next = o.stats(l), engine.Never
			}
		}
		if t.conn != nil && t.chunks.Len() > 0 {
			raise(&o.strain.page.OutputHigh, uint64(t.waiting()))
		}
		if t.conn != nil && (t.chunks.Len() > 0 || stats != nil) {
			o.send(t.conn, t.chunks.Finish(stats, now.Seconds()))
		}
		t.reset(o)
	}
	return next
}

func (o *outputs) flushCoordinator(now engine.Time, l load) engine.Time {
	if o.coord == nil {
		return engine.Never
	}
	next := o.told.due(now, load{running: l.running, waiting: l.waiting}, false) // it balances by counts alone
	if next > now {
		return next
	}
	var b enginecore.Batch
	b.Reset(o.version, o.rank)
	o.send(o.coord, b.Finish(o.stats(l), now.Seconds()))
	return engine.Never
}

// hurry makes the next flush tell of a changed load at once.
func (o *outputs) hurry() { o.counted.toldAt, o.told.toldAt = 0, 0 }

// send leaves the loss of a connection to those who watch it: they tell the loop.
func (o *outputs) send(conn *zmtp.Conn, message []byte) {
	if o.idle {
		_ = conn.SendNow(message)
		return
	}
	_ = conn.Send(message)
}

// tell has one message leave for a client in this turn, before what was gathered, if it is there.
func (o *outputs) tell(client uint32, message []byte) {
	if t := o.outlet(client); t != nil {
		t.told = append(t.told, message)
	}
}

// flushTold sends those messages. It does not belong to flush: an engine that hangs answers its utility calls.
func (o *outputs) flushTold() {
	for _, t := range o.clients {
		for _, message := range t.told {
			if t.conn != nil {
				o.send(t.conn, message)
			}
		}
		clear(t.told)
		t.told = t.told[:0]
	}
}

// broadcast sends one message to every client, past what was gathered.
func (o *outputs) broadcast(message []byte) {
	for _, t := range o.clients {
		if t.conn != nil {
			o.send(t.conn, message)
		}
	}
}

// queued is the encoded output that clients have not read yet, in bytes.
func (o *outputs) queued() uint64 {
	var n uint64
	for _, t := range o.clients {
		if t.conn != nil {
			n += uint64(t.conn.Queued())
		}
	}
	return n
}

func (o *outputs) stats(l load) *enginecore.SchedulerStats {
	s := &enginecore.SchedulerStats{
		Running: l.running, Waiting: l.waiting, SkippedWaiting: l.skipped, KVCacheUsage: l.usage, StepCounter: o.steps,
	}
	if o.version.AtLeast(33) {
		s.Waiting -= l.skipped // from there on the two are counted apart
	}
	return s
}

// statsInterval is the shortest time between two messages that carry nothing but stats.
const statsInterval = 10 * time.Millisecond

// statsFeed decides when one reader of stats is due to hear of the load.
type statsFeed struct {
	told   load
	toldAt engine.Time
}

// due returns now where stats leave now, later where the load has changed and the interval is not over, else Never. They
// always leave with chunks.
func (f *statsFeed) due(now engine.Time, l load, withChunks bool) engine.Time {
	if !withChunks {
		if l == f.told {
			return engine.Never
		}
		if next := f.toldAt + statsInterval; next > now {
			return next
		}
	}
	f.told, f.toldAt = l, now
	return now
}

func finishReason(f engine.Finish) enginecore.FinishReason {
	switch f {
	case engine.Stop:
		return enginecore.FinishStop
	case engine.Length:
		return enginecore.FinishLength
	case engine.Abort:
		return enginecore.FinishAbort
	case engine.Error:
		return enginecore.FinishError
	case engine.Repetition:
		return enginecore.FinishRepetition
	default:
		return enginecore.FinishNone
	}
}
