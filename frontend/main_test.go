package frontend

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"
	"go.uber.org/goleak"

	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/frontend/tokenizer"
	"vllm-vcr/httpserve"
	"vllm-vcr/httpserve/certtest"
	"vllm-vcr/logs"
	"vllm-vcr/protocol/enginecore"
)

// TestMain lets two goroutines pass: the one with which a stopped fasthttp server clears its worker pool ends on its own within
// 10 s, and the one that keeps its coarse clock never.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

var vocabulary = sync.OnceValue(func() *tokenizer.Tokenizer {
	t, err := tokenizer.New()
	if err != nil {
		panic(err)
	}
	return t
})

// fakeEngines are engines whose methods a test sets; a method that is not set panics, but for the two that every request needs.
type fakeEngines struct {
	SubmitFunc           func([]dispatch.Request) (Streams, error)
	HealthFunc           func() error
	MaxModelLenFunc      func() uint64
	LoadLoRAFunc         func(ctx context.Context, name, path string) (enginecore.LoRARequest, error)
	UnloadLoRAFunc       func(ctx context.Context, name string) error
	LoRAsFunc            func() []enginecore.LoRARequest
	SleepFunc            func(ctx context.Context, level uint64, mode string) error
	WakeUpFunc           func(ctx context.Context, tags []string) error
	IsSleepingFunc       func(ctx context.Context) (bool, error)
	ResetPrefixCacheFunc func(ctx context.Context, running, connector bool) (bool, error)
	CallFunc             func(ctx context.Context, method string, args msgp.Raw) ([]dispatch.Answer, error)
}

func (f *fakeEngines) Submit(r []dispatch.Request) (Streams, error) { return f.SubmitFunc(r) }
func (f *fakeEngines) Health() error                                { return f.HealthFunc() }
func (f *fakeEngines) MaxModelLen() uint64 {
	if f.MaxModelLenFunc == nil {
		return 4096
	}
	return f.MaxModelLenFunc()
}
func (f *fakeEngines) LoadLoRA(ctx context.Context, name, path string) (enginecore.LoRARequest, error) {
	return f.LoadLoRAFunc(ctx, name, path)
}
func (f *fakeEngines) UnloadLoRA(ctx context.Context, name string) error {
	return f.UnloadLoRAFunc(ctx, name)
}
func (f *fakeEngines) LoRA(name string) (enginecore.LoRARequest, bool) {
	for _, l := range f.LoRAs() {
		if l.Name == name {
			return l, true
		}
	}
	return enginecore.LoRARequest{}, false
}
func (f *fakeEngines) LoRAs() []enginecore.LoRARequest {
	if f.LoRAsFunc == nil {
		return nil
	}
	return f.LoRAsFunc()
}
func (f *fakeEngines) Sleep(ctx context.Context, level uint64, mode string) error {
	return f.SleepFunc(ctx, level, mode)
}
func (f *fakeEngines) WakeUp(ctx context.Context, tags []string) error {
	return f.WakeUpFunc(ctx, tags)
}
func (f *fakeEngines) IsSleeping(ctx context.Context) (bool, error) { return f.IsSleepingFunc(ctx) }
func (f *fakeEngines) ResetPrefixCache(ctx context.Context, running, connector bool) (bool, error) {
	return f.ResetPrefixCacheFunc(ctx, running, connector)
}
func (f *fakeEngines) Call(ctx context.Context, method string, args msgp.Raw) ([]dispatch.Answer, error) {
	return f.CallFunc(ctx, method, args)
}

// step is one output of a fake engine.
type step struct {
	stream int
	chunk  dispatch.Chunk
	err    error
	gate   <-chan struct{} // where not nil, the output comes when it is closed
}

// fakeStreams give the steps one after the other, and then nothing until they are given up.
type fakeStreams struct {
	steps []step

	mu       sync.Mutex
	stopped  []int
	canceled bool
	cancelC  chan struct{} // closed by the first Cancel
}

func newStreams(steps ...step) *fakeStreams {
	return &fakeStreams{steps: steps, cancelC: make(chan struct{})}
}

func (f *fakeStreams) Next(ctx context.Context) (int, dispatch.Chunk, error) {
	var next step
	next.gate = make(chan struct{}) // never closed: nothing more comes
	if len(f.steps) > 0 {
		next, f.steps = f.steps[0], f.steps[1:]
	}
	if next.gate != nil {
		select {
		case <-next.gate:
		case <-ctx.Done():
			return 0, dispatch.Chunk{}, context.Cause(ctx)
		}
	}
	return next.stream, next.chunk, next.err
}

func (f *fakeStreams) Stop(stream int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = append(f.stopped, stream)
}

func (f *fakeStreams) Cancel() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.canceled {
		f.canceled = true
		close(f.cancelC)
	}
}

func (f *fakeStreams) isCanceled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.canceled
}

// says is the outputs of an engine that answers with a text, a token at a time, and then ends for a reason.
func says(text string, finish enginecore.FinishReason) []step {
	var steps []step
	for _, id := range vocabulary().Encode(text) {
		steps = append(steps, step{chunk: dispatch.Chunk{Tokens: []uint32{id}}})
	}
	steps[len(steps)-1].chunk.Finish = finish
	return steps
}

// answers is engines that answer every request with the same steps, and the requests they got.
func answers(steps ...step) (*fakeEngines, *[]dispatch.Request) {
	got := new([]dispatch.Request)
	return &fakeEngines{SubmitFunc: func(r []dispatch.Request) (Streams, error) {
		*got = append(*got, r...)
		return newStreams(append([]step(nil), steps...)...), nil
	}}, got
}

