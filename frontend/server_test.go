package frontend

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tinylib/msgp/msgp"

	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/frontend/engineclient"
	"vllm-vcr/frontend/metrics"
	"vllm-vcr/protocol/enginecore"
)

func TestNew_Options(t *testing.T) {
	_, err := New(&fakeEngines{}, vocabulary(), Options{MaxModelLen: -1, DefaultMaxTokens: -1, MaxLogprobs: -2, MaxBody: -1})
	for _, says := range []string{"models: none", "max-model-len: -1", "default max_tokens: -1", "max-logprobs: -2", "max-body: -1"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want %q in it", err, says)
		}
	}
}

func TestServer_ErrorsAreJSON(t *testing.T) {
	a := start(t, &fakeEngines{}, func(o *Options) { o.MaxBody = 1000 })
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", "/nowhere", "", 404, "/nowhere"},
		{"GET", "/v1/completions/", "", 404, "Not Found"},
		{"GET", "//v1/models", "", 404, "Not Found"},
		{"GET", "/v1/completions", "", 405, "want POST"},
		{"OPTIONS", "/v1/models", "", 405, "want GET, HEAD"},
		{"POST", "/v1/models/tiny", "{}", 405, "want GET"},
		{"POST", "/v1/chat/completions", "[]", 400, "an array"},
		{"POST", "/v1/completions", strings.Repeat("x", 1001), 413, "1000 bytes"},
		{"GET", "/v1/models/unknown", "", 404, "`unknown`"},
		{"POST", "/sleep?level=3", "", 400, "level"},
		{"POST", "/sleep?mode=x", "", 400, "mode"},
		{"POST", "/reset_prefix_cache?reset_external=x", "", 400, "reset_external"},
	} {
		r := a.call(c.method, c.path, c.body)
		wantError(t, r, c.status, c.says)
		if c.status == 405 && r.header.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", c.method, c.path)
		}
	}
}

func TestServer_Framing(t *testing.T) {
	a := start(t, &fakeEngines{})
	for name, raw := range map[string]string{
		"two lengths":  "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"not HTTP":     "hello\r\n\r\n",
		"bad chunk":    "POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"huge header":  "GET /health HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("y", 70<<10) + "\r\n\r\n",
		"declared 8 G": "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 8589934592\r\n\r\n{",
	} {
		got, err := io.ReadAll(a.dial(raw))
		head, body, _ := strings.Cut(string(got), "\r\n\r\n")
		if err != nil || !strings.HasPrefix(head, "HTTP/1.1 4") || !strings.HasPrefix(body, `{"error":{"message":`) {
			t.Errorf("%s: %q, %v, want an error of 4xx in JSON, and the end", name, got, err)
		}
	}
}

func TestServer_Keys(t *testing.T) {
	a := start(t, &fakeEngines{HealthFunc: func() error { return nil }}, func(o *Options) { o.APIKeys = []string{"one", "", "two"} })
	for _, c := range []struct {
		path, header string
		status       int
	}{
		{"/v1/models", "", 401},
		{"/v1/models", "Authorization: Bearer three", 401},
		{"/v1/models", "Authorization: Bearer ", 401},
		{"/v1/models", "Authorization: Basic one", 401},
		{"/v1/models", "Authorization: Bearer one", 200},
		{"/v1/models", "Authorization: bearer two", 200},
		{"/inference/v1/generate", "", 401},
		{"/health", "", 200},
		{"/version", "", 200},
	} {
		var headers []string
		if c.header != "" {
			headers = []string{c.header}
		}
		method := http.MethodGet
		if strings.HasPrefix(c.path, "/inference") {
			method = http.MethodPost
		}
		r := a.call(method, c.path, "", headers...)
		if r.status != c.status {
			t.Errorf("%s with %q: %d, want %d", c.path, c.header, r.status, c.status)
		}
		if c.status == 401 {
			wantError(t, r, 401, "Unauthorized")
		}
	}
}

