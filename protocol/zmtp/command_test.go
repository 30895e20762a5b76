package zmtp

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAppendReady(t *testing.T) {
	tests := map[string]struct {
		socketType SocketType
		identity   []byte
		want       string
	}{
		"without identity": {Push, nil, "\x04\x1a\x05READY\x0bSocket-Type\x00\x00\x00\x04PUSH"},
		"with identity": {Dealer, []byte{0, 0},
			"\x04\x2b\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x02\x00\x00"},
		"long": {Dealer, bytes.Repeat([]byte{'i'}, 255),
			"\x06\x00\x00\x00\x00\x00\x00\x01\x28\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\xff" + strings.Repeat("i", 255)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := appendReady(nil, test.socketType, test.identity)
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("READY (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseReady(t *testing.T) {
	dealer := "\x0bSocket-Type\x00\x00\x00\x06DEALER"
	tests := map[string]struct {
		data     string
		identity string
		fault    string
	}{
		"type only":             {dealer, "", ""},
		"with identity":         {dealer + "\x08Identity\x00\x00\x00\x02\x00\x01", "\x00\x01", ""},
		"empty identity":        {dealer + "\x08Identity\x00\x00\x00\x00", "", ""},
		"other case":            {"\x0bsocket-TYPE\x00\x00\x00\x06DEALER", "", ""},
		"unknown property":      {"\x05X-New\x00\x00\x00\x03abc" + dealer, "", ""},
		"nameless property":     {"\x00\x00\x00\x00\x01a" + dealer, "", ""},
		"nothing":               {"", "", "without Socket-Type"},
		"no type":               {"\x08Identity\x00\x00\x00\x01i", "", "without Socket-Type"},
		"name cut":              {dealer + "\x08Ident", "", "property name of 8 bytes"},
		"size cut":              {dealer + "\x08Identity\x00\x00", "", "property name of 8 bytes"},
		"value cut":             {dealer + "\x08Identity\x00\x00\x00\x02i", "", "claims 2 bytes, 1 are left"},
		"huge value":            {dealer + "\x08Identity\xff\xff\xff\xffi", "", "claims 4294967295 bytes"},
		"identity of 256":       {dealer + "\x08Identity\x00\x00\x01\x00" + strings.Repeat("i", 256), "", "identity of 256 bytes"},
		"identity of 255 is ok": {dealer + "\x08Identity\x00\x00\x00\xff" + strings.Repeat("i", 255), strings.Repeat("i", 255), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseReady([]byte(test.data))
			if test.fault != "" {
				wantError(t, err, ErrProtocol, test.fault)
				return
			}
			if err != nil || got.socketType != Dealer || string(got.identity) != test.identity {
				t.Errorf("got %q, %q, %v; want DEALER, %q", got.socketType, got.identity, err, test.identity)
			}
		})
	}
}

func TestParseCommand(t *testing.T) {
	tests := map[string]struct{ body, name, data, fault string }{
		"name and data":  {"\x04PINGxyz", "PING", "xyz", ""},
		"name only":      {"\x05READY", "READY", "", ""},
		"empty":          {"", "", "", "empty command"},
		"no name":        {"\x00abc", "", "", "name of 0 bytes"},
		"name too long":  {"\x05PING", "", "", "name of 5 bytes in a command of 5"},
		"only its size":  {"\xff", "", "", "name of 255 bytes in a command of 1"},
		"one byte short": {"\x02A", "", "", "name of 2 bytes in a command of 2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			name, data, err := parseCommand([]byte(test.body))
			if test.fault != "" {
				wantError(t, err, ErrProtocol, test.fault)
				return
			}
			if err != nil || string(name) != test.name || string(data) != test.data {
				t.Errorf("got %q, %q, %v; want %q, %q", name, data, err, test.name, test.data)
			}
		})
	}
}

func TestParseError(t *testing.T) {
	for data, want := range map[string]string{
		"\x03bad":     `ERROR "bad"`,
		"\x03badmore": `ERROR "bad"`,
		"\xffcut":     `ERROR "cut"`,
		"\x00":        `ERROR ""`,
		"":            `ERROR ""`,
	} {
		wantError(t, parseError([]byte(data)), ErrProtocol, want)
	}
}

func TestParsePing(t *testing.T) {
	tests := map[string]struct{ data, context, fault string }{
		"no context":      {"\x00\x0a", "", ""},
		"context":         {"\x00\x0aabc", "abc", ""},
		"longest context": {"\x00\x0a0123456789abcdef", "0123456789abcdef", ""},
		"too long":        {"\x00\x0a0123456789abcdefg", "", "PING of 19 bytes"},
		"half a TTL":      {"\x00", "", "PING of 1 bytes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			context, err := parsePing([]byte(test.data))
			if test.fault != "" {
				wantError(t, err, ErrProtocol, test.fault)
			} else if err != nil || string(context) != test.context {
				t.Errorf("context = %q, %v; want %q", context, err, test.context)
			}
		})
	}
}
