package fill

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"vllm-vcr/fuzzlimit"
)

func TestRegex(t *testing.T) {
	patterns := []string{
		``, `abc`, `[ab]+`, `^\d{3}-\d{4}$`, `(yes|no|maybe)`, `[^a-z]{5}`, `.*`, `a?b*c+d{2,}e{1,3}`, `(?i)hello`, `\w+@\w+\.com`,
		`\p{Greek}{4}`, `[\x{1F600}-\x{1F64F}]`, `\u00e9{2}`, `\\u0041`, `(?:25[0-5]|2[0-4]\d|1?\d?\d)`,
		`\s`, `[[:upper:]]{2}\S`, `(a|b(c|d(e|f)))+`, `^$`, `x{1000}`, `(?<year>\d{4})-(?<month>0[1-9]|1[0-2])`,
	}
	for _, source := range patterns {
		want := regexp.MustCompile(`\A(?:` + strings.ReplaceAll(source, `\u00e9`, `é`) + `)\z`)
		for seed := range uint64(50) {
			got, err := Regex(source, seed)
			if err != nil {
				t.Fatalf("Regex(%q, %d): %v", source, seed, err)
			}
			if !want.MatchString(got) || !utf8.ValidString(got) {
				t.Fatalf("Regex(%q, %d) = %q, which does not match", source, seed, got)
			}
		}
	}
}

func TestRegex_Errors(t *testing.T) {
	tests := []struct {
		name, pattern, want string
	}{
		{"look-ahead", `a(?!b)`, "regex: \"a(?!b)\": error parsing regexp: invalid or unsupported Perl syntax: `(?!`"},
		{"reference to a group", `(a)\1`, "regex: \"(a)\\\\1\": error parsing regexp: invalid escape sequence: `\\1`"},
		{"unclosed", `(`, "regex: \"(\": error parsing regexp: missing closing ): `(`"},
		{"long", strings.Repeat("a", 5000), "regex: regular expression of 5000 bytes, want at most 4096"},
		{"large", `(.{100}){1,11}`, "regex: \"(.{100}){1,11}\": error parsing regexp: invalid repeat count: `{1,11}`"},
		{"impossible", `a^b`, "regex: no string found that matches all patterns and lengths"},
		{"empty class", `[^\x00-\x{10FFFF}]`, "regex: no string found that matches all patterns and lengths"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Regex(tt.pattern, 1)
			if err == nil {
				t.Fatalf("Regex gave %.40q…, want error %q", got, tt.want)
			}
			if err.Error() != tt.want {
				t.Errorf("Regex gave error %q, want %q", err, tt.want)
			}
		})
	}
}

func FuzzRegex(f *testing.F) {
	for _, source := range []string{`^\d{3}-\d{4}$`, `(yes|no)+`, `[^"\\]{2,7}`, `(((a*)*)*)*b`, `\bfoo\B.`, `\u0041`} {
		f.Add(source, uint64(1))
	}
	f.Fuzz(func(t *testing.T, source string, seed uint64) {
		defer fuzzlimit.Watch(t, len(source))()
		got, err := Regex(source, seed)
		if err != nil {
			return
		}
		if !utf8.ValidString(got) {
			t.Errorf("Regex(%q, %d) = %q, which is not UTF-8", source, seed, got)
		}
		if want, err := regexp.Compile(`\A(?:` + source + `)\z`); err == nil && !strings.Contains(source, `\u`) && !want.MatchString(got) {
			t.Errorf("Regex(%q, %d) = %q, which does not match", source, seed, got)
		}
	})
}
