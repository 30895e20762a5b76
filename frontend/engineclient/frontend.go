package engineclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
)

// Frontend is one frontend and the engines that joined it. It is made by Listen and ended by Close; all methods may be
// called from any goroutine.
type Frontend struct {
	options     Options
	engines     []*engine
	clients     []*Client
	calls       calls
	handshake   *door
	inputs      []*door
	outputs     []*door
	coordinator *coordinator  // nil = none
	init        []byte        // INIT, the same for every engine
	readyC      chan struct{} // closed when all engines are up for the first time
	closedC     chan struct{} // closed when Close begins
	closeOnce   sync.Once
	leaving     sync.WaitGroup // the goroutine that closes the handshake address

	mu      sync.Mutex
	up      int   // engines
	refusal error // the last one, for Ready
}

// Listen opens all addresses of a frontend and begins to accept engines.
func Listen(o Options) (*Frontend, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("frontend: %w", err)
	}
	o.Clients = max(o.Clients, 1)
	f := &Frontend{
		options: o,
		readyC:  make(chan struct{}),
		closedC: make(chan struct{}),
	}
	f.calls.waiting = map[enginecore.CallID]call{}
	for rank := range o.Engines {
		f.engines = append(f.engines, newEngine(rank, o.Clients))
	}
	if err := f.open(); err != nil {
		_ = f.Close(atOnce()) // the first error is the news
		return nil, fmt.Errorf("frontend: %w", err)
	}
	f.start()
	return f, nil
}

// open binds every address, the one that engines look for last.
func (f *Frontend) open() error {
	var in enginecore.Init
	for i := range f.options.Clients {
		f.clients = append(f.clients, &Client{frontend: f, index: i})
		input, err := f.door(fmt.Sprintf("input%d", i), zmtp.Router, func(c *zmtp.Conn) { f.serveInput(i, c) })
		if err != nil {
			return fmt.Errorf("input %d: %w", i, err)
		}
		f.inputs = append(f.inputs, input)
		output, err := f.door(fmt.Sprintf("output%d", i), zmtp.Pull, func(c *zmtp.Conn) { f.serveOutput(i, c) })
		if err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
		f.outputs = append(f.outputs, output)
		in.Inputs = append(in.Inputs, input.address())
		in.Outputs = append(in.Outputs, output.address())
	}
	if f.options.Coordinator {
		if err := f.openCoordinator(&in); err != nil {
			return fmt.Errorf("coordinator: %w", err)
		}
	}
	f.init = enginecore.AppendInit(nil, in)
	var err error
	f.handshake, err = openDoor(f.options.Handshake, zmtp.Router, f.refuse, f.serveHandshake)
	return err
}

// door binds a data address.
func (f *Frontend) door(name string, as zmtp.SocketType, serve func(*zmtp.Conn)) (*door, error) {
	address, err := beside(f.options.Handshake, name)
	if err != nil {
		return nil, err
	}
	return openDoor(address, as, f.refuse, serve)
}

// beside is the address of a data socket: a free port of the same host, or a file beside the handshake's.
func beside(handshake, name string) (string, error) {
	if strings.HasPrefix(handshake, "ipc://") {
		return handshake + "." + name, nil
	}
	host, _, err := net.SplitHostPort(strings.TrimPrefix(handshake, "tcp://"))
	if err != nil {
		return "", fmt.Errorf("handshake address %q: want tcp://host:port or ipc:///path", handshake)
	}
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(0)), nil
}

func (f *Frontend) start() {
	for _, d := range f.doors() {
		d.start()
	}
	if f.options.KeepHandshake {
		return
	}
	f.leaving.Go(func() {
		select {
		case <-f.readyC:
			_ = f.handshake.close(atOnce()) // every READY has come: nothing is left to be sent there
		case <-f.closedC:
		}
	})
}

// doors are all that are open; the handshake's is the last.
func (f *Frontend) doors() []*door {
	all := append(append([]*door(nil), f.inputs...), f.outputs...)
	if f.coordinator != nil {
		all = append(all, f.coordinator.doors()...)
	}
	if f.handshake != nil {
		all = append(all, f.handshake)
	}
	return all
}

// Handshake is the address at which an engine on this host can say HELLO, with the real port.
func (f *Frontend) Handshake() string { return f.handshake.address() }

// Client is the sender to the inputs of that index, which must be below Options.Clients (0 is always there).
func (f *Frontend) Client(index int) *Client { return f.clients[index] }

// Ready waits until all engines are up at the same time, for the first time. If ctx ends before, the error names the
// engines that are missing and what was refused last.
func (f *Frontend) Ready(ctx context.Context) error {
	select {
	case <-f.readyC:
		return nil
	case <-f.closedC:
		return fmt.Errorf("await engines: %w", zmtp.ErrClosed)
	case <-ctx.Done():
	}
	f.mu.Lock()
	refusal := f.refusal
	f.mu.Unlock()
	err := fmt.Errorf("await engines: %s: %w", f.missing(), context.Cause(ctx))
	if refusal != nil {
		err = fmt.Errorf("%w (last refused: %w)", err, refusal)
	}
	return err
}

// missing names the engines that are not up, and the step that each is at.
func (f *Frontend) missing() string {
	const most = 8
	var names []string
	more := 0
	for _, e := range f.engines {
		switch step := e.missing(); {
		case step == "":
		case len(names) < most:
			names = append(names, fmt.Sprintf("engine %d: %s", e.rank, step))
		default:
			more++
		}
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// Registration is what the engine of that rank registered with last; false if it never did, or there is no such rank.
func (f *Frontend) Registration(rank int) (enginecore.ReadyResponse, bool) {
	if rank < 0 || rank >= len(f.engines) {
		return enginecore.ReadyResponse{}, false
	}
	return f.engines[rank].registration()
}

// Close stops accepting, sends what is queued to the engines until ctx ends, ends every connection, and waits for all
// goroutines. Calls that wait for an answer end. The error tells what could not be sent. It may be called more than once.
func (f *Frontend) Close(ctx context.Context) error {
	f.closeOnce.Do(func() { close(f.closedC) })
	f.calls.failAll(zmtp.ErrClosed)
	f.leaving.Wait()
	errs := make([]error, len(f.inputs))
	var closing sync.WaitGroup
	for i, d := range f.inputs {
		closing.Go(func() { errs[i] = d.close(ctx) })
	}
	for _, d := range f.doors()[len(f.inputs):] {
		closing.Go(func() { _ = d.close(atOnce()) }) // nothing that matters is queued towards these
	}
	closing.Wait()
	return errors.Join(errs...)
}

// refuse tells of what an engine did wrong.
func (f *Frontend) refuse(err error) {
	f.mu.Lock()
	f.refusal = err
	f.mu.Unlock()
	if f.options.Refused != nil {
		f.options.Refused(err)
	}
}

// count enters that an engine came up (1) or was lost (-1).
func (f *Frontend) count(change int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.up += change
	if f.up < len(f.engines) {
		return
	}
	select {
	case <-f.readyC: // not for the first time
	default:
		close(f.readyC)
	}
}
