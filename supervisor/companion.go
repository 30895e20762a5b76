package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/logs"
)

// CompanionOptions is what a companion is started with.
type CompanionOptions struct {
	Config    config.Config
	Log       *logs.Root
	LogFormat logs.Format
	// Command returns what to start; it must be set.
	Command func() *exec.Cmd
}

// Companion is one more process beside the workers of a fleet: the front end that they join. It lives and dies with the
// supervisor as they do. Where its process ends by itself it is started again at the same addresses, if workers are too; else
// Run ends, since engines without a front end serve nobody.
type Companion struct {
	opts    CompanionOptions
	timing  timing
	spawner *spawner
	log     *logs.Logger
	body    atomic.Pointer[body] // nil = none has been started
	stopC   chan struct{}        // closed by Stop
	stop    sync.Once
	drained atomic.Bool // it was told to drain: that it ends is no surprise
	past    past        // belongs to Run
	running sync.WaitGroup

	restarts atomic.Uint64 // processes after the first
}

// body is one process of a companion.
type body struct {
	*process
	heardC chan ipc.State // its first word of itself
	goneC  chan struct{}  // closed at the end of its socket
}

// StartCompanion starts the process and waits until its sockets are open, or ctx ends. The caller must call Run then.
func StartCompanion(ctx context.Context, o CompanionOptions) (c *Companion, listening ipc.State, err error) {
	c = &Companion{
		opts: o, timing: defaultTiming(), spawner: newSpawner(), log: o.Log.Target(logs.Process), stopC: make(chan struct{}),
	}
	if listening, err = c.start(ctx); err != nil {
		c.Stop(nil)
		return nil, listening, errors.Join(err, c.Run())
	}
	c.stayAt(listening)
	return c, listening, nil
}

// stayAt has processes that come later open their sockets where the first one has.
func (c *Companion) stayAt(listening ipc.State) {
	c.opts.Config.HandshakeAddress = listening.Handshake
	if _, port, err := net.SplitHostPort(listening.HTTP); err == nil {
		c.opts.Config.Port, _ = strconv.ParseUint(port, 10, 16) // the port of a listener is a number
	}
}

func (c *Companion) start(ctx context.Context) (ipc.State, error) {
	c.past.started = time.Now()
	filter := c.opts.Log.Filter().String()
	first, err := ipc.Append(nil, ipc.KindStart, 0, ipc.Start{
		Magic: ipc.Magic, Version: ipc.Version, Config: c.opts.Config, LogFilter: filter, LogFormat: int(c.opts.LogFormat),
	})
	if err != nil {
		return ipc.State{}, err
	}
	p, err := c.spawner.start(c.opts.Command(), nil)
	if err != nil {
		return ipc.State{}, err
	}
	b := &body{p, make(chan ipc.State, 1), make(chan struct{})}
	b.enqueue(first) // before anybody who finds b has it told of anything
	c.body.Store(b)
	c.running.Go(p.write)
	c.running.Go(b.listen)
	if changed := c.opts.Log.Filter().String(); changed != filter {
		c.SetFilter(changed) // who changed it may have found nobody to tell
	}
	select {
	case s := <-b.heardC:
		return s, nil
	case <-b.goneC:
		return b.lastWord()
	case <-c.stopC:
		return ipc.State{}, errors.New("front end: stopped before it listened")
	case <-ctx.Done():
		return ipc.State{}, fmt.Errorf("front end: not listening: %w", context.Cause(ctx))
	}
}

// lastWord is what a process that has ended said first, which select may have passed over.
func (b *body) lastWord() (ipc.State, error) {
	select {
	case s := <-b.heardC:
		return s, nil
	default:
		return ipc.State{}, errors.New("front end: it ended before it listened")
	}
}

// listen hands on what the process says, until its socket ends.
func (b *body) listen() {
	defer close(b.goneC)
	var buf []byte
	for {
		var frame ipc.Frame
		var err error
		if frame, buf, err = ipc.ReadFrame(b.conn, buf); err != nil {
			return
		}
		var s ipc.State
		if frame.Kind != ipc.KindState || frame.Decode(&s) != nil || s.Check() != nil {
			continue
		}
		select {
		case b.heardC <- s:
		default: // after its first word nobody waits for more
		}
	}
}

