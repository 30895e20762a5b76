package zmtp

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConn_Subscribe_Form(t *testing.T) {
	tests := map[string]struct {
		greeting []byte
		want     []byte
	}{
		"3.1 by command": {appendGreeting(nil), appendCommand(nil, commandSubscribe, []byte("topic"))},
		"3.0 by message": {greetingWith(minorAt, 0), encode("\x01topic")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, peer := scriptedGreeting(t, Options{Type: XSub}, XPub, test.greeting)
			if err := c.Subscribe([]byte("topic")); err != nil {
				t.Fatal(err)
			}
			if got := read(t, peer, len(test.want)); !bytes.Equal(got, test.want) {
				t.Errorf("subscription = %q, want %q", got, test.want)
			}
		})
	}
}

func TestConn_Subscribe_OnlySubscribers(t *testing.T) {
	c, _ := scripted(t, Options{Type: Dealer}, Router)
	if err := c.Subscribe(nil); err == nil {
		t.Error("a DEALER subscribed")
	}
}

// Both forms look the same to an XPUB's user and have the same effect.
func TestConn_XPubSeesSubscriptions(t *testing.T) {
	forms := map[string]func(byte, string) []byte{
		"command": func(op byte, prefix string) []byte {
			name := map[byte]string{messageSubscribe: commandSubscribe, messageCancel: commandCancel}[op]
			return appendCommand(nil, name, []byte(prefix))
		},
		"message": func(op byte, prefix string) []byte { return encode(string(op) + prefix) },
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			c, peer := scripted(t, Options{Type: XPub}, Sub)
			steps := []struct {
				op     byte
				prefix string
				wanted []string // of a, ab, b
			}{
				{messageSubscribe, "ab", []string{"ab"}},
				{messageSubscribe, "", []string{"a", "ab", "b"}},
				{messageSubscribe, "", []string{"a", "ab", "b"}},
				{messageCancel, "", []string{"a", "ab", "b"}},
				{messageCancel, "", []string{"ab"}},
				{messageCancel, "ab", nil},
				{messageCancel, "never asked for", nil},
			}
			for _, step := range steps {
				write(t, peer, form(step.op, step.prefix))
				if got := receive(t, c); !cmp.Equal(got, []string{string(step.op) + step.prefix}) {
					t.Fatalf("subscription = %q, want %d and %q", got, step.op, step.prefix)
				}
				for _, topic := range []string{"a", "ab", "b"} {
					send(t, c, topic)
				}
				var want []byte
				for _, topic := range step.wanted {
					want = append(want, encode(topic)...)
				}
				if got := read(t, peer, len(want)); !bytes.Equal(got, want) {
					t.Errorf("after %d %q: published %q, want %q", step.op, step.prefix, got, want)
				}
			}
		})
	}
}

func TestConn_PubAppliesSubscriptionsItself(t *testing.T) {
	sub, pub := pair(t, Options{Type: Sub}, Options{Type: Pub})
	if err := sub.Subscribe([]byte("kv")); err != nil {
		t.Fatal(err)
	}
	stopC := make(chan struct{})
	sentC := make(chan struct{})
	go func() {
		defer close(sentC)
		for {
			select {
			case <-stopC:
				return
			default:
				send(t, pub, "other", "x")
				send(t, pub, "kv-events", "y")
			}
		}
	}()
	if got := receive(t, sub); !cmp.Equal(got, []string{"kv-events", "y"}) {
		t.Errorf("message = %q, want only what was subscribed to", got)
	}
	close(stopC)
	await(t, "publisher's end", sentC)
}

func TestConn_SubscriptionInsideAMessage(t *testing.T) {
	c, peer := scripted(t, Options{Type: XPub}, XSub)
	write(t, peer, append(encode("a", "b")[:3], appendCommand(nil, commandSubscribe)...))
	_, err := c.Recv()
	wantError(t, err, ErrProtocol, "subscription between two frames")
}

func TestSubscriptions_Bounded(t *testing.T) {
	s := newSubscriptions()
	for i := range maxSubscriptions / subscriptionCost {
		if err := s.apply([]byte("\x01" + fmt.Sprint(i))); err != nil {
			wantError(t, err, ErrProtocol, "subscriptions of more than")
			if s.cost > maxSubscriptions {
				t.Errorf("cost = %d, want at most %d", s.cost, maxSubscriptions)
			}
			for prefix := range s.count {
				s.remove(prefix)
			}
			if s.cost != 0 {
				t.Errorf("cost = %d after all were cancelled, want 0", s.cost)
			}
			return
		}
	}
	t.Error("subscriptions without end were accepted")
}
