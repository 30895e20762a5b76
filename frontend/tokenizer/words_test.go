package tokenizer

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEncode_Plain(t *testing.T) {
	for _, text := range []string{
		"Hello, world! It's 12345 o'clock; they'LL say we'Re not I'M, 'twas 'll 'v 'V' 're' '",
		"a  b   c\t\td \te\n f\n\n  g\r\n\r\nh  \n  \n i   ",
		"   \n", "\n   ", " ", "  ", "\t", " \t x", "\r", "x\r\ry", "!\n\n?\r\n .", " !?\n x", "...", "$x_y(1234567)", "@ab", " 1", "  1a2",
		"func main() {\n\tfmt.Println(\"hi\")\n}\n", "antidisestablishmentarianismus xqzzkvw", "=====\n-----", "'" + strings.Repeat("=", 200),
		strings.Repeat(" ", 300) + "x", strings.Repeat("\n", 100) + " y", strings.Repeat("ab", 500),
		strings.Repeat("xq", longestMerged/2), strings.Repeat("xq", longestMerged/2) + "z", strings.Repeat("=-", longestMerged),
	} {
		checkPlain(t, text)
	}
}

// wordPattern is the vocabulary's own, but for its last two alternatives, \s+(?!\S)|\s+, of which Go's syntax has only the second.
var wordPattern = regexp.MustCompile(`^(?:(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+)`)

// firstWord is the first word of text by the pattern.
func firstWord(text string) string {
	word := wordPattern.FindString(text)
	space := strings.Trim(word, " \t") == ""
	if space && len(word) > 1 && len(word) < len(text) {
		return word[:len(word)-1]
	}
	return word
}

// checkPlain: the words are the pattern's, and the ids of each are the codec's. Of space with several line ends the codec makes
// several words, which is not what the pattern says; see TestEncode_Golden for those.
func checkPlain(t *testing.T, text string) {
	t.Helper()
	for rest := text; rest != ""; {
		word := firstWord(rest)
		if got := rest[:wordLength(rest)]; got != word {
			t.Fatalf("the first word of %q is %q, want %q", rest, got, word)
		}
		rest = rest[len(word):]
		if strings.TrimSpace(word) == "" && strings.Count(word, "\n")+strings.Count(word, "\r") > 1 {
			continue
		}
		if got, want := vocabulary().Encode(word), vocabulary().appendAny(nil, word); !slices.Equal(got, want) {
			t.Errorf("ids of %q = %v, want %v", word, got, want)
		}
	}
	if got, err := vocabulary().Decode(vocabulary().Encode(text)); got != text || err != nil {
		t.Errorf("decoded %q, %v, want %q", got, err, text)
	}
}

// TestEncode_Golden has ids of plain text from Python's tiktoken with cl100k_base's own pattern, a text and its ids on each line.
func TestEncode_Golden(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("testdata", "plain.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(file) {
		var golden struct {
			Text string
			IDs  []uint32
		}
		if err := json.Unmarshal(line, &golden); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if got := vocabulary().Encode(golden.Text); !slices.Equal(got, golden.IDs) {
			t.Errorf("ids of %q = %v, want %v", golden.Text, got, golden.IDs)
		}
	}
}

func TestPlain(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, " ~\t\r\n": true, "\x00": false, "\x0b": false, "\x1f": false, "\x7f": false, "é": false, "a\xff": false,
	} {
		if got := plain(text); got != want {
			t.Errorf("plain(%q) = %v, want %v", text, got, want)
		}
	}
}

func FuzzEncode_Plain(f *testing.F) {
	f.Add("It's 1234 o'clock.\n\n  We'll see!\r\n")
	f.Add("a  b\t\n c")
	f.Fuzz(func(t *testing.T, text string) {
		const most = 200
		text = strings.Map(func(r rune) rune {
			if r > '~' || !plain(string(r)) {
				return -1
			}
			return r
		}, text[:min(len(text), most)])
		checkPlain(t, text)
	})
}
