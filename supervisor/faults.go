package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"vllm-vcr/ipc"
)

var (
	// ErrNoFault says that no fault with an id is active.
	ErrNoFault = errors.New("no such fault is active")
	// ErrTooManyFaults says that no further fault can be armed before one of the others is over.
	ErrTooManyFaults = fmt.Errorf("%d faults are active, which is as many as there can be: clear one of them", ipc.MaxFaults)

	// errNothing says that a change has nothing to do.
	errNothing = errors.New("nothing to do")
)

// FaultStatus is one fault as GET /faults shows it.
type FaultStatus struct {
	ipc.Fault
	TimeLeft *uint64         `json:"time_left,omitempty"` // ms until it is over by itself; nil = it is not
	Engines  []FaultOnEngine `json:"engines"`             // that have, or had, it
}

// FaultOnEngine is what a fault did to one engine.
type FaultOnEngine struct {
	Engine    int     `json:"engine"`              // by index
	Active    bool    `json:"active"`              // it may strike yet; a hang: it lasts
	Applied   uint64  `json:"applied"`             // how often it has struck
	Remaining *uint64 `json:"remaining,omitempty"` // how often it will yet; nil = any number
}

// Faults is the faults that are active, in the order in which they were armed, and how often faults of each kind have struck
// any engine since the start of the fleet, those included that are over.
type Faults struct {
	Faults  []FaultStatus   `json:"faults"`
	Applied ipc.FaultCounts `json:"applied"`
}

// armedFault is a fault that some engines have. It belongs to Fleet.Run.
type armedFault struct {
	ipc.ArmedFault
	until time.Time // zero = until it is taken back
	parts []*faultPart
}

// faultPart is a fault on one engine.
type faultPart struct {
	m    *member
	done bool // over with the process that had it
}

func (a *armedFault) expired(now time.Time) bool { return !a.until.IsZero() && !now.Before(a.until) }

// active says that a may strike m yet, or holds it up.
func (a *armedFault) active(p *faultPart, now time.Time) bool {
	return !p.done && !a.expired(now) && (a.Count == 0 || p.m.page.Applied(a.ArmedFault) < a.Count)
}

func (a *armedFault) over(now time.Time) bool {
	return !slices.ContainsFunc(a.parts, func(p *faultPart) bool { return a.active(p, now) })
}

func (a *armedFault) status(now time.Time) FaultStatus {
	s := FaultStatus{Fault: a.Fault, Engines: []FaultOnEngine{}}
	if !a.until.IsZero() {
		left := millisecondsLeft(a.until, now)
		s.TimeLeft = &left
	}
	for _, p := range a.parts {
		e := FaultOnEngine{Engine: p.m.index, Active: a.active(p, now), Applied: p.m.page.Applied(a.ArmedFault)}
		if a.Count > 0 {
			left := a.Count - min(a.Count, e.Applied)
			e.Remaining = &left
		}
		s.Engines = append(s.Engines, e)
	}
	return s
}

// millisecondsLeft rounds up: 0 is the end.
func millisecondsLeft(until, now time.Time) uint64 {
	return uint64(max(0, until.Sub(now)+time.Millisecond-1) / time.Millisecond)
}

// ArmFault has the engine that fault names, or every one, run into it: all or none. Its id is given here.
func (f *Fleet) ArmFault(ctx context.Context, fault ipc.Fault) (FaultStatus, error) {
	members := f.members
	if fault.Engine != nil {
		members = f.members[*fault.Engine : *fault.Engine+1]
	}
	var armed ipc.ArmedFault
	_, err := f.changeAll(ctx, members, func() (ipc.Call, error) {
		fault.ID = f.change
		slot, err := f.freeSlot(ctx)
		armed = ipc.ArmedFault{Fault: fault, Slot: slot}
		return ipc.Call{Arm: &armed}, err
	})
	if err != nil {
		return FaultStatus{}, err
	}
	status := FaultStatus{Fault: fault}
	err = f.read(ctx, func() {
		if a := f.fault(fault.ID); a != nil {
			status = a.status(time.Now())
		}
	})
	return status, err
}

// freeSlot finds a slot that no active fault has. Only who makes a change may ask.
func (f *Fleet) freeSlot(ctx context.Context) (int, error) {
	slot := -1
	err := f.read(ctx, func() {
		f.dropFaults()
		for slot = 0; f.slotTaken(slot); slot++ {
		}
	})
	if err == nil && slot >= ipc.MaxFaults {
		err = ErrTooManyFaults
	}
	return slot, err
}

func (f *Fleet) slotTaken(slot int) bool {
	return slices.ContainsFunc(f.faults, func(a *armedFault) bool { return a.Slot == slot })
}

// dropFaults forgets those that are over.
func (f *Fleet) dropFaults() {
	now := time.Now()
	f.faults = slices.DeleteFunc(f.faults, func(a *armedFault) bool { return a.over(now) })
}

