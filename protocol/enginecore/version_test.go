package enginecore

import (
	"strings"
	"testing"
)

func TestParseVersion(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"0.33", "0.33.0"}, {"0.25", "0.25.0"}, {"v0.27.1", "v0.27.1"}, {"0.26.0", "0.26.0"}, {"v0.30", "v0.30.0"}, {"0.32.12", "0.32.12"},
	} {
		v, err := ParseVersion(c.in)
		if err != nil {
			t.Errorf("ParseVersion(%q): %v", c.in, err)
			continue
		}
		if got := v.String(); got != c.want {
			t.Errorf("ParseVersion(%q) = %s, want %s", c.in, got, c.want)
		}
	}
	if v, err := ParseVersion("0.33"); err != nil || v != (Version{}) {
		t.Errorf("ParseVersion(0.33) = %v, %v, want the zero value", v, err)
	}
}

func TestParseVersion_Unknown(t *testing.T) {
	for _, in := range []string{
		"", "v", "0", "0.24", "0.34", "1.33", "0.33.0.1", "0.33.", "0.33.x", "0.+33", "0.033", "0.33.00", "0.33.70000", "vv0.33", " 0.33", "0.33rc1", "V0.33",
	} {
		_, err := ParseVersion(in)
		if err == nil || !strings.Contains(err.Error(), "0.25, 0.26") || !strings.Contains(err.Error(), "0.33") {
			t.Errorf("ParseVersion(%q): %v, want an error that lists what is known", in, err)
		}
	}
}

func TestVersion_Layout(t *testing.T) {
	for _, c := range []struct {
		version                   string
		request, outputs, prefill int
	}{
		{"0.25", 20, 13, 10}, {"0.26", 20, 14, 11}, {"0.27.1", 20, 14, 11}, {"0.32", 20, 14, 11}, {"0.33", 22, 19, 11},
	} {
		v := mustVersion(t, c.version)
		if got := v.requestLen(); got != c.request {
			t.Errorf("%s: request of %d elements, want %d", c.version, got, c.request)
		}
		if got := v.outputIndex(v.outputSlots()-1) + 1; got != c.outputs {
			t.Errorf("%s: output of %d elements, want %d", c.version, got, c.outputs)
		}
		if got := v.outputIndex(slotPrefill); got != c.prefill {
			t.Errorf("%s: prefill stats at %d, want %d", c.version, got, c.prefill)
		}
		if got := v.outputSlot(c.prefill); got != slotPrefill {
			t.Errorf("%s: position %d is slot %d, want %d", c.version, c.prefill, got, slotPrefill)
		}
	}
}

func TestVersion_DataParallelSize(t *testing.T) {
	for _, c := range []struct {
		version     string
		coordinated bool
		want        uint32
	}{{"0.27", false, 8}, {"0.32", true, 8}, {"0.33", false, 1}, {"0.33", true, 8}} {
		if got := mustVersion(t, c.version).DataParallelSize(8, c.coordinated); got != c.want {
			t.Errorf("%s, coordinated %v: %d, want %d", c.version, c.coordinated, got, c.want)
		}
	}
}

func mustVersion(t testing.TB, s string) Version {
	t.Helper()
	v, err := ParseVersion(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
