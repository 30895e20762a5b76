package tokenizer

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/tiktoken-go/tokenizer/codec"

	"vllm-vcr/fuzzlimit"
)

// vocabulary is the one tokenizer of all tests.
var vocabulary = sync.OnceValue(func() *Tokenizer {
	t, err := New()
	if err != nil {
		panic(err)
	}
	return t
})

// mixed is text of many scripts, with characters that span tokens.
const mixed = "Hello, world! It's 12345 o'clock.\r\n\n  Größe naïve Ελλάδα Привет שלום مرحبا\tनमस्ते 你好，世界。 " +
	"こんにちは 안녕하세요 👩‍👩‍👧‍👦 🇩🇪 e\u0301 \u0000\u007f <|endoftext|> \U0001F600\U0001F680 ﷽ 𝔘𝔫𝔦𝔠𝔬𝔡𝔢"

func TestVocabulary(t *testing.T) {
	v := vocabulary()
	longest, names := 0, map[string]bool{}
	for id := range Size {
		token := v.Bytes(id)
		if token == "" {
			t.Errorf("Bytes(%d) is empty, want text for every id", id)
		}
		if names[token] {
			t.Errorf("Bytes(%d) = %q, which another id has too", id, token)
		}
		names[token] = true
		longest = max(longest, len(token))
	}
	if longest != MaxTokenBytes {
		t.Errorf("the longest token has %d bytes, want MaxTokenBytes = %d", longest, MaxTokenBytes)
	}
	if got := v.Bytes(v.EOS()); got != "<|endoftext|>" {
		t.Errorf("EOS is %q, want <|endoftext|>", got)
	}
	if got := v.Bytes(Size); got != "" {
		t.Errorf("Bytes(%d) = %q, want nothing for an id outside the vocabulary", Size, got)
	}
	if v.Size() != 100_277 {
		t.Errorf("Size = %d, want cl100k_base's 100277", v.Size())
	}
}

