package control

import (
	"slices"
	"strings"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
)

// handler answers one route: with a value for the body, nil for none, or an error. It keeps nothing of the request.
type handler func(*fasthttp.RequestCtx) (any, error)

type route struct {
	method, path string
	handle       handler
}

// routes is the whole API. HEAD goes with every GET.
func (s *Server) routes() []route {
	return []route{
		{fasthttp.MethodGet, "/config", s.getConfig},
		{fasthttp.MethodPatch, "/config", s.patchConfig},
		{fasthttp.MethodPost, "/config/reset", s.resetConfig},
		{fasthttp.MethodGet, "/stats", s.getStats},
		{fasthttp.MethodPost, "/stats/reset", s.resetStats},
		{fasthttp.MethodPost, "/drain", s.drain},
		{fasthttp.MethodGet, "/faults", s.getFaults},
		{fasthttp.MethodPost, "/faults", s.postFault},
		{fasthttp.MethodDelete, "/faults", s.deleteFaults},
		{fasthttp.MethodDelete, "/faults/{id}", s.deleteFault},
		{fasthttp.MethodGet, "/log", s.getLog},
		{fasthttp.MethodPut, "/log", s.putLog},
		{fasthttp.MethodGet, "/health", s.getHealth},
		{fasthttp.MethodGet, "/health/ready", s.getReady},
		{fasthttp.MethodGet, "/health/live", s.getLive},
		{fasthttp.MethodGet, "/engines", s.getEngines},
		{fasthttp.MethodGet, "/requests", s.getRequests},
		{fasthttp.MethodGet, "/requests/{id}", s.getRequest},
		{fasthttp.MethodGet, "/engines/{index}/config", s.getEngineConfig},
		{fasthttp.MethodPatch, "/engines/{index}/config", s.patchEngineConfig},
		{fasthttp.MethodPost, "/engines/{index}/config/reset", s.resetEngineConfig},
		{fasthttp.MethodGet, "/engines/{index}/stats", s.getEngineStats},
		{fasthttp.MethodPost, "/engines/{index}/stats/reset", s.resetEngineStats},
		{fasthttp.MethodPost, "/engines/{index}/drain", s.drainEngine},
		{fasthttp.MethodGet, "/metrics", s.getMetrics},
	}
}

// handler is what the HTTP server calls: the guard, then the route, and whatever happens an answer.
func (s *Server) handler() fasthttp.RequestHandler {
	routes := s.router()
	return func(ctx *fasthttp.RequestCtx) {
		defer s.logCall(ctx, time.Now())
		defer s.recoverPanic(ctx)
		if err := s.guard.check(ctx); err != nil {
			s.fail(ctx, err)
			return
		}
		routes.Handler(ctx)
	}
}

// router takes paths as they are: no redirects to what might have been meant, no automatic OPTIONS. A method that a path
// has no route for meets the path's catch-all, which knows the methods there are.
func (s *Server) router() *router.Router {
	r := router.New()
	r.RedirectTrailingSlash = false
	r.RedirectFixedPath = false
	r.HandleOPTIONS = false
	r.HandleMethodNotAllowed = false
	r.NotFound = s.answer(notFound)
	allowed := map[string][]string{}
	for _, route := range s.routes() {
		methods := []string{route.method}
		if route.method == fasthttp.MethodGet {
			methods = append(methods, fasthttp.MethodHead)
		}
		for _, method := range methods {
			r.Handle(method, route.path, s.answer(route.handle))
		}
		allowed[route.path] = slices.Concat(allowed[route.path], methods)
	}
	for path, methods := range allowed {
		r.ANY(path, s.answer(notAllowed(strings.Join(methods, ", "))))
	}
	return r
}

func notFound(ctx *fasthttp.RequestCtx) (any, error) {
	return nil, faultf(fasthttp.StatusNotFound, "no such path: %q", shorten(string(ctx.Request.URI().PathOriginal())))
}

func notAllowed(allow string) handler {
	return func(ctx *fasthttp.RequestCtx) (any, error) {
		ctx.Response.Header.Set(fasthttp.HeaderAllow, allow)
		return nil, faultf(fasthttp.StatusMethodNotAllowed, "method %q is not allowed here, want one of %s",
			shorten(string(ctx.Method())), allow)
	}
}
