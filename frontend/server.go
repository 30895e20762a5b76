package frontend

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"vllm-vcr/frontend/openai"
	"vllm-vcr/frontend/tokenizer"
	"vllm-vcr/httpserve"
	"vllm-vcr/logs"
)

const (
	readTimeout = 60 * time.Second // for a whole request, headers and body
	idleTimeout = 5 * time.Minute  // between two requests of a connection
	callTimeout = 30 * time.Second // for a call of the engines that isn't a request
	stopGrace   = time.Second      // for last bytes when the server stops
	headerLimit = 16 << 10         // bytes of request line and headers; each connection holds as much
)

// Server serves the API. Get one from [New].
type Server struct {
	Options
	engines     Engines
	tokens      *tokenizer.Tokenizer
	keys        httpserve.Tokens
	fingerprint string
	started     int64 // seconds since 1970
	http        *fasthttp.Server
	conns       *httpserve.Connections
	gate        *gate
	turns       *turns
	log         *logs.Logger

	stop  sync.Once
	stopC chan struct{} // closed by Stop
	grace time.Duration // set before stopC is closed
}

// New returns a server over engines, which must live longer than it. The error tells all that is wrong with the options.
func New(engines Engines, tokens *tokenizer.Tokenizer, o Options) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("frontend: %w", err)
	}
	turns, err := newTurns()
	if err != nil {
		return nil, fmt.Errorf("frontend: %w", err)
	}
	o = o.settled()
	s := &Server{
		Options: o, engines: engines, tokens: tokens, keys: httpserve.NewTokens(o.APIKeys...), fingerprint: fingerprint(&o),
		started: time.Now().Unix(), conns: httpserve.NewConnections(connectionLimits()),
		gate: newGate(), turns: turns, log: o.Log, stopC: make(chan struct{}),
	}
	s.http = &fasthttp.Server{
		Handler:            s.handler(),
		ErrorHandler:       s.broken,
		ReadTimeout:        readTimeout,
		IdleTimeout:        idleTimeout,
		ReadBufferSize:     headerLimit,
		MaxRequestBodySize: o.MaxBody,
	}
	httpserve.Harden(s.http, s.conns, s.log)
	return s, nil
}

// connectionLimits let a crowd come in at once: who has just arrived is never closed for the next.
func connectionLimits() httpserve.Limits {
	return httpserve.Limits{Open: httpserve.HalfOfDescriptors(math.MaxInt), Spared: time.Second}
}

// Serve answers calls on ln until Stop, and then, with new requests refused, until those at the engines have ended or the time
// given to Stop is over; what is left is aborted. Then it returns nil. A listener that breaks by itself is an error. Serve
// closes ln. It may be called once.
func (s *Server) Serve(ln net.Listener) error {
	s.log.Info().Str("address", ln.Addr().String()).Msg("OpenAI API listening")
	served := make(chan error, 1)
	closedC := make(chan struct{})
	defer s.turns.close()
	go func() { served <- s.http.Serve(s.conns.Patient(ln, closedC, "the API", s.log)) }()
	select {
	case err := <-served:
		close(closedC)
		_ = ln.Close() // it is broken already
		s.gate.close()
		s.gate.end(errStopped)
		s.conns.Finish(stopGrace, nil)
		return fmt.Errorf("OpenAI API: %w", cmp.Or(err, errors.New("the listener was closed")))
	case <-s.stopC:
		s.drain()
		close(closedC)
		err := ln.Close()
		<-served
		s.conns.Finish(stopGrace, nil)
		return err
	}
}

// drain waits for the requests at the engines as long as it may, and ends the rest.
func (s *Server) drain() {
	s.gate.close()
	timer := time.NewTimer(s.grace)
	defer timer.Stop()
	select {
	case <-s.gate.emptyC:
	case <-timer.C:
		s.gate.end(errStopped)
	}
}

// Stop makes Serve end when the requests at the engines have ended, at the latest after grace. Until then calls are answered;
// what would need the engines gets a 503. It returns at once, and may be called at any time; only the first call counts.
func (s *Server) Stop(grace time.Duration) {
	s.stop.Do(func() {
		s.grace = max(0, grace)
		close(s.stopC)
	})
}

// limits are what a request is checked against at this moment.
func (s *Server) limits() openai.Limits {
	length := int(min(s.engines.MaxModelLen(), 1<<31-1))
	if s.Options.MaxModelLen > 0 && (length == 0 || s.Options.MaxModelLen < length) {
		length = s.Options.MaxModelLen
	}
	return openai.Limits{MaxModelLen: length, ChatAnswer: s.DefaultMaxTokens, MaxLogprobs: s.MaxLogprobs, Vocabulary: s.tokens.Size()}
}

// fingerprint names the configuration, in the form of vLLM's.
func fingerprint(o *Options) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.Join(o.Models, "\n") + o.Root)) // it can't fail
	return fmt.Sprintf("vllm-%s-%08x", o.Version, h.Sum32())
}
