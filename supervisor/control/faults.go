package control

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"vllm-vcr/supervisor"
)

func (s *Server) postFault(ctx *fasthttp.RequestCtx) (any, error) {
	body, err := jsonBody(ctx)
	if err != nil {
		return nil, err
	}
	f, err := decodeFault(body, s.fleet.Len())
	if err != nil {
		return nil, err
	}
	call, cancel := s.deadline()
	defer cancel()
	status, err := s.fleet.ArmFault(call, f)
	if err != nil {
		return nil, err
	}
	return verdict{fasthttp.StatusCreated, status}, nil
}

func (s *Server) getFaults(ctx *fasthttp.RequestCtx) (any, error) {
	call, cancel := s.deadline()
	defer cancel()
	return s.fleet.Faults(call)
}

// deleteFaults takes no choice: one that it passed over would take back what was to stay.
func (s *Server) deleteFaults(ctx *fasthttp.RequestCtx) (any, error) {
	if query, body := ctx.URI().QueryString(), ctx.PostBody(); len(query)+len(body) > 0 {
		return nil, faultf(fasthttp.StatusBadRequest, "query %q and a body of %d bytes: DELETE /faults takes neither and takes every fault back; /faults/{id} is one of them", shorten(string(query)), len(body))
	}
	call, cancel := s.deadline()
	defer cancel()
	return nil, s.fleet.ClearFaults(call)
}

// deleteFault takes only the plain decimal form of an id: paths are exact.
func (s *Server) deleteFault(ctx *fasthttp.RequestCtx) (any, error) {
	text, _ := ctx.UserValue("id").(string)
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil || strconv.FormatUint(id, 10) != text {
		return nil, faultf(fasthttp.StatusNotFound, "fault %q: %v", shorten(text), supervisor.ErrNoFault)
	}
	call, cancel := s.deadline()
	defer cancel()
	return nil, s.fleet.ClearFault(call, id)
}
