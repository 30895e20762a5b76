package config

import (
	"errors"
	"fmt"
)

// Setting is one key of a patch with its JSON value, which is never null.
type Setting struct {
	Key string `json:"key"`
	Raw string `json:"raw"`
}

// Patch is a partial change of a Live, in the order in which it was written. The nil patch changes nothing.
type Patch []Setting

// Apply returns l with the patch applied, or every fault of the result at once, and then l unchanged. l is not modified.
func (p Patch) Apply(l Live) (Live, error) {
	c := Config{Live: l.Clone()}
	var faults []error
	for _, s := range p {
		o, ok := LiveOption(s.Key)
		if !ok {
			return l, fmt.Errorf("%s: not a setting that can be changed", s.Key)
		}
		v := o.Value(&c)
		err := v.SetJSON([]byte(s.Raw))
		if err == nil {
			err = v.Check()
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %s: %w", s.Key, s.Raw, err))
		}
	}
	if len(faults) > 0 {
		return l, errors.Join(faults...)
	}
	return c.Live, nil
}

// Timing returns the first key of the patch that a latency trace replaces, or "".
func (p Patch) Timing() string {
	for _, s := range p {
		if o, ok := LiveOption(s.Key); ok && o.Timing {
			return s.Key
		}
	}
	return ""
}

// Difference returns the patch that makes each of the given configurations equal to want: it has the keys in which any of
// them differs.
func Difference(want Live, given ...Live) Patch {
	target := Config{Live: want}
	var p Patch
	for _, o := range Options() {
		if !o.Live {
			continue
		}
		value := o.Value(&target)
		for _, l := range given {
			if c := (Config{Live: l}); o.Value(&c).String() != value.String() {
				p = append(p, Setting{Key: o.Key(), Raw: value.JSON()})
				break
			}
		}
	}
	return p
}
