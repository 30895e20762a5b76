package zmtp

import (
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	tests := map[string]struct {
		want  endpoint
		fault string
	}{
		"tcp://127.0.0.1:5557":  {endpoint{network: "tcp", host: "127.0.0.1", port: "5557"}, ""},
		"tcp://*:0":             {endpoint{network: "tcp", port: "0"}, ""},
		"tcp://:80":             {endpoint{network: "tcp", port: "80"}, ""},
		"tcp://[::1]:80":        {endpoint{network: "tcp", host: "::1", port: "80"}, ""},
		"tcp://host.local:80":   {endpoint{network: "tcp", host: "host.local", port: "80"}, ""},
		"ipc:///run/x.sock":     {endpoint{network: "unix", path: "/run/x.sock"}, ""},
		"ipc://relative":        {endpoint{network: "unix", path: "relative"}, ""},
		"":                      {fault: "want tcp://host:port or ipc:///path"},
		"127.0.0.1:80":          {fault: "want tcp://host:port or ipc:///path"},
		"inproc://x":            {fault: "want tcp://host:port or ipc:///path"},
		"TCP://127.0.0.1:80":    {fault: "want tcp://host:port or ipc:///path"},
		"tcp://127.0.0.1":       {fault: "missing port"},
		"tcp://::1:80":          {fault: "too many colons"},
		"tcp://127.0.0.1:":      {fault: `port "": want 0 to 65535`},
		"tcp://127.0.0.1:65536": {fault: `port "65536"`},
		"tcp://127.0.0.1:-1":    {fault: `port "-1"`},
		"tcp://127.0.0.1:080":   {fault: `port "080"`},
		"tcp://127.0.0.1:http":  {fault: `port "http"`},
		"ipc://":                {fault: "want ipc:///path"},
		"ipc://*":               {fault: "want ipc:///path"},
		"ipc://@abstract":       {fault: "not an abstract name"},
		"ipc:///a\x00b":         {fault: "not an abstract name"},

		"ipc:///" + strings.Repeat("p", 106): {endpoint{network: "unix", path: "/" + strings.Repeat("p", 106)}, ""},
		"ipc:///" + strings.Repeat("p", 107): {fault: "path of 108 bytes, want at most 107"},
	}
	for address, test := range tests {
		t.Run(address, func(t *testing.T) {
			got, err := parseAddress(address)
			if test.fault != "" {
				if err == nil || !strings.Contains(err.Error(), test.fault) {
					t.Errorf("error = %v, want one that says %q", err, test.fault)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %+v, %v; want %+v", got, err, test.want)
			}
		})
	}
}
