package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseOptions(t *testing.T) {
	o, err := parseOptions([]string{"-run", "idle|ready", "-peer", "old=old play {handshake}", "--", "new", "-x", "{handshake}"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, s := range o.scenarios {
		got = append(got, []string{s.name})
	}
	for _, e := range o.targets {
		got = append(got, append([]string{e.name}, e.command...))
	}
	want := [][]string{{"idle"}, {"ready"}, {"engine", "new", "-x", "{handshake}"}, {"old", "old", "play", "{handshake}"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scenarios and engines (-want +got):\n%s", diff)
	}
}

func TestParseOptions_Default(t *testing.T) {
	o, err := parseOptions(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(defaultCommand, o.targets[0].command); diff != "" || len(o.scenarios) != len(scenarios)-2 {
		t.Errorf("%d scenarios, want all but growth and waiting; command (-want +got):\n%s", len(o.scenarios), diff)
	}
}

func TestParseOptions_Refuses(t *testing.T) {
	cases := []struct {
		args string
		want string
	}{
		{"-run (", "run: error parsing regexp"},
		{"-run nothing", `run: "nothing" matches none of idle, ready`},
		{"-duration 0s", "duration: 0s, want more than 0 and at most 10m0s"},
		{"-duration 11m", "duration: 11m0s"},
		{"-peer old", `"old": want NAME=COMMAND`},
		{"-peer =x", `"=x": want NAME=COMMAND`},
		{"-peer old=old", `old: no {handshake} in the command "old"`},
		{"-peer engine={handshake}", `peer: the name "engine" is taken`},
		{"-http sim", `"sim": want NAME=http://HOST:PORT or NAME=COMMAND`},
		{"-http serve=http://x", `http: the name "serve" is taken`},
		{"-- new play", `engine: no {handshake} in the command "new play"`},
		{"-fly", "fly"},
	}
	for _, c := range cases {
		t.Run(c.args, func(t *testing.T) {
			if _, err := parseOptions(strings.Fields(c.args), io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one that says %q", err, c.want)
			}
		})
	}
}

func TestParseOptions_Help(t *testing.T) {
	var out strings.Builder
	if _, err := parseOptions([]string{"-h"}, &out); !errors.Is(err, errHelp) || !strings.Contains(out.String(), "-peer NAME=COMMAND") {
		t.Errorf("error = %v, usage:\n%s", err, out.String())
	}
}

func TestTarget_Argv(t *testing.T) {
	s := setup{engines: 3, seqs: 512, ttft: 100 * time.Millisecond, itl: 20 * time.Millisecond, control: "127.0.0.1:9"}
	cases := []struct {
		name    string
		command string
		want    string
	}{
		{"flags", "e play --at={handshake} {flags} -z",
			"e play --at=tcp://x --engine-count 3 --max-num-seqs 512 --max-num-batched-tokens 2048 --time-to-first-token 100 --inter-token-latency 20 --control-address 127.0.0.1:9 -z"},
		{"words", "e {handshake} {engines}x{seqs} {ttft} {itl} {control}", "e tcp://x 3x512 100 20 127.0.0.1:9"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := target{command: strings.Fields(c.command)}
			if diff := cmp.Diff(strings.Fields(c.want), e.argv(s, "tcp://x")); diff != "" {
				t.Errorf("argv (-want +got):\n%s", diff)
			}
			if !e.controllable() {
				t.Error("controllable = false")
			}
		})
	}
	if (target{command: []string{"e", "{handshake}"}}).controllable() {
		t.Error("a command without {control} is controllable")
	}
}
