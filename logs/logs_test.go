package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func mustFilter(t *testing.T, s string) Filter {
	t.Helper()
	f, err := ParseFilter(s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mustClose(t *testing.T, r *Root) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestRoot_JSON(t *testing.T) {
	var out bytes.Buffer
	r := New(&out, JSON, mustFilter(t, "info"))
	l := r.Target(Engine).With("worker", 3).With("role", "decode")
	l.Warn().Str("request_id", "a\n").Msg("duplicate id")
	l.Debug().Msg("not written")
	mustClose(t, r)

	want := regexp.MustCompile(`^{"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z","level":"warn","target":"vllm_vcr::engine",` +
		`"worker":3,"role":"decode","request_id":"a\\n","message":"duplicate id"}\n$`)
	if !want.Match(out.Bytes()) {
		t.Errorf("line = %q, want it to match %s", out.String(), want)
	}
	var line struct{ Time time.Time }
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if age := time.Since(line.Time); age < 0 || age > time.Minute {
		t.Errorf("the line is %v old, want it new and in UTC", age)
	}
}

func TestRoot_Text(t *testing.T) {
	var out bytes.Buffer
	r := New(&out, Text, mustFilter(t, "trace"))
	r.Target(IO).Info().Int("port", 1).Str("s", `a "b"`).Bool("ok", true).Str("evil", "\u009b2J").Msg("engine connected")
	r.Target(IO).Error().Msg("two\nlines")
	mustClose(t, r)

	got := regexp.MustCompile(`(?m)^\S+Z `).ReplaceAllString(out.String(), "")
	want := ` INFO vllm_vcr::io: engine connected port=1 s="a \"b\"" ok=true evil="\"\u009b2J\""` + "\n" +
		`ERROR vllm_vcr::io: "two\nlines"` + "\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

func TestRoot_Color(t *testing.T) {
	var out bytes.Buffer
	r := New(&out, Color, mustFilter(t, "info"))
	r.Target(IO).Warn().Msg("x")
	mustClose(t, r)
	if want := "\x1b[33m WARN\x1b[0m vllm_vcr::io: x\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("line = %q, want it to end in %q", out.String(), want)
	}
}

func TestTextWriter_NotALine(t *testing.T) {
	for _, in := range []string{"plain words\n", "{\"time\":\n", "{\"a\":1,}\n", "\n"} {
		var out bytes.Buffer
		if _, err := (&textWriter{w: &out}).Write([]byte(in)); err != nil {
			t.Error(err)
		}
		if out.String() != in {
			t.Errorf("%q was written as %q, want it unchanged", in, out.String())
		}
	}
}

func TestChooseFormat(t *testing.T) {
	tests := []struct {
		word              string
		terminal, noColor bool
		want              Format
	}{
		{"auto", false, false, JSON},
		{"auto", true, false, Color},
		{"auto", true, true, Text},
		{"json", true, false, JSON},
		{"text", false, false, Text},
		{"text", true, true, Text},
		{"text", true, false, Color},
	}
	for _, tt := range tests {
		if got := ChooseFormat(tt.word, tt.terminal, tt.noColor); got != tt.want {
			t.Errorf("ChooseFormat(%q, %v, %v) = %d, want %d", tt.word, tt.terminal, tt.noColor, got, tt.want)
		}
	}
}

func TestRoot_SetFilter_ExistingLoggers(t *testing.T) {
	var out bytes.Buffer
	r := New(&out, JSON, mustFilter(t, "info"))
	engine, io := r.Target(Engine), r.Target(IO).With("worker", 1)
	engine.Trace().Msg("no 1")
	r.SetFilter(mustFilter(t, "vllm_vcr::engine=trace,off"))
	engine.Trace().Msg("yes 1")
	io.Error().Msg("no 2")
	r.Target(IO).Error().Msg("no 3")
	r.SetFilter(mustFilter(t, "error"))
	engine.Warn().Msg("no 4")
	io.Error().Msg("yes 2")
	if got := r.Filter().String(); got != "error" {
		t.Errorf("filter = %q, want error", got)
	}
	mustClose(t, r)

	var got []string
	for line := range strings.Lines(out.String()) {
		var l struct{ Message string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		got = append(got, l.Message)
	}
	if diff := cmp.Diff([]string{"yes 1", "yes 2"}, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestLogger_Levels(t *testing.T) {
	var out bytes.Buffer
	r := New(&out, JSON, mustFilter(t, "warn"))
	l := r.Target(Process)
	for _, e := range []*zerolog.Event{l.Error(), l.Warn()} {
		if e == nil {
			t.Error("a line at or above warn is off")
		}
		e.Send()
	}
	for _, e := range []*zerolog.Event{l.Info(), l.Debug(), l.Trace()} {
		if e != nil {
			t.Error("a line below warn is on")
		}
	}
	if l.On(zerolog.InfoLevel) || !l.On(zerolog.ErrorLevel) {
		t.Error("On does not agree with the filter")
	}
	mustClose(t, r)
}

func TestNop(t *testing.T) {
	if e := Nop().With("a", 1).Error(); e != nil {
		t.Error("a line of Nop is on")
	}
}

// Nobody reads the pipe: callers go on, what does not fit is counted, and a reader that comes late gets whole lines.
func TestRoot_FullPipe(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r := New(writer, JSON, mustFilter(t, "info"))
	const lines = 30_000
	l := r.Target(Process)
	for i := range lines {
		l.Info().Int("i", i).Str("pad", strings.Repeat("x", 100)).Msg("line")
	}
	if r.Dropped() == 0 {
		t.Error("no line was dropped, the test does not test what it says")
	}

	read := make(chan int)
	go func() {
		all, _ := io.ReadAll(reader) // ends at the writer's Close
		read <- bytes.Count(all, []byte("}\n"))
	}()
	mustClose(t, r)
	if err := writer.Close(); err != nil {
		t.Error(err)
	}
	if got := <-read + int(r.Dropped()); got != lines {
		t.Errorf("lines read and dropped = %d, want %d", got, lines)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
}

// stuckWriter blocks until release is closed.
type stuckWriter struct{ release chan struct{} }

func (w stuckWriter) Write(p []byte) (int, error) { <-w.release; return len(p), nil }

func TestRoot_Close_NobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := stuckWriter{make(chan struct{})}
		r := New(w, JSON, mustFilter(t, "info"))
		r.Target(Process).Info().Msg("one")
		r.Target(Process).Info().Msg("two")
		start := time.Now()
		if err := r.Close(); err == nil || !strings.Contains(err.Error(), "nobody reads") {
			t.Errorf("error = %v, want one that says that nobody reads", err)
		}
		if took := time.Since(start); took != closeGrace {
			t.Errorf("Close took %v, want %v", took, closeGrace)
		}
		close(w.release)
		mustClose(t, r)
		r.Target(Process).Info().Msg("late")
		if got := r.Dropped(); got != 1 {
			t.Errorf("dropped = %d, want 1", got)
		}
	})
}

func TestQueue_BytesAreLimited(t *testing.T) {
	w := stuckWriter{make(chan struct{})}
	q := newQueue(w)
	huge := make([]byte, queueBytes/2+1)
	for range 10 {
		if _, err := q.Write(huge); err != nil {
			t.Error(err)
		}
	}
	if got := q.dropped.Load(); got < 8 { // one may be with the writer already
		t.Errorf("dropped = %d of 10, want at least 8", got)
	}
	close(w.release)
	if err := q.close(); err != nil {
		t.Error(err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestRoot_BrokenWriter(t *testing.T) {
	for _, format := range []Format{JSON, Text} {
		r := New(brokenWriter{}, format, mustFilter(t, "info"))
		r.Target(Process).Info().Msg("x")
		mustClose(t, r)
		if got := r.Dropped(); got != 1 {
			t.Errorf("dropped = %d, want 1", got)
		}
	}
}

func TestRoot_Concurrent(t *testing.T) {
	var out bytes.Buffer
	r := New(&out, JSON, mustFilter(t, "info"))
	filters := []Filter{mustFilter(t, "off"), mustFilter(t, "vllm_vcr=debug"), mustFilter(t, "info")}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			l := r.Target(Engine).With("worker", i)
			for j := range 500 {
				l.Info().Int("j", j).Msg("line")
				r.SetFilter(filters[j%len(filters)])
				_ = r.Filter().String() // read beside the writes, for the race detector
			}
		})
	}
	wg.Wait()
	mustClose(t, r)
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Fatalf("line %q is not whole", line)
		}
	}
}

func BenchmarkLogger_Off(b *testing.B) {
	r := New(io.Discard, JSON, Filter{})
	l := r.Target(Engine)
	b.ReportAllocs()
	for b.Loop() {
		l.Trace().Int("step", 1).Msg("step")
	}
	if err := r.Close(); err != nil {
		b.Error(err)
	}
}

func BenchmarkLogger_On(b *testing.B) {
	f, _ := ParseFilter("trace") // a constant that parses
	r := New(io.Discard, JSON, f)
	l := r.Target(Engine).With("worker", 1)
	b.ReportAllocs()
	for b.Loop() {
		l.Trace().Int("step", 1).Msg("step")
	}
	if err := r.Close(); err != nil {
		b.Error(err)
	}
}
