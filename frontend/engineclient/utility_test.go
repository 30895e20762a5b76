package engineclient

import (
	"context"
	"errors"
	"testing"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"

	"github.com/tinylib/msgp/msgp"
)

// called is the end of a call that runs on a goroutine of its own.
type called struct {
	value msgp.Raw
	err   error
}

func startCall(ctx context.Context, f *Frontend, method string, args msgp.Raw) <-chan called {
	done := make(chan called, 1)
	go func() {
		value, err := f.Client(0).Utility(ctx, 0, method, args)
		done <- called{value, err}
	}()
	return done
}

// takeCall receives a UTILITY at the engine.
func (e *fakeEngine) takeCall(t *testing.T) enginecore.UtilityCall {
	t.Helper()
	frames := recv(t, e.inputs[0])
	if string(frames[0]) != string(frameUtility) {
		t.Fatalf("type %x, want a UTILITY", frames[0])
	}
	c, err := enginecore.DecodeUtility(frames[1])
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClient_Utility(t *testing.T) {
	f := listen(t, Options{Engines: 1})
	e := join(t, f, 0)
	ready(t, f)
	done := startCall(within(t), f, "is_sleeping", msgp.AppendArrayHeader(nil, 0))
	c := e.takeCall(t)
	if c.Method != "is_sleeping" || c.ClientIndex != 0 {
		t.Errorf("call of %q by client %d, want is_sleeping by 0", c.Method, c.ClientIndex)
	}
	send(t, e.outputs[0], enginecore.AppendUtilityResult(nil, 0, 1, c.CallID, msgp.AppendBool(nil, true)))
	got := await(t, "answer", done)
	if got.err != nil || string(got.value) != "\xc3" {
		t.Errorf("answer = %x, %v, want true", got.value, got.err)
	}
}

func TestClient_Utility_Failure(t *testing.T) {
	f := listen(t, Options{Engines: 1})
	e := join(t, f, 0)
	ready(t, f)
	done := startCall(within(t), f, "fly", nil)
	send(t, e.outputs[0], enginecore.AppendUtilityFailure(nil, 0, 1, e.takeCall(t).CallID, "no wings"))
	got := await(t, "answer", done)
	var refusal *CallError
	if !errors.As(got.err, &refusal) || *refusal != (CallError{"fly", "no wings"}) {
		t.Errorf("error = %v, want the engine's refusal", got.err)
	}
}

// TestClient_Utility_Unanswered ends a call that gets no answer in each of the ways there are.
func TestClient_Utility_Unanswered(t *testing.T) {
	enough := errors.New("enough")
	cases := []struct {
		name string
		end  func(f *Frontend, e *fakeEngine, cancel context.CancelCauseFunc)
		want error
	}{
		{"given up", func(_ *Frontend, _ *fakeEngine, cancel context.CancelCauseFunc) { cancel(enough) }, enough},
		{"engine lost", func(_ *Frontend, e *fakeEngine, _ context.CancelCauseFunc) { e.vanish() }, ErrNotConnected},
		{"frontend closed", func(f *Frontend, _ *fakeEngine, _ context.CancelCauseFunc) { _ = f.Close(atOnce()) }, zmtp.ErrClosed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := listen(t, Options{Engines: 1})
			e := join(t, f, 0)
			ready(t, f)
			ctx, cancel := context.WithCancelCause(within(t))
			done := startCall(ctx, f, "sleep", nil)
			e.takeCall(t)
			c.end(f, e, cancel)
			wantError(t, await(t, "end of the call", done).err, c.want)
			if n := len(f.calls.waiting); n != 0 {
				t.Errorf("%d calls are still waited for", n)
			}
		})
	}
}

func TestClient_Utility_TooLate(t *testing.T) {
	f := listen(t, Options{Engines: 1})
	join(t, f, 0)
	ready(t, f)
	_ = f.Close(atOnce())
	_, err := f.Client(0).Utility(within(t), 0, "sleep", nil)
	wantError(t, err, ErrNotConnected)
}

// TestFrontend_UtilityNotice: an answer that nobody waits for is the user's.
func TestFrontend_UtilityNotice(t *testing.T) {
	r, events := record()
	f := listen(t, Options{Engines: 1, Events: events})
	e := join(t, f, 0)
	send(t, e.outputs[0], enginecore.AppendUtilityResult(nil, 0, 1, enginecore.NewCallID(12345), nil))
	if got := await(t, "notice", r.outputs); got != (heard{}) {
		t.Errorf("delivery = %+v, want one without requests", got)
	}
}
