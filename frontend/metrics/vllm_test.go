package metrics

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// family is what an exposition says of one, besides values.
type family struct {
	Type, Help string
	Labels     []string // of any series, sorted; without le and quantile
	Buckets    []string // upper bounds in the shortest form
}

var sample = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? \S+$`)
var label = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"`)

// parse reads an exposition of Python's, Rust's or Go's library. Rust's leaves _total out of a counter's name.
func parse(t *testing.T, text string, rust bool) map[string]*family {
	t.Helper()
	all := map[string]*family{}
	names := map[string]string{} // the family of a sample's name
	of := func(name string) *family {
		if all[name] == nil {
			all[name] = &family{}
		}
		return all[name]
	}
	help := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		words := strings.SplitN(line, " ", 4)
		switch {
		case strings.HasPrefix(line, "# HELP "):
			help[words[2]] = words[3]
		case strings.HasPrefix(line, "# TYPE "):
			name := words[2]
			text := help[name]
			if rust && words[3] == "counter" {
				name += "_total"
			}
			f := of(name)
			f.Type, f.Help = words[3], text
			for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
				names[name+suffix] = name
			}
		case line != "" && !strings.HasPrefix(line, "#"):
			m := sample.FindStringSubmatch(line)
			if m == nil {
				t.Fatalf("no sample: %q", line)
			}
			of(names[m[1]]).sample(m[2])
		}
	}
	return all
}

// sample enters the labels of one.
func (f *family) sample(labels string) {
	f.Labels = f.Labels[:0]
	for _, m := range label.FindAllStringSubmatch(labels, -1) {
		if m[1] != "le" {
			f.Labels = append(f.Labels, m[1])
			continue
		}
		if bound := strings.TrimSuffix(m[2], ".0"); !slices.Contains(f.Buckets, bound) {
			f.Buckets = append(f.Buckets, bound)
		}
	}
	slices.Sort(f.Labels)
}

// difference names families of one captured exposition that ours doesn't have, or has otherwise, on purpose.
type difference struct {
	file    string
	rust    bool
	absent  []string // whole prefixes
	changed map[string]string
}

// python are the prefixes that only its library or its runtime makes.
var python = []string{"python_"}

var rustOnly = []string{
	"vllm:spec_decode_", "vllm:kv_block_", "vllm:mooncake_", "vllm:nixl_", "vllm:corrupted_requests", "vllm:rl_weight_update_",
}

// The names, types, help texts, labels and buckets are vLLM's, but for what is listed here and in docs/metrics.md.
func TestMetrics_AsVLLM(t *testing.T) {
	m := New(Options{Model: "tiny", Engines: 1})
	m.Joined(0, registration())
	m.HTTP(Exchange{Route: "/v1/completions", Method: "POST", Status: 200})
	ours := parse(t, expose(t, m), false)
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []difference{
		{file: "0.33.0-python", absent: python},
		{file: "0.27.1-python", absent: python, changed: map[string]string{"vllm:cache_config_info": "labels"}},
		{file: "0.33.0-rust", rust: true, absent: rustOnly, changed: rustHelp},
		{file: "0.27.1-rust", rust: true, absent: rustOnly, changed: both(rustHelp, rust27)},
	} {
		t.Run(d.file, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("testdata", d.file+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			d.compare(t, parse(t, string(b), d.rust), ours, string(doc))
		})
	}
}

// Nothing is shown that vLLM's newest server doesn't know, but for what Go's library tells of the process.
func TestMetrics_NothingElse(t *testing.T) {
	m := New(Options{Model: "tiny", Engines: 1})
	m.Joined(0, registration())
	m.HTTP(Exchange{Route: "/v1/completions", Method: "POST", Status: 200})
	b, err := os.ReadFile(filepath.Join("testdata", "0.33.0-python.txt"))
	if err != nil {
		t.Fatal(err)
	}
	theirs := parse(t, string(b), false)
	var extra []string
	for name := range parse(t, expose(t, m), false) {
		if theirs[name] == nil && !strings.HasPrefix(name, "process_") && !strings.HasPrefix(name, "go_") {
			extra = append(extra, name)
		}
	}
	if len(extra) > 0 {
		t.Errorf("families that vLLM doesn't have: %q", extra)
	}
}

// rustHelp are the families whose help text differs between vLLM's two servers; ours is Python's.
var rustHelp = map[string]string{
	"vllm:iteration_tokens_total":         "help",
	"vllm:num_preemptions_total":          "help",
	"vllm:prompt_tokens_cached_total":     "help",
	"http_requests_total":                 "help",
	"http_request_duration_seconds":       "help",
	"http_request_duration_highr_seconds": "help",
}

// rust27 is what else differs in 0.27.1: buckets for a length that no model had.
var rust27 = map[string]string{
	"vllm:request_generation_tokens":          "buckets",
	"vllm:request_max_num_generation_tokens":  "buckets",
	"vllm:request_params_max_tokens":          "buckets",
	"vllm:request_prefill_kv_computed_tokens": "buckets",
	"vllm:request_prompt_tokens":              "buckets",
}

func both(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func (d *difference) compare(t *testing.T, theirs, ours map[string]*family, doc string) {
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		want, got := theirs[name], ours[name]
		switch {
		case strings.HasSuffix(name, "_created"): // see the document
		case slices.ContainsFunc(d.absent, func(p string) bool { return strings.HasPrefix(name, p) }):
			if got != nil {
				t.Errorf("%s is listed as absent", name)
			}
		case got == nil:
			t.Errorf("%s is missing", name)
		default:
			d.compareOne(t, name, *want, *got)
		}
	}
	for _, name := range slices.Concat(d.absent, slices.Collect(maps.Keys(d.changed))) {
		if !strings.Contains(doc, name) {
			t.Errorf("docs/metrics.md doesn't tell of %s", name)
		}
	}
}

func (d *difference) compareOne(t *testing.T, name string, want, got family) {
	if d.rust { // whose library ends every help text with a stop of its own
		want.Help, got.Help = strings.TrimRight(want.Help, "."), strings.TrimRight(got.Help, ".")
	}
	switch d.changed[name] {
	case "buckets":
		if cmp.Equal(want.Buckets, got.Buckets) {
			t.Errorf("%s: the buckets are listed as others", name)
		}
		got.Buckets = want.Buckets
	case "help":
		if want.Help == got.Help {
			t.Errorf("%s: the help text is listed as another one", name)
		}
		got.Help = want.Help
	case "labels":
		if cmp.Equal(want.Labels, got.Labels) {
			t.Errorf("%s: the labels are listed as others", name)
		}
		got.Labels = want.Labels
	}
	if len(want.Labels) == 0 && len(want.Buckets) == 0 { // without a series it shows neither
		got.Labels, got.Buckets = want.Labels, want.Buckets
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-vLLM +ours):\n%s", name, diff)
	}
}
