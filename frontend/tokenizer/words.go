package tokenizer

// plain says whether text is all ASCII without control characters but tabs and line ends. That is most of what is sent, and of
// it the words are known without the codec's matcher, which is slow.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c > '~') && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return true
}

// wordLength returns how many bytes of text, which is plain and not empty, are its first word as the vocabulary splits text. What
// follows says in which order it looks:
//
//   - the end of a contraction, such as 's;
//   - letters, perhaps behind one character that is neither letter nor digit nor line end;
//   - up to three digits;
//   - marks, perhaps behind a space, and the line ends behind them;
//   - space, as far as [spaceLength] says.
func wordLength(text string) int {
	if n := contractionLength(text); n > 0 {
		return n
	}
	first, from := text[0], 0
	if !isLetter(first) && !isDigit(first) && !isLineEnd(first) {
		from = 1
	}
	if n := run(text, from, isLetter); n > from {
		return n
	}
	if isDigit(first) {
		return min(run(text, 0, isDigit), 3)
	}
	from = 0
	if first == ' ' {
		from = 1
	}
	if n := run(text, from, isMark); n > from {
		return run(text, n, isLineEnd)
	}
	return spaceLength(text)
}

// contractionLength is 0 where text does not begin with the end of a contraction.
func contractionLength(text string) int {
	if text[0] != '\'' || len(text) < 2 {
		return 0
	}
	lower := func(i int) byte { return text[i] | 0x20 }
	switch lower(1) {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(text) < 3 {
		return 0
	}
	switch string([]byte{lower(1), lower(2)}) {
	case "re", "ve", "ll":
		return 3
	}
	return 0
}

// spaceLength is that of the space which text begins with: up to its last line end, or else all of it but for the last
// character where a word follows, which may take that one.
func spaceLength(text string) int {
	n := run(text, 0, isSpace)
	for i := n; i > 0; i-- {
		if isLineEnd(text[i-1]) {
			return i
		}
	}
	if n < len(text) {
		return max(1, n-1)
	}
	return n
}

// run returns where the characters of a kind that begin at from end.
func run(text string, from int, kind func(byte) bool) int {
	for from < len(text) && kind(text[from]) {
		from++
	}
	return from
}

func isLetter(c byte) bool  { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool   { return c >= '0' && c <= '9' }
func isLineEnd(c byte) bool { return c == '\n' || c == '\r' }
func isSpace(c byte) bool   { return c == ' ' || c == '\t' || isLineEnd(c) }
func isMark(c byte) bool    { return !isSpace(c) && !isLetter(c) && !isDigit(c) }
