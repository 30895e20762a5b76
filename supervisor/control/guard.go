package control

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"vllm-vcr/httpserve"
)

// guard refuses calls that did not come from whom they seem to: requests that two readers would cut differently, web
// pages that talk to a port of their visitor's machine, and callers without the token.
type guard struct {
	loopback bool     // the API is bound to this machine only, by an address or a Unix socket
	hosts    []string // names of this machine, IPv6 literals in brackets
	port     string
	tokens   httpserve.Tokens // none = no call needs one
}

func newGuard(bound, token string) guard {
	g := guard{hosts: []string{"localhost", "127.0.0.1", "[::1]"}, tokens: httpserve.NewTokens(token)}
	host, port, err := net.SplitHostPort(bound)
	addr, errAddr := netip.ParseAddr(host)
	g.loopback = err != nil || host == "localhost" || errAddr == nil && addr.IsLoopback()
	g.port = port
	if errAddr == nil && !slices.Contains(g.hosts, literal(addr)) {
		g.hosts = append(g.hosts, literal(addr))
	}
	return g
}

// literal is an address as a Host header or an Origin writes it.
func literal(addr netip.Addr) string {
	if addr = addr.Unmap().WithZone(""); addr.Is6() {
		return "[" + addr.String() + "]"
	}
	return addr.String()
}

// check refuses in a fixed order: framing, Host, Origin, token.
func (g *guard) check(ctx *fasthttp.RequestCtx) error {
	if err := httpserve.CheckFraming(ctx); err != nil {
		return faultf(fasthttp.StatusBadRequest, "%v", err)
	}
	if err := g.checkHost(ctx); err != nil {
		return err
	}
	for _, origin := range ctx.Request.Header.PeekAll(fasthttp.HeaderOrigin) {
		if !g.isOwn(string(origin), ctx.IsTLS(), ctx.LocalAddr()) {
			return faultf(fasthttp.StatusForbidden, "origin %q is not this API: web pages cannot call it", shorten(string(origin)))
		}
	}
	if !g.tokens.Admit(ctx) {
		return faultf(fasthttp.StatusUnauthorized, "this API wants a bearer token: Authorization: Bearer TOKEN")
	}
	return nil
}

// checkHost looks at the Host header and at the host of an absolute request line.
func (g *guard) checkHost(ctx *fasthttp.RequestCtx) error {
	if !g.loopback {
		return nil
	}
	for _, host := range [][]byte{ctx.Request.Header.Host(), ctx.Host()} {
		if name, _ := splitHost(string(host)); !slices.Contains(g.hosts, name) {
			return faultf(fasthttp.StatusMisdirectedRequest, "host %q, want one of %s", shorten(string(host)), strings.Join(g.hosts, ", "))
		}
	}
	return nil
}

// isOwn says whether origin is the API itself as reached at local. Nothing is at a Unix socket, which no page can come from.
func (g *guard) isOwn(origin string, secure bool, local net.Addr) bool {
	scheme, usual := "http://", "80"
	if secure {
		scheme, usual = "https://", "443"
	}
	hostPort, ok := strings.CutPrefix(strings.ToLower(origin), scheme)
	name, port := splitHost(hostPort)
	if port == "" {
		port = usual
	}
	if !ok || port != g.port {
		return false
	}
	addr, err := netip.ParseAddrPort(local.String())
	return slices.Contains(g.hosts, name) || err == nil && name == literal(addr.Addr())
}

// splitHost cuts HOST or HOST:PORT; the name comes in lower case, an IPv6 literal with its brackets.
func splitHost(hostPort string) (name, port string) {
	end := strings.LastIndexByte(hostPort, ':')
	if end < strings.LastIndexByte(hostPort, ']') || end < 0 {
		return strings.ToLower(hostPort), ""
	}
	return strings.ToLower(hostPort[:end]), hostPort[end+1:]
}
