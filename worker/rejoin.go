package worker

import (
	"context"
	"sync/atomic"
	"time"

	"vllm-vcr/ipc"
)

// greeting is a goroutine that says HELLO.
type greeting struct {
	cancel    context.CancelFunc
	connected atomic.Bool      // somebody is being asked
	enough    <-chan time.Time // when to look whether it is still needed; nil = as long as it takes
}

// greetOn is how long HELLO is said on after all links have been found again: a frontend that was started again at the
// same addresses waits for it.
const greetOn = 5 * time.Second

// redial is a goroutine that connects a lost link's addresses again.
type redial struct {
	cancel context.CancelFunc
	madeC  chan *link // capacity 1, closed at its end: a link that it was too late to hand over
}

// greet says HELLO until somebody answers, in a goroutine that ends with ctx or when its invitation is taken.
func (f *frontend) greet(ctx context.Context) {
	if f.joining != nil {
		return
	}
	if f.greeting != nil {
		f.greeting.enough = nil
		return
	}
	g := &greeting{}
	ctx, g.cancel = context.WithCancel(ctx)
	f.greeting = g
	f.running.Go(func() {
		defer g.cancel()
		for pause := joinBackoff; ctx.Err() == nil; pause = min(2*pause, time.Second) {
			inv, err := f.dialer.hello(ctx, f.address, &g.connected)
			if err == nil {
				f.offer(ctx, inv)
				return
			}
			if ctx.Err() == nil {
				f.log.Warn().Err(err).Msg("frontend not joined")
			}
			wait(ctx, pause)
		}
	})
}

func (f *frontend) offer(ctx context.Context, inv *invitation) {
	select {
	case f.invitedC <- inv:
	case <-ctx.Done():
		_ = inv.conn.Close(expired())
	}
}

func (f *frontend) greetedEnough() <-chan time.Time {
	if f.greeting == nil {
		return nil
	}
	return f.greeting.enough
}

// stopGreeting gives HELLO up where nobody listens for it. Who does is waited for.
func (f *frontend) stopGreeting() {
	if f.greeting.connected.Load() {
		f.greeting.enough = time.After(greetOn)
		return
	}
	f.greeting.cancel()
	f.greeting = nil
}

// redial connects a lost link's addresses again, in a goroutine that ends with ctx or when the link is taken.
func (f *frontend) redial(ctx context.Context, client int) {
	r := &redial{madeC: make(chan *link, 1)}
	ctx, r.cancel = context.WithCancel(ctx)
	f.redialing[client] = r
	s := f.session
	f.running.Go(func() {
		defer close(r.madeC)
		for pause := joinBackoff; ctx.Err() == nil; pause = min(2*pause, time.Second) {
			k, err := f.dialer.link(ctx, s, client)
			if err != nil {
				wait(ctx, pause)
				continue
			}
			select {
			case f.foundC <- k:
			case <-ctx.Done():
				r.madeC <- k
			}
			return
		}
	})
}

// stopRedialing ends all redials, and returns them.
func (f *frontend) stopRedialing() map[int]*redial {
	stopped := f.redialing
	for _, r := range stopped {
		r.cancel()
	}
	f.redialing = map[int]*redial{}
	return stopped
}

// madeAt waits for redials that have been stopped. It returns the links that they had made at the given addresses all the same: a frontend
// that has their registration may have sent requests over them.
func (f *frontend) madeAt(addresses ipc.Addresses, redials map[int]*redial) map[int]*link {
	made := map[int]*link{}
	for i, r := range redials {
		k := <-r.madeC
		switch {
		case k == nil:
		case samePair(f.session.addresses, addresses, i):
			made[i] = k
		default:
			k.close(expired())
		}
	}
	return made
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
