package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"vllm-vcr/config"
)

// TestUsage has command lines that nothing comes of.
func TestUsage(t *testing.T) {
	tests := []struct {
		name   string
		args   []string
		code   int
		stderr []string
	}{
		{"no command", nil, 2, []string{"error: no command given, want one of serve, play, frontend, version, completions", "See 'vllm-vcr --help'."}},
		{"unknown command", []string{"replay"}, 2, []string{`error: unknown command "replay"`}},
		{"slip of the pen", []string{"plya"}, 2, []string{`error: unknown command "plya", did you mean "play"?`}},
		{"unknown flag of the root", []string{"--engine-count", "1"}, 2, []string{"unknown flag: --engine-count"}},
		{"unknown flag", []string{"play", "--engines", "3"}, 2, []string{"error: unknown flag: --engines", "See 'vllm-vcr play --help'."}},
		{"abbreviated flag", []string{"play", "--engine", "3"}, 2, []string{"unknown flag: --engine"}},
		{"flag without its value", []string{"play", "--engine-count"}, 2, []string{"flag needs an argument: --engine-count"}},
		{"argument", []string{"play", "model"}, 2, []string{`argument "model": this command takes none`}},
		{"value of a switch", []string{"play", "--log-requests=maybe"}, 2, []string{`--log-requests: "maybe": want true or false`}},
		{"version with an argument", []string{"version", "now"}, 2, []string{`argument "now"`}},
		{"help for nothing", []string{"help", "replay"}, 2, []string{`unknown command "replay"`}},
		{"help for too much", []string{"help", "play", "fast"}, 2, []string{`unknown command "fast"`}},
		{"no shell", []string{"completions"}, 2, []string{"possible values: bash, zsh, fish, powershell"}},
		{"unknown shell", []string{"completions", "tcsh"}, 2, []string{`invalid value "tcsh"`, "possible values: bash, zsh, fish, powershell"}},
		{"two shells", []string{"completions", "bash", "zsh"}, 2, []string{"2 arguments, want one shell"}},
		{"worker by hand", []string{"worker"}, 2, []string{"this command is for a supervisor to start, use play"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := invoke(t, nil, tt.args...)
			r.want(t, tt.code, tt.stderr...)
			if r.stdout != "" {
				t.Errorf("stdout = %q, want nothing", r.stdout)
			}
		})
	}
}

// TestUsage_WorkerByHand leaves descriptors alone that no supervisor has left, even where there are some.
func TestUsage_WorkerByHand(t *testing.T) {
	file := func(path string) *os.File {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	defer theirs.Close()
	tests := []struct {
		name  string
		files []*os.File
		want  string
	}{
		{"device and file", []*os.File{file("/dev/null"), file("main.go")}, "descriptors 3 and 4 are not a supervisor's socket and page"},
		{"socket alone", []*os.File{theirs}, "use play: "}, // 4 may be a file of Go's runtime
		{"socket and another file", []*os.File{theirs, file("main.go")}, "use play: shared page: descriptor 4 is none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cmd := command(t, nil, "worker")
			cmd.ExtraFiles = tt.files
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); err == nil || code != 2 || !strings.Contains(string(out), tt.want) {
				t.Errorf("exit code = %d, want 2 and %q\n%s", code, tt.want, out)
			}
		})
	}
}

// TestUsage_AllFaults has everything wrong told at once, each with its flag, value and range, and each once.
func TestUsage_AllFaults(t *testing.T) {
	env := []string{"MOCK_TTFT_MS=soon", "VLLM_VCR_RESTART=always", "RUST_LOG=vllm_vcr=loud"}
	r := invoke(t, env, "play", "--engine-count", "0", "--seed=-1", "--seed=2", "--time-scale", "NaN", "--failure-types", "error,stop",
		"--latency-trace", "t.jsonl", "--inter-token-latency", "5")
	want := []string{
		`error: --engine-count: "0": want an integer from 1 to 65536`,
		`error: --seed: "-1": want an integer from 0 to 18446744073709551615`,
		`error: --time-scale: "NaN": want a number above 0`,
		`error: --failure-types: "error,stop": "stop": want one of error, length, repetition`,
		`error: MOCK_TTFT_MS: --time-to-first-token: "soon": want an integer from 0 to 18446744073709551615`,
		`error: VLLM_VCR_RESTART: --restart: "always": want one of never, on-failure`,
		`error: --inter-token-latency: 5 cannot go with --latency-trace, which brings its own timing: remove one of them`,
		`error: RUST_LOG: invalid log filter: "vllm_vcr=loud"`,
	}
	r.want(t, 2, want...)
	if got := strings.Count(r.stderr, "error: "); got != len(want) {
		t.Errorf("%d errors, want %d", got, len(want))
	}
}

