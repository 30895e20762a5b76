package zmtp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is one connection to one peer whose handshake is done. Send, Queued,
// Traffic, Close and the accessors may be called from any goroutine; Recv from
// one at a time.
//
// A Conn ends when its peer goes, when the peer breaks the protocol, or when it
// is closed. A PUSH or PUB connection notices the first two by itself; every
// other must be read: while nobody is in Recv, no PING is answered and the
// peer's going is noticed only by a write.
type Conn struct {
	nc       net.Conn
	address  string // of the peer, or of our listener; for errors
	options  Options
	peer     peer
	in       *reader
	out      *queue
	writer   writer
	direct   *direct        // nil where the kernel can't be asked without waiting
	wanted   *subscriptions // nil unless the peer chooses what it gets
	recvMu   sync.Mutex     // held by whoever reads nc
	closing  atomic.Bool    // Close has begun
	running  sync.WaitGroup // writer, and reader where there is one
	writtenC chan struct{}  // closed by the writer when it has returned
	endOnce  sync.Once
	endC     chan struct{} // closed by end
	err      error         // written before endC is closed
}

// Traffic counts what passed a connection since it was made.
type Traffic struct {
	// BytesIn and BytesOut are the bytes read from the kernel and handed to it,
	// frame headers and commands included. BytesIn includes the handshake.
	BytesIn, BytesOut uint64
	// MessagesIn counts what Recv returned, MessagesOut what Send accepted.
	MessagesIn, MessagesOut uint64
}

// newConn does the handshake over nc, which it owns from here on and closes on
// error. o is complete.
func newConn(nc net.Conn, address string, o Options) (*Conn, error) {
	in := newReader(nc, o.MaxMessage, o.MaxFrames)
	_ = nc.SetDeadline(time.Now().Add(o.HandshakeTimeout)) // fails only on a closed connection, as the next read does
	p, err := handshake(nc, in, &o)
	if err != nil {
		_ = nc.Close() // the handshake's error is the news
		return nil, fmt.Errorf("handshake: %w", err)
	}
	_ = nc.SetDeadline(time.Time{})
	out := newQueue(&o)
	c := &Conn{
		nc: nc, address: address, options: o, peer: p, in: in, out: out,
		writer:   writer{queue: out, dst: nc, onLowWater: o.OnLowWater},
		direct:   newDirect(nc),
		writtenC: make(chan struct{}),
		endC:     make(chan struct{}),
	}
	if o.Type.publishes() {
		c.wanted = newSubscriptions()
	}
	in.command = c.command
	c.start()
	return c, nil
}

func (c *Conn) start() {
	c.running.Go(func() {
		defer close(c.writtenC)
		if err := c.writer.run(); err != nil {
			c.end(c.lost("write", err))
		}
	})
	if c.options.Type.sendOnly() {
		c.running.Go(c.watch)
	}
}

// watch reads a connection that carries no messages to us, until it ends. Of
// what such a peer may send only a subscription means anything.
func (c *Conn) watch() {
	for {
		if _, err := c.receive(); err != nil {
			return
		}
	}
}

// Send queues one message of the given frames and returns without waiting for
// the peer; the frames are copied. The error is non-nil only after the
// connection has ended or its closing has begun (then it wraps ErrClosed), for a
// message that ends it, having no room, and for a message of no frames. A PUB or
// XPUB connection drops a message that its peer has not subscribed to; on XPUB a
// subscription counts once Recv has returned it.
func (c *Conn) Send(frames ...[]byte) error {
	if len(frames) == 0 {
		return errors.New("message of no frames")
	}
	if c.wanted != nil && !c.wanted.match(frames[0]) {
		return nil
	}
	err := c.out.push(frames)
	if errors.Is(err, ErrBehind) {
		c.end(err)
	}
	return err
}

// SendNow is Send for a caller that would rather spend some microseconds than
// wake the writer: where nothing waits before the message, it is handed to the
// kernel in the caller's goroutine, as far as the kernel takes it at once. It
// waits for the peer as little as Send does.
func (c *Conn) SendNow(frames ...[]byte) error {
	if c.direct == nil || c.wanted != nil || !c.direct.fits(frames) || !c.out.claim() {
		return c.Send(frames...)
	}
	n, rest := c.direct.send(frames)
	c.writer.bytes.Add(uint64(n))
	c.out.release(rest)
	return nil
}

