package main

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

// fault is something nasty. Its error is a promise that was not kept.
type fault struct {
	name string
	do   func(*soak, context.Context) error
}

// faults are drawn from.
var faults = []fault{
	{"a worker is killed", (*soak).killWorker},
	{"a worker is stopped and goes on", (*soak).freezeWorker},
	{"a storm of patches", (*soak).stormPatches},
	{"clients hang up", (*soak).hangUp},
	{"nobody reads", (*soak).readSlowly},
	{"a frontend vanishes and returns", (*soak).loseFrontend},
	{"log filters flip", (*soak).flipLogs},
	{"garbage at every port", (*soak).sendGarbage},
}

func (s *soak) anyFleet() *fleet { return s.fleets[s.random.IntN(len(s.fleets))] }

// mortalFleet is one whose frontend notices that an engine is gone. vLLM's does not: its requests would hang.
func (s *soak) mortalFleet() *fleet { return s.fleets[s.random.IntN(2)] }

// maxKills is how often one engine is killed within a minute: five deaths are final.
const maxKills = 3

// victim draws an engine of f that is ready and has not been killed too often.
func (s *soak) victim(ctx context.Context, f *fleet) (engine, error) {
	list, err := f.control.engines(ctx)
	if err != nil {
		return engine{}, err
	}
	for _, at := range s.random.Perm(len(list)) {
		e := list[at]
		recent := 0
		for _, t := range f.killed[e.Index] {
			if time.Since(t) < 65*time.Second {
				recent++
			}
		}
		if e.State == "ready" && recent < maxKills {
			return e, nil
		}
	}
	return engine{}, fmt.Errorf("%s: no engine is ready: %+v", f.name, list)
}

// killWorker wants the engine to be back in time.
func (s *soak) killWorker(ctx context.Context) error {
	f := s.mortalFleet()
	e, err := s.victim(ctx, f)
	if err != nil {
		return err
	}
	f.killed[e.Index] = append(f.killed[e.Index], time.Now())
	if err := syscall.Kill(e.PID, syscall.SIGKILL); err != nil {
		return fmt.Errorf("%s: kill engine %d: %w", f.name, e.Index, err)
	}
	return eventually(ctx, fmt.Sprintf("%s: engine %d is back", f.name, e.Index), func() error {
		list, err := f.control.engines(ctx)
		if err != nil {
			return err
		}
		if now := list[e.Index]; now.Restarts == e.Restarts || now.State != "ready" {
			return fmt.Errorf("it is %s after %d restarts", now.State, now.Restarts)
		}
		return nil
	})
}

// freezeWorker stops an engine for a few seconds: control calls wait for it in vain, and it loses nothing.
func (s *soak) freezeWorker(ctx context.Context) error {
	f := s.anyFleet()
	e, err := s.victim(ctx, f)
	if err != nil {
		return err
	}
	f.control.frozen.Add(1)
	defer f.control.frozen.Add(-1)
	if err := syscall.Kill(e.PID, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("%s: stop engine %d: %w", f.name, e.Index, err)
	}
	wait(ctx, time.Duration(1+s.random.IntN(3))*time.Second)
	if err := syscall.Kill(e.PID, syscall.SIGCONT); err != nil {
		return fmt.Errorf("%s: continue engine %d: %w", f.name, e.Index, err)
	}
	return f.ready(ctx)
}

// stormPatches makes many changes from several clients at once, and one that is to stay.
func (s *soak) stormPatches(ctx context.Context) error {
	f := s.anyFleet()
	seed := s.random.Uint64()
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			random := mathrand.New(mathrand.NewPCG(seed, uint64(i)))
			for range 50 {
				body := fmt.Sprintf(`{"inter_token_latency": %d, "time_to_first_token": %d, "max_num_seqs": %d, "failure_injection_rate": %g}`,
					1+random.IntN(5), random.IntN(30), 1+random.IntN(128), float64(random.IntN(3))/10)
				_, _, _ = f.control.call(ctx, http.MethodPatch, "/config", body) // what it comes to is seen below
			}
		})
	}
	clients.Wait()
	return s.settleConfig(ctx, f)
}

