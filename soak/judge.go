package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// leaveWithin is how long a process that is idle may take to leave.
const leaveWithin = 15 * time.Second

// usages reads what every process holds, by its role.
func (s *soak) usages(ctx context.Context) (map[string]usage, error) {
	all := map[string]usage{}
	var errs []error
	add := func(role string, pid, goroutines int, err error) {
		u, unread := readUsage(pid)
		if err := errors.Join(err, unread); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", role, err))
		}
		u.goroutines = goroutines
		all[role] = u
	}
	front := newControl(s.frontEnd.address)
	defer front.client.CloseIdleConnections()
	n, err := front.goroutines(ctx)
	add("front end", s.frontEnd.process.pid(), n, err)
	for _, f := range s.fleets {
		n, err := f.control.goroutines(ctx)
		add(f.name+" supervisor", f.process.pid(), n, err)
		list, err := f.control.engines(ctx)
		errs = append(errs, err)
		for _, e := range list {
			if e.PID > 0 {
				add(fmt.Sprintf("%s engine %d", f.name, e.Index), e.PID, e.Goroutines, nil)
			}
		}
	}
	return all, errors.Join(errs...)
}

// judge says all that is not as it should be, once everything rests.
func (s *soak) judge(ctx context.Context) error {
	errs := []error{s.judgeUsage(ctx), s.judgeHTTP(ctx, s.fleets[0], s.http), s.judgeRaw(ctx)}
	if s.vllm != nil {
		errs = append(errs, s.judgeHTTP(ctx, s.fleets[2], s.vllmHTTP))
	}
	for _, f := range s.fleets {
		errs = append(errs, f.control.judge())
		fmt.Fprintf(s.out, "%s fleet: control p99 %v, slowest call %v of %d\n", f.name, f.control.p99(), f.control.worst, f.control.calls)
	}
	for _, name := range slices.Sorted(maps.Keys(s.done)) {
		fmt.Fprintf(s.out, "fault: %s, %d times\n", name, s.done[name])
	}
	return errors.Join(errs...)
}

// judgeUsage gives processes a while to let go of what they hold.
func (s *soak) judgeUsage(ctx context.Context) error {
	err := eventually(ctx, "every process holds what it did after the warm-up", func() error {
		now, err := s.usages(ctx)
		if err != nil {
			return err
		}
		var errs []error
		for role, before := range s.rested {
			if text := now[role].exceeds(before); text != "" {
				errs = append(errs, fmt.Errorf("%s: %s", role, text))
			}
		}
		return errors.Join(errs...)
	})
	now, _ := s.usages(ctx) // an error was told above
	for _, role := range slices.Sorted(maps.Keys(s.rested)) {
		b, n := s.rested[role], now[role]
		fmt.Fprintf(s.out, "%-18s after the warm-up %6d KiB %3d descriptors %3d threads %4d goroutines, at the end %6d KiB %3d %3d %4d\n",
			role, b.resident>>10, b.descriptors, b.threads, b.goroutines, n.resident>>10, n.descriptors, n.threads, n.goroutines)
	}
	return err
}

// judgeHTTP holds the sum of a fleet's books against those of its clients.
func (s *soak) judgeHTTP(ctx context.Context, f *fleet, l *httpLoad) error {
	list, err := f.control.engines(ctx)
	if err != nil {
		return err
	}
	var sum stats
	var lost uint64
	for _, e := range list {
		sum, lost = sum.plus(e.Stats), lost+e.Lost
	}
	b := l.total()
	fmt.Fprintf(s.out, "%s fleet: HTTP clients %+v, engines %+v, lost %d\n", f.name, b, sum, lost)
	if b.completed == 0 {
		err = errors.New("no HTTP request was completed")
	}
	if err = errors.Join(err, b.agree(sum, lost), l.faulty()); err != nil {
		return fmt.Errorf("%s fleet: %w", f.name, err)
	}
	return nil
}

// judgeRaw holds the books of each engine of the second fleet against those of its client.
func (s *soak) judgeRaw(ctx context.Context) error {
	list, err := s.fleets[1].control.engines(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range list {
		b, fault := s.raw.booksOf(e.Index)
		fmt.Fprintf(s.out, "engine %d: client %+v, engine %+v, lost %d, restarts %d\n", e.Index, b, e.Stats, e.Lost, e.Restarts)
		if err := errors.Join(b.agree(e.Stats, e.Lost), fault); err != nil {
			errs = append(errs, fmt.Errorf("second fleet, engine %d: %w", e.Index, err))
		}
		if b.completed == 0 {
			errs = append(errs, fmt.Errorf("second fleet, engine %d: no request was completed", e.Index))
		}
	}
	return errors.Join(errs...)
}

func (s stats) plus(o stats) stats {
	return stats{
		s.Received + o.Received, s.Completed + o.Completed, s.Failed + o.Failed, s.Aborted + o.Aborted, s.Running + o.Running, s.Waiting + o.Waiting,
	}
}

// leave stops all processes, and wants them to end well and never to have said anything alarming.
func (s *soak) leave() error {
	var errs []error
	for _, f := range s.fleets {
		errs = append(errs, f.process.stop(leaveWithin))
	}
	errs = append(errs, s.frontEnd.process.stop(leaveWithin))
	ours := []*process{s.frontEnd.process}
	for _, f := range s.fleets {
		ours = append(ours, f.process)
	}
	for _, p := range ours {
		if text := p.log.alarmed(); text != "" {
			errs = append(errs, fmt.Errorf("%s said: %s", p.name, text))
		}
	}
	return errors.Join(errs...)
}

// progress prints a line every ten seconds.
func (s *soak) progress(ctx context.Context) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	last, at := s.total(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := s.total()
		rate := float64(now.tokens-last.tokens) / time.Since(at).Seconds()
		last, at = now, time.Now()
		fmt.Fprintf(s.out, "%6s  %d requests, %.0f tokens/s, %s, %d faults\n", s.age(), now.sent, rate, s.snapshot(ctx), s.faulted.Load())
	}
}

// snapshot is the books of all fleets and what all processes hold.
func (s *soak) snapshot(ctx context.Context) string {
	text := ""
	for _, f := range s.fleets {
		var sum stats
		if err := f.control.ask(ctx, http.MethodGet, "/stats", "", &sum); err != nil {
			text += fmt.Sprintf("%s fleet: %.60v, ", f.name, err)
			continue
		}
		text += fmt.Sprintf("%s fleet %d = %d + %d + %d + %d open, ", f.name, sum.Received, sum.Completed, sum.Failed, sum.Aborted, sum.Running+sum.Waiting)
	}
	all, err := s.usages(ctx)
	if err != nil {
		return text + err.Error()
	}
	var u usage
	for _, one := range all {
		u = u.plus(one)
	}
	return text + fmt.Sprintf("%d MiB, %d descriptors, %d threads, %d goroutines", u.resident>>20, u.descriptors, u.threads, u.goroutines)
}