// Recv waits for the next message. Its frames are valid until the next Recv.
// On an XPUB connection subscriptions arrive as messages of one frame, 0x01 or
// 0x00 and the prefix, in whichever form the peer sent them. Recv returns an
// error once the connection has ended, the same that Err returns, and on a PUSH
// or PUB connection.
func (c *Conn) Recv() ([][]byte, error) {
	if c.options.Type.sendOnly() {
		return nil, fmt.Errorf("receive: a %s socket only sends", c.options.Type)
	}
	return c.receive()
}

func (c *Conn) receive() ([][]byte, error) {
	c.recvMu.Lock()
	defer c.recvMu.Unlock()
	frames, err := c.in.message()
	if err == nil && c.wanted != nil && len(frames) == 1 {
		err = c.wanted.apply(frames[0])
	}
	if err == nil {
		return frames, nil
	}
	if c.closing.Load() && errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, ErrClosed // Close takes over reading
	}
	c.end(c.lost("read", err))
	return nil, c.err
}

// command handles a command of the peer. A subscription becomes a message, made
// in place: the last byte of the name gives way to the first of the message.
func (c *Conn) command(body []byte) (message []byte, err error) {
	name, data, err := parseCommand(body)
	if err != nil {
		return nil, err
	}
	switch string(name) {
	case commandPing:
		context, err := parsePing(data)
		if err == nil {
			c.out.setPong(context)
		}
		return nil, err
	case commandError:
		return nil, parseError(data)
	case commandSubscribe, commandCancel:
		return c.subscription(string(name), body[len(name):]), nil
	}
	return nil, nil // of a later version, or a PONG
}

// subscription makes a message of the prefix and the byte before it.
func (c *Conn) subscription(name string, message []byte) []byte {
	if c.wanted == nil {
		return nil
	}
	message[0] = messageCancel
	if name == commandSubscribe {
		message[0] = messageSubscribe
	}
	return message
}

// Subscribe asks the publisher for the messages that start with prefix; the
// empty prefix asks for all. It is for SUB and XSUB connections and chooses the
// form that the peer's version knows. prefix is copied.
func (c *Conn) Subscribe(prefix []byte) error {
	if !c.options.Type.subscribes() {
		return fmt.Errorf("subscribe: a %s socket has no subscriptions", c.options.Type)
	}
	if c.peer.commandSubscriptions {
		return c.out.pushCommand(commandSubscribe, prefix)
	}
	return c.out.push([][]byte{append([]byte{messageSubscribe}, prefix...)})
}

// Queued is the number of bytes, frame headers included, that Send accepted and
// the kernel doesn't have yet. After the end it is what was lost here.
func (c *Conn) Queued() int64 { return c.out.unsent() }

// Done is closed when the connection has ended, for whatever reason.
func (c *Conn) Done() <-chan struct{} { return c.endC }

// Err is nil until Done is closed, then why the connection ended. It wraps
// ErrClosed after Close, ErrProtocol if the peer broke the protocol, io.EOF if
// it went between two messages, ErrReplaced if a RouterSocket gave the identity
// to another connection; else it is the error of the socket.
func (c *Conn) Err() error {
	select {
	case <-c.endC:
		return c.err
	default:
		return nil
	}
}

// PeerType is the socket type the peer announced.
func (c *Conn) PeerType() SocketType { return c.peer.socketType }

// PeerIdentity is the routing id the peer announced, empty if it has none. It
// must not be modified.
func (c *Conn) PeerIdentity() []byte { return c.peer.identity }

// Traffic returns the counts of this moment.
func (c *Conn) Traffic() Traffic {
	return Traffic{
		BytesIn: c.in.bytes.Load(), BytesOut: c.writer.bytes.Load(),
		MessagesIn: c.in.messages.Load(), MessagesOut: c.out.accepted(),
	}
}

// lost words the loss of the connection during op.
func (c *Conn) lost(op string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: peer closed the connection: %w", c.address, err)
	}
	return fmt.Errorf("%s: %s: %w", c.address, op, err)
}
