package tokenizer

import "strings"

// U+007F is lost on the way through codec's matcher, so the codec is given another control character in its place. Both are words of
// punctuation to it, and neither is part of any token but its own.
const (
	del       = "\x7f"
	delID     = 221
	standIn   = "\x01"
	standInID = 189
)

// restoreDeletes puts the id of U+007F where text, of which ids are with the stand-in in its place, has it.
func restoreDeletes(ids []uint32, text string) {
	for i, id := range ids {
		if id != standInID {
			continue
		}
		at := strings.IndexAny(text, standIn+del)
		if text[at] == del[0] {
			ids[i] = delID
		}
		text = text[at+1:]
	}
}