// settleConfig gives a fleet its settings again, and wants every engine to say so.
func (s *soak) settleConfig(ctx context.Context, f *fleet) error {
	if err := f.ready(ctx); err != nil {
		return err
	}
	var want, got map[string]any
	if err := f.control.ask(ctx, http.MethodPatch, "/config", baseSettings, &want); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	for i := range f.engines {
		if err := f.control.ask(ctx, http.MethodGet, fmt.Sprintf("/engines/%d/config", i), "", &got); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("%s: engine %d has %v, want %v", f.name, i, got, want)
		}
	}
	return nil
}

func (s *soak) crowd(ctx context.Context, n int, m manner, tokens int) {
	var clients sync.WaitGroup
	loads := s.httpLoads()
	for i := range n {
		clients.Go(func() { loads[i%len(loads)].ask(ctx, m, tokens) })
	}
	clients.Wait()
}

func (s *soak) hangUp(ctx context.Context) error {
	s.crowd(ctx, 60, rudely, 2000)
	return nil
}

// readSlowly has many clients of one frontend read slowly, and the other frontend not at all for a while.
func (s *soak) readSlowly(ctx context.Context) error {
	s.raw.stalled.Store(time.Now().Add(3 * time.Second).UnixNano())
	s.crowd(ctx, 30, slow, 300)
	return nil
}

// loseFrontend takes one of the frontends away for a moment. Its engines come back by themselves.
func (s *soak) loseFrontend(ctx context.Context) error {
	away := time.Duration(s.random.IntN(2000)) * time.Millisecond
	var err error
	n := s.random.IntN(len(s.fleets))
	switch n {
	case 0:
		err = s.frontEnd.comeBack(ctx, away)
	case 1:
		err = s.raw.vanish(ctx, away)
	default:
		err = s.vllm.comeBack(ctx, away)
	}
	if err != nil {
		return err
	}
	return s.fleets[n].ready(ctx)
}

// flipLogs changes the filter of all processes a hundred times, and leaves it as it was.
func (s *soak) flipLogs(ctx context.Context) error {
	f := s.anyFleet()
	for range 50 {
		for _, filter := range []string{"vllm_vcr::engine=trace,debug", "info"} {
			status, text, err := f.control.call(ctx, http.MethodPut, "/log", `{"filter": "`+filter+`"}`)
			if err != nil || status != http.StatusOK {
				return fmt.Errorf("%s: PUT /log: status %d: %.200s, %v", f.name, status, text, err)
			}
		}
	}
	return nil
}

// sendGarbage connects to every port there is and says nothing of sense. Some of it hangs up, some stays for a while.
func (s *soak) sendGarbage(ctx context.Context) error {
	ports := []string{s.http.address, host(s.frontEnd.handshake), host(s.raw.handshake)}
	for _, f := range s.fleets {
		ports = append(ports, host(f.control.base))
	}
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close() // it may have been closed from there
		}
	}()
	for _, address := range ports {
		for i := range 20 {
			c, err := net.DialTimeout("tcp", address, 5*time.Second)
			if err != nil {
				return fmt.Errorf("garbage: %w", err)
			}
			conns = append(conns, c)
			_, _ = c.Write(garbage(i)) // it may be refused in the middle
		}
	}
	wait(ctx, 2*time.Second)
	return nil
}

func host(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return address
}

// garbage is a handful of openings that lead nowhere.
func garbage(i int) []byte {
	noise := make([]byte, 1+i*97)
	_, _ = rand.Read(noise) // it never fails
	switch i % 5 {
	case 0:
		return noise
	case 1:
		return append([]byte("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n"), noise...)
	case 2:
		return append([]byte("\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL"), noise...)
	case 3:
		return []byte(strings.Repeat("GET / HTTP/1.1\r\n", 200))
	default:
		return nil
	}
}
