package metrics

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"vllm-vcr/protocol/enginecore"

	"github.com/prometheus/client_golang/prometheus"
)

// adapters are the LoRA adapters in use. They are one series whose labels are the lists and whose value is the time of the last
// change in seconds since 1970, which is how vLLM shows them; only the latest is kept.
type adapters struct {
	desc *prometheus.Desc
	now  func() time.Time

	mu      sync.Mutex
	max     uint64
	engines []adapterLoad
	changed time.Time
}

// adapterLoad is the names at one engine, sorted.
type adapterLoad struct{ running, waiting []string }

func newAdapters(engines int, now func() time.Time) *adapters {
	labels := []string{"max_lora", "running_lora_adapters", "waiting_lora_adapters"}
	return &adapters{
		desc: prometheus.NewDesc("vllm:lora_requests_info", "Running stats on lora requests.", labels, nil),
		now:  now, engines: make([]adapterLoad, engines), changed: now(),
	}
}

// limit enters how many adapters can run at a time.
func (a *adapters) limit(most uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.max = most
}

// set enters what an engine says.
func (a *adapters) set(rank int, running, waiting []enginecore.LoRACount) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := &a.engines[rank]
	if len(running)+len(waiting)+len(e.running)+len(e.waiting) == 0 {
		return
	}
	r, w := names(running), names(waiting)
	if !slices.Equal(r, e.running) || !slices.Equal(w, e.waiting) {
		e.running, e.waiting, a.changed = r, w, a.now()
	}
}

// names are those of adapters that have requests.
func names(counts []enginecore.LoRACount) []string {
	var all []string
	for _, c := range counts {
		if c.Count > 0 {
			all = append(all, c.Name)
		}
	}
	slices.Sort(all)
	return all
}

// Describe implements prometheus.Collector.
func (a *adapters) Describe(c chan<- *prometheus.Desc) { c <- a.desc }

// Collect implements prometheus.Collector.
func (a *adapters) Collect(c chan<- prometheus.Metric) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var running, waiting []string
	for _, e := range a.engines {
		running, waiting = append(running, e.running...), append(waiting, e.waiting...)
	}
	value := float64(a.changed.UnixNano()) / 1e9
	c <- prometheus.MustNewConstMetric(a.desc, prometheus.GaugeValue, value, strconv.FormatUint(a.max, 10), list(running), list(waiting))
}

// list joins names, each once.
func list(names []string) string {
	slices.Sort(names)
	return strings.ToValidUTF8(strings.Join(slices.Compact(names), ","), "\uFFFD")
}
