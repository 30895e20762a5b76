package fill

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// format makes a string of ASCII.
type format func(*rand.Rand) string

// formats are those that are more than any string.
var formats = map[string]format{
	"date-time": func(r *rand.Rand) string { return moment(r).Format(time.RFC3339) },
	"date":      func(r *rand.Rand) string { return moment(r).Format(time.DateOnly) },
	"time":      func(r *rand.Rand) string { return moment(r).Format("15:04:05Z07:00") },
	"duration":  func(r *rand.Rand) string { return fmt.Sprintf("P%dDT%dH", 1+r.IntN(28), 1+r.IntN(23)) },

	"email":        func(r *rand.Rand) string { return word(r) + "@" + word(r) + ".example" },
	"idn-email":    func(r *rand.Rand) string { return word(r) + "@" + word(r) + ".example" },
	"hostname":     func(r *rand.Rand) string { return word(r) + "." + word(r) + ".example" },
	"idn-hostname": func(r *rand.Rand) string { return word(r) + "." + word(r) + ".example" },
	"ipv4":         func(r *rand.Rand) string { return fmt.Sprintf("192.0.2.%d", 1+r.IntN(254)) },
	"ipv6":         func(r *rand.Rand) string { return fmt.Sprintf("2001:db8::%x", 1+r.IntN(1<<16-1)) },

	"uri":           func(r *rand.Rand) string { return "https://" + word(r) + ".example/" + word(r) },
	"uri-reference": func(r *rand.Rand) string { return "/" + word(r) + "/" + word(r) },
	"iri":           func(r *rand.Rand) string { return "https://" + word(r) + ".example/" + word(r) },
	"iri-reference": func(r *rand.Rand) string { return "/" + word(r) + "/" + word(r) },
	"uri-template":  func(r *rand.Rand) string { return "/" + word(r) + "/{id}" },
	"uuid":          uuid,

	"json-pointer":          func(r *rand.Rand) string { return "/" + word(r) },
	"relative-json-pointer": func(r *rand.Rand) string { return "0/" + word(r) },
	"regex":                 func(r *rand.Rand) string { return "^" + word(r) + "$" },
}

func word(r *rand.Rand) string { return vocabulary[r.IntN(len(vocabulary))] }

// moment is a second between 2020 and 2030.
func moment(r *rand.Rand) time.Time {
	return time.Date(2020, time.January, 1, 0, 0, r.IntN(3650*24*3600), 0, time.UTC)
}

// uuid makes a random one, of version 4.
func uuid(r *rand.Rand) string {
	a, b := r.Uint64(), r.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, 0x8000|b>>48&0x3fff, b&(1<<48-1))
}
