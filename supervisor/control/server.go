// Package control is the HTTP API over the engines: it shows and changes their configuration, counts what reached them,
// has them run into faults, swaps the log filter and says how they are.
//
// It guarantees that every call is answered within a bound and with JSON (GET /metrics, which is Prometheus text,
// excepted), errors included; that a call which the API itself can refuse reaches no engine; that nothing changes on
// GET, HEAD or OPTIONS; and that no input and no client costs more than its own request or connection. A client that
// leaves does not stop a call that has begun.
//
// It knows the engines only as a [Fleet]: how calls get to them, what a process is and how a change becomes all or
// nothing is not its business.
package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"vllm-vcr/httpserve"
	"vllm-vcr/logs"
)

const (
	defaultTimeout = 5 * time.Second
	readTimeout    = 10 * time.Second // for a whole request, headers and body
	writeTimeout   = 10 * time.Second // for an answer that the client does not take
	idleTimeout    = 2 * time.Minute  // between two requests of a connection
	stopGrace      = time.Second      // for handlers at work when the server stops
	headerLimit    = 16 << 10         // bytes of request line and headers
	bodyCeiling    = 8 << 20          // bytes of a body that are read before anything is judged
	maxConnections = 4096             // open at once, before new ones cost quiet ones
)

// Options are what a Server is told apart from its fleet.
type Options struct {
	// Timeout is the total time of a call, counted from the arrival of the whole request. Zero means 5 s.
	Timeout time.Duration
	// ShutdownTimeout is the time-out of a drain that names none, in seconds.
	ShutdownTimeout uint64
	// Token, where not empty, must come with every call as "Authorization: Bearer TOKEN".
	Token string
	// Bound is the address that the listener is bound to, as its Addr prints it. Where it is a loopback address, calls
	// must name this machine as their Host; an empty or unreadable one counts as loopback, and so does the path of a Unix
	// socket.
	Bound string
	// FrontEndRestarts counts the processes of the front end after the first; nil means that there is no front end.
	FrontEndRestarts func() uint64
	// Log takes the API's own lines; nil means none.
	Log *logs.Logger
}

// Server serves the API. Get one from [NewServer].
type Server struct {
	fleet           Fleet
	filter          LogFilter
	timeout         time.Duration
	shutdownTimeout uint64 // s
	// frontEndRestarts is nil where there is no front end.
	frontEndRestarts func() uint64
	guard            guard
	log              *logs.Logger
	http             *fasthttp.Server
	conns            *httpserve.Connections

	life  context.Context // ends when handlers have had their time after Stop
	end   context.CancelFunc
	stop  sync.Once
	stopC chan struct{} // closed by Stop
}

// NewServer returns a server over fleet. A nil filter means that the process has no log filter to swap. The fleet's
// methods are called from many goroutines at once and must return soon after their context ends.
func NewServer(fleet Fleet, filter LogFilter, o Options) *Server {
	s := &Server{
		fleet:            fleet,
		filter:           filter,
		timeout:          cmp.Or(o.Timeout, defaultTimeout),
		shutdownTimeout:  o.ShutdownTimeout,
		frontEndRestarts: o.FrontEndRestarts,
		guard:            newGuard(o.Bound, o.Token),
		log:              cmp.Or(o.Log, logs.Nop()),
		conns:            httpserve.NewConnections(httpserve.Limits{Open: httpserve.HalfOfDescriptors(maxConnections)}),
		stopC:            make(chan struct{}),
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.http = &fasthttp.Server{
		Handler:            s.handler(),
		ErrorHandler:       s.broken,
		ReadTimeout:        readTimeout,
		WriteTimeout:       writeTimeout,
		IdleTimeout:        idleTimeout,
		ReadBufferSize:     headerLimit,
		MaxRequestBodySize: bodyCeiling,
	}
	httpserve.Harden(s.http, s.conns, s.log)
	return s
}

// Serve answers calls on ln until Stop, then gives running handlers a second, closes what is left and returns nil. A
// listener that breaks by itself is an error. Serve closes ln. It may be called once.
func (s *Server) Serve(ln net.Listener) error {
	s.announce(addressOf(ln))
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.conns.Patient(ln, s.stopC, "control API", s.log)) }()
	defer s.finish()
	select {
	case err := <-served:
		closed := ln.Close()
		if s.stopped() { // it was about to be closed anyway
			return closed
		}
		return fmt.Errorf("control API: %w", cmp.Or(err, errors.New("the listener was closed")))
	case <-s.stopC:
		err := ln.Close()
		<-served
		return err
	}
}

func (s *Server) stopped() bool {
	select {
	case <-s.stopC:
		return true
	default:
		return false
	}
}

// Stop makes Serve end. It returns at once, and may be called at any time and more than once.
func (s *Server) Stop() { s.stop.Do(func() { close(s.stopC) }) }

// finish ends what is still open: idle connections at once, running handlers after their grace.
func (s *Server) finish() {
	s.conns.Finish(stopGrace, s.end)
}

// addressOf is where ln listens, as --control-address takes it.
func addressOf(ln net.Listener) string {
	if ln.Addr().Network() == "unix" {
		return "unix:" + ln.Addr().String()
	}
	return ln.Addr().String()
}

func (s *Server) announce(bound string) {
	s.log.Info().Str("address", bound).Msg("control API listening")
	if !s.guard.loopback && len(s.guard.tokens) == 0 {
		s.log.Warn().Str("address", bound).
			Msg("control API is open to other machines without a token: bind it to loopback or use --control-token-file")
	}
}

// deadline returns the context of a call whose whole request has just come. It does not end with the client's connection.
func (s *Server) deadline() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.life, s.timeout)
}
