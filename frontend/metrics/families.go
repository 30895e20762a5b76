package metrics

import "github.com/prometheus/client_golang/prometheus"

// families makes families of series for each engine and registers them.
type families struct {
	registry *prometheus.Registry
	model    string
}

// by are the label names of a family that has a series for each engine.
func by(more ...string) []string { return append([]string{"engine", "model_name"}, more...) }

func (f families) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	f.registry.MustRegister(v)
	return v
}

func (f families) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	f.registry.MustRegister(v)
	return v
}

func (f families) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	f.registry.MustRegister(v)
	return v
}

func (f families) summary(name, help string, labels ...string) *prometheus.SummaryVec {
	v := prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: name, Help: help}, labels)
	f.registry.MustRegister(v)
	return v
}

// counters makes one counter for each engine; addTo says where it is kept.
func (f families) counters(engines []engine, name, help string, addTo func(*engine) *prometheus.Counter) {
	v := f.counter(name, help, by()...)
	for i := range engines {
		*addTo(&engines[i]) = v.WithLabelValues(engines[i].rank, f.model)
	}
}

// zeros makes one counter for each engine that nothing counts up: what it counts doesn't happen here.
func (f families) zeros(engines []engine, name, help string) {
	v := f.counter(name, help, by()...)
	for i := range engines {
		v.WithLabelValues(engines[i].rank, f.model)
	}
}

func (f families) gauges(engines []engine, name, help string, addTo func(*engine) *prometheus.Gauge) {
	v := f.gauge(name, help, by()...)
	for i := range engines {
		*addTo(&engines[i]) = v.WithLabelValues(engines[i].rank, f.model)
	}
}

func (f families) histograms(engines []engine, name, help string, buckets []float64, addTo func(*engine) *prometheus.Observer) {
	v := f.histogram(name, help, buckets, by()...)
	for i := range engines {
		*addTo(&engines[i]) = v.WithLabelValues(engines[i].rank, f.model)
	}
}
