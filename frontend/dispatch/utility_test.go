package dispatch

import (
	"errors"
	"slices"
	"testing"

	"vllm-vcr/frontend/engineclient"
	"vllm-vcr/protocol/enginecore"

	"github.com/google/go-cmp/cmp"
	"github.com/tinylib/msgp/msgp"
)

var (
	yes = msgp.Raw{0xc3}
	no  = msgp.Raw{0xc2}
)

// script has each engine answer with its own value.
func (r *rig) script(values ...msgp.Raw) {
	for i, e := range r.engines {
		e.answers(func(*fake, enginecore.UtilityCall) msgp.Raw { return values[i] })
	}
}

func TestDispatcher_BooleanCalls(t *testing.T) {
	r := newRig(t, 2, nil)
	reset := func() (bool, error) { return r.ResetPrefixCache(within(t), true, false) }
	sleeping := func() (bool, error) { return r.IsSleeping(within(t)) }
	for name, c := range map[string]struct {
		call    func() (bool, error)
		answers []msgp.Raw
		want    bool
		fails   bool
	}{
		"all reset":          {call: reset, answers: []msgp.Raw{yes, yes}, want: true},
		"one did not reset":  {call: reset, answers: []msgp.Raw{yes, no}},
		"one failed":         {call: reset, answers: []msgp.Raw{yes, nil}, fails: true},
		"no boolean":         {call: reset, answers: []msgp.Raw{yes, {0x01}}, fails: true},
		"all sleep":          {call: sleeping, answers: []msgp.Raw{yes, yes}, want: true},
		"all are awake":      {call: sleeping, answers: []msgp.Raw{no, no}},
		"they differ":        {call: sleeping, answers: []msgp.Raw{no, yes}, fails: true},
		"sleeping is broken": {call: sleeping, answers: []msgp.Raw{nil, nil}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			r.script(c.answers...)
			if got, err := c.call(); got != c.want || (err != nil) != c.fails {
				t.Errorf("= %v, %v; want %v, an error: %v", got, err, c.want, c.fails)
			}
		})
	}
}

func TestDispatcher_SleepAndWake(t *testing.T) {
	w := &witness{}
	r := newRig(t, 2, w)
	if err := r.Sleep(within(t), 2, "wait"); err != nil {
		t.Errorf("Sleep: %v", err)
	}
	if err := r.WakeUp(within(t), []string{"weights"}); err != nil {
		t.Errorf("WakeUp of a part: %v", err)
	}
	if err := r.WakeUp(within(t), nil); err != nil {
		t.Errorf("WakeUp: %v", err)
	}
	r.script(yes, nil)
	var refused *engineclient.CallError
	if err := r.Sleep(within(t), 1, "abort"); !errors.As(err, &refused) {
		t.Errorf("Sleep: %v, want the engine's refusal", err)
	}
	if err := r.WakeUp(within(t), nil); !errors.As(err, &refused) {
		t.Errorf("WakeUp: %v, want the engine's refusal", err)
	}
	if diff := cmp.Diff([]uint64{2, 0}, w.slept); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
	for _, e := range r.engines {
		for _, want := range []string{"sleep", "wake_up", "wake_up"} {
			if got := await(t, "call", e.calls); got != want {
				t.Errorf("engine %d: call of %s, want %s", e.rank, got, want)
			}
		}
	}
}

func TestDispatcher_Call_Living(t *testing.T) {
	r := newRig(t, 2, nil)
	r.engines[0].vanish()
	await(t, "loss", r.changes)
	answers, err := r.Call(within(t), "anything", nil)
	if diff := cmp.Diff([]Answer{{Rank: 1, Value: yes}}, answers); diff != "" || err != nil {
		t.Errorf("answers: %v (-want +got):\n%s", err, diff)
	}
	r.engines[1].vanish()
	await(t, "loss", r.changes)
	if _, err := r.Call(within(t), "anything", nil); !errors.Is(err, ErrNoEngine) {
		t.Errorf("nobody left: %v, want ErrNoEngine", err)
	}
}

