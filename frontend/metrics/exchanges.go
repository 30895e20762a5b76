package metrics

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Exchange is one request to the HTTP server and its answer.
type Exchange struct {
	Route         string // the pattern it matched, one of a fixed set; "" = none
	Method        string
	Status        int
	Took          time.Duration // to the end of the answer
	RequestBytes  int           // of the body as declared; below 0 = not declared, counted as 0
	ResponseBytes int           // of the body; below 0 = a stream, counted as 0
}

// exchanges are the series of the HTTP server.
type exchanges struct {
	requests      *prometheus.CounterVec
	requestBytes  *prometheus.SummaryVec
	responseBytes *prometheus.SummaryVec
	duration      *prometheus.HistogramVec
	highRes       prometheus.Histogram
	made          *sync.Map // exchangeKey → *exchangeSeries
}

// exchangeKey names the series of one kind of exchange.
type exchangeKey struct {
	route, method string
	class         int // hundreds of the status
}

type exchangeSeries struct {
	requests                    prometheus.Counter
	requestBytes, responseBytes prometheus.Observer
	duration                    prometheus.Observer
}

func newExchanges(f families) exchanges {
	const noPercentile = "Only value of header is respected. Otherwise ignored. No percentile calculated. "
	h := exchanges{
		requests:      f.counter("http_requests_total", "Total number of requests by method, status and handler.", "handler", "method", "status"),
		requestBytes:  f.summary("http_request_size_bytes", "Content length of incoming requests by handler. "+noPercentile, "handler"),
		responseBytes: f.summary("http_response_size_bytes", "Content length of outgoing responses by handler. "+noPercentile, "handler"),
		duration: f.histogram("http_request_duration_seconds", "Latency with only few buckets by handler. Made to be only used if "+
			"aggregation by handler is important. ", bucketsHTTP, "handler", "method"),
		highRes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "http_request_duration_highr_seconds", Buckets: bucketsHTTPHighRes,
			Help: "Latency with many buckets but no API specific labels. Made for more accurate percentile calculations. ",
		}),
		made: &sync.Map{},
	}
	f.registry.MustRegister(h.highRes)
	return h
}

// unwatched are the routes that probes and scrapers use; as with vLLM they aren't counted.
var unwatched = []string{"/metrics", "/health", "/load", "/ping", "/version", "/server_info"}

// methods are those that are counted under their own name.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// HTTP counts an exchange. It is to be called before the last byte of the answer leaves.
func (m *Metrics) HTTP(x Exchange) {
	if slices.Contains(unwatched, x.Route) {
		return
	}
	s := m.exchanges.series(x)
	s.requests.Inc()
	s.requestBytes.Observe(float64(max(0, x.RequestBytes)))
	s.responseBytes.Observe(float64(max(0, x.ResponseBytes)))
	s.duration.Observe(x.Took.Seconds())
	m.exchanges.highRes.Observe(x.Took.Seconds())
}

func (h *exchanges) series(x Exchange) *exchangeSeries {
	key := exchangeKey{x.Route, x.Method, x.Status / 100}
	if key.route == "" {
		key.route = "none"
	}
	if !slices.Contains(methods, key.method) {
		key.method = "OTHER"
	}
	if s, ok := h.made.Load(key); ok {
		return s.(*exchangeSeries)
	}
	s := &exchangeSeries{
		requests:      h.requests.WithLabelValues(key.route, key.method, strconv.Itoa(key.class)+"xx"),
		requestBytes:  h.requestBytes.WithLabelValues(key.route),
		responseBytes: h.responseBytes.WithLabelValues(key.route),
		duration:      h.duration.WithLabelValues(key.route, key.method),
	}
	h.made.Store(key, s)
	return s
}
