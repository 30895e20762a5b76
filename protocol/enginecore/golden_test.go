package enginecore

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// golden is one message of testdata/golden: captured between a real frontend and an engine, or made by vLLM's own structs.
type golden struct {
	Name      string          `json:"name"`
	VLLM      string          `json:"vllm_version"`
	Direction string          `json:"direction"`
	Socket    string          `json:"socket"`
	Hex       []string        `json:"frames_hex"`
	Decoded   json.RawMessage `json:"decoded"`

	frames [][]byte
}

const goldenCount = 979

// check tests one golden; kinds names the check for each kind of message.
type check func(t *testing.T, g *golden)

var kinds = map[string]check{
	"add":             checkAdd,
	"abort":           checkAbort,
	"start wave":      checkStartWave,
	"utility":         checkUtility,
	"init":            checkInit,
	"hello":           checkHello,
	"ready response":  checkReady,
	"outputs":         checkOutputs,
	"dead":            checkLiteral(EngineCoreDead),
	"coordinator go":  checkLiteral(CoordinatorReady),
	"subscribe (raw)": checkLiteral("\x01"),
}

func TestGoldens(t *testing.T) {
	passed := map[string]int{}
	all := goldens(t)
	for _, g := range all {
		kind := g.kind()
		check, known := kinds[kind]
		if !known {
			t.Errorf("%s: unclassified: %s on %s, %d frames", g.Name, g.Direction, g.Socket, len(g.frames))
			continue
		}
		if t.Run(g.Name, func(t *testing.T) { check(t, &g) }) {
			passed[kind]++
		}
	}
	sum := 0
	for kind := range kinds {
		sum += passed[kind]
		t.Logf("%-16s %3d passed", kind, passed[kind])
		if passed[kind] == 0 {
			t.Errorf("no golden of kind %q passed", kind)
		}
	}
	t.Logf("%d goldens, %d passed", len(all), sum)
	if len(all) != goldenCount {
		t.Errorf("goldens = %d, want %d", len(all), goldenCount)
	}
}

func (g *golden) kind() string {
	first := g.frames[0]
	switch g.Direction {
	case "frontend->engine":
		if strings.HasPrefix(g.Socket, "handshake") {
			return "init"
		}
		return map[byte]string{FrameAdd: "add", FrameAbort: "abort", FrameUtility: "utility"}[first[0]]
	case "coordinator->engine":
		if len(g.frames) == 1 {
			return "coordinator go"
		}
		return map[byte]string{FrameStartWave: "start wave"}[first[0]]
	case "engine->coordinator":
		if strings.HasPrefix(g.Socket, "coordinator_input") {
			return "subscribe (raw)"
		}
		return "outputs"
	case "engine->frontend":
		return g.fromEngine()
	}
	return ""
}

func (g *golden) fromEngine() string {
	switch {
	case string(g.frames[0]) == EngineCoreDead:
		return "dead"
	case strings.HasPrefix(g.Socket, "handshake"):
		return "hello"
	case strings.HasPrefix(g.Socket, "data input"):
		return "ready response"
	case strings.HasPrefix(g.Socket, "data output"):
		return "outputs"
	}
	return ""
}

// goldens reads all of testdata/golden.
func goldens(t testing.TB) []golden {
	t.Helper()
	files, err := filepath.Glob("testdata/golden/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var all []golden
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(bytes.NewReader(data))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			all = append(all, parseGolden(t, lines.Bytes()))
		}
		if err := lines.Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return all
}

func parseGolden(t testing.TB, line []byte) golden {
	t.Helper()
	var g golden
	if err := json.Unmarshal(line, &g); err != nil {
		t.Fatal(err)
	}
	for _, h := range g.Hex {
		frame, err := hex.DecodeString(h)
		if err != nil {
			t.Fatalf("%s: %v", g.Name, err)
		}
		g.frames = append(g.frames, frame)
	}
	return g
}

// goldenNamed is the payload of one golden, without its type byte.
func goldenNamed(t testing.TB, name string) []byte {
	t.Helper()
	all := goldens(t)
	i := slices.IndexFunc(all, func(g golden) bool { return g.Name == name })
	if i < 0 {
		t.Fatalf("no golden named %q", name)
	}
	return all[i].payload()
}

func (g *golden) payload() []byte {
	if len(g.frames) > 1 && len(g.frames[0]) == 1 {
		return g.frames[1]
	}
	return g.frames[0]
}

func (g *golden) version(t *testing.T) Version {
	t.Helper()
	v, err := ParseVersion(g.VLLM)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func sameBytes(t *testing.T, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("encoded again:\n got %x\nwant %x", got, want)
	}
}

func sameValue(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("value differs (-want +got):\n%s", diff)
	}
}

func checkLiteral(want string) check {
	return func(t *testing.T, g *golden) {
		if len(g.frames) != 1 || string(g.frames[0]) != want {
			t.Errorf("frames = %q, want one of %q", g.frames, want)
		}
	}
}