func TestServer_Health(t *testing.T) {
	health := error(nil)
	a := start(t, &fakeEngines{HealthFunc: func() error { return health }})
	for _, path := range []string{"/health", "/ping", "/ready"} {
		if r := a.call("GET", path, ""); r.status != 200 {
			t.Errorf("%s: %d, want 200", path, r.status)
		}
		if r := a.call("HEAD", path, ""); r.status != 200 || r.body != "" {
			t.Errorf("HEAD %s: %d %q, want 200 and nothing", path, r.status, r.body)
		}
	}
	health = &dispatch.EngineDeadError{Rank: 2, Cause: errBoom}
	for _, path := range []string{"/health", "/ping", "/ready"} {
		wantError(t, a.call("GET", path, ""), 503, "engine 2 is gone")
	}
}

func TestServer_Models(t *testing.T) {
	a := start(t, &fakeEngines{LoRAsFunc: func() []enginecore.LoRARequest {
		return []enginecore.LoRARequest{{Name: "lora1", ID: 1, Path: "/adapters/1"}}
	}}, func(o *Options) { o.MaxModelLen = 2048 })
	list := object(t, a.call("GET", "/v1/models", "").body)
	for i, want := range []map[string]any{
		{"id": "tiny", "root": "/models/tiny", "parent": nil, "max_model_len": 2048.0},
		{"id": "other", "root": "/models/tiny", "parent": nil, "max_model_len": 2048.0},
		{"id": "lora1", "root": "/adapters/1", "parent": "tiny", "max_model_len": nil},
	} {
		for key, value := range want {
			if got := at(t, list, "data", i, key); got != value {
				t.Errorf("model %d: %s = %v, want %v", i, key, got, value)
			}
		}
	}
	if got := at(t, object(t, a.call("GET", "/v1/models/lora1", "").body), "id"); got != "lora1" {
		t.Errorf("model lora1 has id %v", got)
	}
}

func TestServer_LoRA(t *testing.T) {
	failure := error(nil)
	loaded := map[string]string{}
	a := start(t, &fakeEngines{
		LoadLoRAFunc: func(_ context.Context, name, path string) (enginecore.LoRARequest, error) {
			loaded[name] = path
			return enginecore.LoRARequest{Name: name}, failure
		},
		UnloadLoRAFunc: func(_ context.Context, name string) error { delete(loaded, name); return failure },
	})
	body := `{"lora_name":"a","lora_path":"/p"}`
	if r := a.post("/v1/load_lora_adapter", body); r.status != 200 || r.body != "Success: LoRA adapter 'a' added successfully." || loaded["a"] != "/p" {
		t.Errorf("load: %d %q, loaded %v", r.status, r.body, loaded)
	}
	if r := a.post("/v1/unload_lora_adapter", `{"lora_name":"a"}`); r.status != 200 || r.body != "Success: LoRA adapter 'a' removed successfully." || len(loaded) != 0 {
		t.Errorf("unload: %d %q, loaded %v", r.status, r.body, loaded)
	}
	wantError(t, a.post("/v1/load_lora_adapter", `{"lora_name":"a"}`), 400, "lora_path")
	wantError(t, a.post("/v1/load_lora_adapter", `{"lora_name":"tiny","lora_path":"/p"}`), 400, "'tiny'")
	wantError(t, a.post("/v1/unload_lora_adapter", `{}`), 400, "lora_name")
	failure = fmt.Errorf("adapter: %w", dispatch.ErrLoRALoaded)
	wantError(t, a.post("/v1/load_lora_adapter", body), 400, "already been loaded")
	failure = fmt.Errorf("adapter: %w", dispatch.ErrLoRAUnknown)
	wantError(t, a.post("/v1/unload_lora_adapter", `{"lora_name":"b"}`), 404, "cannot be found")
	failure = &engineclient.CallError{Method: "add_lora", Text: "no room"}
	wantError(t, a.post("/v1/load_lora_adapter", body), 500, "no room")
}

