package engine

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expected output of the scenarios")

// TestScenarios runs testdata/*.txt. A file is a list of blocks: commands, a line "----", and what they print. An
// engine lives as long as its file. Run with -update to rewrite the expected output, and read the diff.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScenario(t, file) })
	}
}

func runScenario(t *testing.T, file string) {
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := newScenario(t).play(string(want))
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("trace differs (-want +got):\n%s", diff)
	}
}

// scenario is an engine with a clock that is driven by hand, and the sink that writes down what it does.
type scenario struct {
	t      *testing.T
	cfg    Config
	engine *Engine
	now    Time
	full   map[uint32]bool
	faults map[string]*Fault
	quiet  bool
	out    bytes.Buffer
}

func newScenario(t *testing.T) *scenario {
	return &scenario{t: t, full: map[uint32]bool{}, faults: map[string]*Fault{}, cfg: testConfig()}
}

func testConfig() Config {
	return Config{
		ChunkSize: 1, Source: counting{}, TimeScale: 1, BlockSize: 4, Blocks: 10,
		Params: Params{LoadFactor: 1, MaxSeqs: 128, MaxBatchedTokens: 2048, FailureTypes: []Finish{Error}},
	}
}

// counting is a source that depends on all it may depend on.
type counting struct{}

func (counting) Token(seed, position uint64, _ []uint32) uint32 {
	return uint32(seed) + uint32(position)
}

func (s *scenario) play(text string) string {
	var result strings.Builder
	for i, block := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		commands, _, _ := strings.Cut(block, "----\n")
		commands = strings.TrimSuffix(commands, "----")
		if i > 0 {
			result.WriteString("\n")
		}
		result.WriteString(commands)
		if strings.HasPrefix(commands, "#") && !strings.Contains(block, "----") {
			result.WriteString("\n")
			continue
		}
		s.out.Reset()
		for line := range strings.Lines(commands) {
			s.command(strings.Fields(line))
		}
		result.WriteString("----\n" + s.out.String())
	}
	return result.String()
}

func (s *scenario) command(words []string) {
	if len(words) == 0 || words[0] == "#" {
		return
	}
	name, args := words[0], words[1:]
	if name == "config" {
		s.configure(args)
		return
	}
	if s.engine == nil {
		s.engine = New(s.cfg, s)
	}
	switch name {
	case "params":
		s.params(args)
	case "add":
		s.engine.Add(s.now, s.request(args))
	case "abort":
		s.engine.Abort(s.now, args)
	case "abort-client":
		s.engine.AbortClient(s.now, uint32(s.number(args[0])))
	case "abort-all":
		s.engine.AbortAll(s.now)
	case "drain":
		s.engine.Drain()
	case "slow":
		s.full[uint32(s.number(args[0]))] = true
	case "fast":
		delete(s.full, uint32(s.number(args[0])))
		s.engine.Release(uint32(s.number(args[0])))
	case "pause":
		mode := map[string]PauseMode{"abort": PauseAbort, "wait": PauseWait, "keep": PauseKeep}[args[0]]
		s.engine.Pause(s.now, mode, len(args) > 1 && args[1] == "refuse")
	case "resume":
		s.engine.Resume(s.now)
	case "arm":
		s.faults[args[0]] = s.fault(args[1:])
		s.engine.Arm(s.now, s.faults[args[0]])
	case "disarm":
		s.engine.Disarm(s.now, s.faults[args[0]])
	case "applied":
		for _, name := range slices.Sorted(maps.Keys(s.faults)) {
			s.print("%s: %d applied", name, s.faults[name].Applied)
		}
		s.print("faults %v, hung %v, crashed %v", s.engine.Counts().Faults, s.engine.Hung(), s.engine.Crashed())
	case "handshake":
		s.print("%v handshake late by %v", s.now, s.engine.Handshake(s.now))
	case "sleep": // the clock moves and nobody steps
		s.now += s.duration(args[0])
	case "step":
		s.step()
	case "run":
		s.run(s.duration(args[0]))
	case "load":
		running, waiting := s.adapters()
		s.print("running %v waiting %v skipped %d usage %.2f", running, waiting, s.engine.Skipped(), s.engine.Usage())
	case "counts":
		c := s.engine.Counts()
		s.print("received %d completed %d failed %d aborted %d merged %d running %d waiting %d idle %v",
			c.Received, c.Completed, c.Failed, c.Aborted, c.Merged, s.engine.Running(), s.engine.Waiting(), s.engine.Idle())
	default:
		s.t.Fatalf("unknown command %q", name)
	}
}

// adapters are how many requests run and wait with each.
func (s *scenario) adapters() (running, waiting map[string]uint64) {
	running, waiting = map[string]uint64{}, map[string]uint64{}
	for r, runs := range s.engine.Unfinished() {
		switch {
		case r.Adapter == "":
		case runs:
			running[r.Adapter]++
		default:
			waiting[r.Adapter]++
		}
	}
	return running, waiting
}

func (s *scenario) step() Time {
	next := s.engine.Step(s.now)
	if next == Never {
		s.print("  next: never")
	} else {
		s.print("  next: %v", next)
	}
	return next
}

