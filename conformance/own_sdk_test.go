//go:build conformance

package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// suite runs a folder of tests that ask s through the OpenAI SDK. Each must pass.
func (s *server) suite(t *testing.T, folder string, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), sdkPython(), "-m", "pytest", "--quiet", "--tb=short", "-p", "no:cacheprovider", "--strict-markers", folder)
	cmd.Dir = "sdk"
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "VCR_URL="+s.http.base, "VCR_MODEL="+modelName)
	cmd.Env = append(cmd.Env, env...)
	printed, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", filepath.Join("sdk", folder), err, printed)
		return
	}
	t.Logf("%s", lastLines(string(printed), 1))
}

// TestSDK has the OpenAI SDK ask for all that it knows, over our engines and over an engine that others could have written.
func TestSDK(t *testing.T) {
	t.Run("serve", func(t *testing.T) {
		srv := ownServer(t, 3, "--max-model-len", "8192")
		srv.suite(t, "api")
		srv.awaitIdle(t)
	})
	t.Run("foreign engines", func(t *testing.T) { foreignServer(t, 2).suite(t, "api") })
}

// TestSDK_Key wants a key of its clients.
func TestSDK_Key(t *testing.T) {
	const key = "key-of-the-house"
	srv := ownServer(t, 1, "--api-key", key)
	srv.suite(t, "key", "VCR_KEY="+key)
}

// TestSDK_Metrics has Prometheus' own parser read the metrics, before the first request and after some.
func TestSDK_Metrics(t *testing.T) {
	ownServer(t, 3).suite(t, "metrics", "VCR_ENGINES=3")
}