func TestServer_Admin(t *testing.T) {
	var calls []string
	note := func(format string, args ...any) { calls = append(calls, fmt.Sprintf(format, args...)) }
	a := start(t, &fakeEngines{
		SleepFunc:      func(_ context.Context, level uint64, mode string) error { note("sleep %d %s", level, mode); return nil },
		WakeUpFunc:     func(_ context.Context, tags []string) error { note("wake %v", tags); return nil },
		IsSleepingFunc: func(context.Context) (bool, error) { return true, nil },
		ResetPrefixCacheFunc: func(_ context.Context, running, connector bool) (bool, error) {
			note("reset %v %v", running, connector)
			return true, nil
		},
		CallFunc: func(_ context.Context, method string, args msgp.Raw) ([]dispatch.Answer, error) {
			note("%s %d", method, len(args))
			return []dispatch.Answer{{Value: []byte{0xc2}}}, nil
		},
	})
	for _, c := range []struct{ method, path, want string }{
		{"POST", "/sleep", `{"status":"sleeping","level":1}`},
		{"POST", "/sleep?level=2&mode=wait", `{"status":"sleeping","level":2}`},
		{"POST", "/wake_up", `{"status":"awake","tags":null}`},
		{"POST", "/wake_up?tags=weights&tags=kv_cache", `{"status":"awake","tags":["weights","kv_cache"]}`},
		{"GET", "/is_sleeping", `{"is_sleeping":true}`},
		{"POST", "/reset_prefix_cache", `{"success":true}`},
		{"POST", "/reset_prefix_cache?reset_running_requests=true&reset_external=true", `{"success":true}`},
		{"POST", "/reset_mm_cache", ``},
		{"POST", "/pause?mode=keep", `{"status":"paused"}`},
		{"POST", "/resume", `{"status":"resumed"}`},
		{"GET", "/is_paused", `{"is_paused":false}`},
		{"GET", "/version", `{"version":"0.33.0"}`},
		{"GET", "/load", `{"server_load":0}`},
	} {
		if r := a.call(c.method, c.path, ""); r.status != 200 || r.body != c.want {
			t.Errorf("%s %s = %d %s, want 200 %s", c.method, c.path, r.status, r.body, c.want)
		}
	}
	want := []string{"sleep 1 abort", "sleep 2 wait", "wake []", "wake [weights kv_cache]", "reset false false", "reset true true",
		"reset_mm_cache 0", "pause_generation 7", "resume_scheduler 0", "is_scheduler_paused 0"}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if r := a.call("GET", "/server_info", ""); r.status != 200 || !strings.Contains(r.body, "max_model_len") {
		t.Errorf("server_info = %d %s", r.status, r.body)
	}
	wantError(t, a.call("GET", "/metrics", ""), 404, "no metrics")
}

func TestServer_Metrics(t *testing.T) {
	engines, _ := answers(says("one", enginecore.FinishLength)...)
	m := metrics.New(metrics.Options{Model: "tiny", Engines: 1, MaxModelLen: 1024})
	a := start(t, engines, func(o *Options) { o.Metrics = m })
	for i, stream := range []string{"false", "true"} {
		a.post("/v1/completions", `{"prompt":"x","stream":`+stream+`}`)
		var b bytes.Buffer
		if err := m.Write(&b); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`http_requests_total{handler="/v1/completions",method="POST",status="2xx"} %d`, i+1)
		if !strings.Contains(b.String(), want) {
			t.Errorf("metrics have no %s", want)
		}
	}
	r := a.call("GET", "/metrics", "")
	if r.status != 200 || !strings.Contains(r.body, "vllm:num_requests_running") || !strings.HasPrefix(r.header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("metrics = %d, %v", r.status, r.header)
	}
}

