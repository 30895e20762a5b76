package config

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vllm-vcr/protocol/enginecore"
)

var update = flag.Bool("update", false, "rewrite testdata/options.txt")

// TestOptions_Table compares the whole table with testdata/options.txt, so that no name or default changes unnoticed.
func TestOptions_Table(t *testing.T) {
	var got strings.Builder
	c := Default()
	for _, o := range Options() {
		v := o.Value(&c)
		fmt.Fprintf(&got, "--%s\n  group    %s\n  env      %s\n  type     %s\n  default  %q\n  allowed  %s\n  live     %t\n  timing   %t\n",
			o.Flag, o.Group, o.Env, v.Type(), v.String(), v.Allowed(), o.Live, o.Timing)
	}
	const path = "testdata/options.txt"
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("the table differs from %s; if that is meant, run go test ./config -update (-want +got):\n%s", path, diff)
	}
}

const (
	uintMax  = "18446744073709551615"
	uintOver = "18446744073709551616"
)

// values has the texts that an option takes, both ends of its range among them, and some that it doesn't.
type values struct{ good, bad []string }

func numbers(min, max, over string) values {
	v := values{good: []string{min, max}, bad: []string{over, "-1", "1.5", "1e3", "0x10", "", "many", " 1"}}
	if min != "0" {
		v.bad = append(v.bad, "0")
	}
	return v
}

func anyText() values { return values{good: []string{"", "/a/b c", "é"}, bad: []string{"\xff"}} }

func switches() values {
	return values{good: []string{"true", "false", "1", "0"}, bad: []string{"", "yes", "TRUE", "2"}}
}

