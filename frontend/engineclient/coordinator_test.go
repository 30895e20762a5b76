package engineclient

import (
	"testing"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"

	"github.com/google/go-cmp/cmp"
)

// coordinated is an engine's two connections to the coordinator.
type coordinated struct{ in, out *zmtp.Conn }

func (e *fakeEngine) coordinate(t *testing.T) coordinated {
	t.Helper()
	k := coordinated{
		in:  dial(t, e.init.CoordinatorInput, zmtp.XSub, identity(e.rank)),
		out: dial(t, e.init.CoordinatorOutput, zmtp.Push, nil),
	}
	if err := k.in.Subscribe(nil); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k coordinated) awaitReady(t *testing.T) {
	t.Helper()
	if frames := recv(t, k.in); len(frames) != 1 || string(frames[0]) != enginecore.CoordinatorReady {
		t.Fatalf("coordinator said %q, want READY", frames)
	}
}

func TestCoordinator(t *testing.T) {
	r, events := record()
	f := listen(t, Options{Engines: 2, Coordinator: true, KeepHandshake: true, Events: events})
	first := greetAt(t, f.Handshake(), 0)
	first.connect(t)
	k := first.coordinate(t)

	hasty := join(t, f, 1)
	refused(t, r, "engine 1: READY before the coordinator's")

	second := greetAt(t, f.Handshake(), 1)
	k2 := second.coordinate(t)
	k.awaitReady(t)
	k2.awaitReady(t)
	send(t, first.hello, status("READY"))
	send(t, second.hello, status("READY")) // hasty's registration stands
	ready(t, f)

	stats := enginecore.SchedulerStats{Running: 3, Waiting: 1}
	var b enginecore.Batch
	b.Reset(enginecore.Version{}, 0)
	send(t, k.out, []byte{0xc1})
	refused(t, r, "coordinator: ")
	send(t, k.out, b.Finish(&stats, 1))
	if got := await(t, "report", r.reports); got.Running != 3 || got.Waiting != 1 {
		t.Errorf("report of %d running, %d waiting, want 3, 1", got.Running, got.Waiting)
	}

	wave := enginecore.StartWave{Wave: 5, Exclude: enginecore.Some[uint64](1)}
	if err := f.StartWave(wave); err != nil {
		t.Fatal(err)
	}
	for _, in := range []*zmtp.Conn{k.in, k2.in} {
		frames := recv(t, in)
		got, err := enginecore.DecodeStartWave(frames[1])
		if diff := cmp.Diff(wave, got); err != nil || diff != "" || frames[0][0] != enginecore.FrameStartWave {
			t.Errorf("type %x, %v, wave (-want +got):\n%s", frames[0], err, diff)
		}
	}

	hasty.vanish()
	await(t, "loss", r.lost)
	back := greetAt(t, f.Handshake(), 1)
	back.coordinate(t).awaitReady(t) // at once: the others have had theirs
}

// TestCoordinator_Unsubscribed: an engine that takes its subscription back is not counted.
func TestCoordinator_Unsubscribed(t *testing.T) {
	f := listen(t, Options{Engines: 2, Coordinator: true})
	e := greetAt(t, f.Handshake(), 0)
	fickle := dial(t, e.init.CoordinatorInput, zmtp.XSub, nil)
	send(t, fickle, []byte("\x01"))
	send(t, fickle, []byte("\x00"))
	send(t, fickle, []byte("\x01"))
	e.coordinate(t).awaitReady(t)
}

func TestFrontend_StartWave_NoCoordinator(t *testing.T) {
	f := listen(t, Options{Engines: 1})
	if err := f.StartWave(enginecore.StartWave{}); err == nil {
		t.Error("StartWave without a coordinator: no error")
	}
}
