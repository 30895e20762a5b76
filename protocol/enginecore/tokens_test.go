package enginecore

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every form of a number is an id, plain or not, and what is none is an error that names its place.
func TestUint32s(t *testing.T) {
	cases := []struct {
		name string
		b    string
		want []uint32
		err  string
	}{
		{"plain", "\x95\x00\x7f\xcc\xff\xcd\x01\x00\xce\xff\xff\xff\xff", []uint32{0, 127, 255, 256, 1<<32 - 1}, ""},
		{"64 bits and signed", "\x94\x01\xcf\x00\x00\x00\x00\x00\x00\x00\x02\xd0\x03\x04", []uint32{1, 2, 3, 4}, ""},
		{"nil in between", "\x93\x01\xc0\x02", []uint32{1, 0, 2}, ""},
		{"more behind", "\x91\x01\x02", []uint32{1}, ""},
		{"empty", "\x90", []uint32{}, ""},
		{"negative", "\x92\x01\xff", nil, "element 1"},
		{"text", "\x92\x01\xa1x", nil, "element 1"},
		{"too large", "\x92\x01\xcf\x00\x00\x00\x01\x00\x00\x00\x00", nil, "element 1: 4294967296, want at most 4294967295"},
		{"cut within", "\x93\x01\xcd\x01", nil, "element 1"},
		{"cut between", "\x93\x01\x02", nil, "array of 3 elements in 2 bytes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := decoder{b: []byte(c.b)}
			got := d.uint32s(nil, 10)
			if c.err != "" {
				if d.err == nil || !strings.Contains(d.err.Error(), c.err) {
					t.Errorf("error = %v, want one that says %q", d.err, c.err)
				}
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" || d.err != nil {
				t.Errorf("ids (-want +got): %v\n%s", d.err, diff)
			}
		})
	}
}
