package frontend

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/valyala/fasthttp"

	"vllm-vcr/frontend/openai"
)

// keys are the API keys, as hashes, so that a comparison tells nothing about their length either.
type keys [][sha256.Size]byte

func newKeys(list []string) keys {
	var k keys
	for _, key := range list {
		if key != "" {
			k = append(k, sha256.Sum256([]byte(key)))
		}
	}
	return k
}

// guarded are the beginnings of the paths that need a key, as in vLLM; probes and metrics don't.
var guarded = []string{"/v1", "/inference"}

// check asks for a key where one is needed.
func (k keys) check(ctx *fasthttp.RequestCtx) error {
	if len(k) == 0 || !needsKey(string(ctx.Path())) {
		return nil
	}
	scheme, token, _ := strings.Cut(string(ctx.Request.Header.Peek(fasthttp.HeaderAuthorization)), " ")
	sum := sha256.Sum256([]byte(token))
	match := 0
	for _, key := range k {
		match |= subtle.ConstantTimeCompare(sum[:], key[:])
	}
	if strings.EqualFold(scheme, "Bearer") && match == 1 {
		return nil
	}
	ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, "Bearer")
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