// run steps the engine whenever it asks for it, as a process that is never late would.
func (s *scenario) run(d time.Duration) {
	end := s.now + d
	for next := s.engine.Step(s.now); next <= end; next = s.engine.Step(s.now) {
		s.now = next
	}
	s.now = end
}

func (s *scenario) configure(args []string) {
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "chunk":
			s.cfg.ChunkSize = s.number(value)
		case "grid":
			s.cfg.Granularity = s.duration(value)
		case "threshold":
			s.cfg.LongPrefillThreshold = s.number(value)
		case "priority":
			s.cfg.Priority = true
		case "scale":
			s.cfg.TimeScale = s.float(value)
		case "loras":
			s.cfg.MaxLoras = s.number(value)
		case "seed":
			s.cfg.Seed = s.number(value)
		default:
			s.t.Fatalf("unknown setting %q", key)
		}
	}
}

func (s *scenario) params(args []string) {
	p := s.engine.params.clone()
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "ttft":
			p.TTFT = s.duration(value)
		case "itl":
			p.ITL = s.duration(value)
		case "itl-dev":
			p.ITLStdDev = s.duration(value)
		case "overhead":
			p.PrefillOverhead = s.duration(value)
		case "per-token":
			p.PrefillPerToken = s.duration(value)
		case "load":
			p.LoadFactor = s.float(value)
		case "seqs":
			p.MaxSeqs = s.number(value)
		case "budget":
			p.MaxBatchedTokens = s.number(value)
		case "len":
			p.MaxModelLen = s.number(value)
		case "failures":
			p.FailureRate = s.float(value)
		case "types":
			p.FailureTypes = s.finishes(value)
		default:
			s.t.Fatalf("unknown parameter %q", key)
		}
	}
	s.engine.SetParams(*p)
}

func (s *scenario) request(args []string) *Request {
	r := &Request{ID: args[0], PromptTokens: 1, MaxTokens: 1}
	for _, arg := range args[1:] {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "prompt":
			r.PromptTokens = s.number(value)
		case "max":
			r.MaxTokens = s.number(value)
		case "client":
			r.Client = uint32(s.number(value))
		case "prio":
			r.Priority = int64(s.float(value))
		case "at":
			r.ArrivalTime = s.float(value)
		case "lora":
			r.Adapter = value
		case "stop":
			r.StopAfter = s.number(value)
		case "pooling":
			r.Pooling = true
		case "fault": // of its own: kind, and what it is told
			r.Own = own(r)
			r.Own.Fault = s.fault(strings.Split(value, ","))
		case "own": // ITL
			itl := s.duration(value)
			r.Own = own(r)
			r.Own.Adjust, r.Own.Gaps = func(p *Params) { p.ITL = itl }, true
		case "abort":
			r.AbortAtOnce = true
		default:
			s.t.Fatalf("unknown field %q", key)
		}
	}
	return r
}

func own(r *Request) *Own {
	if r.Own == nil {
		return &Own{}
	}
	return r.Own
}

var faultNames = []string{"error", "length", "repetition", "stall", "crash", "hang", "slow-handshake"}

// fault reads the kind and what is told of it.
func (s *scenario) fault(args []string) *Fault {
	f := &Fault{Kind: FaultKind(slices.Index(faultNames, args[0]))}
	for _, arg := range args[1:] {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "count":
			f.Count = s.number(value)
		case "for":
			f.Duration = s.duration(value)
		case "after":
			f.AfterTokens = s.number(value)
		case "delay":
			f.Delay = s.duration(value)
		case "at-once":
			f.AtOnce = true
		case "applied":
			f.Applied = s.number(value)
		default:
			s.t.Fatalf("unknown key %q of a fault", key)
		}
	}
	return f
}

var finishNames = map[Finish]string{NotFinished: "", Stop: " stop", Length: " length", Abort: " abort", Error: " error", Repetition: " repetition"}

func (s *scenario) Queued(r *Request) { s.print("%v %s queued", s.now, r.ID) }
func (s *scenario) Admit(r *Request)  { s.print("%v %s admitted", s.now, r.ID) }
func (s *scenario) End(r *Request, finish Finish, cause Cause) {
	causes := []string{"duplicate", "too long", "injected", "no sampling", "unknown adapter", "nothing to do", "aborted", "shutting down", "paused", "unreadable", "bad argument"}
	s.print("%v %s ends%s: %s", s.now, r.ID, finishNames[finish], causes[cause])
}

// Late is not part of a trace: the clock of a scenario stops nowhere.
func (s *scenario) Late(Time, int) {}

func (s *scenario) Full(client uint32) bool { return s.full[client] }
func (s *scenario) Chunk(r *Request, tokens []uint32, finish Finish, first bool) {
	mark := ""
	if first {
		mark = " first"
	}
	s.print("%v %s +%d%s%s", s.now, r.ID, len(tokens), mark, finishNames[finish])
}

func (s *scenario) print(format string, args ...any) {
	if !s.quiet {
		fmt.Fprintf(&s.out, format+"\n", args...)
	}
}

func (s *scenario) number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *scenario) float(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

func (s *scenario) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *scenario) finishes(text string) []Finish {
	var list []Finish
	for word := range strings.SplitSeq(text, ",") {
		for f, name := range finishNames {
			if name == " "+word {
				list = append(list, f)
			}
		}
	}
	return list
}
