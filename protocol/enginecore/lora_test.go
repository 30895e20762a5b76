package enginecore

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tinylib/msgp/msgp"
)

// The array lost an element in its middle with 0.33, and is understood in either form and cut anywhere from two elements on.
func TestLoRA_EveryLineAndLength(t *testing.T) {
	full := LoRARequest{Name: "l", ID: 3, Path: "/x", BaseModel: "b", TensorizerConfig: msgp.Raw{0x80}, LoadInplace: true, Is3DWeight: true}
	modern := full
	modern.TensorizerConfig = nil
	for _, c := range []struct {
		version string
		want    LoRARequest
		length  int
	}{{"0.25", full, 7}, {"0.32", full, 7}, {"0.33", modern, 6}} {
		elements := elementsOf(t, appendLoRA(nil, mustVersion(t, c.version), &full))
		if len(elements) != c.length {
			t.Errorf("%s: %d elements, want %d", c.version, len(elements), c.length)
		}
		for n := range len(elements) + 1 {
			d := decoder{b: list(elements[:n]...)}
			got := d.lora()
			if n < 2 {
				if d.err == nil {
					t.Errorf("%s, %d elements: no error", c.version, n)
				}
				continue
			}
			if d.err != nil || got.Name != "l" || got.ID != 3 {
				t.Errorf("%s, %d elements: %+v, %v", c.version, n, got, d.err)
			}
			if diff := cmp.Diff(&c.want, got); n == len(elements) && diff != "" {
				t.Errorf("%s: adapter differs (-want +got):\n%s", c.version, diff)
			}
		}
	}
}

func TestLoRA_OldWithoutConfig(t *testing.T) {
	want := &LoRARequest{Name: "l", ID: 3, Path: "/x", LoadInplace: true}
	d := decoder{b: append(appendLoRA(nil, mustVersion(t, "0.27"), want), 9)}
	if diff := cmp.Diff(want, d.lora()); diff != "" || len(d.b) != 1 {
		t.Errorf("adapter differs, %d bytes left (-want +got):\n%s", len(d.b), diff)
	}
}
