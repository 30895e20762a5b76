package config

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vllm-vcr/fuzzlimit"
)

// FuzzSet sets an option to any text: what is accepted and in range comes back the same from String.
func FuzzSet(f *testing.F) {
	for i, o := range Options() {
		for _, text := range slices.Concat(optionValues[o.Flag].good, optionValues[o.Flag].bad) {
			f.Add(uint8(i), text)
		}
	}
	f.Fuzz(func(t *testing.T, index uint8, text string) {
		defer fuzzlimit.Watch(t, len(text))()
		o := Options()[int(index)%len(Options())]
		var first, second Config
		v := o.Value(&first)
		if v.Set(text) != nil || v.Check() != nil {
			return
		}
		if err := o.Value(&second).Set(v.String()); err != nil {
			t.Fatalf("--%s %q: Set(%q): %v", o.Flag, text, v.String(), err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("--%s %q comes back different (-want +got):\n%s", o.Flag, text, diff)
		}
	})
}

// FuzzSetJSON sets an option to any JSON but null: what is accepted and in range comes back the same from JSON, and what is
// refused changes nothing.
func FuzzSetJSON(f *testing.F) {
	for i, o := range Options() {
		c := Default()
		f.Add(uint8(i), []byte(o.Value(&c).JSON()))
		f.Add(uint8(i), []byte(`["error",null]`))
		f.Add(uint8(i), []byte(`"\ud800\u0000"`))
		f.Add(uint8(i), []byte(`-1e400`))
	}
	f.Fuzz(func(t *testing.T, index uint8, raw []byte) {
		defer fuzzlimit.Watch(t, len(raw))()
		if !json.Valid(raw) || string(raw) == "null" || slices.Contains([]byte(" \t\r\n"), raw[0]) {
			return // kept away by the caller
		}
		o := Options()[int(index)%len(Options())]
		first, second := Default(), Default()
		v := o.Value(&first)
		if v.SetJSON(raw) != nil {
			if diff := cmp.Diff(Default(), first); diff != "" {
				t.Errorf("--%s %s is refused and changes something (-want +got):\n%s", o.Flag, raw, diff)
			}
			return
		}
		if v.Check() != nil {
			return
		}
		if err := o.Value(&second).SetJSON([]byte(v.JSON())); err != nil {
			t.Fatalf("--%s %s: SetJSON(%s): %v", o.Flag, raw, v.JSON(), err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("--%s %s comes back different (-want +got):\n%s", o.Flag, raw, diff)
		}
	})
}