func TestEncode(t *testing.T) {
	tests := []struct {
		name string
		text string
		want []uint32
	}{
		{"nothing", "", nil},
		{"words", "hello world", []uint32{15339, 1917}},
		{"numbers by threes", "1234567", []uint32{4513, 10961, 22}},
		{"a special token's name is text", "<|endoftext|>", []uint32{27, 91, 8862, 728, 428, 91, 29}},
		{"delete characters", "\x01a\x7f\x7f! \x7fb\x01", []uint32{189, 64, 221, 221, 0, 220, 221, 65, 189}},
		{"no UTF-8", "a\xffb", []uint32{64, 5809, 65}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := vocabulary().Encode(tt.text); !slices.Equal(got, tt.want) {
				t.Errorf("Encode(%q) = %v, want %v", tt.text, got, tt.want)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	v := vocabulary()
	tests := []struct {
		name    string
		ids     []uint32
		want    string
		wantErr string
	}{
		{name: "nothing"},
		{name: "words", ids: []uint32{15339, 1917}, want: "hello world"},
		{name: "special", ids: []uint32{15339, EndOfText}, want: "hello<|endoftext|>"},
		{name: "half a character", ids: v.Encode("👩")[:1], want: "\uFFFD"},
		{name: "outside", ids: []uint32{1, Size}, wantErr: "token id 100277 at position 1: want below 100277"},
		{name: "far outside", ids: []uint32{1<<32 - 1}, wantErr: "token id 4294967295 at position 0: want below 100277"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := v.Decode(tt.ids)
			if got != tt.want {
				t.Errorf("Decode(%v) = %q, want %q", tt.ids, got, tt.want)
			}
			if msg := errorText(err); msg != tt.wantErr {
				t.Errorf("Decode(%v) gave error %q, want %q", tt.ids, msg, tt.wantErr)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestValid(t *testing.T) {
	for text, want := range map[string]string{"": "", mixed: mixed, "a\xf0\x9f\x98b\xff": "a\uFFFDb\uFFFD", "\xe2\x82": "\uFFFD"} {
		if got := Valid(text); got != want {
			t.Errorf("Valid(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	v := vocabulary()
	for _, text := range []string{mixed, strings.Repeat(mixed, 5000), strings.Repeat("ab", window), strings.Repeat(" ", 3*window)} {
		ids := v.Encode(text)
		if i := slices.IndexFunc(ids, Special); i >= 0 {
			t.Errorf("id %d of %.40q… is special: %d", i, text, ids[i])
		}
		got, err := v.Decode(ids)
		if err != nil {
			t.Fatal(err)
		}
		if got != text {
			t.Errorf("%.40q… of %d bytes came back as %.40q… of %d bytes", text, len(text), got, len(got))
		}
	}
}

// TestCut holds that text encoded window by window has the ids it has as a whole.
func TestCut(t *testing.T) {
	v := vocabulary()
	texts := []string{mixed, strings.Repeat("The quick brown fox's 100 jumps.\n\n", 9), "x y 1 2 'll they'LL 'S  a", "٣٤٥ⅧⅨ½a\u0301b"}
	for _, text := range texts {
		for limit := 8; limit <= len(text); limit++ {
			n := cut(text, limit)
			if n < 1 || n > limit {
				t.Fatalf("cut(%q, %d) = %d, want 1 … %d", text, limit, n, limit)
			}
			if !parts(text, n) {
				continue // nothing within the limit ends a word
			}
			got := append(v.Encode(text[:n]), v.Encode(text[n:])...)
			if diff := cmp.Diff(v.Encode(text), got); diff != "" {
				t.Errorf("%q cut at %d (-whole +parts):\n%s", text, n, diff)
			}
		}
	}
}

// parts says that cut found the end of a word at n.
func parts(text string, n int) bool {
	last, _ := utf8.DecodeLastRuneInString(text[:n])
	next, _ := utf8.DecodeRuneInString(text[n:])
	return classOf(last) != other && classOf(last) != classOf(next)
}

func TestEncode_LongText(t *testing.T) {
	text := strings.Repeat("It's 100 degrees in Tōkyō, ", 2*window/28)
	whole, _, err := codec.NewCl100kBase().Encode(text)
	if err != nil {
		t.Fatal(err)
	}
	got := vocabulary().Encode(text)
	if !slices.EqualFunc(got, whole, func(a uint32, b uint) bool { return uint(a) == b }) {
		t.Errorf("%d bytes gave %d ids that differ from tiktoken's %d", len(text), len(got), len(whole))
	}
}

func TestTokenizer_Concurrent(t *testing.T) {
	v := vocabulary()
	want := v.Encode(mixed)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				ids := v.Encode(mixed)
				if text, err := v.Decode(ids); err != nil || text != mixed || !slices.Equal(ids, want) {
					t.Errorf("Encode gave %v, and Decode %q and error %v, want what one goroutine gets", ids, text, err)
				}
			}
		})
	}
	wg.Wait()
}

// FuzzEncode: what is not plain has the ids that the codec gives it; for what is see FuzzEncode_Plain.
func FuzzEncode(f *testing.F) {
	for _, text := range []string{mixed, "", "\xf0\x9f\x98", strings.Repeat("\n ", 99)} {
		f.Add(text)
	}
	whole := codec.NewCl100kBase()
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzlimit.Watch(t, len(text))()
		v := vocabulary()
		ids := v.Encode(text)
		want, _, err := whole.Encode(text)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) < window && !plain(text) && !strings.Contains(text, del) && !slices.EqualFunc(ids, want, func(a uint32, b uint) bool { return uint(a) == b }) {
			t.Errorf("Encode(%q) = %v, want the codec's %v", text, ids, want)
		}
		back, err := v.Decode(ids)
		if err != nil {
			t.Fatal(err)
		}
		if utf8.ValidString(text) && back != text {
			t.Errorf("%q came back as %q", text, back)
		}
	})
}
