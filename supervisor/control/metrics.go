package control

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
	"github.com/valyala/fasthttp"

	"vllm-vcr/ipc"
	"vllm-vcr/supervisor"
)

// metric is one family of GET /metrics, with one series for each engine, labelled by its rank.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(supervisor.EngineStatus) float64
}

// The request counters are counters although a reset of the statistics sets them back: a scraper takes that for a
// restart, as it should.
var metrics = []metric{
	counter("requests_received_total", "Requests that reached the engine.", func(e supervisor.EngineStatus) uint64 { return e.Stats.Received }),
	counter("requests_completed_total", "Requests that ran to their stop condition.", func(e supervisor.EngineStatus) uint64 { return e.Stats.Completed }),
	counter("requests_failed_total", "Requests that ended with an error, lost ones included.", func(e supervisor.EngineStatus) uint64 { return e.Stats.Failed }),
	counter("requests_aborted_total", "Requests that their client or a shutdown aborted.", func(e supervisor.EngineStatus) uint64 { return e.Stats.Aborted }),
	gauge("requests_running", "Requests that hold a slot.", func(e supervisor.EngineStatus) float64 { return float64(e.Stats.Running) }),
	gauge("requests_waiting", "Requests that wait for a slot.", func(e supervisor.EngineStatus) float64 { return float64(e.Stats.Waiting) }),
	counter("requests_lost_total", "Requests that ended because their engine's process did.", func(e supervisor.EngineStatus) uint64 { return e.Lost }),
	counter("engine_restarts_total", "Times the engine's process was started again.", func(e supervisor.EngineStatus) uint64 { return e.Restarts }),
	gauge("engine_config_generation", "Number of the last change of configuration that the engine applied.", func(e supervisor.EngineStatus) float64 { return float64(e.Generation) }),
	counter("messages_dropped_total", "Messages from the frontend that could not be read.", func(e supervisor.EngineStatus) uint64 { return e.Dropped }),
	gauge("held_output_bytes", "Bytes of output that wait for slow readers.", func(e supervisor.EngineStatus) float64 { return float64(e.HeldBytes) }),
	{describe("held_output_seconds_total", "Seconds in which output was held for a slow reader."), prometheus.CounterValue, func(e supervisor.EngineStatus) float64 { return e.HeldSeconds }},
	counter("merged_outputs_total", "Outputs that were merged into another because their reader was slow.", func(e supervisor.EngineStatus) uint64 { return e.MergedOutputs }),
	gauge("saturated", "1 while the engine's process, and not what it simulates, sets the pace.", func(e supervisor.EngineStatus) float64 { return truth(e.Saturated) }),
	gauge("input_queue_high", "The most inputs that ever waited for the engine.", func(e supervisor.EngineStatus) float64 { return float64(e.InputsHigh) }),
	gauge("output_queue_high_bytes", "The most bytes of output that ever waited for one client to read.", func(e supervisor.EngineStatus) float64 { return float64(e.OutputHigh) }),
	counter("request_journal_dropped_total", "Finished requests that GET /requests cannot show any more.", func(e supervisor.EngineStatus) uint64 { return e.JournalDropped }),
	gauge("faults_active", "Faults that the engine may run into yet.", func(e supervisor.EngineStatus) float64 { return float64(e.FaultsActive) }),
	gauge("goroutines", "Goroutines of the engine's process, at its last control call.", func(e supervisor.EngineStatus) float64 { return float64(e.Goroutines) }),
	counter("log_lines_dropped_total", "Log lines of the engine's process that nobody took.", func(e supervisor.EngineStatus) uint64 { return e.LogDropped }),
}

// lateness is how late outputs left that had to wait for their time.
var lateness = describe("lateness_seconds", "How long after their time paced outputs left.")

// engineState has a series for each state, 1 for the one the engine is in.
var engineState = describe("engine_state", "1 for the state the engine is in, 0 for every other.", "state")

// faultsApplied has a series for each kind.
var faultsApplied = describe("faults_applied_total", "Times a fault has struck the engine.", "kind")

var engineStates = []string{
	supervisor.StateStarting, supervisor.StateReady, supervisor.StateReconnecting, supervisor.StateDraining,
	supervisor.StateDrained, supervisor.StateFrozen, supervisor.StateDead, supervisor.StateFailed,
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("vllm_vcr_"+name, help, append([]string{"engine"}, labels...), nil)
}

func counter(name, help string, value func(supervisor.EngineStatus) uint64) metric {
	return metric{describe(name, help), prometheus.CounterValue, func(e supervisor.EngineStatus) float64 { return float64(value(e)) }}
}

func gauge(name, help string, value func(supervisor.EngineStatus) float64) metric {
	return metric{describe(name, help), prometheus.GaugeValue, value}
}

func (s *Server) getMetrics(ctx *fasthttp.RequestCtx) (any, error) {
	call, cancel := s.deadline()
	defer cancel()
	registry := prometheus.NewRegistry() // of this scrape, since what it shows was asked under this call's deadline
	if s.frontEndRestarts != nil {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "vllm_vcr_front_end_restarts_total", Help: "Times the front end's process was started again.",
		}, func() float64 { return float64(s.frontEndRestarts()) }))
	}
	registry.MustRegister(snapshot(s.fleet.Engines(call)), collectors.NewGoCollector(collectors.WithGoCollectorMemStatsMetricsDisabled()), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	families, err := registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	var body bytes.Buffer
	encoder := expfmt.NewEncoder(&body, format)
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return nil, fmt.Errorf("metrics: %s: %w", family.GetName(), err)
		}
	}
	return page{string(format), body.Bytes()}, nil
}

// snapshot is the engines as they were when a scrape came.
type snapshot []supervisor.EngineStatus

// Describe tells the registry which families there can be.
func (s snapshot) Describe(c chan<- *prometheus.Desc) {
	c <- engineState
	c <- lateness
	c <- faultsApplied
	for _, m := range metrics {
		c <- m.desc
	}
}

// Collect gives it every series.
func (s snapshot) Collect(c chan<- prometheus.Metric) {
	for _, engine := range s {
		rank := strconv.Itoa(engine.Rank)
		for _, m := range metrics {
			c <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(engine), rank)
		}
		for _, state := range engineStates {
			c <- prometheus.MustNewConstMetric(engineState, prometheus.GaugeValue, truth(engine.State == state), rank, state)
		}
		late := engine.Lateness
		c <- prometheus.MustNewConstHistogram(lateness, late.Outputs, late.Seconds, cumulated(late.Buckets), rank)
		for i, kind := range ipc.FaultKinds {
			c <- prometheus.MustNewConstMetric(faultsApplied, prometheus.CounterValue, float64(engine.FaultsApplied[i]), rank, kind)
		}
	}
}

// truth is a fact as a gauge shows it.
func truth(fact bool) float64 {
	if fact {
		return 1
	}
	return 0
}

// cumulated is what a histogram is made of: by its bound in seconds, how many are at or below.
func cumulated(buckets []supervisor.LateBucket) map[float64]uint64 {
	all := map[float64]uint64{}
	var sum uint64
	for _, b := range buckets {
		if sum += b.Outputs; b.AtMost >= 0 {
			all[b.AtMost/1000] = sum
		}
	}
	return all
}