func TestDispatcher_LoRA(t *testing.T) {
	r := newRig(t, 2, nil)
	var want []enginecore.LoRARequest
	for i, name := range []string{"sql", "poetry"} {
		l, err := r.LoadLoRA(within(t), name, "/adapters/"+name)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, enginecore.LoRARequest{Name: name, ID: uint64(i + 1), Path: "/adapters/" + name})
		if diff := cmp.Diff(want[i], l); diff != "" {
			t.Errorf("adapter (-want +got):\n%s", diff)
		}
	}
	if _, err := r.LoadLoRA(within(t), "sql", "/elsewhere"); !errors.Is(err, ErrLoRALoaded) {
		t.Errorf("again: %v, want ErrLoRALoaded", err)
	}
	if diff := cmp.Diff(want, r.LoRAs()); diff != "" {
		t.Errorf("LoRAs (-want +got):\n%s", diff)
	}
	if err := r.UnloadLoRA(within(t), "sql"); err != nil {
		t.Errorf("UnloadLoRA: %v", err)
	}
	if err := r.UnloadLoRA(within(t), "sql"); !errors.Is(err, ErrLoRAUnknown) {
		t.Errorf("again: %v, want ErrLoRAUnknown", err)
	}
	if l, ok := r.LoRA("poetry"); !ok || l.ID != 2 {
		t.Errorf("LoRA(poetry) = %+v, %v; want id 2", l, ok)
	}
	if _, ok := r.LoRA("sql"); ok {
		t.Error("sql is still there")
	}
	for _, e := range r.engines {
		for _, want := range []string{"add_lora", "add_lora", "remove_lora"} {
			if got := await(t, "call", e.calls); got != want {
				t.Errorf("engine %d: call of %s, want %s", e.rank, got, want)
			}
		}
	}
}

// An adapter that one engine refuses is loaded nowhere.
func TestDispatcher_LoRA_Refused(t *testing.T) {
	for name, second := range map[string]msgp.Raw{"failure": nil, "false": no} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, nil)
			r.script(yes, second)
			if _, err := r.LoadLoRA(within(t), "sql", "/a"); err == nil {
				t.Error("no error")
			}
			if got := r.LoRAs(); len(got) != 0 {
				t.Errorf("LoRAs = %v, want none", got)
			}
			await(t, "add", r.engines[0].calls)
			if got := await(t, "removal", r.engines[0].calls); got != "remove_lora" {
				t.Errorf("call of %s, want remove_lora", got)
			}
		})
	}
}

// An engine takes no request before it was told of the adapters; a refusal of one doesn't keep it out.
func TestDispatcher_LoRA_Latecomer(t *testing.T) {
	r := emptyRig(t, 1, nil)
	for _, name := range []string{"sql", "poetry"} {
		if _, err := r.LoadLoRA(within(t), name, "/"+name); err != nil {
			t.Fatal(err)
		}
	}
	var told []string
	holdC := make(chan struct{})
	e := r.joinAnswering(t, 0, func(_ *fake, c enginecore.UtilityCall) msgp.Raw {
		<-holdC
		l, err := enginecore.DecodeAddLoRAArgs(c.Args)
		if err != nil {
			t.Error(err)
			return nil
		}
		told = append(told, l.Name)
		if l.Name == "sql" {
			return nil
		}
		return yes
	})
	select {
	case c := <-r.changes:
		t.Errorf("change %+v before the adapters were told", c)
	default:
	}
	close(holdC)
	if err := r.Ready(within(t)); err != nil {
		t.Fatal(err)
	}
	r.submit(t, request("a", 1))
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Equal(told, []string{"sql", "poetry"}) {
		t.Errorf("told of %q, want sql and poetry", told)
	}
	await(t, "refusal", r.refused)
}

func TestDispatcher_LoRA_LostWhileTold(t *testing.T) {
	r := emptyRig(t, 1, nil)
	if _, err := r.LoadLoRA(within(t), "sql", "/sql"); err != nil {
		t.Fatal(err)
	}
	lostC := make(chan struct{})
	defer close(lostC)
	r.joinAnswering(t, 0, func(f *fake, _ enginecore.UtilityCall) msgp.Raw {
		_ = f.in.Close(atOnce())
		<-lostC
		return yes
	})
	if c := await(t, "loss", r.changes); c.err == nil {
		t.Errorf("change = %+v, want the loss", c)
	}
	if _, err := r.Submit(request("a", 1)); !errors.Is(err, ErrNoEngine) {
		t.Errorf("Submit: %v, want ErrNoEngine", err)
	}
}
