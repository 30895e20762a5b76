package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-json"
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
}

type numberValue struct {
	p        *uint64
	min, max uint64
}

func number(p *uint64, min, max uint64) Value { return numberValue{p, min, max} }

func (v numberValue) String() string { return strconv.FormatUint(*v.p, 10) }
func (v numberValue) Type() string   { return "uint" }
func (v numberValue) JSON() string   { return v.String() }

func (v numberValue) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return v.want()
	}
	*v.p = n
	return nil
}

func (v numberValue) SetJSON(raw []byte) error {
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil {
		return fmt.Errorf("want an integer from 0 to %d", uint64(math.MaxUint64))
	}
	*v.p = n
	return nil
}

func (v numberValue) Check() error {
	if *v.p < v.min || *v.p > v.max {
		return v.want()
	}
	return nil
}

func (v numberValue) want() error { return fmt.Errorf("want an integer from %d to %d", v.min, v.max) }

type floatValue struct {
	p        *float64
	min, max float64
	want     string
}

func float(p *float64, min, max float64, want string) Value { return floatValue{p, min, max, want} }

func (v floatValue) String() string { return strconv.FormatFloat(*v.p, 'g', -1, 64) }
func (v floatValue) Type() string   { return "float" }
func (v floatValue) JSON() string   { return v.String() }

func (v floatValue) Set(text string) error {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return errors.New("want " + v.want)
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
		return errors.New("want " + v.want)
	}
	return nil
}

type spanValue struct{ p *time.Duration }

func span(p *time.Duration) Value { return spanValue{p} }

func (v spanValue) String() string           { return v.p.String() }
func (v spanValue) Type() string             { return "duration" }
func (v spanValue) JSON() string             { return strconv.Quote(v.String()) }
func (v spanValue) SetJSON(raw []byte) error { return setJSONText(v, raw) }

func (v spanValue) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return v.want()
	}
	*v.p = d
	return nil
}

func (v spanValue) Check() error {
	if *v.p < 0 || *v.p > time.Second {
		return v.want()
	}
	return nil
}

func (v spanValue) want() error { return errors.New("want a duration from 0 to 1s, such as 100us") }

type textValue struct {
	p     *string
	kind  string
	check func(string) error
}

func text(p *string) Value { return textValue{p, "string", func(string) error { return nil }} }

// parsed is a string that check can read.
func parsed(p *string, check func(string) error) Value { return textValue{p, "string", check} }

func choice(p *string, allowed ...string) Value {
	return textValue{p, strings.Join(allowed, "|"), func(s string) error { return oneOf(s, allowed) }}
}

func address(p *string) Value { return parsed(p, handshakeAddress) }

func (v textValue) String() string           { return *v.p }
func (v textValue) Type() string             { return v.kind }
func (v textValue) JSON() string             { return strconv.Quote(*v.p) }
func (v textValue) Set(text string) error    { *v.p = text; return nil }
func (v textValue) SetJSON(raw []byte) error { return setJSONText(v, raw) }
func (v textValue) Check() error             { return v.check(*v.p) }

type toggleValue struct{ p *bool }

func toggle(p *bool) Value { return toggleValue{p} }

func (v toggleValue) String() string { return strconv.FormatBool(*v.p) }
func (v toggleValue) Type() string   { return "bool" }
func (v toggleValue) JSON() string   { return v.String() }
func (v toggleValue) Check() error   { return nil }

// Set takes 1 and 0 too, as the container's environment writes switches.
func (v toggleValue) Set(text string) error {
	switch text {
	case "true", "1":
		*v.p = true
	case "false", "0":
		*v.p = false
	default:
		return errors.New("want true or false")
	}
	return nil
}

func (v toggleValue) SetJSON(raw []byte) error {
	if s := string(raw); s != "true" && s != "false" {
		return errors.New("want true or false")
	}
	return v.Set(string(raw))
}

type wordsValue struct {
	p       *[]string
	allowed []string
}

func words(p *[]string, allowed ...string) Value { return wordsValue{p, allowed} }

func (v wordsValue) String() string { return strings.Join(*v.p, ",") }
func (v wordsValue) Type() string   { return "list" }

// JSON needs no escapes, as only words of the list get this far.
func (v wordsValue) JSON() string { return `["` + strings.Join(*v.p, `","`) + `"]` }

func (v wordsValue) Set(text string) error {
	*v.p = nil
	if text != "" {
		*v.p = strings.Split(text, ",")
	}
	return nil
}

// Append adds words to those there are, for a flag that is given again.
func (v wordsValue) Append(text string) error {
	*v.p = append(*v.p, strings.Split(text, ",")...)
	return nil
}

// SetJSON finds unknown words too: in a list of fixed words they are a matter of shape.
func (v wordsValue) SetJSON(raw []byte) error {
	var list []*string
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("want a list of %s", strings.Join(v.allowed, ", "))
	}
	got := make([]string, len(list))
	for i, word := range list {
		if word == nil {
			return fmt.Errorf("element %d: null: want one of %s", i, strings.Join(v.allowed, ", "))
		}
		if err := oneOf(*word, v.allowed); err != nil {
			return fmt.Errorf("element %d: %q: %w", i, *word, err)
		}
		got[i] = *word
	}
	*v.p = got
	return nil
}

func (v wordsValue) Check() error {
	if len(*v.p) == 0 {
		return fmt.Errorf("want at least one of %s", strings.Join(v.allowed, ", "))
	}
	for _, word := range *v.p {
		if err := oneOf(word, v.allowed); err != nil {
			return fmt.Errorf("%q: %w", word, err)
		}
	}
	return nil
}

func setJSONText(v Value, raw []byte) error {
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		return errors.New("want a string")
	}
	return v.Set(*s)
}

func oneOf(s string, allowed []string) error {
	if slices.Contains(allowed, s) {
		return nil
	}
	return fmt.Errorf("want one of %s", strings.Join(allowed, ", "))
}

func handshakeAddress(s string) error {
	if path, ok := strings.CutPrefix(s, "ipc://"); ok && path != "" {
		return nil
	}
	if hostPort, ok := strings.CutPrefix(s, "tcp://"); ok && hostPortOrNone(hostPort) == nil && !strings.HasPrefix(hostPort, ":") {
		return nil
	}
	return errors.New("want tcp://HOST:PORT or ipc:///PATH")
}

// hostPortOrNone accepts HOST:PORT with a port of 0 … 65535, and nothing at all.
func hostPortOrNone(s string) error {
	if s == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return errors.New("want HOST:PORT")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return errors.New("want HOST:PORT with a port from 0 to 65535")
	}
	return nil
}