// api is a running server and a client of it.
type api struct {
	*Server
	t      *testing.T
	addr   string
	client *http.Client
	doneC  chan struct{}  // closed when Serve has returned
	roots  *x509.CertPool // nil = no TLS
}

// start serves until the test ends.
func start(t *testing.T, engines Engines, change ...func(*Options)) *api {
	t.Helper()
	return startAt(t, listen(t), nil, engines, change...)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func startPlain(t *testing.T, engines Engines) *api {
	t.Helper()
	return start(t, engines)
}

// startSecure serves over TLS.
func startSecure(t *testing.T, engines Engines) *api {
	t.Helper()
	ln, roots := listenSecure(t)
	return startAt(t, ln, roots, engines)
}

func listenSecure(t *testing.T) (net.Listener, *x509.CertPool) {
	t.Helper()
	files := certtest.New(t, "front end")
	pair, err := httpserve.LoadKeyPair(files.CertFile, files.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Over(listen(t), logs.Nop()), files.Roots
}

func startAt(t *testing.T, ln net.Listener, roots *x509.CertPool, engines Engines, change ...func(*Options)) *api {
	t.Helper()
	o := Options{Models: []string{"tiny", "other"}, Root: "/models/tiny"}
	for _, f := range change {
		f(&o)
	}
	server, err := New(engines, vocabulary(), o)
	if err != nil {
		t.Fatal(err)
	}
	return serveAt(t, server, ln, roots)
}

func serveAt(t *testing.T, server *Server, ln net.Listener, roots *x509.CertPool) *api {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	a := &api{server, t, ln.Addr().String(), &http.Client{Transport: transport, Timeout: time.Minute}, make(chan struct{}), roots}
	go func() {
		defer close(a.doneC)
		if err := a.Serve(ln); err != nil {
			t.Errorf("Serve: %v", err)
		}
	}()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		a.Stop(0)
		<-a.doneC
	})
	return a
}

// reply is an answer that has been read to its end.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

// call sends one request; headers are "Name: value", and a body that is not empty goes as JSON unless they say otherwise.
func (a *api) call(method, path, body string, headers ...string) reply {
	a.t.Helper()
	scheme := "http://"
	if a.roots != nil {
		scheme = "https://"
	}
	req, err := http.NewRequest(method, scheme+a.addr+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		a.t.Error(err)
		return reply{err: err}
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(got), err}
}

func (a *api) post(path, body string, headers ...string) reply {
	a.t.Helper()
	return a.call(http.MethodPost, path, body, headers...)
}

// wire is a connection of which a test sees the TCP below TLS.
type wire struct {
	net.Conn
	tcp *net.TCPConn
}

// connect is dial over TLS, where the server has it.
func (a *api) connect(request string) wire {
	a.t.Helper()
	if a.roots == nil {
		tcp := a.dial(request)
		return wire{tcp, tcp}
	}
	tcp := a.dial("")
	conn := tls.Client(tcp, &tls.Config{RootCAs: a.roots, ServerName: "127.0.0.1"})
	if _, err := io.WriteString(conn, request); err != nil {
		a.t.Fatal(err)
	}
	return wire{conn, tcp}
}

// dial opens a connection and sends bytes on it.
func (a *api) dial(request string) *net.TCPConn {
	a.t.Helper()
	conn, err := net.Dial("tcp", a.addr)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = conn.Close() }) // the test may have closed it
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		a.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		a.t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// errorOf is the error that an answer tells.
type errorBody struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    int     `json:"code"`
	} `json:"error"`
}

// wantError checks that an answer is an error in the API's shape, of that status, with says in its message.
func wantError(t *testing.T, got reply, status int, says string) {
	t.Helper()
	var body errorBody
	d := json.NewDecoder(strings.NewReader(got.body))
	d.DisallowUnknownFields()
	err := d.Decode(&body)
	if err != nil || got.status != status || body.Error.Code != status || body.Error.Type == "" || !strings.Contains(body.Error.Message, says) {
		t.Errorf("answer = %d %s, want an error %d with %q", got.status, got.body, status, says)
	}
	if contentType := got.header.Get("Content-Type"); contentType != "application/json" {
		t.Errorf("content type = %q, want application/json", contentType)
	}
}

// object decodes a JSON object.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}

// eventsOf takes a stream apart: the data of its events, each valid JSON in valid UTF-8, and whether [DONE] ended it.
func eventsOf(t *testing.T, stream string) (events []map[string]any, done bool) {
	t.Helper()
	for _, event := range strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		if done {
			t.Errorf("event after [DONE]: %q", event)
		}
		for line := range strings.Lines(event) {
			data, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "data: ")
			switch {
			case strings.HasPrefix(line, "event: "):
			case !ok:
				t.Errorf("line %q, want data", line)
			case data == "[DONE]":
				done = true
			case !json.Valid([]byte(data)) || !bytes.Equal([]byte(data), bytes.ToValidUTF8([]byte(data), nil)):
				t.Errorf("data %q, want JSON", data)
			default:
				events = append(events, object(t, data))
			}
		}
	}
	return events, done
}

// at walks into a decoded value: names of members and numbers of elements.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[s]
		case int:
			l, _ := v.([]any)
			if s >= len(l) {
				t.Fatalf("no element %d in %v", s, v)
			}
			v = l[s]
		}
	}
	return v
}

var errBoom = errors.New("boom")
