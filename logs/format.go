package logs

import "io"

// Format is how a line is written.
type Format int

const (
	// JSON is one object a line: time (RFC 3339, UTC, µs), level, target, the fields in the order they were given, and
	// message last.
	JSON Format = iota
	// Text is for reading: time, LEVEL, target: message key=value …
	Text
	// Color is Text with the level in colour.
	Color
)

// ChooseFormat turns the word of --log-format into a Format: "text", "json", or else what suits the place, which is
// text on a terminal and JSON elsewhere. Colours appear only on a terminal, and never where noColor says that the user
// wants none.
func ChooseFormat(word string, terminal, noColor bool) Format {
	switch {
	case word == "json", word != "text" && !terminal:
		return JSON
	case terminal && !noColor:
		return Color
	default:
		return Text
	}
}

// writer returns what turns zerolog's JSON lines into lines of this format on w.
func (f Format) writer(w io.Writer) io.Writer {
	if f == JSON {
		return w
	}
	return &textWriter{w: w, color: f == Color}
}
