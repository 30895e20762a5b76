package metrics

import (
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
)

// ContentType is that of an exposition.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Options describe what is measured.
type Options struct {
	Model       string // the name that clients use
	Engines     int    // of the ranks 0 to Engines-1
	MaxModelLen uint64 // tokens of the longest request, which sizes buckets; 0 = as the first engine to join says
}

// Metrics are all series of one front end. Its methods may be called from any goroutine.
type Metrics struct {
	families    families
	maxModelLen uint64
	sized       sync.Once // in Joined, hence before any request
	engines     []engine
	adapters    *adapters
	caches      *caches
	exchanges   exchanges
	sleeping    sleeping
}

// New makes the series of a front end. Those with buckets by MaxModelLen appear when the first engine joins, all others at once.
func New(o Options) *Metrics {
	f := families{registry: prometheus.NewRegistry(), model: o.Model}
	m := &Metrics{
		families:    f,
		maxModelLen: o.MaxModelLen,
		engines:     f.engines(o.Engines),
		adapters:    newAdapters(o.Engines, time.Now),
		caches:      newCaches(o.Engines),
		exchanges:   newExchanges(f),
		sleeping:    newSleeping(f),
	}
	// Without go_memstats_…: parsers that strip _total, Python's among them, take two of them for one family.
	f.registry.MustRegister(m.adapters, m.caches, collectors.NewGoCollector(collectors.WithGoCollectorMemStatsMetricsDisabled()), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func newEngines(n int) []engine {
	all := make([]engine, n)
	for i := range all {
		all[i].rank = strconv.Itoa(i)
	}
	return all
}

// Write writes an exposition of the type [ContentType].
func (m *Metrics) Write(w io.Writer) error {
	all, err := m.families.registry.Gather()
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	for _, family := range all {
		if _, err := expfmt.MetricFamilyToText(w, family); err != nil {
			return fmt.Errorf("metrics: %s: %w", family.GetName(), err)
		}
	}
	return nil
}
