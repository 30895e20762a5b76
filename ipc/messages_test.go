package ipc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vllm-vcr/config"
)

// carry takes a message over the wire, into a new value of its type, and scribbles over the memory it came in.
func carry[T any](t *testing.T, kind Kind, message T) T {
	t.Helper()
	raw, err := Append(nil, kind, 9, message)
	if err != nil {
		t.Fatalf("Append: %v", err)
	}
	f, buf, err := ReadFrame(bytes.NewReader(raw), nil)
	if err != nil {
		t.Fatalf("ReadFrame: %v", err)
	}
	if f.Kind != kind || f.Call != 9 {
		t.Errorf("frame of kind %d, call %d, want %d and 9", f.Kind, f.Call, kind)
	}
	var got T
	if err := f.Decode(&got); err != nil {
		t.Fatalf("Decode: %v", err)
	}
	for i := range buf {
		buf[i] = '#'
	}
	return got
}

// checkCarried wants every field of a message filled and unharmed by the way over the wire.
func checkCarried[T any](t *testing.T, kind Kind) {
	t.Helper()
	var message T
	fill(t, reflect.ValueOf(&message).Elem(), fmt.Sprintf("%T", message), new(uint64))
	if diff := cmp.Diff(message, carry(t, kind, message)); diff != "" {
		t.Errorf("%T (-sent +received):\n%s", message, diff)
	}
}

// fill sets every field there is to a value of its own that is neither zero nor a default, so that a field which the wire
// forgets shows.
func fill(t *testing.T, v reflect.Value, path string, n *uint64) {
	t.Helper()
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), path+"."+v.Type().Field(i).Name, n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), path, n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0), path+"[0]", n)
		fill(t, v.Index(1), path+"[1]", n)
	case reflect.String:
		v.SetString(fmt.Sprintf("%s %d \"\\/<&>\u2028\x00é", path, *n))
	case reflect.Uint64:
		v.SetUint(math.MaxUint64 - *n)
	case reflect.Int, reflect.Int64:
		v.SetInt(math.MaxInt64 - int64(*n))
	case reflect.Float64:
		v.SetFloat(0.1 + float64(*n))
	case reflect.Bool:
		v.SetBool(true)
	default:
		t.Fatalf("%s: a field of kind %v, which this test cannot fill", path, v.Kind())
	}
}

func TestMessages_EveryFieldSurvives(t *testing.T) {
	t.Run("start", func(t *testing.T) { checkCarried[Start](t, KindStart) })
	t.Run("hello", func(t *testing.T) { checkCarried[Hello](t, KindHello) })
	t.Run("state", func(t *testing.T) { checkCarried[State](t, KindState) })
	t.Run("call", func(t *testing.T) { checkCarried[Call](t, KindCall) })
	t.Run("answer", func(t *testing.T) { checkCarried[Answer](t, KindAnswer) })
}

func TestStart_ConfigIsByteEqual(t *testing.T) {
	cfg := config.Default()
	fill(t, reflect.ValueOf(&cfg).Elem(), "Config", new(uint64))
	differs(t, reflect.ValueOf(config.Default()), reflect.ValueOf(cfg), "Config")
	got := carry(t, KindStart, Start{Config: cfg}).Config
	// encoding/json is the judge: it shares no code with the way over the wire.
	want, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	have, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Errorf("configuration of the worker:\n%s\nwant that of the supervisor:\n%s", have, want)
	}
}

// differs wants no leaf of b to be as in a.
func differs(t *testing.T, a, b reflect.Value, path string) {
	t.Helper()
	if a.Kind() != reflect.Struct {
		if reflect.DeepEqual(a.Interface(), b.Interface()) {
			t.Errorf("%s = %v, the default: it proves nothing", path, b)
		}
		return
	}
	for i := range a.NumField() {
		differs(t, a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name)
	}
}

func TestStart_DefaultConfig(t *testing.T) {
	want := Start{Magic: Magic, Version: Version, Config: config.Default()}
	if diff := cmp.Diff(want, carry(t, KindStart, want)); diff != "" {
		t.Errorf("start (-sent +received):\n%s", diff)
	}
}

