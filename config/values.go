package config

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Value is the place of one option inside a Config. Setting it judges only the form; Check judges the range, so that a
// caller can collect every fault before it gives up.
type Value interface {
	// String is the text that Set would take to get the present value.
	String() string
	// Type names the kind of value in --help.
	Type() string
	// Set takes the text of a flag or an environment variable.
	Set(text string) error
	// SetJSON takes a JSON value other than null, already known to be well-formed. Its error is one of shape.
	SetJSON(raw []byte) error
	// JSON is the present value as SetJSON would take it.
	JSON() string
	// Check says what is allowed where the present value is not.
	Check() error
	// Allowed names the values that Check accepts, in words that follow "want".
	Allowed() string
}

type numberValue struct {
	p        *uint64
	min, max uint64
}

func number(p *uint64, min, max uint64) Value { return numberValue{p, min, max} }

func (v numberValue) String() string { return strconv.FormatUint(*v.p, 10) }
func (v numberValue) Type() string   { return "uint" }
func (v numberValue) JSON() string   { return v.String() }
func (v numberValue) Allowed() string {
	return fmt.Sprintf("an integer from %d to %d", v.min, v.max)
}

func (v numberValue) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return wanted(v)
	}
	*v.p = n
	return nil
}

func (v numberValue) SetJSON(raw []byte) error {
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil {
		return wanted(v)
	}
	*v.p = n
	return nil
}

func (v numberValue) Check() error {
	if *v.p < v.min || *v.p > v.max {
		return wanted(v)
	}
	return nil
}

type floatValue struct {
	p        *float64
	min, max float64
	allowed  string
}

func float(p *float64, min, max float64, allowed string) Value {
	return floatValue{p, min, max, allowed}
}

func (v floatValue) String() string  { return strconv.FormatFloat(*v.p, 'g', -1, 64) }
func (v floatValue) Type() string    { return "float" }
func (v floatValue) JSON() string    { return v.String() }
func (v floatValue) Allowed() string { return v.allowed }

func (v floatValue) Set(text string) error {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return wanted(v)
	}
	*v.p = f
	return nil
}

func (v floatValue) SetJSON(raw []byte) error {
	if raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return errors.New("want a number")
	}
	return v.Set(string(raw))
}

// Check refuses NaN too, which compares as neither below nor above.
func (v floatValue) Check() error {
	if !(*v.p >= v.min && *v.p <= v.max) {
		return wanted(v)
	}
	return nil
}

type spanValue struct{ p *time.Duration }

func span(p *time.Duration) Value { return spanValue{p} }

func (v spanValue) String() string           { return v.p.String() }
func (v spanValue) Type() string             { return "duration" }
func (v spanValue) JSON() string             { return strconv.Quote(v.String()) }
func (v spanValue) SetJSON(raw []byte) error { return setJSONText(v, raw) }
func (v spanValue) Allowed() string          { return "a duration from 0 to 1s, such as 100us" }

func (v spanValue) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return wanted(v)
	}
	*v.p = d
	return nil
}

func (v spanValue) Check() error {
	if *v.p < 0 || *v.p > time.Second {
		return wanted(v)
	}
	return nil
}

type toggleValue struct{ p *bool }

func toggle(p *bool) Value { return toggleValue{p} }

func (v toggleValue) String() string  { return strconv.FormatBool(*v.p) }
func (v toggleValue) Type() string    { return "bool" }
func (v toggleValue) JSON() string    { return v.String() }
func (v toggleValue) Check() error    { return nil }
func (v toggleValue) Allowed() string { return "true or false" }

// Set takes 1 and 0 too, as the container's environment writes switches.
func (v toggleValue) Set(text string) error {
	switch text {
	case "true", "1":
		*v.p = true
	case "false", "0":
		*v.p = false
	default:
		return wanted(v)
	}
	return nil
}

func (v toggleValue) SetJSON(raw []byte) error {
	if s := string(raw); s != "true" && s != "false" {
		return wanted(v)
	}
	return v.Set(string(raw))
}

// wanted is the error for a value that is not what v allows.
func wanted(v Value) error { return errors.New("want " + v.Allowed()) }
