package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// bill is the bill of this test's own binary.
func bill(t *testing.T) (*cdx.BOM, []byte) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{self, "1.2.3+x"}, &out); err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(out.Bytes()), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	return &bom, out.Bytes()
}

// TestRun_Complete finds every module of the binary, with its version and hash, and what runs them all.
func TestRun_Complete(t *testing.T) {
	bom, _ := bill(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]cdx.Component{}
	for _, c := range *bom.Components {
		there[c.Name] = c
	}
	if len(there) != len(info.Deps)+1 || len(*(*bom.Dependencies)[0].Dependencies) != len(there) {
		t.Errorf("%d components, want those of %d modules and std", len(there), len(info.Deps))
	}
	for _, m := range info.Deps {
		c := there[m.Path]
		if c.Version != m.Version || c.PackageURL != "pkg:golang/"+m.Path+"@"+m.Version || c.Hashes == nil || len((*c.Hashes)[0].Value) != 64 {
			t.Errorf("%s = %+v, want version %s", m.Path, c, m.Version)
		}
	}
	if got := there["std"].Version; !strings.HasPrefix(info.GoVersion, "go"+got) {
		t.Errorf("std %q, want that of %s", got, info.GoVersion)
	}
	if c := bom.Metadata.Component; c.Version != "1.2.3+x" || !strings.HasSuffix(c.PackageURL, "@1.2.3%2Bx") || len((*c.Hashes)[0].Value) != 64 {
		t.Errorf("the binary = %+v", c)
	}
}

func TestRun_Repeatable(t *testing.T) {
	_, one := bill(t)
	if _, two := bill(t); !bytes.Equal(one, two) {
		t.Error("two bills of one binary differ")
	}
}

func TestRun_Faults(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {text}, {text, "1"}, {text + "2", "1"}} {
		if err := run(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
