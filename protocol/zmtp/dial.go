package zmtp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	firstBackoff = 10 * time.Millisecond

	// connectTimeout bounds one attempt to connect, so that a host that comes
	// back is not waited for in the kernel's own, growing, steps.
	connectTimeout = 5 * time.Second
)

// Dial connects to address and completes the handshake. While nobody answers
// there (refused, unreachable, no such path or host name, a peer that goes or
// falls silent before its READY) it tries again, after 10 ms at first and at
// most MaxBackoff, until ctx ends; the error then wraps the cause of ctx's end and the
// last attempt's. Options or an address that can't work, and a peer that breaks
// the protocol or is of an incompatible type, are an error at once. ctx has no
// part in the connection once Dial has returned.
func Dial(ctx context.Context, address string, o Options) (*Conn, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	to, err := parseAddress(address)
	if err == nil {
		err = to.dialable(address)
	}
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	c, err := retry(ctx, o.MaxBackoff, func() (*Conn, error) { return dialOnce(ctx, to, address, o) })
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	return c, nil
}

// retry calls attempt until it succeeds, proves futile, or ctx ends.
func retry(ctx context.Context, maxBackoff time.Duration, attempt func() (*Conn, error)) (*Conn, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last error
	for wait := min(firstBackoff, maxBackoff); ; wait = min(2*wait, maxBackoff) {
		select {
		case <-ctx.Done():
			return nil, gaveUp(ctx, last)
		case <-timer.C:
		}
		c, err := attempt()
		if err == nil || errors.Is(err, ErrProtocol) {
			return c, err
		}
		if last == nil || !over(ctx) {
			last = err // that of an attempt cut short by ctx says less than the one before
		}
		timer.Reset(wait)
	}
}

// over says whether ctx has ended, or is about to: a connection's deadline may pass a moment before ctx's own timer has run.
func over(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(end)
}

func gaveUp(ctx context.Context, last error) error {
	if last == nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w; last attempt: %w", context.Cause(ctx), last)
}

func dialOnce(ctx context.Context, to endpoint, address string, o Options) (*Conn, error) {
	// TCP_NODELAY is on by default in package net.
	dialer := net.Dialer{Timeout: connectTimeout}
	nc, err := dialer.DialContext(ctx, to.network, to.netAddress())
	if err != nil {
		return nil, err
	}
	if isSelf(nc) {
		_ = nc.Close() // it was never a connection to anybody
		return nil, errSelf
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() }) // fails the handshake
	c, err := newConn(nc, address, o)
	if stop() || err != nil {
		return c, err
	}
	c.abort(context.Cause(ctx))
	return nil, context.Cause(ctx)
}

// errSelf is what an attempt ends with that found nobody but itself.
var errSelf = errors.New("nobody listens there: the kernel connected the socket to itself")

// isSelf tells a TCP socket that was connected to itself. That happens where nobody listens at a port that the kernel also
// gives to sockets that dial: dialled often enough, it is given to the very socket that dials it, and two opens that
// cross make a connection.
func isSelf(nc net.Conn) bool {
	local, ok := nc.LocalAddr().(*net.TCPAddr)
	remote, isTCP := nc.RemoteAddr().(*net.TCPAddr)
	return ok && isTCP && local.Port == remote.Port && local.IP.Equal(remote.IP)
}
