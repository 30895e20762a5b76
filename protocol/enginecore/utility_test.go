package enginecore

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tinylib/msgp/msgp"
)

func TestCallID_KeepsValue(t *testing.T) {
	for _, c := range []struct {
		name, want string
		b          []byte
	}{
		{"fixint", "7", msgp.AppendInt(nil, 7)},
		{"elastic notice", "-1", msgp.AppendInt(nil, -1)},
		{"fault notice", "-2", msgp.AppendInt(nil, -2)},
		{"largest unsigned", "18446744073709551615", msgp.AppendUint64(nil, math.MaxUint64)},
		{"smallest signed", "-9223372036854775808", msgp.AppendInt64(nil, math.MinInt64)},
		{"Python's", "15089468395525116401", msgp.AppendUint64(nil, 15089468395525116401)},
	} {
		t.Run(c.name, func(t *testing.T) {
			call, err := DecodeUtility(append(append([]byte{0x93, 0}, c.b...), 0xa1, 'm'))
			if err != nil {
				t.Fatal(err)
			}
			if got := call.CallID.String(); got != c.want {
				t.Errorf("id %s, want %s", got, c.want)
			}
			sameBytes(t, call.CallID.append(nil), c.b)
		})
	}
	calls := map[CallID]string{NewCallID(5): "five"}
	if calls[NewCallID(5)] != "five" || calls[NewCallID(6)] != "" {
		t.Error("ids don't compare by value")
	}
}

func TestDecodeUtility_Args(t *testing.T) {
	head := []byte{0x94, 3, 1, 0xa1, 'm'}
	for name, args := range map[string][]byte{"nil": {0xc0}, "empty": {0x90}, "some": {0x92, 1, 0xc3}} {
		call, err := DecodeUtility(append(head[:5:5], args...))
		if err != nil || call.Method != "m" || call.ClientIndex != 3 {
			t.Errorf("%s: %+v, %v", name, call, err)
		}
	}
	if call, err := DecodeUtility(append([]byte{0x95}, append(head[1:5:5], 0x90, 0xc0)...)); err != nil || len(call.Args) != 1 {
		t.Errorf("an element too many: %+v, %v", call, err)
	}
	for want, b := range map[string][]byte{
		"args: map, want an array":     append(head[:5:5], 0x80),
		"2 elements, want at least 3":  {0x92, 0, 1},
		"call_id":                      {0x94, 0, 0xa1, 'x', 0xa1, 'm', 0x90},
		"client_index":                 {0x94, 0xff, 1, 0xa1, 'm', 0x90},
		"utility call: msgp: too few":  nil,
		"utility call: 2 bytes behind": {0x93, 0, 1, 0xa1, 'm', 1, 2},
	} {
		if _, err := DecodeUtility(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%x: error %v, want %q in it", b, err, want)
		}
	}
}

// list is an argument array of the given values, already in msgpack.
func list(values ...[]byte) msgp.Raw {
	b := msgp.AppendArrayHeader(nil, uint32(len(values)))
	for _, v := range values {
		b = append(b, v...)
	}
	return b
}

// results calls an argument reader and returns what it gives, the error as its text.
func results(t *testing.T, decode any, args msgp.Raw) []any {
	t.Helper()
	var out []any
	for _, v := range reflect.ValueOf(decode).Call([]reflect.Value{reflect.ValueOf(args)}) {
		if err, ok := v.Interface().(error); ok {
			out = append(out, err.Error())
			continue
		}
		out = append(out, v.Interface())
	}
	return out
}