// TestUsage_FaultsBeforeAnUnknownFlag keeps what was found before the command line made no sense any more.
func TestUsage_FaultsBeforeAnUnknownFlag(t *testing.T) {
	invoke(t, []string{"MOCK_ITL_MS=x"}, "play", "--engine-count", "0", "--nonsense").
		want(t, 2, "error: unknown flag: --nonsense", "error: --engine-count:", "error: MOCK_ITL_MS: --inter-token-latency:")
}

func TestVersion(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"--version"}, {"-V"}} {
		r := invoke(t, nil, args...)
		r.want(t, 0)
		if want := "vllm-vcr " + buildVersion() + "\n"; r.stdout != want || r.stderr != "" {
			t.Errorf("%q: stdout = %q, stderr = %q, want %q and nothing", args, r.stdout, r.stderr, want)
		}
	}
}

// TestHelp compares all help with testdata/help.txt.
func TestHelp(t *testing.T) {
	var all strings.Builder
	for _, args := range [][]string{{"--help"}, {"serve", "--help"}, {"play", "--help"}, {"frontend", "--help"}, {"completions", "--help"}, {"version", "--help"}, {"help", "--help"}} {
		r := invoke(t, nil, args...)
		r.want(t, 0)
		if r.stderr != "" {
			t.Errorf("%q: stderr = %q, want nothing", args, r.stderr)
		}
		all.WriteString("$ vllm-vcr " + strings.Join(args, " ") + "\n" + r.stdout + "\n")
	}
	golden(t, "help.txt", all.String())
	for _, o := range config.Options() {
		if !strings.Contains(all.String(), "--"+o.Flag) || !strings.Contains(all.String(), "[$"+o.Env+"]") {
			t.Errorf("the help lacks --%s or $%s", o.Flag, o.Env)
		}
	}
	if r := invoke(t, nil, "help", "play"); !strings.Contains(all.String(), r.stdout) || r.stdout == "" {
		t.Error("help play is not the same as play --help")
	}
}

func TestCompletions(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		r := invoke(t, nil, "completions", shell)
		r.want(t, 0)
		if len(r.stdout) < 1000 || !strings.Contains(r.stdout, "vllm-vcr") {
			t.Errorf("%s: %d bytes, want a script for vllm-vcr", shell, len(r.stdout))
		}
	}
}

// TestCompletions_Bash has bash read its script.
func TestCompletions_Bash(t *testing.T) {
	check := exec.Command("bash", "-n")
	check.Stdin = strings.NewReader(invoke(t, nil, "completions", "bash").stdout)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("bash -n: %v\n%s", err, out)
	}
}

// TestCompletions_Words asks for what the scripts ask for.
func TestCompletions_Words(t *testing.T) {
	tests := []struct {
		args []string
		want []string
	}{
		{[]string{""}, []string{"play", "version", "completions", "help"}},
		{[]string{"play", "--control-"}, []string{"--control-address", "--control-timeout", "--control-token-file"}},
		{[]string{"completions", ""}, []string{"bash", "zsh", "fish", "powershell"}},
		{[]string{"play", "--restart", ""}, []string{"never", "on-failure"}},
		{[]string{"play", "--log-format", "j"}, []string{"json"}},
	}
	for _, tt := range tests {
		r := invoke(t, nil, append([]string{"__complete"}, tt.args...)...)
		for _, word := range tt.want {
			if !strings.Contains("\n"+r.stdout, "\n"+word) {
				t.Errorf("%q: no %q in\n%s", tt.args, word, r.stdout)
			}
		}
		if strings.Contains(r.stdout, "worker") {
			t.Errorf("%q: the hidden command is offered", tt.args)
		}
	}
}
