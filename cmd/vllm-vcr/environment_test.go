package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"vllm-vcr/config"
)

// parse reads a command line of play under an environment of nothing but env.
func parse(t *testing.T, env []string, args ...string) (config.Config, error) {
	t.Helper()
	return parseFor(t, config.Play, env, args...)
}

func parseFor(t *testing.T, of config.Commands, env []string, args ...string) (config.Config, error) {
	t.Helper()
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value) // has it restored afterwards
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	cmd := &cobra.Command{Use: "vllm-vcr"}
	opts := bind(cmd, of, config.Default())
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return opts.config()
}

// other is a value of each kind that is no option's default.
func other(o config.Option, v config.Value) string {
	switch {
	case o.Flag == "handshake-address":
		return "ipc:///tmp/other"
	case o.Flag == "control-address":
		return "[::1]:9"
	case o.Flag == "vllm-version":
		return "v0.27.1"
	case strings.Contains(v.Type(), "|"):
		words := strings.Split(v.Type(), "|")
		return words[(slices.Index(words, v.String())+1)%len(words)]
	}
	return map[string]string{"uint": "7", "float": "0.5", "duration": "3ms", "bool": "true", "list": "length,error", "string": "word"}[v.Type()]
}

// ofCertificate are the certificates of both APIs where only that of the key is given.
func ofCertificate(keyFlag string) (openAI, control string) {
	if keyFlag == "ssl-keyfile" {
		return "cert", ""
	}
	return "", "cert"
}

// TestEnvironment_EveryOption sets each option by its variable, and then by its flag against its variable.
func TestEnvironment_EveryOption(t *testing.T) {
	for _, o := range config.Options() {
		t.Run(o.Flag, func(t *testing.T) {
			c := config.Default()
			fresh := o.Value(&c).String()
			text := other(o, o.Value(&c))
			if o.Flag == "time-factor-under-load" {
				text = "1.5"
			}
			if text == "" || text == fresh {
				t.Fatalf("no value other than %q to try", fresh)
			}
			want := config.Default()
			if err := o.Value(&want).Set(text); err != nil {
				t.Fatal(err)
			}
			of := config.Play
			if o.For&of == 0 {
				of = config.Serve
			}
			env := []string{o.Env + "=" + text}
			if certificate, ok := strings.CutSuffix(o.Env, "_KEYFILE"); ok { // a key is nothing without one
				env = append(env, certificate+"_CERTFILE=cert")
				want.SSLCertFile, want.ControlSSLCertFile = ofCertificate(o.Flag)
			}
			got, err := parseFor(t, of, env)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s=%s (-want +got):\n%s", o.Env, text, diff)
			}
			if fresh == "" {
				fresh = "flag"
			}
			if o.Flag == "control-address" {
				fresh = "127.0.0.1:1"
			}
			got, err = parseFor(t, of, env, "--"+o.Flag+"="+fresh)
			if err != nil {
				t.Fatal(err)
			}
			if v := o.Value(&got); v.String() != fresh {
				t.Errorf("%s=%s --%s=%s: value = %q, want the flag's", o.Env, text, o.Flag, fresh, v.String())
			}
		})
	}
}

