package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// host is a server that runs, with its engines.
type host struct {
	address  string     // HOST:PORT
	model    string     // the first that it lists
	started  []*process // by bench: the front end, and what was started beside it
	frontEnd int        // id of the process that listens
	plain    bool       // its engines send plainTokens
}

// betweenProbes is how long a server that isn't ready is left alone.
const betweenProbes = 20 * time.Millisecond

// lastBreath is how long a command may take to be seen to have ended.
const lastBreath = 200 * time.Millisecond

// open starts a server, unless it runs already, and waits until it takes requests. The host is to be closed.
func (s *server) open(ctx context.Context, want setup) (*host, error) {
	h := &host{address: strings.TrimPrefix(s.url, "http://"), plain: s.plain}
	if s.url == "" {
		if err := h.start(s, want); err != nil {
			h.close()
			return nil, err
		}
	}
	if err := h.ready(ctx); err != nil {
		err = errors.Join(err, h.ended())
		h.close()
		return nil, err
	}
	return h, nil
}

// start starts the commands.
func (h *host) start(s *server, want setup) error {
	handshake, err := freePort()
	if err == nil {
		h.address, err = freePort()
	}
	if err != nil {
		return err
	}
	want.http = h.address
	for _, t := range []target{s.front, s.engines} {
		if len(t.command) == 0 {
			continue
		}
		p, err := startProcess(t.argv(want, "tcp://"+handshake))
		if err != nil {
			return err
		}
		h.started = append(h.started, p)
	}
	return nil
}

// ready waits until the server is healthy, and finds out about it.
func (h *host) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	var last error
	for {
		_, err := h.get(ctx, "/health")
		if err == nil {
			break
		}
		if last == nil || !errors.Is(err, context.DeadlineExceeded) {
			last = err // that of a probe that ctx cut short says less than the one before
		}
		if ended := h.ended(); ended != nil {
			return ended
		}
		if late := pause(ctx, betweenProbes); late != nil {
			return fmt.Errorf("await the server: %w (%w)", late, last)
		}
	}
	if err := h.learnModel(ctx); err != nil {
		return err
	}
	var err error
	h.frontEnd, err = listenerOf(h.address)
	return err
}

func (h *host) learnModel(ctx context.Context) error {
	body, err := h.get(ctx, "/v1/models")
	if err != nil {
		return err
	}
	var list struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(body, &list); err != nil || len(list.Data) == 0 {
		return fmt.Errorf("/v1/models: no model in %.200q (%w)", body, err)
	}
	h.model = list.Data[0].ID
	return nil
}

// get returns the body of a success.
func (h *host) get(ctx context.Context, path string) ([]byte, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.address+path, nil)
	if err != nil {
		return nil, err
	}
	q.Close = true
	a, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	body, err := io.ReadAll(io.LimitReader(a.Body, 1<<20))
	if err == nil && a.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %.200s", path, a.StatusCode, body)
	}
	return body, err
}

// ended is an error if a command has ended by itself.
func (h *host) ended() error {
	var errs []error
	for _, p := range h.started {
		errs = append(errs, p.ended())
	}
	return errors.Join(errs...)
}

// endedSoon is ended of a host that failed, whose commands may be about to end.
func (h *host) endedSoon() error {
	t := time.NewTimer(lastBreath)
	defer t.Stop()
	for _, p := range h.started {
		select {
		case <-p.doneC:
		case <-t.C:
			return h.ended()
		}
	}
	return h.ended()
}

// close ends what was started, the engines first.
func (h *host) close() {
	for i := len(h.started) - 1; i >= 0; i-- {
		h.started[i].stop()
	}
}

// roots are the processes at the heads of all that serves.
func (h *host) roots() []int {
	if len(h.started) == 0 {
		return []int{h.frontEnd}
	}
	var pids []int
	for _, p := range h.started {
		pids = append(pids, p.pid())
	}
	return pids
}
