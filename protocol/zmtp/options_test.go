package zmtp

import (
	"strings"
	"testing"
	"time"
)

func TestOptions_Defaults(t *testing.T) {
	o, err := Options{Type: Pull}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if o.MaxMessage != DefaultMaxMessage || o.MaxFrames != DefaultMaxFrames || o.HandshakeTimeout != DefaultHandshakeTimeout {
		t.Errorf("defaults = %d, %d, %v; want %d, %d, %v", o.MaxMessage, o.MaxFrames, o.HandshakeTimeout,
			int64(DefaultMaxMessage), DefaultMaxFrames, DefaultHandshakeTimeout)
	}
}

func TestOptions_Faults(t *testing.T) {
	tests := map[string]struct {
		options Options
		fault   string
	}{
		"no type":           {Options{}, `socket type "": want one of DEALER, `},
		"unknown type":      {Options{Type: "PAIR"}, `socket type "PAIR"`},
		"long identity":     {Options{Type: Dealer, Identity: make([]byte, 256)}, "identity of 256 bytes: want at most 255"},
		"negative message":  {Options{Type: Dealer, MaxMessage: -1}, "message limit -1"},
		"message over 1GiB": {Options{Type: Dealer, MaxMessage: 1<<30 + 1}, "message limit 1073741825: want 0 to 1073741824"},
		"negative frames":   {Options{Type: Dealer, MaxFrames: -1}, "frame limit -1"},
		"negative time":     {Options{Type: Dealer, HandshakeTimeout: -time.Second}, "handshake time-out -1s"},
		"negative backoff":  {Options{Type: Dealer, MaxBackoff: -1}, "back-off -1ns"},
		"no low mark":       {Options{Type: Dealer, HighWater: 8}, "low 0, high 8: want 0 < low <= high"},
		"low above high":    {Options{Type: Dealer, HighWater: 8, LowWater: 9}, "low 9, high 8"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := test.options.withDefaults(); err == nil || !strings.Contains(err.Error(), test.fault) {
				t.Errorf("error = %v, want one that says %q", err, test.fault)
			}
		})
	}
	_, err := Options{MaxMessage: -1, MaxFrames: -1}.withDefaults()
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("error = %v, want three faults at once", err)
	}
}
