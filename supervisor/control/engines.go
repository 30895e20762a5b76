package control

import (
	"github.com/valyala/fasthttp"

	"vllm-vcr/supervisor"
)

type enginesBody struct {
	Engines []supervisor.EngineStatus `json:"engines"`
}

func (s *Server) getEngines(ctx *fasthttp.RequestCtx) (any, error) {
	call, cancel := s.deadline()
	defer cancel()
	return enginesBody{s.fleet.Engines(call)}, nil
}

func (s *Server) getEngineConfig(ctx *fasthttp.RequestCtx) (any, error) {
	index, err := s.engineIndex(ctx)
	if err != nil {
		return nil, err
	}
	call, cancel := s.deadline()
	defer cancel()
	return s.fleet.EngineConfig(call, index)
}

func (s *Server) patchEngineConfig(ctx *fasthttp.RequestCtx) (any, error) {
	index, err := s.engineIndex(ctx)
	if err != nil {
		return nil, err
	}
	patch, err := readPatch(ctx)
	if err != nil {
		return nil, err
	}
	call, cancel := s.deadline()
	defer cancel()
	return s.fleet.PatchEngine(call, index, patch)
}

func (s *Server) resetEngineConfig(ctx *fasthttp.RequestCtx) (any, error) {
	index, err := s.engineIndex(ctx)
	if err != nil {
		return nil, err
	}
	call, cancel := s.deadline()
	defer cancel()
	return s.fleet.ResetEngineConfig(call, index)
}

func (s *Server) getEngineStats(ctx *fasthttp.RequestCtx) (any, error) {
	index, err := s.engineIndex(ctx)
	if err != nil {
		return nil, err
	}
	call, cancel := s.deadline()
	defer cancel()
	return s.fleet.EngineStats(call, index)
}

func (s *Server) resetEngineStats(ctx *fasthttp.RequestCtx) (any, error) {
	index, err := s.engineIndex(ctx)
	if err != nil {
		return nil, err
	}
	call, cancel := s.deadline()
	defer cancel()
	return nil, s.fleet.ResetEngineStats(call, index)
}

// engineIndex reads the engine out of the path. Only the plain decimal form names one: paths are exact.
func (s *Server) engineIndex(ctx *fasthttp.RequestCtx) (int, error) {
	text, _ := ctx.UserValue("index").(string)
	index, ok := decimal(text)
	if !ok || index < 0 || index >= s.fleet.Len() {
		return 0, faultf(fasthttp.StatusNotFound, "no engine %q, want an index from 0 to %d", shorten(text), s.fleet.Len()-1)
	}
	return index, nil
}