func (f *Fleet) fault(id uint64) *armedFault {
	if i := slices.IndexFunc(f.faults, func(a *armedFault) bool { return a.ID == id }); i >= 0 {
		return f.faults[i]
	}
	return nil
}

// Faults shows what is active. It asks no engine.
func (f *Fleet) Faults(ctx context.Context) (Faults, error) {
	all := Faults{Faults: []FaultStatus{}}
	err := f.read(ctx, func() {
		f.dropFaults()
		for _, a := range f.faults {
			all.Faults = append(all.Faults, a.status(time.Now()))
		}
		for _, m := range f.members {
			for i, n := range m.page.FaultCounts() {
				all.Applied[i] += n
			}
		}
	})
	return all, err
}

// ClearFault takes a fault back from every engine that has it. Where none is active under the id the error is ErrNoFault.
func (f *Fleet) ClearFault(ctx context.Context, id uint64) error {
	return f.clear(ctx, func(a *armedFault) bool { return a.ID == id }, fmt.Errorf("fault %d: %w", id, ErrNoFault))
}

// ClearFaults takes every fault back.
func (f *Fleet) ClearFaults(ctx context.Context) error {
	return f.clear(ctx, func(*armedFault) bool { return true }, nil)
}

// clear takes the faults back that match; where there are none, its error is none. Engines whose process is gone have none,
// and need not be asked.
func (f *Fleet) clear(ctx context.Context, match func(*armedFault) bool, none error) error {
	_, err := f.changeAll(ctx, f.living(ctx), func() (ipc.Call, error) {
		var ids []uint64
		err := f.read(ctx, func() {
			f.dropFaults()
			for _, a := range f.faults {
				if match(a) {
					ids = append(ids, a.ID)
				}
			}
		})
		if err == nil && len(ids) == 0 {
			err = errNothing
		}
		return ipc.Call{Disarm: ids}, err
	})
	if errors.Is(err, errNothing) {
		return none
	}
	return err
}

// living are the engines that have a process, or are about to have their first.
func (f *Fleet) living(ctx context.Context) []*member {
	var living []*member
	_ = f.read(ctx, func() { // who cannot read cannot change either
		for _, m := range f.members {
			if m.process != nil || m.state == StateStarting {
				living = append(living, m)
			}
		}
	})
	return living
}

// changeFaults does for the fleet what a change of faults does in the engines.
func (f *Fleet) changeFaults(members []*member, c ipc.Call) {
	if c.Arm != nil {
		a := &armedFault{ArmedFault: *c.Arm}
		if c.Arm.Duration > 0 {
			a.until = time.Now().Add(time.Duration(c.Arm.Duration) * time.Millisecond)
		}
		for _, m := range members {
			a.parts = append(a.parts, &faultPart{m: m})
		}
		f.faults = append(f.faults, a)
	}
	f.faults = slices.DeleteFunc(f.faults, func(a *armedFault) bool { return slices.Contains(c.Disarm, a.ID) })
	if len(c.Disarm) > 0 {
		f.tellTheOthers(members, c)
	}
}

// tellTheOthers has processes take faults back that were started after the others were asked.
func (f *Fleet) tellTheOthers(asked []*member, c ipc.Call) {
	for _, m := range f.members {
		if !slices.Contains(asked, m) {
			f.tell(m, ipc.Call{Op: ipc.OpCommit, Change: c.Change, Disarm: c.Disarm})
		}
	}
}

// faultsFor are the faults that a new process of m gets, with what is left of their time.
func (f *Fleet) faultsFor(m *member) []ipc.ArmedFault {
	now := time.Now()
	var list []ipc.ArmedFault
	for _, a := range f.faults {
		for _, p := range a.parts {
			if p.m == m && a.active(p, now) {
				armed := a.ArmedFault
				if !a.until.IsZero() {
					armed.Duration = millisecondsLeft(a.until, now)
				}
				list = append(list, armed)
			}
		}
	}
	return list
}

// endFaults ends what goes with m's process: it hangs no longer, and need not crash any more. Where it has no successor,
// everything goes with it.
func (f *Fleet) endFaults(m *member) {
	for _, a := range f.faults {
		for _, p := range a.parts {
			if p.m == m && (a.Kind == ipc.FaultHang || a.AtOnce() || m.restart == nil) {
				p.done = true
			}
		}
	}
}

// activeFaults counts the faults that m may run into.
func (f *Fleet) activeFaults(m *member) uint64 { return uint64(len(f.faultsFor(m))) }

// expected says that what happened to an engine while it confirmed a change is what the change asked for.
func expected(c ipc.Call, err error) bool {
	var gone *GoneError
	return c.Arm != nil && c.Arm.Kind == ipc.FaultCrash && errors.As(err, &gone)
}
