//go:build conformance

package conformance

import (
	"testing"
	"time"
)

// metricLimit bounds the wait for a gauge; the Rust server shows each message at once.
const metricLimit = 10 * time.Second

func TestMetrics_Gauges(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		serve(t, setup{version: version}).gaugesFollow(t)
	})
}

func TestMetrics_Times(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		serve(t, setup{version: version}).timesAddUp(t)
	})
}