// optionValues has an entry for every option.
var optionValues = map[string]values{
	"handshake-address": {
		good: []string{"tcp://127.0.0.1:1", "tcp://host.example:65535", "tcp://[::1]:29550", "ipc:///run/a", "ipc://relative",
			"ipc://" + strings.Repeat("p", 107)},
		bad: []string{"", "127.0.0.1:29550", "tcp://", "tcp://host", "tcp://:29550", "tcp://*:29550", "tcp://h:0", "tcp://h:65536",
			"tcp://h:x", "tcp://h:+1", "tcp://::1:5", "udp://h:1", "inproc://a", "ipc://", "ipc://*", "ipc://@name", "ipc://a\x00b",
			"ipc://" + strings.Repeat("p", 108), "tcp://\xff:1"},
	},
	"engine-count":             numbers("1", "65536", "65537"),
	"data-parallel-start-rank": numbers("0", "65535", "65536"),
	"vllm-version":             {good: []string{"0.25", "0.33", "v0.27.1", "0.32.0"}, bad: []string{"", "0.24", "0.34", "1.0", "latest", "v", "0.025"}},
	"engine-id":                anyText(),
	"on-frontend-loss":         {good: []string{"reconnect", "exit"}, bad: []string{"", "Exit", "retry"}},

	"output-token-chunk-size": numbers("1", "4096", "4097"),
	"vocab-size":              numbers("1", "4294967295", "4294967296"),
	"seed":                    numbers("0", uintMax, uintOver),
	"tokens-per-block":        numbers("1", "4294967295", "4294967296"),
	"kv-cache-size":           numbers("1", "4294967295", "4294967296"),
	"max-model-len":           numbers("0", uintMax, uintOver),

	"max-num-seqs":                 numbers("1", uintMax, uintOver),
	"max-num-batched-tokens":       numbers("1", uintMax, uintOver),
	"long-prefill-token-threshold": numbers("0", uintMax, uintOver),
	"host":                         {good: []string{"0.0.0.0", "::", "example.test"}},
	"port":                         numbers("0", "65535", "65536"),
	"model":                        {good: []string{"Qwen/Qwen3-32B"}, bad: []string{"", " ", "a\nb", "\xff"}},
	"served-model-name":            {good: []string{"", "a", "a,b"}, bad: []string{",", "a,,b", " a"}},
	"api-key":                      {good: []string{"", "secret", "one,two"}, bad: []string{"one,", "a\rb"}},
	"max-new-tokens":               numbers("0", "2147483647", "2147483648"),
	"max-logprobs":                 numbers("0", "131072", "131073"),
	"max-body-size":                numbers("1", "1073741824", "1073741825"),
	"enable-request-id-headers":    {good: []string{"true", "false"}, bad: []string{"", "yes"}},
	"max-loras":                    numbers("0", "4294967295", "4294967296"),
	"token-source":                 {good: []string{"text", "random", "echo"}, bad: []string{"", "Text", "prose"}},
	"scheduling-policy":            {good: []string{"fcfs", "priority"}, bad: []string{"", "FCFS", "lifo"}},

	"time-to-first-token":         numbers("0", uintMax, uintOver),
	"time-to-first-token-std-dev": numbers("0", uintMax, uintOver),
	"inter-token-latency":         numbers("0", uintMax, uintOver),
	"inter-token-latency-std-dev": numbers("0", uintMax, uintOver),
	"prefill-overhead":            numbers("0", uintMax, uintOver),
	"prefill-time-per-token":      numbers("0", uintMax, uintOver),
	"prefill-time-std-dev":        numbers("0", uintMax, uintOver),
	"time-factor-under-load":      {good: []string{"1", "1.0", "2.5", "1e308"}, bad: []string{"0.999", "0", "-1", "inf", "NaN", "1e999", "", "x"}},
	"latency-trace":               anyText(),
	"expect-config-hash":          anyText(),
	"time-scale":                  {good: []string{"5e-324", "0.5", "1", "1e308"}, bad: []string{"0", "-0", "-1", "inf", "+Inf", "nan", "1e999", "", "fast"}},
	"step-granularity":            {good: []string{"0", "0s", "100us", "100µs", "1s"}, bad: []string{"-1ns", "1.000000001s", "100", "", "soon"}},

	"failure-injection-rate": {good: []string{"0", "0.25", "1", "-0"}, bad: []string{"-0.1", "1.0000001", "nan", "inf", "", "50%"}},
	"failure-types":          {good: []string{"error", "error,length,repetition,error"}, bad: []string{"", "error,", ",", "Error", "error, length", "stop"}},

	"control-address": {
		good: []string{"", "127.0.0.1:0", "0.0.0.0:8001", "[::1]:65535", ":8001", "localhost:1", "unix:/run/s", "unix:8001", "unix:/" + strings.Repeat("x", 106)},
		bad:  []string{"unix:", "unix:run/s", "unix:@s", "unix:/a\x00b", "unix:/" + strings.Repeat("x", 107), "8001", "127.0.0.1", "h:65536", "h:-1", "h:http", "h:01", "::1:8001", "http://h:1"},
	},
	"control-timeout":      numbers("1", "86400", "86401"),
	"request-journal":      numbers("0", "65536", "65537"),
	"control-token-file":   anyText(),
	"control-ssl-certfile": anyText(),
	"control-ssl-keyfile":  anyText(),
	"ssl-certfile":         anyText(),
	"ssl-keyfile":          anyText(),

	"startup-timeout":  numbers("0", "4294967296", "4294967297"),
	"shutdown-timeout": numbers("0", "4294967296", "4294967297"),
	"restart":          {good: []string{"never", "on-failure"}, bad: []string{"", "always", "on_failure"}},
	"announce-death":   switches(),
	"log-requests":     switches(),
	"log-format":       {good: []string{"auto", "json", "text"}, bad: []string{"", "xml", "JSON"}},
}

func TestOptions_Values(t *testing.T) {
	for _, o := range Options() {
		t.Run(o.Flag, func(t *testing.T) {
			cases, ok := optionValues[o.Flag]
			if !ok {
				t.Fatal("no values to try: add some to optionValues")
			}
			for _, text := range cases.good {
				if err := try(o, text); err != nil {
					t.Errorf("%q: %v", text, err)
				}
			}
			for _, text := range cases.bad {
				err := try(o, text)
				if err == nil {
					t.Errorf("%q is accepted", text)
					continue
				}
				if !strings.Contains(err.Error(), "want ") {
					t.Errorf("%q: error %q does not say what is wanted", text, err)
				}
			}
		})
	}
}

// try sets an option as the command line does.
func try(o Option, text string) error {
	c := Default()
	v := o.Value(&c)
	if err := v.Set(text); err != nil {
		return err
	}
	return v.Check()
}

