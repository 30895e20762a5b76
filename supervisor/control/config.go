package control

import "github.com/valyala/fasthttp"

func (s *Server) getConfig(ctx *fasthttp.RequestCtx) (any, error) {
	call, cancel := s.deadline()
	defer cancel()
	return s.fleet.Config(call)
}

func (s *Server) patchConfig(ctx *fasthttp.RequestCtx) (any, error) {
	patch, err := readPatch(ctx)
	if err != nil {
		return nil, err
	}
	call, cancel := s.deadline()
	defer cancel()
	return s.fleet.Patch(call, patch)
}

func (s *Server) resetConfig(ctx *fasthttp.RequestCtx) (any, error) {
	call, cancel := s.deadline()
	defer cancel()
	return s.fleet.ResetConfig(call)
}
