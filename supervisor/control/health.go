package control

import (
	"github.com/valyala/fasthttp"

	"vllm-vcr/supervisor"
)

// getHealth is 200 while the fleet works or comes up, 503 where an engine is in trouble or all are leaving.
func (s *Server) getHealth(ctx *fasthttp.RequestCtx) (any, error) {
	health := s.health(ctx)
	return health.when(health.Status == supervisor.HealthOK || health.Status == supervisor.HealthStarting), nil
}

// getReady is 200 only while every engine is ready.
func (s *Server) getReady(ctx *fasthttp.RequestCtx) (any, error) {
	health := s.health(ctx)
	return health.when(health.Status == supervisor.HealthOK), nil
}

// getLive is 200 whatever the engines do: this process answers.
func (s *Server) getLive(*fasthttp.RequestCtx) (any, error) {
	return supervisor.Health{Status: supervisor.HealthOK}, nil
}

type health struct{ supervisor.Health }

func (s *Server) health(ctx *fasthttp.RequestCtx) health {
	call, cancel := s.deadline()
	defer cancel()
	return health{s.fleet.Health(call)}
}

// when is the answer that says whether all is well.
func (h health) when(well bool) verdict {
	if well {
		return verdict{fasthttp.StatusOK, h.Health}
	}
	return verdict{fasthttp.StatusServiceUnavailable, h.Health}
}
