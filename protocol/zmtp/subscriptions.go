package zmtp

import (
	"bytes"
	"fmt"
	"sync"
)

// maxSubscriptions bounds the bytes of the prefixes one peer may subscribe to,
// each counted with subscriptionCost on top.
const (
	maxSubscriptions = 1 << 20
	subscriptionCost = 64
)

// subscriptions is the set of prefixes a peer asked for. Subscribing twice takes
// cancelling twice, as in ZeroMQ.
type subscriptions struct {
	mu    sync.RWMutex
	count map[string]int
	cost  int
}

func newSubscriptions() *subscriptions { return &subscriptions{count: make(map[string]int)} }

// match reports whether a message that starts with frame is wanted.
func (s *subscriptions) match(frame []byte) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.count[""] > 0 {
		return true
	}
	for prefix := range s.count {
		if bytes.HasPrefix(frame, []byte(prefix)) {
			return true
		}
	}
	return false
}

// apply takes a subscription in the form of a message: 0x01 or 0x00, prefix.
// Other messages mean nothing here.
func (s *subscriptions) apply(message []byte) error {
	if len(message) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch message[0] {
	case messageSubscribe:
		return s.add(string(message[1:]))
	case messageCancel:
		s.remove(string(message[1:]))
	}
	return nil
}

func (s *subscriptions) add(prefix string) error {
	if s.count[prefix] == 0 {
		cost := s.cost + len(prefix) + subscriptionCost
		if cost > maxSubscriptions {
			return fmt.Errorf("%w: subscriptions of more than %d bytes", ErrProtocol, maxSubscriptions)
		}
		s.cost = cost
	}
	s.count[prefix]++
	return nil
}

func (s *subscriptions) remove(prefix string) {
	switch s.count[prefix] {
	case 0:
	case 1:
		delete(s.count, prefix)
		s.cost -= len(prefix) + subscriptionCost
	default:
		s.count[prefix]--
	}
}
