package dispatch

// Status is one engine's state as seen from here.
type Status struct {
	Rank    int
	Err     error  // why it takes no requests; nil = it does
	Waiting uint64 // requests, by its latest scheduler stats, which count those of other frontends too
	Running uint64
	Open    uint64 // requests of this frontend
}

// Engines is the state of every engine, by rank.
func (d *Dispatcher) Engines() []Status {
	loads := d.balancer.snapshot()
	all := make([]Status, len(d.engines))
	for i, e := range d.engines {
		l := loads[i]
		all[i] = Status{Rank: i, Err: e.health(), Waiting: l.waiting, Running: l.running, Open: l.open}
	}
	return all
}

// Health is nil if all engines take requests; otherwise it is why the first that doesn't doesn't: an [EngineDeadError] where it
// has gone.
func (d *Dispatcher) Health() error {
	for _, e := range d.engines {
		if err := e.health(); err != nil {
			return err
		}
	}
	return nil
}

// MaxModelLen is the smallest that an engine registered with, in tokens; 0 before the first has.
func (d *Dispatcher) MaxModelLen() uint64 {
	smallest := uint64(0)
	for _, e := range d.engines {
		if r, ok := e.registration(); ok && (smallest == 0 || r.MaxModelLen < smallest) {
			smallest = r.MaxModelLen
		}
	}
	return smallest
}
