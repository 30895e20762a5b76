package control

import (
	"slices"

	"github.com/valyala/fasthttp"

	"vllm-vcr/config"
)

func (s *Server) drain(ctx *fasthttp.RequestCtx) (any, error) {
	timeout, err := readDrain(ctx, s.shutdownTimeout)
	if err != nil {
		return nil, err
	}
	call, cancel := s.deadline()
	defer cancel()
	begun, err := s.fleet.Drain(call, timeout)
	return verdict{fasthttp.StatusAccepted, begun}, err
}

func (s *Server) drainEngine(ctx *fasthttp.RequestCtx) (any, error) {
	index, err := s.engineIndex(ctx)
	if err != nil {
		return nil, err
	}
	timeout, err := readDrain(ctx, s.shutdownTimeout)
	if err != nil {
		return nil, err
	}
	call, cancel := s.deadline()
	defer cancel()
	begun, err := s.fleet.DrainEngine(call, index, timeout)
	return verdict{fasthttp.StatusAccepted, begun}, err
}

// readDrain returns the time-out of a drain, in seconds: usual where the call has no body, or its body names none.
func readDrain(ctx *fasthttp.RequestCtx, usual uint64) (uint64, error) {
	if len(ctx.PostBody()) == 0 {
		return usual, nil
	}
	body, err := jsonBody(ctx)
	if err != nil {
		return 0, err
	}
	return decodeDrain(body, usual)
}

// decodeDrain takes the values that --shutdown-timeout takes.
func decodeDrain(body []byte, usual uint64) (uint64, error) {
	drain := config.Config{ShutdownTimeout: usual}
	value := shutdownTimeout().Value(&drain)
	err := walkObject(body, func(key string, raw []byte) error {
		if key != "timeout" {
			return unknownKey(key, []string{"timeout"})
		}
		if string(raw) == "null" {
			return nil
		}
		if err := value.SetJSON(raw); err != nil {
			return faultf(fasthttp.StatusUnprocessableEntity, "%v", settingFault(key, raw, err))
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if err := value.Check(); err != nil {
		return 0, faultf(fasthttp.StatusBadRequest, "timeout: %d: %v", drain.ShutdownTimeout, err)
	}
	return drain.ShutdownTimeout, nil
}

func shutdownTimeout() config.Option {
	options := config.Options()
	return options[slices.IndexFunc(options, func(o config.Option) bool { return o.Flag == "shutdown-timeout" })]
}
