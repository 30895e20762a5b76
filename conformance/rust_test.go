//go:build conformance

package conformance

import (
	"path/filepath"
	"testing"
	"time"
)

// startupLimit bounds the time until frontend and engines are ready; they need less than a second.
const startupLimit = 30 * time.Second

// eachServer runs test against every version of vLLM's Rust server.
func eachServer(t *testing.T, test func(t *testing.T, version string)) {
	for _, version := range []string{"0.27.1", "0.33.0"} {
		t.Run(version, func(t *testing.T) { test(t, version) })
	}
}

// frontendCommand returns the program and the environment of vllm-rs of one version.
func frontendCommand(t *testing.T, version string) (argv, env []string) {
	t.Helper()
	return []string{filepath.Join(cacheFolder(), version, "vllm-rs")}, nil
}
