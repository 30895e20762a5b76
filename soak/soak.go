package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// soak is everything that is at work.
type soak struct {
	options  options
	out      io.Writer
	random   *rand.Rand // of the faults
	fleets   []*fleet   // under the front end, under the raw load, and under vLLM's server, if there is one
	frontEnd *frontEnd
	http     *httpLoad
	raw      *rawLoad
	vllm     *frontEnd // nil = none
	vllmHTTP *httpLoad // likewise
	began    time.Time
	done     map[string]int   // faults, by name
	faulted  atomic.Int64     // faults
	rested   map[string]usage // by role of a process, after the warm-up
	working  sync.WaitGroup   // what the loads and probes run in
}

// start starts all processes and waits until they are ready. What it returns is to be killed.
func start(ctx context.Context, o options, out io.Writer) (s *soak, err error) {
	s = &soak{options: o, out: out, random: rand.New(rand.NewPCG(o.seed, 0)), done: map[string]int{}}
	defer func() {
		if err != nil {
			s.kill()
		}
	}()
	var addresses [5]string
	for i := range addresses {
		if addresses[i], err = freeAddress(); err != nil {
			return nil, err
		}
	}
	sizes := o.sizes()
	s.frontEnd = ownFrontEnd(o.binary, addresses[0], addresses[1], sizes[0])
	s.http = newHTTPLoad(addresses[1])
	if err := s.frontEnd.start(); err != nil {
		return nil, err
	}
	if s.raw, err = newRawLoad("tcp://"+addresses[2], sizes[1]); err != nil {
		return nil, err
	}
	handshakes := []string{s.frontEnd.handshake, s.raw.handshake}
	if len(sizes) > 2 {
		s.vllm, s.vllmHTTP = vllmFrontEnd(o.vllm, addresses[3], addresses[4], sizes[2]), newHTTPLoad(addresses[4])
		if err := s.vllm.start(); err != nil {
			return nil, err
		}
		handshakes = append(handshakes, s.vllm.handshake)
	}
	for i, handshake := range handshakes {
		f, err := startFleet(fleetNames[i], o.binary, handshake, sizes[i], fleetTokens[i]...)
		if err != nil {
			return nil, err
		}
		s.fleets = append(s.fleets, f)
	}
	return s, s.ready(ctx)
}

// The fleets by their frontends: vllm-vcr's own, this program, vLLM's Rust server, whose model has a small vocabulary.
var (
	fleetNames  = []string{"first", "second", "third"}
	fleetTokens = [][]string{
		{"--token-source", "text", "--vocab-size", "100256"},
		{"--token-source", "text", "--vocab-size", "100256"},
		{"--token-source", "random", "--vocab-size", "94", "--vllm-version", "0.33"},
	}
)

// sizes are how many engines each fleet has: eight together.
func (o options) sizes() []int {
	if o.vllm == "" {
		return []int{4, 4}
	}
	return []int{3, 3, 2}
}

// ready waits for all engines and front ends.
func (s *soak) ready(ctx context.Context) error {
	var errs []error
	for _, f := range s.fleets {
		errs = append(errs, f.ready(ctx))
	}
	for _, e := range s.frontEnds() {
		errs = append(errs, e.ready(ctx))
	}
	return errors.Join(errs...)
}

// frontEnds are those that are processes.
func (s *soak) frontEnds() []*frontEnd {
	if s.vllm == nil {
		return []*frontEnd{s.frontEnd}
	}
	return []*frontEnd{s.frontEnd, s.vllm}
}

// httpLoads are those on the front ends.
func (s *soak) httpLoads() []*httpLoad {
	if s.vllm == nil {
		return []*httpLoad{s.http}
	}
	return []*httpLoad{s.http, s.vllmHTTP}
}

// total is what all clients saw.
func (s *soak) total() books {
	sum := s.raw.total()
	for _, l := range s.httpLoads() {
		sum = sum.plus(l.total())
	}
	return sum
}

