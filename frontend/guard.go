package frontend

import (
	"net/http"
	"strings"

	"github.com/valyala/fasthttp"

	"vllm-vcr/frontend/openai"
)

// guarded are the beginnings of the paths that need a key, as in vLLM; probes and metrics don't.
var guarded = []string{"/v1", "/inference"}

// checkKey asks for a key where one is needed.
func (s *Server) checkKey(ctx *fasthttp.RequestCtx) error {
	if !needsKey(string(ctx.Path())) || s.keys.Admit(ctx) {
		return nil
	}
	return openai.HTTP(http.StatusUnauthorized, "Unauthorized: this API wants one of its keys as Authorization: Bearer KEY")
}

func needsKey(path string) bool {
	for _, prefix := range guarded {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// checkContentType refuses what can't be JSON. A body without a type is taken, as vLLM does.
func checkContentType(ctx *fasthttp.RequestCtx) error {
	media, _, _ := strings.Cut(string(ctx.Request.Header.ContentType()), ";")
	media = strings.ToLower(strings.TrimSpace(media))
	if media == "" || media == "application/json" || strings.HasSuffix(media, "+json") {
		return nil
	}
	return openai.HTTP(http.StatusUnsupportedMediaType, "Unsupported Media Type: %.100q, want application/json", media)
}