// TestOptions_StringSetsTheSame has what String and JSON print set the same value again.
func TestOptions_StringSetsTheSame(t *testing.T) {
	for _, o := range Options() {
		for _, text := range optionValues[o.Flag].good {
			var first, second, third Config
			if err := o.Value(&first).Set(text); err != nil {
				t.Fatalf("--%s %q: %v", o.Flag, text, err)
			}
			v := o.Value(&first)
			if err := o.Value(&second).Set(v.String()); err != nil {
				t.Errorf("--%s %q: Set(%q): %v", o.Flag, text, v.String(), err)
			}
			if err := o.Value(&third).SetJSON([]byte(v.JSON())); err != nil {
				t.Errorf("--%s %q: SetJSON(%s): %v", o.Flag, text, v.JSON(), err)
			}
			if diff := cmp.Diff([]Config{first, first}, []Config{second, third}); diff != "" {
				t.Errorf("--%s %q comes back different (-want +got):\n%s", o.Flag, text, diff)
			}
		}
	}
}

// TestOptions_CoverConfig holds table, struct and JSON together: every field has exactly one option, which points to it and
// whose key is the field's JSON name; the fields of Live are the live options.
func TestOptions_CoverConfig(t *testing.T) {
	var c Config
	owner := map[uintptr]Option{}
	flags, envs := map[string]bool{}, map[string]bool{}
	for _, o := range Options() {
		p := reflect.ValueOf(o.Value(&c)).FieldByName("p").Pointer()
		if other, taken := owner[p]; taken {
			t.Errorf("--%s and --%s set the same field", other.Flag, o.Flag)
		}
		if flags[o.Flag] || envs[o.Env] {
			t.Errorf("--%s [%s]: the name is taken", o.Flag, o.Env)
		}
		if o.Help == "" || o.Group == "" || o.Env == "" {
			t.Errorf("--%s: group %q, env %q, help %q, want all three", o.Flag, o.Group, o.Env, o.Help)
		}
		owner[p], flags[o.Flag], envs[o.Env] = o, true, true
	}
	check := func(fields reflect.Value, live bool) {
		for i := range fields.NumField() {
			field := fields.Type().Field(i)
			if field.Anonymous {
				continue
			}
			o, ok := owner[fields.Field(i).Addr().Pointer()]
			if !ok {
				t.Errorf("%s: no option sets it", field.Name)
				continue
			}
			delete(owner, fields.Field(i).Addr().Pointer())
			if got := field.Tag.Get("json"); got != o.Key() {
				t.Errorf("%s: JSON name %q, want %q", field.Name, got, o.Key())
			}
			if o.Live != live {
				t.Errorf("--%s: live = %t, want %t", o.Flag, o.Live, live)
			}
		}
	}
	check(reflect.ValueOf(&c).Elem(), false)
	check(reflect.ValueOf(&c.OpenAI).Elem(), false)
	check(reflect.ValueOf(&c.Live).Elem(), true)
	for _, o := range owner {
		t.Errorf("--%s points outside the Config given to it", o.Flag)
	}
}

// TestOptions_Version keeps the words for the versions true.
func TestOptions_Version(t *testing.T) {
	var known []string
	for minor := range 100 {
		line := fmt.Sprintf("0.%d", minor)
		if _, err := enginecore.ParseVersion(line); err == nil {
			known = append(known, line)
		}
	}
	if want := strings.Join(known, ", "); !strings.Contains(allowedVersion, "one of "+want+",") {
		t.Errorf("allowed versions = %q, want all of %s", allowedVersion, want)
	}
}

func TestLiveOption(t *testing.T) {
	tests := []struct {
		key  string
		want bool
	}{
		{"max_num_seqs", true},
		{"MAX_NUM_SEQS", false},
		{"max-num-seqs", false},
		{"seed", false}, // only at start
		{"", false},
	}
	for _, tt := range tests {
		if o, ok := LiveOption(tt.key); ok != tt.want || ok && o.Key() != tt.key {
			t.Errorf("LiveOption(%q) = %q, %t, want %t", tt.key, o.Flag, ok, tt.want)
		}
	}
	if got := len(LiveKeys()); got != 14 {
		t.Errorf("live keys = %d, want 14", got)
	}
}

func TestWords_Append(t *testing.T) {
	c := Default()
	o, _ := LiveOption("failure_types")
	v := o.Value(&c)
	adder, ok := v.(interface{ Append(string) error })
	if !ok {
		t.Fatalf("%T has no Append", v)
	}
	if err := adder.Append("length,error"); err != nil {
		t.Fatal(err)
	}
	if got, want := v.String(), "error,length,error"; got != want {
		t.Errorf("after Append: %q, want %q", got, want)
	}
	if other := Default(); len(other.FailureTypes) != 1 {
		t.Errorf("default is now %q", other.FailureTypes)
	}
}
