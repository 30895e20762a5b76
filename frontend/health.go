package frontend

import (
	"net/http"

	"vllm-vcr/frontend/metrics"
	"vllm-vcr/frontend/openai"
)

// health is 200 without a body while all engines take requests. A server that drains is still healthy: it isn't ready.
func (s *Server) health(c *call) error {
	if err := s.engines.Health(); err != nil {
		return openai.Unavailable("%v", err)
	}
	c.ctx.SetStatusCode(http.StatusOK)
	return nil
}

// ready is 200 when a request would be taken now.
func (s *Server) ready(c *call) error {
	if s.gate.isClosed() {
		return errStopped
	}
	if err := s.engines.Health(); err != nil {
		return openai.Unavailable("%v", err)
	}
	writeJSON(c.ctx, []byte(`{"status":"ready"}`))
	return nil
}

func (s *Server) version(c *call) error {
	b := append([]byte(`{"version":`), openai.AppendString(nil, s.Version.String())...)
	writeJSON(c.ctx, append(b, '}'))
	return nil
}

// exposition is the metrics in Prometheus' text format.
func (s *Server) exposition(c *call) error {
	if s.Metrics == nil {
		return openai.HTTP(http.StatusNotFound, "Not Found: this server has no metrics")
	}
	c.ctx.SetContentType(metrics.ContentType)
	return s.Metrics.Write(c.ctx)
}
