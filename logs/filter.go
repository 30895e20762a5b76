package logs

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rs/zerolog"
)

// Filter decides which lines are written. It is immutable; the zero Filter lets nothing through. Get one from
// [ParseFilter].
//
// Of the directives whose target is a prefix of a line's target, the one with the longest target decides alone. Those
// with a span or with fields are accepted and listed, but enable nothing: this program opens no spans, and a line's
// fields are not looked at.
type Filter struct {
	static  []directive // without a span and without a field's value, most specific first
	dynamic []directive // the others, most specific first
}

// directive is one piece of a filter.
type directive struct {
	target string // "" = every target
	span   string // name of a span, "" = none
	field  string // as written between braces, NAME or NAME=VALUE, "" = none
	level  zerolog.Level
}

// String returns the filter in its normal form, which parses to the same filter: levels as words in lower case, those
// directives last that name a span or a field's value, each kind in order of specificity.
func (f Filter) String() string {
	parts := make([]string, 0, len(f.static)+len(f.dynamic))
	for _, d := range slices.Concat(f.static, f.dynamic) {
		parts = append(parts, d.String())
	}
	return strings.Join(parts, ",")
}

// level returns the least level that is written for target, zerolog.Disabled where none is.
func (f Filter) level(target string) zerolog.Level {
	for _, d := range f.static {
		if d.field == "" && strings.HasPrefix(target, d.target) {
			return d.level
		}
	}
	return zerolog.Disabled
}

func (d directive) String() string {
	name := d.target
	if d.span != "" || d.field != "" {
		name += "[" + d.span
		if d.field != "" {
			name += "{" + d.field + "}"
		}
		name += "]"
	}
	if name == "" {
		return levelName(d.level)
	}
	return name + "=" + levelName(d.level)
}

// static says whether d could be decided without looking into a span or at a value.
func (d directive) static() bool { return d.span == "" && !strings.Contains(d.field, "=") }

// sameScope says whether d and o apply to the same lines, so that the later one replaces the earlier.
func (d directive) sameScope(o directive) bool { return compare(d, o) == 0 }

// compare orders directives from the most specific: longer targets, then those with a span, then those with a field,
// then backwards by name.
func compare(a, b directive) int {
	return cmp.Or(
		cmp.Compare(len(b.target), len(a.target)),
		cmp.Compare(min(len(b.span), 1), min(len(a.span), 1)),
		cmp.Compare(min(len(b.field), 1), min(len(a.field), 1)),
		cmp.Compare(b.target, a.target),
		cmp.Compare(b.span, a.span),
		cmp.Compare(b.field, a.field),
	)
}

// newFilter sorts directives into a filter; of those with the same scope the last one stays.
func newFilter(all []directive) Filter {
	slices.Reverse(all)
	slices.SortStableFunc(all, compare)
	all = slices.CompactFunc(all, directive.sameScope)
	var f Filter
	for _, d := range all {
		if d.static() {
			f.static = append(f.static, d)
		} else {
			f.dynamic = append(f.dynamic, d)
		}
	}
	return f
}
