// Package metrics counts what the front end observes and shows it to Prometheus under vLLM's names, labels, types, help texts and
// buckets, so that gateways, autoscalers and dashboards made for vLLM find what they read.
//
// It guarantees:
//   - every family that is labelled by engine is there for every engine before the first request;
//   - what it is told is in the next exposition: whoever tells it before he lets a client see the end of its reply is never
//     found late;
//   - labels are bounded: engines, routes, methods and reasons that are known beforehand, and the adapters in use;
//   - an output costs one histogram observation and no allocation; all series of an engine are made at the start.
//
// It must never know about engines' sockets, requests' contents or routes: [Metrics] is the observer of package dispatch, and the
// HTTP server tells it of its exchanges. What differs from vLLM's own expositions is listed in docs/metrics.md.
package metrics
