//go:build conformance || conformance_python

package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

// TestMain refuses to start without the program under test: a run that tests nothing must not pass.
func TestMain(m *testing.M) {
	if _, err := exec.LookPath(engineCommand()[0]); err != nil {
		fmt.Fprintf(os.Stderr, "conformance: %v; run make build, or set VLLM_VCR_BIN\n", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
