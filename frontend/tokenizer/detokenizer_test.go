package tokenizer

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/tiktoken-go/tokenizer/codec"

	"vllm-vcr/fuzzlimit"
)

func stops(t testing.TB, list ...string) *Stops {
	t.Helper()
	s, err := NewStops(list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// feed gives what each id, and then the end, adds to the text.
func feed(d *Detokenizer, ids []uint32) []string {
	var parts []string
	for _, id := range ids {
		parts = append(parts, string(d.Append(nil, id)))
	}
	return append(parts, string(d.Finish(nil)))
}

// letters gives one id for each byte of text, however the tokenizer would join them.
func letters(text string) []uint32 {
	var ids []uint32
	for i := range len(text) {
		ids = append(ids, vocabulary().Encode(text[i:i+1])...)
	}
	return ids
}

func TestDetokenizer(t *testing.T) {
	words := vocabulary().Encode("one two three four")
	tests := []struct {
		name    string
		options DetokenizerOptions
		ids     []uint32
		want    []string // one for each id, and one for the end
		stop    string
	}{
		{name: "nothing", want: []string{""}},
		{name: "words", ids: words, want: []string{"one", " two", " three", " four", ""}},
		{name: "character over tokens", ids: vocabulary().Encode("a🇩"), want: []string{"a", "", "", "🇩", ""}},
		{name: "cut character", ids: vocabulary().Encode("a🇩")[:3], want: []string{"a", "", "", "\uFFFD"}},
		{name: "special", ids: []uint32{64, EndOfText}, want: []string{"a", "<|endoftext|>", ""}},
		{name: "special skipped", options: DetokenizerOptions{SkipSpecial: true}, ids: []uint32{64, EndOfText, 64}, want: []string{"a", "", "a", ""}},
		{name: "outside", ids: []uint32{64, Size, 64}, want: []string{"a", "", "a", ""}},
		{
			name:    "stop in a token",
			options: DetokenizerOptions{Stops: stops(t, "re")},
			ids:     words,
			want:    []string{"one", " two", " th", "", ""},
			stop:    "re",
		},
		{
			name:    "stop over tokens",
			options: DetokenizerOptions{Stops: stops(t, "o three")},
			ids:     words,
			want:    []string{"one", " tw", "", "", ""},
			stop:    "o three",
		},
		{
			name:    "beginning of a stop that does not come",
			options: DetokenizerOptions{Stops: stops(t, "two three five")},
			ids:     words,
			want:    []string{"one", " ", "", "two three four", ""},
		},
		{
			name:    "beginning of a stop at the end",
			options: DetokenizerOptions{Stops: stops(t, "four five")},
			ids:     words,
			want:    []string{"one", " two", " three", " ", "four"},
		},
		{
			name:    "stop in the output",
			options: DetokenizerOptions{Stops: stops(t, "o th"), IncludeStop: true},
			ids:     words,
			want:    []string{"one", " two", " th", "", ""},
			stop:    "o th",
		},
		{
			name:    "the first to end wins",
			options: DetokenizerOptions{Stops: stops(t, "hree", "thr")},
			ids:     words,
			want:    []string{"one", " two", " ", "", ""},
			stop:    "thr",
		},
		{
			name:    "of those that end together the first of the list wins",
			options: DetokenizerOptions{Stops: stops(t, "wo", "two")},
			ids:     words,
			want:    []string{"one", " t", "", "", ""},
			stop:    "wo",
		},
		{
			name:    "stops that are whole in others",
			options: DetokenizerOptions{Stops: stops(t, "abcd", "bc")},
			ids:     letters("xabcd"),
			want:    []string{"x", "", "", "a", "", ""},
			stop:    "bc",
		},
		{
			name:    "min tokens",
			options: DetokenizerOptions{Stops: stops(t, "o"), MinTokens: 2},
			ids:     words,
			want:    []string{"one", " two", " three", " f", ""},
			stop:    "o",
		},
		{
			name:    "stop within a character's bytes is none",
			options: DetokenizerOptions{Stops: stops(t, "é")},
			ids:     vocabulary().Encode("è é"),
			want:    []string{"è", " ", ""},
			stop:    "é",
		},
		{
			name:    "replacement character as stop",
			options: DetokenizerOptions{Stops: stops(t, "\uFFFD")},
			ids:     append(vocabulary().Encode("a🇩")[:3], 64),
			want:    []string{"a", "", "", "", ""},
			stop:    "\uFFFD",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := vocabulary().NewDetokenizer(tt.options)
			if diff := cmp.Diff(tt.want, feed(d, tt.ids)); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if stop, ok := d.Stopped(); stop != tt.stop || ok != (tt.stop != "") {
				t.Errorf("Stopped = %q, %v, want %q", stop, ok, tt.stop)
			}
		})
	}
}

func TestDetokenizer_Offset(t *testing.T) {
	d := vocabulary().NewDetokenizer(DetokenizerOptions{Stops: stops(t, "never said")})
	var got []string
	for _, id := range vocabulary().Encode("n 🇩 end") {
		d.Append(nil, id)
		got = append(got, fmt.Sprintf("%d %q", d.Offset(), d.Piece()))
	}
	want := []string{`0 "n"`, `1 " "`, `2 ""`, `2 "🇩"`, `3 " end"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("offsets and pieces (-want +got):\n%s", diff)
	}
}

func TestNewStops(t *testing.T) {
	if s, err := NewStops(nil); s != nil || err != nil {
		t.Errorf("NewStops(nil) = %v, %v, want neither", s, err)
	}
	tests := []struct {
		name string
		list []string
		want string
	}{
		{"empty", []string{"a", ""}, "stop: an empty string, want at least one character"},
		{"too long", []string{"a", strings.Repeat("b", MaxStopBytes)}, "stop: strings of 1048577 bytes in all, want at most 1048576"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := NewStops(tt.list); errorText(err) != tt.want {
				t.Errorf("NewStops gave error %q, want %q", errorText(err), tt.want)
			}
		})
	}
}

// TestDetokenizer_Linear would not end in a day if the work of a token grew with the stop strings or with the text before it.
func TestDetokenizer_Linear(t *testing.T) {
	many := make([]string, 10_000)
	for i := range many {
		many[i] = fmt.Sprintf("%s %d!", strings.Repeat("a", 1+i%90), i)
	}
	tests := map[string][]string{
		"many":  many,
		"long":  {strings.Repeat("a", 1<<19) + "b", strings.Repeat("a", 1<<18) + "c"},
		"broad": broad(),
	}
	for name, list := range tests {
		t.Run(name, func(t *testing.T) {
			d := vocabulary().NewDetokenizer(DetokenizerOptions{Stops: stops(t, list...)})
			id, text := letters("a")[0], 0
			var buf []byte
			for range 1_000_000 {
				buf = d.Append(buf[:0], id)
				text += len(buf)
			}
			if text += len(d.Finish(nil)); text != 1_000_000 {
				t.Errorf("a million letters gave %d bytes of text", text)
			}
		})
	}
}

// broad gives stop strings that share a beginning after which every byte but one goes on.
func broad() []string {
	var list []string
	for b := range 128 {
		if b != 'a' {
			list = append(list, "aaa"+string(rune(b)))
		}
	}
	return list
}

func TestDetokenizer_AppendAllocs(t *testing.T) {
	ids := vocabulary().Encode(mixed)
	buf := make([]byte, 0, 1<<10)
	for name, s := range map[string]*Stops{"no stops": nil, "stops": stops(t, "oo", "12346", "世界！")} {
		d := vocabulary().NewDetokenizer(DetokenizerOptions{Stops: s})
		pass := func() {
			for _, id := range ids {
				buf = d.Append(buf[:0], id)
			}
		}
		pass()
		if n := testing.AllocsPerRun(10, pass); n != 0 {
			t.Errorf("%s: %v allocations in %d ids, want none", name, n, len(ids))
		}
	}
}

// idsOf reads 3 bytes for each id, so that ids beyond the vocabulary come up too.
func idsOf(data []byte) []uint32 {
	var ids []uint32
	for ; len(data) >= 3; data = data[3:] {
		ids = append(ids, binary.LittleEndian.Uint32([]byte{data[0], data[1], data[2] & 1, 0}))
	}
	return ids
}

func dataOf(ids []uint32) []byte {
	var data []byte
	for _, id := range ids {
		data = append(data, byte(id), byte(id>>8), byte(id>>16))
	}
	return data
}

// FuzzDetokenizer holds that what a stream has given is valid UTF-8 at any time, and at the end what tiktoken decodes.
func FuzzDetokenizer(f *testing.F) {
	f.Add(dataOf(vocabulary().Encode(mixed)))
	f.Add(dataOf([]uint32{EndOfText, Size, 0xff, 222, 222, 187, 64}))
	reference := codec.NewCl100kBase()
	reference.SetErrorMode(codec.ErrorModeReplace)
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzzlimit.Watch(t, len(data))()
		ids := idsOf(data)
		d := vocabulary().NewDetokenizer(DetokenizerOptions{SkipSpecial: true})
		var (
			got      []byte
			ordinary []uint
		)
		for _, id := range ids {
			if got = d.Append(got, id); !utf8.Valid(got) {
				t.Fatalf("%v gave %q, which is not UTF-8", ids, got)
			}
			if id < Ordinary {
				ordinary = append(ordinary, uint(id))
			}
		}
		got = d.Finish(got)
		want, err := reference.Decode(ordinary)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%v gave %q, want %q", ids, got, want)
		}
	})
}

// FuzzStops compares a stream with a search for every stop string behind every token.
func FuzzStops(f *testing.F) {
	f.Add(dataOf(vocabulary().Encode(mixed)), "o'\x00world", uint8(0), false)
	f.Add(dataOf(letters("aabaabaaab")), "aaab\x00aab\x00b", uint8(4), true)
	f.Fuzz(func(t *testing.T, data []byte, list string, minTokens uint8, include bool) {
		wanted := strings.Split(strings.ToValidUTF8(list, "?"), "\x00")
		s, err := NewStops(wanted)
		if err != nil || len(data) > 3000 {
			return
		}
		d := vocabulary().NewDetokenizer(DetokenizerOptions{Stops: s, MinTokens: uint64(minTokens), IncludeStop: include})
		got := strings.Join(feed(d, idsOf(data)), "")
		stop, _ := d.Stopped()
		wantText, wantStop := naive(idsOf(data), wanted, int(minTokens), include)
		if got != wantText || stop != wantStop {
			t.Errorf("%v with %q gave %q and stop %q, want %q and %q", idsOf(data), wanted, got, stop, wantText, wantStop)
		}
	})
}

// naive finds the first end of a stop string in the text of ids, byte by byte.
func naive(ids []uint32, list []string, minTokens int, include bool) (text, stop string) {
	d := vocabulary().NewDetokenizer(DetokenizerOptions{})
	for i, id := range ids {
		before := len(text)
		text += string(d.Append(nil, id))
		for end := before + 1; end <= len(text) && i >= minTokens; end++ {
			for _, stop := range list {
				if !strings.HasSuffix(text[:end], stop) {
					continue
				}
				if include {
					return text[:end], stop
				}
				return text[:end-len(stop)], stop
			}
		}
	}
	return text + string(d.Finish(nil)), ""
}
