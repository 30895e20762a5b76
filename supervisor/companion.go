package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
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
// supervisor as they do. Where its process ends by itself, Run ends, since engines without a front end serve nobody.
type Companion struct {
	opts    CompanionOptions
	spawner *spawner
	process *process
	log     *logs.Logger
	heardC  chan ipc.State // its first word of itself
	goneC   chan struct{}  // closed at the end of its socket
	stopC   chan struct{}  // closed by Stop
	stop    sync.Once
	drained atomic.Bool // it was told to drain: that it ends is no surprise
	running sync.WaitGroup
}

// StartCompanion starts the process and waits until its sockets are open, or ctx ends. The caller must call Run then.
func StartCompanion(ctx context.Context, o CompanionOptions) (c *Companion, listening ipc.State, err error) {
	c = &Companion{
		opts: o, spawner: newSpawner(), log: o.Log.Target(logs.Process),
		heardC: make(chan ipc.State, 1), goneC: make(chan struct{}), stopC: make(chan struct{}),
	}
	if listening, err = c.start(ctx); err != nil {
		c.Stop(nil)
		return nil, listening, errors.Join(err, c.Run())
	}
	return c, listening, nil
}

func (c *Companion) start(ctx context.Context) (ipc.State, error) {
	p, err := c.spawner.start(c.opts.Command(), nil)
	if err != nil {
		return ipc.State{}, err
	}
	c.process = p
	c.running.Go(p.write)
	c.running.Go(c.listen)
	err = c.send(ipc.KindStart, ipc.Start{
		Magic: ipc.Magic, Version: ipc.Version, Config: c.opts.Config,
		LogFilter: c.opts.Log.Filter().String(), LogFormat: int(c.opts.LogFormat),
	})
	if err != nil {
		return ipc.State{}, err
	}
	select {
	case s := <-c.heardC:
		return s, nil
	case <-c.goneC:
		return ipc.State{}, errors.New("front end: it ended before it listened")
	case <-ctx.Done():
		return ipc.State{}, fmt.Errorf("front end: not listening: %w", context.Cause(ctx))
	}
}

// listen hands on what the process says, until its socket ends.
func (c *Companion) listen() {
	defer close(c.goneC)
	var buf []byte
	for {
		var frame ipc.Frame
		var err error
		if frame, buf, err = ipc.ReadFrame(c.process.conn, buf); err != nil {
			return
		}
		var s ipc.State
		if frame.Kind != ipc.KindState || frame.Decode(&s) != nil || s.Check() != nil {
			continue
		}
		select {
		case c.heardC <- s:
		default: // after its first word nobody waits for more
		}
	}
}

func (c *Companion) send(kind ipc.Kind, body any) error {
	frame, err := ipc.Append(nil, kind, 0, body)
	if err == nil && !c.process.enqueue(frame) {
		err = errors.New("front end: it reads nothing")
	}
	return err
}

// Run returns nil after Stop, or why the process ended by itself. It is called once.
func (c *Companion) Run() error {
	defer c.spawner.stop()
	if c.process == nil {
		return nil
	}
	defer c.running.Wait()
	select {
	case <-c.goneC:
	case <-c.stopC:
	}
	ending := c.end(companionGrace)
	if !c.drained.Load() && !c.stopped() {
		return fmt.Errorf("front end: %s", ending)
	}
	c.log.Info().Str("reason", ending).Msg("front end stopped")
	<-c.stopC // the engines may have more to do
	return nil
}

func (c *Companion) stopped() bool {
	select {
	case <-c.stopC:
		return true
	default:
		return false
	}
}

// end hangs up, gives the process time to leave by itself, and returns how it ended.
func (c *Companion) end(grace time.Duration) string {
	c.process.hangUp()
	impatient := time.AfterFunc(grace, c.process.kill)
	defer impatient.Stop()
	return c.process.wait()
}

// companionGrace is what a front end has to send the last bytes of its answers.
const companionGrace = 2 * time.Second

// Drain has the front end refuse new requests from now on, and finish those it has within timeout seconds.
func (c *Companion) Drain(timeout uint64) {
	c.drained.Store(true)
	if err := c.send(ipc.KindCall, ipc.Call{Op: ipc.OpDrain, Timeout: timeout}); err != nil {
		c.log.Warn().Err(err).Msg("front end not told to drain")
	}
}

// SetFilter changes the process's log filter, which must be valid.
func (c *Companion) SetFilter(filter string) {
	if err := c.send(ipc.KindCall, ipc.Call{Op: ipc.OpLog, Filter: filter}); err != nil {
		c.log.Warn().Err(err).Msg("front end not told of the log filter")
	}
}

// Stop has Run end the process, and returns at once.
func (c *Companion) Stop(error) { c.stop.Do(func() { close(c.stopC) }) }