func TestEnvironment_Container(t *testing.T) {
	tests := []struct {
		name   string
		env    []string
		args   []string
		change func(*config.Config) // of the default, to what is wanted
	}{
		{"handshake port", []string{"MOCK_HANDSHAKE_PORT=1234"}, nil, func(c *config.Config) { c.HandshakeAddress = "tcp://127.0.0.1:1234" }},
		{"control port", []string{"MOCK_CONTROL_PORT=8001"}, nil, func(c *config.Config) { c.ControlAddress = "0.0.0.0:8001" }},
		{"addresses win over ports", []string{"MOCK_CONTROL_PORT=8001", "MOCK_CONTROL_ADDRESS=[::1]:9", "MOCK_HANDSHAKE_PORT=1", "VLLM_VCR_HANDSHAKE_ADDRESS=ipc:///a"}, nil,
			func(c *config.Config) { c.ControlAddress, c.HandshakeAddress = "[::1]:9", "ipc:///a" }},
		{"an empty address means no control API", []string{"MOCK_CONTROL_PORT=8001", "MOCK_CONTROL_ADDRESS="}, nil, func(*config.Config) {}},
		{"flags win over ports", []string{"MOCK_CONTROL_PORT=8001", "MOCK_HANDSHAKE_PORT=1"}, []string{"--control-address", "127.0.0.1:2", "--handshake-address", "tcp://h:3"},
			func(c *config.Config) { c.ControlAddress, c.HandshakeAddress = "127.0.0.1:2", "tcp://h:3" }},
		{"a flag keeps a bad variable from counting", []string{"MOCK_CONTROL_PORT=x", "MOCK_TTFT_MS=x"}, []string{"--control-address", "127.0.0.1:2", "--time-to-first-token", "5"},
			func(c *config.Config) { c.ControlAddress, c.TimeToFirstToken = "127.0.0.1:2", 5 }},
		{"pod name outside a container", []string{"POD_NAME=pod-7"}, nil, func(*config.Config) {}},
		{"pod name in a container", []string{"POD_NAME=pod-7", "MOCK_CONTAINER=1"}, nil, func(c *config.Config) { c.EngineID = "pod-7" }},
		{"container is 1 and nothing else", []string{"POD_NAME=pod-7", "MOCK_CONTAINER=true"}, nil, func(*config.Config) {}},
		{"engine id wins over pod name", []string{"POD_NAME=pod-7", "MOCK_CONTAINER=1", "MOCK_ENGINE_ID=mine"}, nil, func(c *config.Config) { c.EngineID = "mine" }},
		{"variables of others", []string{"MODEL=m", "VLLM_PORT=tcp://10.0.0.1:80", "VLLM_VCR_PORT=tcp://10.0.0.1:80", "MOCK_CONTAINER=1"}, nil, func(*config.Config) {}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := config.Default()
			tt.change(&want)
			got, err := parse(t, tt.env, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEnvironment_Faults(t *testing.T) {
	tests := []struct{ env, want string }{
		{"MOCK_HANDSHAKE_PORT=", `MOCK_HANDSHAKE_PORT: --handshake-address: "tcp://127.0.0.1:": want tcp://HOST:PORT`},
		{"MOCK_HANDSHAKE_PORT=0", `MOCK_HANDSHAKE_PORT: --handshake-address: "tcp://127.0.0.1:0": want tcp://HOST:PORT`},
		{"MOCK_CONTROL_PORT=65536", `MOCK_CONTROL_PORT: --control-address: "0.0.0.0:65536": want HOST:PORT`},
		{"MOCK_MAX_NUM_SEQS=", `MOCK_MAX_NUM_SEQS: --max-num-seqs: "": want an integer from 1`},
		{"VLLM_VCR_VLLM_VERSION=1.2", `VLLM_VCR_VLLM_VERSION: --vllm-version: "1.2": want one of 0.25`},
		{"MOCK_FAILURE_TYPES=error, length", `MOCK_FAILURE_TYPES: --failure-types: "error, length": " length": want one of`},
	}
	for _, tt := range tests {
		_, err := parse(t, []string{tt.env})
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: error = %v, want %q", tt.env, err, tt.want)
		}
	}
}

func TestFlags_Repeated(t *testing.T) {
	got, err := parse(t, []string{"MOCK_FAILURE_TYPES=repetition"},
		"--seed", "1", "--seed", "2", "--failure-types", "error", "--failure-types=length,error", "--log-requests", "--log-requests=false",
		"--control-address", "127.0.0.1:1", "--control-address=")
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Seed, want.FailureTypes = 2, []string{"error", "length", "error"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}
