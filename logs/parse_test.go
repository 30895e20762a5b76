package logs

import (
	"errors"
	"strings"
	"testing"

	"vllm-vcr/fuzzlimit"
)

func TestParseFilter(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", ""},
		{",", ""},
		{" , ,", ""},
		{"info", "info"},
		{"INFO", "info"},
		{"oFF", "off"},
		{"0", "off"}, {"1", "error"}, {"2", "warn"}, {"3", "info"}, {"4", "debug"}, {"5", "trace"},
		{"6", "6=trace"}, // no level, so a target
		{"warning", "warning=trace"},
		{"fatal", "fatal=trace"},
		{"vllm_vcr", "vllm_vcr=trace"},
		{"vllm_vcr=", "vllm_vcr=trace"},
		{"vllm_vcr=off", "vllm_vcr=off"},
		{"vllm_vcr=2", "vllm_vcr=warn"},
		{"vllm_vcr::engine=TRACE", "vllm_vcr::engine=trace"},
		{"-x", "-x=trace"}, {":x", ":x=trace"}, {"_x", "_x=trace"}, {"é=info", "é=info"},
		// blanks around a piece
		{" info ", "info"},
		{"a=debug, info", "a=debug,info"},
		// order and replacement
		{"warn,vllm_vcr=debug", "vllm_vcr=debug,warn"},
		{"info,vllm_vcr=warn,vllm_vcr::engine=trace", "vllm_vcr::engine=trace,vllm_vcr=warn,info"},
		{"b=info,a=debug", "b=info,a=debug"},
		{"a=debug,b=info", "b=info,a=debug"},
		{"a=info,a=debug", "a=debug"},
		{"info,debug", "debug"},
		{"a[s]=info,a[s]=debug", "a[s]=debug"},
		// spans and fields
		{"[span]", "[span]=trace"},
		{"[span]=", "[span]=trace"},
		{"t[span]=info", "t[span]=info"},
		{"[span{f=v}]=debug", "[span{f=v}]=debug"},
		{"[{f}]=warn", "[{f}]=warn"},
		{"t[{f}]", "t[{f}]=trace"},
		{"[{f=}]=warn", "[{f=}]=warn"},
		{"[{f=1}]", "[{f=1}]=trace"}, {"[{f=-1.5}]", "[{f=-1.5}]=trace"}, {"[{f=true}]", "[{f=true}]=trace"}, {"[{f=+5}]", "[{f=+5}]=trace"},
		{"[{f=a.*b}]", "[{f=a.*b}]=trace"},
		{"[]=info", "info"},
		{"t[]", "t=trace"},
		{"[s]=info,a=info,[{f}]=info,warn,[{f=1}]=info,t[s{f}]=info", "a=info,[{f}]=info,warn,t[s{f}]=info,[s]=info,[{f=1}]=info"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			f, err := ParseFilter(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.String(); got != tt.want {
				t.Errorf("normal form = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestParseFilter_Invalid(t *testing.T) {
	tests := []struct{ in, says string }{
		{"a=loud", `"loud"`}, {"a=6", `"6"`}, {"a=-1", `"-1"`}, {"a=warning", `"warning"`}, {"a=fatal", "off, error"},
		{"a=b=info", `"b=info"`},
		{"a= info", `" info"`},
		{"=info", `'='`}, {"{x}", `'{'`}, {"*", `'*'`}, {"]", `']'`}, {"info,=", `'='`}, {"\x00", `'\x00'`},
		{"[span", "want a ]"}, {"t[", "want a ]"},
		{"[{f", "want a }"}, {"[s{f]", "want a }"},
		{"[{f}", "want a ]"}, {"[{f}x]", "want a ]"},
		{"[s]x", `"x" after ]`}, {"[s]info", "after ]"}, {"[s][t]", "after ]"},
		{"[{}]", "name"}, {"[{=v}]", "name"}, {"[{a,}]", "want a }"}, {"[{a,b}]", "want a }"},
		{"[{f=*}]", "regexp"}, {"[{f=(}]", "regexp"}, {"[{f=a{2}}]", "want a ]"},
		{"a{b}=info", "target"}, {"a]=info", "target"},
		{"a\xff", "UTF-8"},
		{strings.Repeat("a,", MaxFilter/2) + "b", "at most 65536"},
		{"a=" + strings.Repeat("x", 1000), "…"},
	}
	for _, tt := range tests {
		t.Run(shorten(tt.in), func(t *testing.T) {
			_, err := ParseFilter(tt.in)
			if !errors.Is(err, ErrFilter) {
				t.Fatalf("error = %v, want one that is ErrFilter", err)
			}
			if got := err.Error(); !strings.HasPrefix(got, "invalid log filter: ") || !strings.Contains(got, tt.says) || len(got) > 400 {
				t.Errorf("error = %q, want a short one with %q in it", got, tt.says)
			}
		})
	}
}

// FuzzParseFilter: what parses has a normal form that parses to itself and decides alike.
func FuzzParseFilter(f *testing.F) {
	for _, seed := range []string{"", "info", "warn,vllm_vcr=debug", "a[s{f=v}]=debug,[{f}]", "=info", "[{f=(}]", " a =3, b", "a=loud", "[]=5,t[]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		defer fuzzlimit.Watch(t, len(in))()
		first, err := ParseFilter(in)
		if err != nil {
			if !errors.Is(err, ErrFilter) {
				t.Fatalf("error = %v, want one that is ErrFilter", err)
			}
			return
		}
		normal := first.String()
		second, err := ParseFilter(normal)
		if len(normal) > MaxFilter {
			return // levels written out can make a filter longer than what is looked at
		}
		if err != nil {
			t.Fatalf("%q has the normal form %q: %v", in, normal, err)
		}
		if got := second.String(); got != normal {
			t.Errorf("normal form of %q = %q, want it unchanged", normal, got)
		}
		for _, target := range []string{Process, Engine, EngineCore, IO, Control} {
			if got, want := second.level(target), first.level(target); got != want {
				t.Errorf("%s: level of %q = %v, of %q = %v", target, normal, got, in, want)
			}
		}
	})
}
