package frontend

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"vllm-vcr/protocol/enginecore"
)

// exchange is a call that one of vLLM's servers answered, and what the engine behind it said.
type exchange struct {
	Name, Method, Path string
	Headers            map[string]string
	Body               json.RawMessage
	Engine             []engineOutput
	Status             int
	Answer             string
}

type engineOutput struct {
	Dead           bool
	Stream         int
	Tokens         []uint32
	Logprobs       *engineLogprobs
	PromptLogprobs *engineLogprobs `json:"prompt_logprobs"`
	Finish         enginecore.FinishReason
	Stop           any
	Cached         *uint64
	Created        uint64
	KVTransfer     map[string]any           `json:"kv_transfer"`
	Error          *enginecore.RequestError `json:"error"`
}

type engineLogprobs struct {
	Width         int
	Tokens, Ranks []uint32
	Values        []float32
}

// sets are the recorded servers.
var sets = []string{"0.33.0-python", "0.27.1-python"}

// TestExchanges has a server answer what vLLM's servers were asked, over engines that say the same, and compares the answers field
// by field. docs/differences.md lists what may differ; a row that nothing needs is an error too.
func TestExchanges(t *testing.T) {
	rules := readRules(t)
	for _, set := range sets {
		t.Run(set, func(t *testing.T) {
			player := &player{}
			a := start(t, player.engines(), func(o *Options) { o.Models = []string{"tiny"}; o.Version = versionOf(t, set) })
			for _, x := range readExchanges(t, set) {
				player.next(t, &x)
				var headers []string
				for name, value := range x.Headers {
					headers = append(headers, name+": "+value)
				}
				body := ""
				if string(x.Body) != "null" {
					body = string(x.Body)
				}
				got := flat(a.call(x.Method, x.Path, body, headers...).result())
				want := flat(result{x.Status, x.Answer})
				for field := range union(got, want) {
					if got[field] != want[field] && !rules.allow(set, x.Name, field) {
						t.Errorf("%s: %s = %s, want %s", x.Name, field, text(got[field]), text(want[field]))
					}
				}
			}
		})
	}
	for _, r := range rules {
		if !r.used {
			t.Errorf("docs/differences.md: no exchange needs the row %s | %s | %s", r.set, r.exchange, r.field)
		}
	}
}

func text(v string) string {
	if v == "" {
		return "nothing"
	}
	return v
}

func union(a, b map[string]string) map[string]bool {
	all := map[string]bool{}
	for key := range a {
		all[key] = true
	}
	for key := range b {
		all[key] = true
	}
	return all
}

func versionOf(t *testing.T, set string) enginecore.Version {
	t.Helper()
	number, _, _ := strings.Cut(set, "-")
	v, err := enginecore.ParseVersion(number)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func readExchanges(t *testing.T, set string) []exchange {
	t.Helper()
	file, err := os.ReadFile("testdata/exchanges-" + set + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var list []exchange
	for line := range bytes.Lines(file) {
		var x exchange
		if err := json.Unmarshal(line, &x); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		list = append(list, x)
	}
	return list
}

// rule is a row of docs/differences.md: what may differ. Each column but the last is a pattern.
type rule struct {
	set, exchange, field string
	used                 bool
}

type rules []*rule

func readRules(t *testing.T) rules {
	t.Helper()
	file, err := os.Open("../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var list rules
	for lines := bufio.NewScanner(file); lines.Scan(); {
		cells := strings.Split(lines.Text(), "|")
		if len(cells) != 6 || !strings.Contains(cells[1], "`") {
			continue
		}
		clean := func(i int) string { return strings.Trim(strings.TrimSpace(cells[i]), "`") }
		list = append(list, &rule{set: clean(1), exchange: clean(2), field: clean(3)})
	}
	return list
}

// allow says whether a difference is listed.
func (l rules) allow(set, exchange, field string) bool {
	for _, r := range l {
		if like(r.set, set) && like(r.exchange, exchange) && matches(r.field, field) {
			r.used = true
			return true
		}
	}
	return false
}

// matches takes a * for any part between two dots or for a piece of it, and ** at the end for any rest.
func matches(pattern, text string) bool {
	if start, ok := strings.CutSuffix(pattern, "**"); ok {
		if start == "" {
			return true
		}
		for parts := strings.Split(text, "."); len(parts) > 0; parts = parts[:len(parts)-1] {
			if matches(strings.TrimSuffix(start, "."), strings.Join(parts, ".")) {
				return true
			}
		}
		return false
	}
	return like(strings.ReplaceAll(pattern, ".", "/"), strings.ReplaceAll(text, ".", "/"))
}

func like(pattern, text string) bool {
	ok, err := path.Match(pattern, text)
	return err == nil && ok
}

// result is an answer as it is compared.
type result struct {
	status int
	body   string
}

func (r reply) result() result { return result{r.status, r.body} }

// flat is an answer as a map from the path of a value to its JSON. Events are numbered.
func flat(r result) map[string]string {
	m := map[string]string{"status": fmt.Sprint(r.status)}
	if strings.HasPrefix(r.body, "data: ") {
		events := strings.Split(strings.TrimSpace(r.body), "\n\n")
		m["events"] = fmt.Sprint(len(events))
		for i, e := range events {
			flatten(m, fmt.Sprintf("events.%d", i), strings.TrimPrefix(e, "data: "))
		}
		return m
	}
	flatten(m, "body", r.body)
	return m
}

func flatten(m map[string]string, at, text string) {
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		m[at] = text
		return
	}
	walk(m, at, v)
}

func walk(m map[string]string, at string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			walk(m, at+"."+strings.ReplaceAll(key, ".", "_"), v[key])
		}
		if len(v) == 0 {
			m[at] = "{}"
		}
	case []any:
		for i, each := range v {
			walk(m, fmt.Sprintf("%s.%d", at, i), each)
		}
		if len(v) == 0 {
			m[at] = "[]"
		}
	default:
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(v) // it was decoded
		m[at] = steady(at, strings.TrimSpace(b.String()))
	}
}

var (
	randomDigits = regexp.MustCompile(`[0-9a-f]{16}`)
	configDigits = regexp.MustCompile(`^("vllm-[0-9.]+-)[0-9a-f]{8}"$`)
)

// steady replaces what differs from call to call.
func steady(at, value string) string {
	if strings.HasSuffix(at, ".created") || strings.HasSuffix(at, ".created_at") {
		return "time"
	}
	value = configDigits.ReplaceAllString(value, `$1#"`)
	return randomDigits.ReplaceAllString(value, "#")
}

// player is engines that say what the engine of an exchange said.
type player struct {
	steps   []step
	dead    atomic.Bool
	loaded  []enginecore.LoRARequest
	current *exchange
}

func (p *player) next(t *testing.T, x *exchange) {
	t.Helper()
	p.current, p.steps = x, nil
	for i := range x.Engine {
		p.steps = append(p.steps, x.Engine[i].step(t))
	}
	p.dead.Store(strings.HasSuffix(x.Name, "_after_dead"))
	p.loaded = []enginecore.LoRARequest{{Name: "lora1", ID: 1, Path: "/var/data/model/lora1"}}
}
