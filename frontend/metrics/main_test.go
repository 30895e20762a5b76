package metrics

import (
	"strings"
	"testing"

	"vllm-vcr/protocol/enginecore"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// expose is the exposition as text.
func expose(t testing.TB, m *Metrics) string {
	t.Helper()
	var b strings.Builder
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// scrape is the exposition as Prometheus' own parser reads it, by family.
func scrape(t testing.TB, m *Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(expose(t, m)))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// value is that of the series which has all the labels, given as name, value, …: a counter's or gauge's value, a histogram's or
// summary's sum.
func value(t testing.TB, families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	t.Helper()
	s := series(t, families, name, labels...)
	switch {
	case s.Counter != nil:
		return s.Counter.GetValue()
	case s.Gauge != nil:
		return s.Gauge.GetValue()
	case s.Histogram != nil:
		return s.Histogram.GetSampleSum()
	default:
		return s.Summary.GetSampleSum()
	}
}

func series(t testing.TB, families map[string]*dto.MetricFamily, name string, labels ...string) *dto.Metric {
	t.Helper()
	for _, s := range families[name].GetMetric() {
		if hasAll(s, labels) {
			return s
		}
	}
	t.Fatalf("%s%q: no such series", name, labels)
	panic("unreachable")
}

func hasAll(s *dto.Metric, labels []string) bool {
	has := map[string]string{}
	for _, l := range s.GetLabel() {
		has[l.GetName()] = l.GetValue()
	}
	for i := 0; i < len(labels); i += 2 {
		if v, ok := has[labels[i]]; !ok || v != labels[i+1] {
			return false
		}
	}
	return true
}

func registration() *enginecore.ReadyResponse {
	return &enginecore.ReadyResponse{
		MaxModelLen: 4096, GPUBlocks: 1000, BlockSize: 16, MaxLoRAs: 4, KVCacheTokens: enginecore.Some[uint64](16000),
		KVCacheConcurrency: enginecore.Some(3.90625), AttentionBlockSize: enginecore.Some[uint64](16),
	}
}
