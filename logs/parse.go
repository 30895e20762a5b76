package logs

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rs/zerolog"
)

// MaxFilter is the longest text that [ParseFilter] looks at, in bytes. A filter travels to every worker in one frame.
const MaxFilter = 64 << 10

// ErrFilter is in every error of [ParseFilter], and its text begins all of them.
var ErrFilter = errors.New("invalid log filter")

// ParseFilter reads a filter in the syntax of RUST_LOG: directives separated by commas, blanks around each ignored,
// empty ones skipped. A directive is
//
//	LEVEL                                           for every target
//	TARGET | TARGET=LEVEL                           for targets that begin so
//	[TARGET] "[" [SPAN] ["{" FIELD[=VALUE] "}"] "]" [=LEVEL]
//
// LEVEL is off, error, warn, info, debug or trace in any case, or 0 to 5; where it is left out it is trace. A comma ends
// a directive wherever it stands. Of two directives for the same thing the later counts. The empty filter switches
// everything off.
func ParseFilter(s string) (Filter, error) {
	if len(s) > MaxFilter {
		return Filter{}, fmt.Errorf("%w: %d bytes, want at most %d", ErrFilter, len(s), MaxFilter)
	}
	if !utf8.ValidString(s) {
		return Filter{}, fmt.Errorf("%w: not valid UTF-8", ErrFilter)
	}
	var all []directive
	for piece := range strings.SplitSeq(s, ",") {
		piece = strings.TrimSpace(piece)
		if piece == "" {
			continue
		}
		d, err := parseDirective(piece)
		if err != nil {
			return Filter{}, fmt.Errorf("%w: %q: %w", ErrFilter, shorten(piece), err)
		}
		all = append(all, d)
	}
	return newFilter(all), nil
}

// parseDirective reads one trimmed, non-empty piece.
func parseDirective(piece string) (directive, error) {
	if level, ok := parseLevel(piece); ok {
		return directive{level: level}, nil
	}
	if first, _ := utf8.DecodeRuneInString(piece); !canBegin(first) {
		return directive{}, fmt.Errorf("begins with %q, want a level, a target or [", first)
	}
	d, rest, err := parseScope(piece)
	if err != nil {
		return directive{}, err
	}
	d.level, err = parseLevelPart(rest)
	return d, err
}

// parseScope reads the target, span and field of a directive, and returns what comes behind them.
func parseScope(piece string) (d directive, rest string, err error) {
	end := strings.IndexAny(piece, "[=")
	if end < 0 {
		end = len(piece)
	}
	d.target, rest = piece[:end], piece[end:]
	if strings.ContainsAny(d.target, "]{}") {
		return d, rest, fmt.Errorf("target %q, want none of ] { } in it", shorten(d.target))
	}
	if inner, ok := strings.CutPrefix(rest, "["); ok {
		d.span, d.field, rest, err = parseSpan(inner)
	}
	return d, rest, err
}

// canBegin says whether a directive that is no level may begin with r.
func canBegin(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || strings.ContainsRune("-:_[", r)
}

// parseSpan reads what follows a [ up to its ], and returns what comes behind.
func parseSpan(s string) (span, field, rest string, err error) {
	end := strings.IndexAny(s, "{]")
	if end < 0 {
		return "", "", "", errors.New("want a ] after [")
	}
	span, rest = s[:end], s[end:]
	if rest[0] == ']' {
		return span, "", rest[1:], nil
	}
	field, rest, ok := strings.Cut(rest[1:], "}")
	if !ok {
		return "", "", "", errors.New("want a } after {; no comma may stand between them")
	}
	rest, ok = strings.CutPrefix(rest, "]")
	if !ok {
		return "", "", "", errors.New("want a ] after }")
	}
	return span, field, rest, checkField(field)
}

// checkField judges NAME or NAME=VALUE.
func checkField(field string) error {
	name, value, valued := strings.Cut(field, "=")
	if name == "" {
		return errors.New("want a field's name between { and }")
	}
	if !valued || isLiteral(value) {
		return nil
	}
	if _, err := regexp.Compile(value); err != nil {
		return fmt.Errorf("field %s: %w", shorten(name), err)
	}
	return nil
}

// isLiteral says whether a field's value is a bool or a number, which stands for itself and not for a pattern.
func isLiteral(value string) bool {
	_, errNumber := strconv.ParseFloat(value, 64)
	return errNumber == nil || value == "true" || value == "false"
}

// parseLevelPart reads what ends a directive: nothing, "=" or "=LEVEL".
func parseLevelPart(s string) (zerolog.Level, error) {
	if s == "" || s == "=" {
		return zerolog.TraceLevel, nil
	}
	word, ok := strings.CutPrefix(s, "=")
	if !ok {
		return 0, fmt.Errorf("%q after ], want = and a level", shorten(s))
	}
	level, ok := parseLevel(word)
	if !ok {
		return 0, fmt.Errorf("level %q, want one of %s, or 0 to %d", shorten(word), strings.Join(levelNames, ", "), len(levelNames)-1)
	}
	return level, nil
}

// levelNames are the levels as filters write them, each at its number.
var levelNames = []string{"off", "error", "warn", "info", "debug", "trace"}

// levels are zerolog's names for them, in the same order.
var levels = []zerolog.Level{zerolog.Disabled, zerolog.ErrorLevel, zerolog.WarnLevel, zerolog.InfoLevel, zerolog.DebugLevel, zerolog.TraceLevel}

func levelName(level zerolog.Level) string { return levelNames[slices.Index(levels, level)] }

func parseLevel(word string) (zerolog.Level, bool) {
	for i, name := range levelNames {
		if strings.EqualFold(word, name) || word == strconv.Itoa(i) {
			return levels[i], true
		}
	}
	return 0, false
}

// shorten cuts what an error message quotes.
func shorten(s string) string {
	const most = 80 // bytes
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