// A change that the control API lets through must fit, or it would cost the link to every worker.
func TestAppend_LargestChangeFits(t *testing.T) {
	const body = 2 << 20 // what the control API accepts
	for name, raw := range map[string]string{
		"words":   "[" + strings.Repeat(`"error",`, body/8-10) + `"error"]`,
		"escapes": `["error"` + strings.Repeat("\n", body-40) + "]",
		"tabs":    `["error"` + strings.Repeat("\t", body-40) + "]",
	} {
		call := Call{Op: OpPrepare, Patch: config.Patch{{Key: "failure_types", Raw: raw}}}
		if got := carry(t, KindCall, call); got.Patch[0].Raw != raw {
			t.Errorf("%s: the change differs after the way over the wire", name)
		}
	}
}

func TestAppend_TooLarge(t *testing.T) {
	before := []byte("before")
	got, err := Append(before, KindCall, 1, Call{Filter: strings.Repeat("x", MaxFrame)})
	if !errors.Is(err, ErrFrameSize) {
		t.Errorf("Append: error %v, want %v", err, ErrFrameSize)
	}
	if string(got) != "before" {
		t.Errorf("Append left %d bytes, want the %d there were", len(got), len(before))
	}
}

func TestAppend_NoJSON(t *testing.T) {
	if _, err := Append(nil, KindCall, 1, math.NaN()); err == nil {
		t.Error("Append of NaN: no error")
	}
}

func TestFrame_Decode_Garbage(t *testing.T) {
	for _, body := range []string{
		"", "{", "nope", "[]", `"x"`, "7", `{"op":7}`, `{"op":"ping"} x`, `{"op":"ping"}{}`, `{"patch":{}}`, `{"change":-1}`, `{"change":1e99}`,
		"\xff\xfe", strings.Repeat("[", 100_000), strings.Repeat(`{"patch":`, 100_000),
	} {
		var call Call
		if err := (Frame{Kind: KindCall, Body: []byte(body)}).Decode(&call); err == nil {
			t.Errorf("body %.40q: no error", body)
		}
	}
}

func TestFrame_Decode_IgnoresUnknownKeys(t *testing.T) {
	var h Hello
	if err := (Frame{Kind: KindHello, Body: []byte(`{"version":1,"colour":"red"}`)}).Decode(&h); err != nil || h.Version != 1 {
		t.Errorf("Decode = %+v, %v, want version 1", h, err)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string // "" = no error
	}{
		{"our start", Start{Magic: Magic, Version: Version}.Check(), ""},
		{"stray writer", Start{Magic: "GET / HTTP/1.1", Version: Version}.Check(), `magic "GET / HTTP/1.1", want "vllm-vcr"`},
		{"other supervisor", Start{Magic: Magic, Version: 2}.Check(), "the supervisor speaks version 2, this worker 1"},
		{"our hello", Hello{Version}.Check(), ""},
		{"other worker", Hello{7}.Check(), "the worker speaks version 7, this supervisor 1"},
		{"no version", Hello{}.Check(), "the worker speaks version 0, this supervisor 1"},
	} {
		if c.want == "" {
			if c.err != nil {
				t.Errorf("%s: error %v, want none", c.name, c.err)
			}
			continue
		}
		if !errors.Is(c.err, ErrVersion) || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: error %v, want %v that says %q", c.name, c.err, ErrVersion, c.want)
		}
	}
}

func TestState_Check(t *testing.T) {
	for _, word := range []string{StateStarting, StateReady, StateReconnecting, StateDraining} {
		if err := (State{State: word}).Check(); err != nil {
			t.Errorf("%q: error %v, want none", word, err)
		}
	}
	for _, word := range []string{"", "dead", "frozen", "READY"} {
		if err := (State{State: word}).Check(); err == nil || !strings.Contains(err.Error(), "want starting, ready") {
			t.Errorf("%q: error %v, want one that lists the states", word, err)
		}
	}
}

func TestStats_Add(t *testing.T) {
	var a, b, want Stats
	for v, factor := range map[*Stats]uint64{&a: 1, &b: 10, &want: 11} {
		fields := reflect.ValueOf(v).Elem()
		for i := range fields.NumField() {
			fields.Field(i).SetUint(factor * uint64(i+1))
		}
	}
	if diff := cmp.Diff(want, a.Add(b)); diff != "" {
		t.Errorf("sum (-want +got):\n%s", diff)
	}
}
