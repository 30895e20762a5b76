//go:build interop

package fill

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

// TestJSON_Validator has Python's jsonschema judge many documents of every sample. PYTHON names an interpreter that has it.
func TestJSON_Validator(t *testing.T) {
	python := os.Getenv("PYTHON")
	if python == "" {
		t.Fatal("PYTHON: not set, want a Python interpreter that has jsonschema")
	}
	list := samples(t)
	var in bytes.Buffer
	for _, s := range list {
		var documents []string
		for seed := range uint64(seeds) {
			doc, err := JSON(s.Schema, seed)
			if err != nil {
				t.Fatalf("%s: %v", s.Name, err)
			}
			documents = append(documents, string(doc))
		}
		if err := json.NewEncoder(&in).Encode(map[string]any{"schema": s.Schema, "documents": documents}); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(python, "testdata/validate.py")
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("PYTHON=%s: %v, want a Python interpreter that has jsonschema", python, err)
	}
	verdicts := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(verdicts) != len(list) {
		t.Fatalf("%d verdicts on %d schemas:\n%s", len(verdicts), len(list), out)
	}
	for i, verdict := range verdicts {
		if string(verdict) != `"ok"` {
			t.Errorf("%s: %s", list[i].Name, verdict)
		}
	}
}
