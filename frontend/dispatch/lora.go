package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"vllm-vcr/protocol/enginecore"

	"github.com/tinylib/msgp/msgp"
)

// adapters are the LoRA adapters that every engine is to have.
type adapters struct {
	changing sync.Mutex // held over a load or an unload, calls included

	mu     sync.Mutex
	lastID uint64 // ids begin at 1
	ids    map[string]uint64
	list   []enginecore.LoRARequest // by id
}

// LoadLoRA makes an adapter known to all living engines, and to those that come later. It gets the next id. The error is ErrLoRALoaded
// if the name is taken; with any error the adapter is not loaded anywhere. The engines may be none yet.
func (d *Dispatcher) LoadLoRA(ctx context.Context, name, path string) (enginecore.LoRARequest, error) {
	d.adapters.changing.Lock()
	defer d.adapters.changing.Unlock()
	l, err := d.adapters.add(name, path)
	if err != nil {
		return l, err
	}
	values, err := d.callBool(ctx, "add_lora", enginecore.AppendAddLoRAArgs(nil, d.version, &l))
	if errors.Is(err, ErrNoEngine) {
		return l, nil
	}
	if err == nil && !all(values) {
		err = errors.New("an engine refused it")
	}
	if err == nil {
		return l, nil
	}
	d.adapters.drop(name)
	_, _ = d.Call(ctx, "remove_lora", enginecore.AppendLoRAIDArgs(nil, l.ID)) // who has it not has nothing to remove
	return enginecore.LoRARequest{}, fmt.Errorf("load adapter %q: %w", name, err)
}

// UnloadLoRA takes an adapter away from all engines. The error is ErrLoRAUnknown if there is none of that name; after any other
// the adapter is gone from here, but perhaps not from an engine.
func (d *Dispatcher) UnloadLoRA(ctx context.Context, name string) error {
	d.adapters.changing.Lock()
	defer d.adapters.changing.Unlock()
	id, ok := d.adapters.drop(name)
	if !ok {
		return fmt.Errorf("adapter %q: %w", name, ErrLoRAUnknown)
	}
	_, err := d.Call(ctx, "remove_lora", enginecore.AppendLoRAIDArgs(nil, id))
	if err != nil && !errors.Is(err, ErrNoEngine) {
		return fmt.Errorf("unload adapter %q: %w", name, err)
	}
	return nil
}

// LoRA is the adapter of that name, for a request that asks for it.
func (d *Dispatcher) LoRA(name string) (enginecore.LoRARequest, bool) {
	for _, l := range d.LoRAs() {
		if l.Name == name {
			return l, true
		}
	}
	return enginecore.LoRARequest{}, false
}

// LoRAs are the adapters in the order in which they were loaded.
func (d *Dispatcher) LoRAs() []enginecore.LoRARequest {
	d.adapters.mu.Lock()
	defer d.adapters.mu.Unlock()
	return slices.Clone(d.adapters.list)
}

func (a *adapters) add(name, path string) (enginecore.LoRARequest, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.ids[name]; ok {
		return enginecore.LoRARequest{}, fmt.Errorf("adapter %q: %w", name, ErrLoRALoaded)
	}
	a.lastID++
	l := enginecore.LoRARequest{Name: name, ID: a.lastID, Path: path}
	a.ids[name] = l.ID
	a.list = append(a.list, l)
	return l, nil
}

func (a *adapters) drop(name string) (id uint64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id, ok = a.ids[name]
	delete(a.ids, name)
	a.list = slices.DeleteFunc(a.list, func(l enginecore.LoRARequest) bool { return l.Name == name })
	return id, ok
}

// openWith opens an engine that was told of some adapters, and reports it if that is still there, or returns one that it was not told
// of. The registry can't change in between, so no adapter is missed.
func (a *adapters) openWith(e *engine, incarnation uint64, told map[uint64]bool) (missing *enginecore.LoRARequest, opened bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.list {
		if !told[l.ID] {
			return &l, false
		}
	}
	return nil, e.open(incarnation)
}

// prepare tells an engine of the adapters and opens it.
func (d *Dispatcher) prepare(e *engine, incarnation uint64) {
	told := map[uint64]bool{}
	for {
		l, opened := d.adapters.openWith(e, incarnation, told)
		if opened {
			d.changed(e.rank, nil)
		}
		if l == nil {
			return
		}
		told[l.ID] = true
		value, err := d.client.Utility(d.life, e.rank, "add_lora", enginecore.AppendAddLoRAArgs(nil, d.version, l))
		if err != nil {
			d.refuse(fmt.Errorf("engine %d: adapter %q: %w", e.rank, l.Name, err))
			if d.life.Err() != nil {
				return
			}
			continue // the engine serves without it, or has gone
		}
		if ok, _, err := msgp.ReadBoolBytes(value); err != nil || !ok {
			d.refuse(fmt.Errorf("engine %d: adapter %q: refused", e.rank, l.Name))
		}
	}
}
