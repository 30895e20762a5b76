package control

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vllm-vcr/config"
)

func TestDecodePatch(t *testing.T) {
	tests := []struct {
		body string
		want config.Patch
	}{
		{`{}`, nil},
		{" \t\r\n{ } \n", nil},
		{`{"max_num_seqs":4}`, config.Patch{{Key: "max_num_seqs", Raw: "4"}}},
		{`{ "max_num_seqs" : 4 , "log_requests" : true }`, config.Patch{{Key: "max_num_seqs", Raw: "4"}, {Key: "log_requests", Raw: "true"}}},
		{`{"inter_token_latency":18446744073709551615}`, config.Patch{{Key: "inter_token_latency", Raw: "18446744073709551615"}}},
		{`{"max_num_seqs":null,"failure_types":null,"log_requests":null,"failure_injection_rate":null}`, nil},
		{`{"failure_injection_rate":1}`, config.Patch{{Key: "failure_injection_rate", Raw: "1"}}},
		{`{"failure_injection_rate":1e-400}`, config.Patch{{Key: "failure_injection_rate", Raw: "1e-400"}}},
		{`{"failure_injection_rate":-0}`, config.Patch{{Key: "failure_injection_rate", Raw: "-0"}}},
		{`{"time_factor_under_load":2.5e0}`, config.Patch{{Key: "time_factor_under_load", Raw: "2.5e0"}}},
		{`{"max_model_len":0}`, config.Patch{{Key: "max_model_len", Raw: "0"}}},
		{`{"failure_types":["error","length","error"]}`, config.Patch{{Key: "failure_types", Raw: `["error","length","error"]`}}},
		{`{"max_num\u005fseqs":4}`, config.Patch{{Key: "max_num_seqs", Raw: "4"}}},
	}
	for _, tt := range tests {
		t.Run(tt.body, func(t *testing.T) {
			got, err := decodePatch([]byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodePatch_Refused(t *testing.T) {
	tests := []struct {
		body   string
		status int
		says   string
	}{
		// no JSON document
		{``, 400, "valid JSON"}, {` `, 400, "valid JSON"}, {`{`, 400, "valid JSON"}, {`{"max_num_seqs":`, 400, "valid JSON"},
		{`{} x`, 400, "valid JSON"}, {`{}{}`, 400, "valid JSON"}, {`{},`, 400, "valid JSON"},
		{`{"max_num_seqs":4,}`, 400, "valid JSON"}, {`{'max_num_seqs':4}`, 400, "valid JSON"}, {`{max_num_seqs:4}`, 400, "valid JSON"},
		{`{"max_num_seqs":05}`, 400, "valid JSON"}, {`{"max_num_seqs":+5}`, 400, "valid JSON"}, {`{"failure_injection_rate":.5}`, 400, "valid JSON"},
		{`{"failure_injection_rate":NaN}`, 400, "valid JSON"}, {`{"failure_injection_rate":Infinity}`, 400, "valid JSON"},
		{`{/**/}`, 400, "valid JSON"}, {"\ufeff{}", 400, "valid JSON"}, {"{}\x00", 400, "valid JSON"}, {"{\x00}", 400, "valid JSON"},
		{"{\"failure_types\":[\"\xff\"]}", 400, "UTF-8"}, {"{\"\xc3\x28\":1}", 400, "UTF-8"}, {"\xff\xfe{\x00}\x00", 400, "UTF-8"},
		{`{"failure_injection_rate":1e400}`, 400, "1e400"}, {`{"max_num_seqs":1e400}`, 400, "1e400"}, {`{"max_num_seqs":-1e999}`, 400, "-1e999"},
		{`{"bogus":[{"a":1e400}]}`, 400, "1e400"}, {`{"max_num_seqs":` + strings.Repeat("9", 400) + `}`, 400, "out of range"},
		{strings.Repeat("[", 100_000), 400, "valid JSON"}, {strings.Repeat(`{"a":`, 300_000), 400, "valid JSON"},
		{strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), 400, "valid JSON"},
		// another shape
		{`null`, 422, "object"}, {`4`, 422, "object"}, {`"x"`, 422, "object"}, {`true`, 422, "object"}, {`[]`, 422, "object"},
		{`[1,2,3,4,5,6,7,8,9,10,11,0,["error"],true]`, 422, "object"}, {strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000), 422, "object"},
		{`{"max_num_seqs":4,"max_num_seqs":5}`, 422, "twice"}, {`{"max_num_seqs":null,"max_num_seqs":5}`, 422, "twice"},
		{`{"max_num_seqs":4,"max_num\u005fseqs":5}`, 422, "twice"},
		{`{"MAX_NUM_SEQS":4}`, 422, `"MAX_NUM_SEQS": unknown key, the nearest one is "max_num_seqs"`},
		{`{"max_num_sequences":4}`, 422, `nearest one is "max_num_seqs"`}, {`{"ttft":4}`, 422, `"ttft"`}, {`{"":4}`, 422, `""`},
		{`{"inter_token_latncy":4}`, 422, `"inter_token_latency"`}, {`{"failure-types":[]}`, 422, `"failure_types"`},
		{`{"seed":1}`, 422, "seed: can only be set at start, with --seed"}, {`{"bogus":null}`, 422, `"bogus"`},
		{`{"` + strings.Repeat("k", 100_000) + `":1}`, 422, "unknown key"},
		{`{"max_num_seqs":5.0}`, 422, "5.0"}, {`{"max_num_seqs":1e2}`, 422, "1e2"}, {`{"max_num_seqs":-1}`, 422, "-1"}, {`{"max_num_seqs":-0}`, 422, "-0"},
		{`{"max_num_seqs":18446744073709551616}`, 422, "18446744073709551616"}, {`{"max_num_seqs":true}`, 422, "true"}, {`{"max_num_seqs":"5"}`, 422, `max_num_seqs: "5": want an integer`},
		{`{"max_num_seqs":[1]}`, 422, "[1]"}, {`{"max_num_seqs":{}}`, 422, "{}"}, {`{"inter_token_latency":1.5}`, 422, "inter_token_latency: 1.5"},
		{`{"failure_injection_rate":"x"}`, 422, `failure_injection_rate: "x"`}, {`{"failure_injection_rate":true}`, 422, "want a number"}, {`{"time_factor_under_load":[]}`, 422, "want a number"},
		{`{"failure_types":["bogus"]}`, 422, "bogus"}, {`{"failure_types":["Error"]}`, 422, "error, length, repetition"}, {`{"failure_types":[null]}`, 422, "element 0: null"},
		{`{"failure_types":"error"}`, 422, "list"}, {`{"failure_types":[1]}`, 422, "list"}, {`{"failure_types":{}}`, 422, "list"},
		{`{"log_requests":1}`, 422, "true or false"}, {`{"log_requests":"true"}`, 422, "true or false"},
		// the first fault of shape is the one that is told
		{`{"inter_token_latency":"a","bogus":1}`, 422, "inter_token_latency"}, {`{"bogus":1,"inter_token_latency":"a"}`, 422, "bogus"},
		{`{"failure_injection_rate":1.5,"max_num_seqs":"x"}`, 422, "max_num_seqs"},
		// out of range
		{`{"failure_injection_rate":1.5}`, 400, "failure_injection_rate: 1.5: want a number from 0 to 1"}, {`{"failure_injection_rate":-0.1}`, 400, "-0.1"},
		{`{"time_factor_under_load":0.5}`, 400, "time_factor_under_load: 0.5: want a number of at least 1"},
		{`{"failure_types":[]}`, 400, "failure_types: []: want at least one"},
		{`{"max_num_seqs":0}`, 400, "max_num_seqs: 0: want an integer from 1"}, {`{"max_num_batched_tokens":0}`, 400, "max_num_batched_tokens: 0"},
		{`{"max_num_seqs":0,"failure_types":[],"time_factor_under_load":0,"failure_injection_rate":2}`, 400,
			"failure_injection_rate: 2: want a number from 0 to 1; time_factor_under_load: 0: want a number of at least 1; " +
				"failure_types: []: want at least one of error, length, repetition; max_num_seqs: 0: want an integer from 1 to 18446744073709551615"},
		{`{"failure_types":["error"` + strings.Repeat(`,"error"`, 10_000) + `]}`, 400, "want at most 65536"},
	}
	for _, tt := range tests {
		t.Run(shorten(tt.body), func(t *testing.T) {
			_, err := decodePatch([]byte(tt.body))
			var f *fault
			if !errors.As(err, &f) {
				t.Fatalf("error = %v, want a fault", err)
			}
			if f.status != tt.status || !strings.Contains(f.text, tt.says) || len(f.text) > 1000 {
				t.Errorf("fault = %d %s, want %d with %q", f.status, f.text, tt.status, tt.says)
			}
		})
	}
}

// A body at the limit, full of keys or of numbers, is judged in time that grows with its length only.
func TestDecodePatch_Large(t *testing.T) {
	var keys strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&keys, `"k%d":1,`, i)
	}
	for name, body := range map[string]string{
		"keys":    "{" + strings.TrimSuffix(keys.String(), ",") + "}",
		"numbers": `{"max_num_seqs":[1` + strings.Repeat(",1", bodyLimit/2-100) + `]}`,
		"digits":  `{"max_num_seqs":0.` + strings.Repeat("1", bodyLimit-100) + `}`,
		"string":  `{"failure_types":["` + strings.Repeat(`\"`, bodyLimit/2-100) + `"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodePatch([]byte(body))
			if got := statusOf(err); got != 422 {
				t.Errorf("status = %d (%v), want 422", got, err)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	tests := []struct{ key, want string }{
		{"max_model_length", "max_model_len"},
		{"Time_To_First_Token", "time_to_first_token"},
		{"log-requests", "log_requests"},
		{"failure_rate", "failure_types"},
		{"prefil_overhead", "prefill_overhead"},
	}
	for _, tt := range tests {
		if got := nearest(tt.key, config.LiveKeys()); got != tt.want {
			t.Errorf("nearest(%q) = %q, want %q", tt.key, got, tt.want)
		}
	}
}

func TestDistance(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"ab", "ba", 2}}
	for _, tt := range tests {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
