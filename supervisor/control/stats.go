package control

import "github.com/valyala/fasthttp"

func (s *Server) getStats(ctx *fasthttp.RequestCtx) (any, error) {
	call, cancel := s.deadline()
	defer cancel()
	return s.fleet.Stats(call)
}

func (s *Server) resetStats(ctx *fasthttp.RequestCtx) (any, error) {
	call, cancel := s.deadline()
	defer cancel()
	return nil, s.fleet.ResetStats(call)
}
