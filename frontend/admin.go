package frontend

import (
	"net/http"
	"strconv"

	"github.com/goccy/go-json"
	"github.com/tinylib/msgp/msgp"

	"vllm-vcr/frontend/metrics"
	"vllm-vcr/frontend/openai"
)

// sleep sends all engines to sleep: ?level=1|2&mode=abort|wait|keep.
func (s *Server) sleep(c *call) error {
	level, err := strconv.ParseUint(c.query("level", "1"), 10, 8)
	if err != nil || level > 2 {
		return openai.BadRequest("level", "level is %.20q, want 0, 1 or 2.", c.query("level", ""))
	}
	mode, err := c.mode()
	if err != nil {
		return err
	}
	ctx, cancel := c.deadline()
	defer cancel()
	defer s.sleepBegan(metrics.OperationSleep)()
	if err := s.engines.Sleep(ctx, level, mode); err != nil {
		return err
	}
	return writeValue(c, struct {
		Status string `json:"status"`
		Level  uint64 `json:"level"`
	}{"sleeping", level})
}

// wakeUp wakes them: ?tags=weights&tags=kv_cache, all without tags.
func (s *Server) wakeUp(c *call) error {
	var tags []string
	for _, tag := range c.ctx.QueryArgs().PeekMulti("tags") {
		tags = append(tags, string(tag))
	}
	ctx, cancel := c.deadline()
	defer cancel()
	defer s.sleepBegan(metrics.OperationWake)()
	if err := s.engines.WakeUp(ctx, tags); err != nil {
		return err
	}
	return writeValue(c, struct {
		Status string   `json:"status"`
		Tags   []string `json:"tags"`
	}{"awake", tags})
}

func (s *Server) sleepBegan(op metrics.SleepOperation) (ended func()) {
	if s.Metrics == nil {
		return func() {}
	}
	return s.Metrics.SleepBegan(op)
}

func (s *Server) isSleeping(c *call) error {
	ctx, cancel := c.deadline()
	defer cancel()
	sleeping, err := s.engines.IsSleeping(ctx)
	if err != nil {
		return err
	}
	writeFlag(c, "is_sleeping", sleeping)
	return nil
}

// resetPrefixCache empties the caches: ?reset_running_requests=true&reset_external=true.
func (s *Server) resetPrefixCache(c *call) error {
	running, err := c.flag("reset_running_requests")
	if err != nil {
		return err
	}
	external, err := c.flag("reset_external")
	if err != nil {
		return err
	}
	ctx, cancel := c.deadline()
	defer cancel()
	done, err := s.engines.ResetPrefixCache(ctx, running, external)
	if err != nil {
		return err
	}
	writeFlag(c, "success", done)
	return nil
}

func (s *Server) resetMMCache(c *call) error { return s.tellEngines(c, "reset_mm_cache", nil) }

func (s *Server) resetEncoderCache(c *call) error {
	return s.tellEngines(c, "reset_encoder_cache", nil)
}

// pause holds the engines back: ?mode=abort|wait|keep.
func (s *Server) pause(c *call) error {
	mode, err := c.mode()
	if err != nil {
		return err
	}
	args := msgp.AppendArrayHeader(nil, 2)
	args = msgp.AppendString(args, mode)
	args = msgp.AppendBool(args, true) // clear the cache
	if err := s.tellEngines(c, s.pauseMethod(), args); err != nil {
		return err
	}
	return writeValue(c, status{"paused"})
}

func (s *Server) resume(c *call) error {
	if err := s.tellEngines(c, "resume_scheduler", nil); err != nil {
		return err
	}
	return writeValue(c, status{"resumed"})
}

func (s *Server) isPaused(c *call) error {
	ctx, cancel := c.deadline()
	defer cancel()
	answers, err := s.engines.Call(ctx, "is_scheduler_paused", nil)
	if err != nil {
		return err
	}
	paused := true
	for _, a := range answers {
		each, _, err := msgp.ReadBoolBytes(a.Value)
		if err != nil {
			return openai.Internal("engine %d: is_scheduler_paused: %v", a.Rank, err)
		}
		paused = paused && each
	}
	writeFlag(c, "is_paused", paused)
	return nil
}

// info tells how the server is set up.
func (s *Server) info(c *call) error {
	config, err := json.Marshal(struct {
		Models      []string `json:"served_model_name"`
		Root        string   `json:"model"`
		MaxModelLen int      `json:"max_model_len"`
		MaxLogprobs int      `json:"max_logprobs"`
		MaxBody     int      `json:"max_body"`
		Version     string   `json:"version"`
	}{s.Models, s.Root, s.limits().MaxModelLen, s.MaxLogprobs, s.MaxBody, s.Version.String()})
	if err != nil {
		return err
	}
	return writeValue(c, struct {
		Config string `json:"vllm_config"`
	}{string(config)})
}

// status is the answer of a call that did something.
type status struct {
	Status string `json:"status"`
}

// tellEngines calls a method of all engines whose answer says nothing.
func (s *Server) tellEngines(c *call, method string, args msgp.Raw) error {
	ctx, cancel := c.deadline()
	defer cancel()
	_, err := s.engines.Call(ctx, method, args)
	c.ctx.SetStatusCode(http.StatusOK)
	return err
}

func writeFlag(c *call, name string, value bool) {
	b := append([]byte(`{"`), name...)
	b = append(b, `":`...)
	b = strconv.AppendBool(b, value)
	writeJSON(c.ctx, append(b, '}'))
}

// query is a parameter of the address, or what it is without.
func (c *call) query(name, without string) string {
	if value := c.ctx.QueryArgs().Peek(name); len(value) > 0 {
		return string(value)
	}
	return without
}

func (c *call) flag(name string) (bool, error) {
	value := c.query(name, "false")
	flag, err := strconv.ParseBool(value)
	if err != nil {
		return false, openai.BadRequest(name, "%s is %.20q, want true or false.", name, value)
	}
	return flag, nil
}

// mode is what becomes of running requests.
func (c *call) mode() (string, error) {
	switch mode := c.query("mode", "abort"); mode {
	case "abort", "wait", "keep":
		return mode, nil
	default:
		return "", openai.BadRequest("mode", "mode is %.20q, want abort, wait or keep.", mode)
	}
}

// pauseMethod is the name that the call of the engines has on their line.
func (s *Server) pauseMethod() string {
	if s.Version.AtLeast(33) {
		return "pause_generation"
	}
	return "pause_scheduler"
}