func TestServer_RequestIDHeaders(t *testing.T) {
	a := start(t, &fakeEngines{}, func(o *Options) { o.RequestIDHeaders = true })
	if got := a.call("GET", "/version", "", "X-Request-Id: mine").header.Get("X-Request-Id"); got != "mine" {
		t.Errorf("id = %q, want mine", got)
	}
	if got := a.call("GET", "/version", "").header.Get("X-Request-Id"); len(got) != 16 {
		t.Errorf("id = %q, want 16 digits", got)
	}
}

// TestServer_Drain stops a server with a stream under way: the stream ends whole, what comes later is refused.
func TestServer_Drain(t *testing.T) {
	gate := make(chan struct{})
	steps := says("one two", enginecore.FinishLength)
	steps[1].gate = gate
	engines, _ := answers(steps...)
	engines.HealthFunc = func() error { return nil }
	a := start(t, engines)
	conn := a.dial(request(`{"prompt":"x","stream":true}`))
	buf := make([]byte, 4096)
	n, err := conn.Read(buf)
	if err != nil || !bytes.Contains(buf[:n], []byte("one")) {
		t.Fatalf("first event %q, %v", buf[:n], err)
	}
	a.Stop(time.Minute)
	for a.call("GET", "/ready", "").status != 503 { // Serve hears of it in a moment
	}
	wantError(t, a.post("/v1/completions", `{"prompt":"y"}`), 503, "shutting down")
	wantError(t, a.call("GET", "/ready", ""), 503, "shutting down")
	if r := a.call("GET", "/health", ""); r.status != 200 {
		t.Errorf("health = %d, want 200", r.status)
	}
	close(gate)
	rest, err := io.ReadAll(conn)
	if err != nil || !bytes.Contains(rest, []byte("[DONE]")) || !bytes.HasSuffix(rest, []byte("0\r\n\r\n")) {
		t.Errorf("rest of the stream %q, %v, want its end", rest, err)
	}
	<-a.doneC
	if _, err := net.Dial("tcp", a.addr); err == nil {
		t.Error("the address still answers")
	}
}

// TestServer_StopAborts has no patience: the stream is told and cut.
func TestServer_StopAborts(t *testing.T) {
	streams := newStreams(says("one", enginecore.FinishNone)...)
	a := start(t, &fakeEngines{SubmitFunc: func([]dispatch.Request) (Streams, error) { return streams, nil }})
	conn := a.dial(request(`{"prompt":"x","stream":true}`))
	buf := make([]byte, 4096)
	if _, err := conn.Read(buf); err != nil {
		t.Fatal(err)
	}
	a.Stop(0)
	rest, _ := io.ReadAll(conn) // it may be reset
	if !bytes.Contains(rest, []byte("shutting down")) || bytes.Contains(rest, []byte("[DONE]")) {
		t.Errorf("rest of the stream %q, want an error and no end", rest)
	}
	<-streams.cancelC
	<-a.doneC
}

func TestServer_Panic(t *testing.T) {
	a := start(t, &fakeEngines{}) // Submit panics
	wantError(t, a.post("/v1/completions", `{"prompt":"x"}`), 500, "panicked")
	if r := a.call("GET", "/version", ""); r.status != 200 {
		t.Errorf("next call: %d, want 200", r.status)
	}
}

// TestServer_HTTP10 has a client that knows no chunks.
func TestServer_HTTP10(t *testing.T) {
	engines, _ := answers(says("one two", enginecore.FinishLength)...)
	a := start(t, engines)
	got, err := io.ReadAll(a.dial(strings.Replace(request(`{"prompt":"x","stream":true}`), "HTTP/1.1", "HTTP/1.0", 1)))
	_, body, _ := strings.Cut(string(got), "\r\n\r\n")
	if _, done := eventsOf(t, body); err != nil || !done {
		t.Errorf("answer %q, %v", got, err)
	}
}
