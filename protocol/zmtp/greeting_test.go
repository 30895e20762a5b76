package zmtp

import (
	"bytes"
	"encoding/hex"
	"testing"
)

func TestAppendGreeting(t *testing.T) {
	want, err := hex.DecodeString("ff00000000000000017f" + "0301" +
		"4e554c4c00000000000000000000000000000000" + "00" +
		"00000000000000000000000000000000000000000000000000000000000000")
	if err != nil {
		t.Fatal(err)
	}
	if got := appendGreeting(nil); !bytes.Equal(got, want) {
		t.Errorf("greeting = %x, want %x", got, want)
	}
}

// greetingWith is our greeting with some bytes changed.
func greetingWith(at int, b ...byte) []byte {
	g := appendGreeting(nil)
	copy(g[at:], b)
	return g
}

func TestCheckGreeting(t *testing.T) {
	tests := map[string]struct {
		greeting []byte
		fault    string // "" = accepted
	}{
		"ours":             {appendGreeting(nil), ""},
		"3.0":              {greetingWith(minorAt, 0), ""},
		"later minor":      {greetingWith(minorAt, 9), ""},
		"later major":      {greetingWith(majorAt, 4, 0), ""},
		"other padding":    {greetingWith(1, 1, 2, 3, 4, 5, 6, 7, 8), ""},
		"as server":        {greetingWith(mechanismAt+mechanismSize, 1), ""},
		"nothing yet":      {nil, ""},
		"first byte":       {[]byte{0xFF}, ""},
		"3.0 so far":       {greetingWith(minorAt, 0)[:majorAt+1], ""},
		"1.0, short":       {[]byte{1, 0}, "ZMTP 1.0"},
		"1.0, long":        {[]byte{0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0}, "ZMTP 1.0"},
		"2.0":              {[]byte{0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 1}, "ZMTP 2.0"},
		"HTTP":             {[]byte("GET / HTTP/1.1"), "not ZMTP"},
		"PLAIN":            {greetingWith(mechanismAt, []byte("PLAIN")...), `mechanism is "PLAIN"`},
		"NULL with a tail": {greetingWith(mechanismAt, []byte("NULL2")...), `mechanism is "NULL2"`},
		"no mechanism":     {greetingWith(mechanismAt, 0, 0, 0, 0), `mechanism is ""`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := checkGreeting(test.greeting)
			if test.fault != "" {
				wantError(t, err, ErrProtocol, test.fault)
			} else if err != nil {
				t.Errorf("error = %v, want none", err)
			}
		})
	}
}

func TestHasCommandSubscriptions(t *testing.T) {
	for version, want := range map[[2]byte]bool{{3, 0}: false, {3, 1}: true, {3, 7}: true, {4, 0}: true} {
		if got := hasCommandSubscriptions(greetingWith(majorAt, version[:]...)); got != want {
			t.Errorf("version %v: subscriptions by command = %v, want %v", version, got, want)
		}
	}
}