func TestDecodeArgs(t *testing.T) {
	str := func(s string) []byte { return msgp.AppendString(nil, s) }
	null, yes, no, two := []byte{0xc0}, []byte{0xc3}, []byte{0xc2}, []byte{2}
	adapter := &LoRARequest{Name: "l", ID: 3, Path: "/x"}
	for _, c := range []struct {
		name   string
		decode any
		args   msgp.Raw
		want   []any
	}{
		{"sleep, none", DecodeSleepArgs, nil, []any{uint64(1), "abort", nil}},
		{"sleep", DecodeSleepArgs, list(two, str("wait"), yes), []any{uint64(2), "wait", nil}},
		{"sleep, nil level", DecodeSleepArgs, list(null, str("keep")), []any{uint64(1), "keep", nil}},
		{"wake up, nil", DecodeWakeUpArgs, list(null), []any{[]string(nil), nil}},
		{"wake up", DecodeWakeUpArgs, list(list(str("weights"), str("kv_cache")), null), []any{[]string{"weights", "kv_cache"}, nil}},
		{"pause, none", DecodePauseArgs, list(), []any{"abort", true, nil}},
		{"pause", DecodePauseArgs, list(str("keep"), no, yes), []any{"keep", false, nil}},
		{"add lora", DecodeAddLoRAArgs, list(appendLoRA(nil, Version{}, adapter), yes), []any{adapter, nil}},
		{"add lora of 0.27", DecodeAddLoRAArgs, list(appendLoRA(nil, Version{behind: 6}, adapter)), []any{adapter, nil}},
		{"add lora, none", DecodeAddLoRAArgs, list(null), []any{(*LoRARequest)(nil), "add_lora arguments: no adapter"}},
		{"remove lora", DecodeLoRAIDArgs, list(two, yes), []any{uint64(2), nil}},
		{"remove lora, none", DecodeLoRAIDArgs, list(), []any{uint64(0), "LoRA arguments: no adapter id"}},
		{"reset prefix cache", DecodeResetPrefixCacheArgs, list(yes, yes, no), []any{true, true, nil}},
		{"reset prefix cache, none", DecodeResetPrefixCacheArgs, nil, []any{false, false, nil}},
		{"profile", DecodeProfileArgs, list(no, null, null, null, null), []any{false, nil}},
		{"profile, none", DecodeProfileArgs, nil, []any{true, nil}},
		{"weight version", DecodeWeightVersionArgs, list(str("v7"), yes), []any{"v7", nil}},
		{"weight version, none", DecodeWeightVersionArgs, list(null), []any{"", "set_weight_version arguments: no label"}},
		{"abort", DecodeAbortArgs, list(list(str("a")), yes, two), []any{[]string{"a"}, true, nil}},
		{"collective rpc", DecodeCollectiveRPCArgs, list(str("m"), two, list(str("x")), null, yes), []any{
			CollectiveRPC{Method: "m", Timeout: Some(2.0), Args: list(str("x"))}, nil}},
		{"collective rpc, all", DecodeCollectiveRPCArgs, list(str("m"), null, list(), []byte{0x80}), []any{
			CollectiveRPC{Method: "m", Args: list(), Kwargs: msgp.Raw{0x80}}, nil}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, results(t, c.decode, c.args)); diff != "" {
				t.Errorf("arguments differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeArgs_Errors(t *testing.T) {
	for name, decode := range argReaders {
		for _, args := range []msgp.Raw{{0x81}, {0x92, 0x91, 0xc3, 0x91, 0xc3}, {0x91, 0xd9}, {0xdd, 0xff, 0xff, 0xff, 0xff}} {
			if err := decode(args); err == nil || !strings.Contains(err.Error(), "arguments: ") {
				t.Errorf("%s(%x): error %v, want one that names the method", name, args, err)
			}
		}
	}
}

// argReaders are all readers of arguments, with nothing but their error.
var argReaders = map[string]func(msgp.Raw) error{
	"sleep":              func(a msgp.Raw) error { _, _, err := DecodeSleepArgs(a); return err },
	"wake_up":            func(a msgp.Raw) error { _, err := DecodeWakeUpArgs(a); return err },
	"pause":              func(a msgp.Raw) error { _, _, err := DecodePauseArgs(a); return err },
	"add_lora":           func(a msgp.Raw) error { _, err := DecodeAddLoRAArgs(a); return err },
	"remove_lora":        func(a msgp.Raw) error { _, err := DecodeLoRAIDArgs(a); return err },
	"reset_prefix_cache": func(a msgp.Raw) error { _, _, err := DecodeResetPrefixCacheArgs(a); return err },
	"profile":            func(a msgp.Raw) error { _, err := DecodeProfileArgs(a); return err },
	"set_weight_version": func(a msgp.Raw) error { _, err := DecodeWeightVersionArgs(a); return err },
	"collective_rpc":     func(a msgp.Raw) error { _, err := DecodeCollectiveRPCArgs(a); return err },
	"abort":              func(a msgp.Raw) error { _, _, err := DecodeAbortArgs(a); return err },
}
