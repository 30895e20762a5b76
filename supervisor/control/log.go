package control

import (
	"github.com/goccy/go-json"
	"github.com/valyala/fasthttp"
)

type logBody struct {
	Filter string `json:"filter"`
}

func (s *Server) getLog(*fasthttp.RequestCtx) (any, error) {
	if err := s.checkLogFilter(); err != nil {
		return nil, err
	}
	return logBody{s.filter.Filter()}, nil
}

func (s *Server) putLog(ctx *fasthttp.RequestCtx) (any, error) {
	wanted, err := readLogFilter(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.checkLogFilter(); err != nil {
		return nil, err
	}
	call, cancel := s.deadline()
	defer cancel()
	filter, err := s.filter.SetFilter(call, wanted)
	if err != nil {
		return nil, err
	}
	s.log.Info().Str("filter", filter).Msg("log filter set")
	return logBody{filter}, nil
}

func (s *Server) checkLogFilter() error {
	if s.filter == nil {
		return faultf(fasthttp.StatusNotImplemented, "this process has no log filter that can be changed")
	}
	return nil
}

// readLogFilter returns the value of the one key of a PUT.
func readLogFilter(ctx *fasthttp.RequestCtx) (string, error) {
	body, err := jsonBody(ctx)
	if err != nil {
		return "", err
	}
	var filter *string
	err = walkObject(body, func(key string, raw []byte) error {
		if key != "filter" {
			return unknownKey(key, []string{"filter"})
		}
		if err := json.Unmarshal(raw, &filter); err != nil || filter == nil {
			return faultf(fasthttp.StatusUnprocessableEntity, "filter: %s: want a string", shorten(string(raw)))
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if filter == nil {
		return "", faultf(fasthttp.StatusUnprocessableEntity, "filter: missing, want a string")
	}
	return *filter, nil
}
