package control

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/logs"
	"vllm-vcr/supervisor"
)

// TestMain lets one goroutine pass: the one with which a stopped fasthttp server clears its worker pool ends on its own
// within 10 s.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// fakeFleet is a fleet of 3 whose methods a test sets; a method that is not set panics.
type fakeFleet struct {
	ConfigFunc       func(context.Context) (config.Live, error)
	PatchFunc        func(context.Context, config.Patch) (config.Live, error)
	ResetConfigFunc  func(context.Context) (config.Live, error)
	StatsFunc        func(context.Context) (ipc.Stats, error)
	ResetStatsFunc   func(context.Context) error
	EngineConfigFunc func(context.Context, int) (config.Live, error)
	PatchEngineFunc  func(context.Context, int, config.Patch) (config.Live, error)
	EngineStatsFunc  func(context.Context, int) (ipc.Stats, error)
	EnginesFunc      func(context.Context) []supervisor.EngineStatus
	HealthFunc       func(context.Context) supervisor.Health
	DrainFunc        func(context.Context, uint64) (ipc.Drain, error)
	DrainEngineFunc  func(context.Context, int, uint64) (ipc.Drain, error)

	RequestsFunc       func(context.Context, ipc.RequestQuery) (supervisor.Requests, error)
	EngineRequestsFunc func(context.Context, int, ipc.RequestQuery) (supervisor.Requests, error)

	ResetEngineConfigFunc func(context.Context, int) (config.Live, error)
	ResetEngineStatsFunc  func(context.Context, int) error
	ArmFaultFunc          func(context.Context, ipc.Fault) (supervisor.FaultStatus, error)
	FaultsFunc            func(context.Context) (supervisor.Faults, error)
	ClearFaultFunc        func(context.Context, uint64) error
	ClearFaultsFunc       func(context.Context) error
}

func (f *fakeFleet) Len() int                                           { return 3 }
func (f *fakeFleet) Config(ctx context.Context) (config.Live, error)    { return f.ConfigFunc(ctx) }
func (f *fakeFleet) Stats(ctx context.Context) (ipc.Stats, error)       { return f.StatsFunc(ctx) }
func (f *fakeFleet) ResetStats(ctx context.Context) error               { return f.ResetStatsFunc(ctx) }
func (f *fakeFleet) Health(ctx context.Context) supervisor.Health       { return f.HealthFunc(ctx) }
func (f *fakeFleet) ResetConfig(c context.Context) (config.Live, error) { return f.ResetConfigFunc(c) }
func (f *fakeFleet) Patch(ctx context.Context, p config.Patch) (config.Live, error) {
	return f.PatchFunc(ctx, p)
}
func (f *fakeFleet) EngineConfig(ctx context.Context, i int) (config.Live, error) {
	return f.EngineConfigFunc(ctx, i)
}
func (f *fakeFleet) PatchEngine(ctx context.Context, i int, p config.Patch) (config.Live, error) {
	return f.PatchEngineFunc(ctx, i, p)
}
func (f *fakeFleet) EngineStats(ctx context.Context, i int) (ipc.Stats, error) {
	return f.EngineStatsFunc(ctx, i)
}
func (f *fakeFleet) ResetEngineConfig(ctx context.Context, i int) (config.Live, error) {
	return f.ResetEngineConfigFunc(ctx, i)
}
func (f *fakeFleet) ResetEngineStats(ctx context.Context, i int) error {
	return f.ResetEngineStatsFunc(ctx, i)
}
func (f *fakeFleet) Drain(ctx context.Context, timeout uint64) (ipc.Drain, error) {
	return f.DrainFunc(ctx, timeout)
}
func (f *fakeFleet) DrainEngine(ctx context.Context, i int, timeout uint64) (ipc.Drain, error) {
	return f.DrainEngineFunc(ctx, i, timeout)
}
func (f *fakeFleet) Requests(ctx context.Context, q ipc.RequestQuery) (supervisor.Requests, error) {
	return f.RequestsFunc(ctx, q)
}
func (f *fakeFleet) EngineRequests(ctx context.Context, i int, q ipc.RequestQuery) (supervisor.Requests, error) {
	return f.EngineRequestsFunc(ctx, i, q)
}
func (f *fakeFleet) ArmFault(ctx context.Context, fault ipc.Fault) (supervisor.FaultStatus, error) {
	return f.ArmFaultFunc(ctx, fault)
}
func (f *fakeFleet) Faults(ctx context.Context) (supervisor.Faults, error) { return f.FaultsFunc(ctx) }
func (f *fakeFleet) ClearFault(ctx context.Context, id uint64) error {
	return f.ClearFaultFunc(ctx, id)
}
func (f *fakeFleet) ClearFaults(ctx context.Context) error                 { return f.ClearFaultsFunc(ctx) }
func (f *fakeFleet) Engines(ctx context.Context) []supervisor.EngineStatus { return f.EnginesFunc(ctx) }

// fakeFilter is a log filter that knows whatever logs can parse.
type fakeFilter struct {
	filter string
	err    error // of SetFilter, for a filter that can be parsed
}

func (f *fakeFilter) Filter() string { return f.filter }

func (f *fakeFilter) SetFilter(_ context.Context, filter string) (string, error) {
	parsed, err := logs.ParseFilter(filter)
	if err != nil {
		return "", err
	}
	f.filter = parsed.String()
	return f.filter, f.err
}

// api is a running server and a client of it.
type api struct {
	*Server
	addr   string
	client *http.Client
	doneC  chan struct{} // closed when Serve has returned
}

// start serves until the test ends. With Options.Bound empty it is the address that was got.
func start(t *testing.T, fleet Fleet, filter LogFilter, o Options, change ...func(*Server)) *api {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if o.Bound == "" {
		o.Bound = ln.Addr().String()
	}
	transport := &http.Transport{}
	a := &api{NewServer(fleet, filter, o), ln.Addr().String(), &http.Client{Transport: transport}, make(chan struct{})}
	for _, f := range change {
		f(a.Server)
	}
	go func() {
		defer close(a.doneC)
		if err := a.Serve(ln); err != nil {
			t.Errorf("Serve: %v", err)
		}
	}()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		a.Stop()
		<-a.doneC
	})
	return a
}

// reply is an answer that has been read to its end.
type reply struct {
	status int
	header http.Header
	body   string
}

// call sends one request, from any goroutine; headers are "Name: value", and a body that is not empty goes as JSON unless they say otherwise.
func (a *api) call(t *testing.T, method, path, body string, headers ...string) reply {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+a.addr+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return reply{}
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		t.Error(err)
		return reply{}
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
		return reply{}
	}
	return reply{resp.StatusCode, resp.Header, string(got)}
}

// raw sends bytes over a connection of its own and returns all that comes back until the server closes it.
func (a *api) raw(t *testing.T, request string) string {
	t.Helper()
	conn := a.dial(t)
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return readAll(t, conn)
}

func (a *api) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", a.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the test may have closed it
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func readAll(t *testing.T, conn net.Conn) string {
	t.Helper()
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("after %q: %v", got, err)
	}
	return string(got)
}

// wantError checks an answer's status and the text of its error body.
func wantError(t *testing.T, got reply, status int, says string) {
	t.Helper()
	var body map[string]string
	err := json.Unmarshal([]byte(got.body), &body)
	if err != nil || got.status != status || len(body) != 1 || !strings.Contains(body["error"], says) {
		t.Errorf("answer = %d %s, want %d with %q in its error", got.status, got.body, status, says)
	}
	if contentType := got.header.Get("Content-Type"); contentType != "application/json" {
		t.Errorf("content type = %q, want application/json", contentType)
	}
}
