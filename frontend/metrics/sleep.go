package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// SleepOperation is a kind of call that sends engines to sleep or wakes them.
type SleepOperation int

// The operations.
const (
	OperationSleep SleepOperation = iota
	OperationWake
)

// operationNames are those of vLLM. The last is an operation that nothing here offers.
var operationNames = [...]string{"sleep", "wake", "release_kv_cache_memory"}

// sleeping are the series of these calls, by operation.
type sleeping struct {
	duration [len(operationNames)]prometheus.Observer
	inFlight [len(operationNames)]prometheus.Gauge
}

func newSleeping(f families) sleeping {
	var s sleeping
	duration := f.histogram("vllm:sleep_mode_operation_duration_seconds", "Duration of one sleep-mode operation.", bucketsSleep, "operation")
	inFlight := f.gauge("vllm:sleep_mode_operations_in_flight", "Sleep-mode operations currently awaited.", "operation")
	for i, name := range operationNames {
		s.duration[i] = duration.WithLabelValues(name)
		s.inFlight[i] = inFlight.WithLabelValues(name)
	}
	return s
}

// SleepBegan enters that an operation begins; the result is to be called when it has ended.
func (m *Metrics) SleepBegan(op SleepOperation) (ended func()) {
	began := time.Now()
	m.sleeping.inFlight[op].Inc()
	return func() {
		m.sleeping.inFlight[op].Dec()
		m.sleeping.duration[op].Observe(time.Since(began).Seconds())
	}
}