func (b *body) send(call ipc.Call) error {
	frame, err := ipc.Append(nil, ipc.KindCall, 0, call)
	if err == nil && !b.enqueue(frame) {
		err = errors.New("front end: it reads nothing")
	}
	return err
}

// Run returns nil after Stop, or why the process ended by itself and is not started again. It is called once.
func (c *Companion) Run() error {
	defer c.spawner.stop()
	if c.body.Load() == nil {
		return nil
	}
	defer c.running.Wait()
	reason := c.life()
	for c.wanted() {
		if err := c.pause(reason); err != nil {
			return err
		}
		if reason = c.again(); reason == "" {
			reason = c.life()
		}
	}
	c.log.Info().Str("reason", reason).Msg("front end stopped")
	<-c.stopC // the engines may have more to do
	return nil
}

// wanted says that the end of the process is a surprise.
func (c *Companion) wanted() bool { return !c.drained.Load() && !c.stopped() }

// life is that of the process there is, to its end. It returns how it ended.
func (c *Companion) life() string {
	b := c.body.Load()
	select {
	case <-b.goneC:
	case <-c.stopC:
	}
	c.body.Store(nil)
	return b.end(companionGrace)
}

// pause waits until the process may be started again, or returns why it is not.
func (c *Companion) pause(reason string) error {
	if c.opts.Config.Restart != config.RestartOnFailure {
		return fmt.Errorf("front end: %s", reason)
	}
	pause, why := c.past.died(c.timing, reason)
	if why != "" {
		return fmt.Errorf("front end: %s", why)
	}
	c.log.Error().Str("reason", reason).Dur("pause", pause).Msg("front end died, it will be started again")
	select {
	case <-time.After(pause):
	case <-c.stopC:
	}
	return nil
}

// again starts another process, if it is still wanted, and returns "" or why there is none.
func (c *Companion) again() string {
	if !c.wanted() {
		return "it was not started again"
	}
	ctx, cancel := context.WithTimeout(context.Background(), companionStart)
	defer cancel()
	_, err := c.start(ctx)
	b := c.body.Load()
	if err == nil && !c.wanted() {
		err = errors.New("front end: told to drain while it was started") // it may not have been told
	}
	switch {
	case err == nil:
		c.restarts.Add(1)
		c.log.Info().Int("pid", b.pid()).Msg("front end was started again")
		return ""
	case b == nil:
		return err.Error()
	}
	b.kill()
	return err.Error() + "; " + c.life()
}

// Restarts counts the processes that have taken the place of one before them. It may be called from any goroutine.
func (c *Companion) Restarts() uint64 { return c.restarts.Load() }

func (c *Companion) stopped() bool {
	select {
	case <-c.stopC:
		return true
	default:
		return false
	}
}

// end hangs up, gives the process time to leave by itself, and returns how it ended.
func (b *body) end(grace time.Duration) string {
	b.hangUp()
	impatient := time.AfterFunc(grace, b.kill)
	defer impatient.Stop()
	return b.wait()
}

const (
	// companionGrace is what a front end has to send the last bytes of its answers.
	companionGrace = 2 * time.Second
	// companionStart is what one that is started again has to open its sockets.
	companionStart = 10 * time.Second
)

// Drain has the front end refuse new requests from now on, and finish those it has within timeout seconds.
func (c *Companion) Drain(timeout uint64) {
	c.drained.Store(true)
	if err := c.tell(ipc.Call{Op: ipc.OpDrain, Timeout: timeout}); err != nil {
		c.log.Warn().Err(err).Msg("front end not told to drain")
	}
}

// tell makes a call of the process, if there is one.
func (c *Companion) tell(call ipc.Call) error {
	if b := c.body.Load(); b != nil {
		return b.send(call)
	}
	return nil
}

// SetFilter changes the process's log filter, which must be valid.
func (c *Companion) SetFilter(filter string) {
	if err := c.tell(ipc.Call{Op: ipc.OpLog, Filter: filter}); err != nil {
		c.log.Warn().Err(err).Msg("front end not told of the log filter")
	}
}

// Stop has Run end the process, and returns at once.
func (c *Companion) Stop(error) { c.stop.Do(func() { close(c.stopC) }) }
