//go:build chaos

package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience bounds every wait for something that is sure to come, so that what hangs fails its test.
const patience = 20 * time.Second

// TestMain refuses to start without the program under test: a run that tests nothing must not pass.
func TestMain(m *testing.M) {
	if _, err := os.Stat(underTest()); err != nil {
		fmt.Fprintf(os.Stderr, "chaos: %v; run make build, or set VLLM_VCR_BIN\n", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// underTest is the program under test, as an absolute path.
func underTest() string {
	path := os.Getenv("VLLM_VCR_BIN")
	if path == "" {
		path = filepath.Join("..", "bin", "vllm-vcr")
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// sized is many, or few where tests are to be short.
func sized[T any](many, few T) T {
	if testing.Short() {
		return few
	}
	return many
}

// needRoot ends a test that makes namespaces, cgroups or other users where it may not: a row that was not tried has not passed.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this row needs root")
	}
}
