package frontend

import (
	"net/http"
	"strings"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"vllm-vcr/frontend/openai"
)

// handler answers one call. What it returns is told to the client; nil means that it wrote an answer.
type handler func(*Server, *call) error

// routes is every call there is.
var routes = []struct {
	method, path string
	handler      handler
}{
	{http.MethodPost, "/v1/completions", inTurn((*Server).completions)},
	{http.MethodPost, "/v1/chat/completions", inTurn((*Server).chat)},
	{http.MethodPost, "/v1/responses", inTurn((*Server).responses)},
	{http.MethodPost, "/v1/embeddings", inTurn((*Server).embeddings)},
	{http.MethodPost, "/inference/v1/generate", inTurn((*Server).generate)},
	{http.MethodPost, "/tokenize", inTurn((*Server).tokenize)},
	{http.MethodPost, "/detokenize", inTurn((*Server).detokenize)},
	{http.MethodGet, "/v1/models", (*Server).models},
	{http.MethodGet, "/v1/models/{model:*}", (*Server).model},
	{http.MethodPost, "/v1/load_lora_adapter", (*Server).loadLoRA},
	{http.MethodPost, "/v1/unload_lora_adapter", (*Server).unloadLoRA},
	{http.MethodGet, "/health", (*Server).health},
	{http.MethodGet, "/ping", (*Server).health},
	{http.MethodPost, "/ping", (*Server).health},
	{http.MethodGet, "/ready", (*Server).ready},
	{http.MethodGet, "/load", (*Server).load},
	{http.MethodGet, "/version", (*Server).version},
	{http.MethodGet, "/metrics", (*Server).exposition},
	{http.MethodGet, "/server_info", (*Server).info},
	{http.MethodPost, "/sleep", (*Server).sleep},
	{http.MethodPost, "/wake_up", (*Server).wakeUp},
	{http.MethodGet, "/is_sleeping", (*Server).isSleeping},
	{http.MethodPost, "/reset_prefix_cache", (*Server).resetPrefixCache},
	{http.MethodPost, "/reset_mm_cache", (*Server).resetMMCache},
	{http.MethodPost, "/reset_encoder_cache", (*Server).resetEncoderCache},
	{http.MethodPost, "/pause", (*Server).pause},
	{http.MethodPost, "/resume", (*Server).resume},
	{http.MethodGet, "/is_paused", (*Server).isPaused},
}

// routeName is a path without the router's own words.
func routeName(path string) string { return strings.ReplaceAll(path, ":*}", "}") }

func (s *Server) handler() fasthttp.RequestHandler {
	r := router.New()
	r.RedirectTrailingSlash = false
	r.RedirectFixedPath = false
	r.HandleOPTIONS = false
	allowed := map[string][]string{}
	for _, each := range routes {
		answer := s.answer(routeName(each.path), each.handler)
		r.Handle(each.method, each.path, answer)
		allowed[each.path] = append(allowed[each.path], each.method)
		if each.method == http.MethodGet {
			r.HEAD(each.path, answer)
			allowed[each.path] = append(allowed[each.path], http.MethodHead)
		}
	}
	r.NotFound = s.answer("", func(_ *Server, c *call) error {
		return openai.HTTP(http.StatusNotFound, "Not Found: %.100s", c.ctx.Path())
	})
	r.MethodNotAllowed = s.answer("", func(_ *Server, c *call) error {
		path := string(c.ctx.Path())
		if strings.HasPrefix(path, "/v1/models/") {
			path = "/v1/models/{model:*}"
		}
		if allowed[path] == nil { // as of OPTIONS *
			return openai.HTTP(http.StatusNotFound, "Not Found: %.100s", c.ctx.Path())
		}
		allow := strings.Join(allowed[path], ", ")
		c.ctx.Response.Header.Set(fasthttp.HeaderAllow, allow)
		return openai.HTTP(http.StatusMethodNotAllowed, "Method Not Allowed: %.20s, want %s", c.ctx.Method(), allow)
	})
	return r.Handler
}