// kill ends all processes that are left.
func (s *soak) kill() {
	for _, f := range s.fleets {
		f.process.kill()
	}
	for _, e := range s.frontEnds() {
		if e != nil && e.process != nil {
			e.process.kill()
		}
	}
	if s.raw != nil {
		s.raw.close()
	}
}

// warmUp is the part of the time that comes before the first look at what processes hold.
func (o options) warmUp() time.Duration { return min(o.duration/5, time.Minute) }

// soak loads, breaks and judges.
func (s *soak) soak(ctx context.Context) error {
	s.began = time.Now()
	work, stop := context.WithCancel(ctx)
	defer s.working.Wait()
	defer stop()
	s.work(work)
	if err := s.warm(ctx); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	err := s.breakThings(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err = errors.Join(err, s.rest(ctx))
	stop()
	s.working.Wait()
	return errors.Join(err, s.judge(ctx), s.leave())
}

// work starts the loads, the probes and the progress.
func (s *soak) work(ctx context.Context) {
	for n, l := range s.httpLoads() {
		for i := range httpClients {
			s.working.Go(func() { l.run(ctx, rand.New(rand.NewPCG(s.options.seed, uint64(1+n*httpClients+i)))) })
		}
	}
	s.working.Go(func() { s.raw.pump(ctx, rand.New(rand.NewPCG(s.options.seed, 1<<32))) })
	for _, f := range s.fleets {
		s.working.Go(func() { f.control.probe(ctx) })
	}
	s.working.Go(func() { s.progress(ctx) })
}

// warm lets everything happen once that makes a process grow for good, and notes what each holds then.
func (s *soak) warm(ctx context.Context) error {
	wait(ctx, s.options.warmUp()/2)
	for _, f := range []fault{faults[2], faults[3], faults[4], faults[6], faults[7]} {
		if err := f.do(s, ctx); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	wait(ctx, time.Until(s.began.Add(s.options.warmUp())))
	if err := s.rest(ctx); err != nil {
		return err
	}
	var err error
	if s.rested, err = s.usages(ctx); err != nil {
		return err
	}
	s.pause(false)
	return nil
}

// breakThings does a fault every now and then, until the time is over. What a fault finds broken ends the soak.
func (s *soak) breakThings(ctx context.Context) error {
	end := s.began.Add(s.options.duration)
	for next := time.Now().Add(s.options.gap); next.Before(end); next = next.Add(s.options.gap) {
		if wait(ctx, time.Until(next)); ctx.Err() != nil {
			return nil
		}
		f := faults[s.random.IntN(len(faults))]
		fmt.Fprintf(s.out, "%6s  fault: %s\n", s.age(), f.name)
		s.done[f.name]++
		s.faulted.Add(1)
		if err := f.do(s, ctx); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	wait(ctx, time.Until(end))
	return nil
}

// rest stops the loads, lets everything end, and wants all engines to be there with the settings of the start.
func (s *soak) rest(ctx context.Context) error {
	s.pause(true)
	var errs []error
	for _, f := range s.fleets {
		errs = append(errs, s.settleConfig(ctx, f))
	}
	errs = append(errs, eventually(ctx, "every client has its answer", func() error {
		for _, l := range s.httpLoads() {
			if !l.idle() {
				return fmt.Errorf("%d requests are open at %s", l.open.Load(), l.address)
			}
		}
		if !s.raw.idle() {
			return errors.New("raw requests are open")
		}
		return nil
	}))
	for _, f := range s.fleets {
		errs = append(errs, f.idle(ctx))
	}
	for _, l := range s.httpLoads() {
		l.client.CloseIdleConnections()
	}
	return errors.Join(errs...)
}

func (s *soak) pause(paused bool) {
	for _, l := range s.httpLoads() {
		l.paused.Store(paused)
	}
	s.raw.paused.Store(paused)
}

func (s *soak) age() string { return time.Since(s.began).Round(time.Second).String() }
