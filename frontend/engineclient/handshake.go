package engineclient

import (
	"errors"
	"fmt"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
)

// serveHandshake takes one engine through HELLO, INIT and READY, and then waits for it to go.
func (f *Frontend) serveHandshake(c *zmtp.Conn) {
	if err := f.greet(c); err != nil {
		f.refuse(fmt.Errorf("handshake: %w", err))
		return
	}
	if frames, err := c.Recv(); err == nil {
		f.refuse(fmt.Errorf("handshake: message of %d frames after READY", len(frames)))
	}
}

// greet checks what both of vLLM's frontends check, and leaves an engine that fails it out of the count.
func (f *Frontend) greet(c *zmtp.Conn) error {
	e, err := f.identified(c)
	if err != nil {
		return err
	}
	if err := expect(c, enginecore.StatusHello); err != nil {
		return fmt.Errorf("engine %d: %w", e.rank, err)
	}
	f.greeting(e)
	err = f.introduce(c)
	f.greeted(e, err == nil)
	if err != nil {
		return fmt.Errorf("engine %d: %w", e.rank, err)
	}
	return nil
}

// introduce takes an engine that has said HELLO up to its READY.
func (f *Frontend) introduce(c *zmtp.Conn) error {
	if err := c.Send(f.init); err != nil {
		return fmt.Errorf("INIT: %w", err)
	}
	if err := expect(c, enginecore.StatusReady); err != nil {
		return err
	}
	if f.coordinator != nil && !f.coordinator.complete() {
		return fmt.Errorf("READY before the coordinator's, which waits for %d subscribers", len(f.engines))
	}
	return nil
}

// expect receives a message of that status from an engine that was started elsewhere.
func expect(c *zmtp.Conn, status string) error {
	frames, err := c.Recv()
	if err != nil {
		return fmt.Errorf("%s: %w", status, err)
	}
	if len(frames) != 1 {
		return fmt.Errorf("%s of %d frames, want 1", status, len(frames))
	}
	h, err := enginecore.DecodeHello(frames[0])
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", status, err)
	case h.Status != status:
		return fmt.Errorf("status %.32q, want %q", h.Status, status)
	case h.Local:
		return errors.New(status + " of a local engine, want a remote one")
	case !h.Headless:
		return errors.New(status + " of an engine that isn't headless")
	}
	return nil
}
