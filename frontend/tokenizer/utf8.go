package tokenizer

import "unicode/utf8"

// utf8Stream turns bytes that come in pieces into valid UTF-8. A character that is still incomplete is kept for the next piece; what
// can be no character becomes U+FFFD, one for each longest beginning of a character, as Python, Rust and browsers count them.
type utf8Stream struct {
	kept [utf8.UTFMax]byte
	n    int
}

// append appends to dst the text that piece makes certain.
func (u *utf8Stream) append(dst []byte, piece string) []byte {
	for u.n > 0 && len(piece) > 0 {
		u.kept[u.n] = piece[0]
		switch known := u.kept[:u.n+1]; {
		case utf8.Valid(known):
			dst = append(dst, known...)
			u.n, piece = 0, piece[1:]
		case utf8.FullRune(known): // the character does not go on: the byte begins something else
			dst = u.flush(dst)
		default:
			u.n, piece = u.n+1, piece[1:]
		}
	}
	return u.appendFresh(dst, piece)
}

// appendFresh appends the text of a piece before which nothing is kept.
func (u *utf8Stream) appendFresh(dst []byte, piece string) []byte {
	for len(piece) > 0 {
		n := validPrefix(piece)
		dst = append(dst, piece[:n]...)
		piece = piece[n:]
		if len(piece) == 0 {
			return dst
		}
		if !utf8.FullRuneInString(piece) {
			u.n = copy(u.kept[:], piece)
			return dst
		}
		dst = utf8.AppendRune(dst, utf8.RuneError)
		piece = piece[badPrefix(piece):]
	}
	return dst
}

// flush appends what is kept, now that nothing follows.
func (u *utf8Stream) flush(dst []byte) []byte {
	if u.n == 0 {
		return dst
	}
	u.n = 0
	return utf8.AppendRune(dst, utf8.RuneError)
}

// validPrefix returns how many bytes of s are whole characters.
func validPrefix(s string) int {
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return len(s)
}

// badPrefix returns the length of the longest beginning of a character that s, which begins with no whole one, begins with: at
// least 1.
func badPrefix(s string) int {
	n := 1
	for n < len(s) && !utf8.FullRuneInString(s[:n+1]) {
		n++
	}
	return n
}
