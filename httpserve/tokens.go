package httpserve

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"github.com/valyala/fasthttp"
)

// Tokens are the bearer tokens of which a call must bring one. They are kept as hashes, so that a comparison takes the same
// time whatever a caller guesses, and tells nothing about their lengths either.
type Tokens [][sha256.Size]byte

// NewTokens leaves out empty ones. Without any, every call is taken.
func NewTokens(list ...string) Tokens {
	var t Tokens
	for _, token := range list {
		if token != "" {
			t = append(t, sha256.Sum256([]byte(token)))
		}
	}
	return t
}

// Admit says whether the call in ctx brings one of the tokens as "Authorization: Bearer TOKEN". Where it doesn't, the answer
// names the scheme that is wanted.
func (t Tokens) Admit(ctx *fasthttp.RequestCtx) bool {
	if len(t) == 0 {
		return true
	}
	scheme, token, _ := strings.Cut(string(ctx.Request.Header.Peek(fasthttp.HeaderAuthorization)), " ")
	sum := sha256.Sum256([]byte(token))
	match := 0
	for _, each := range t {
		match |= subtle.ConstantTimeCompare(sum[:], each[:])
	}
	if strings.EqualFold(scheme, "Bearer") && match == 1 {
		return true
	}
	ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, "Bearer")
	return false
}
