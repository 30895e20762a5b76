package main

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"vllm-vcr/config"
)

const readmePath = "../../README.md"

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(readmePath)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section returns what stands between two markers of the README.
func section(t *testing.T, name string) string {
	t.Helper()
	_, rest, began := strings.Cut(readme(t), "<!-- "+name+" -->\n")
	text, _, ended := strings.Cut(rest, "<!-- end of "+strings.Split(name, ":")[0]+" -->")
	if !began || !ended {
		t.Fatalf("README.md has no section %q", name)
	}
	return text
}

// TestReadme_Options keeps the tables of flags as the table of options is.
func TestReadme_Options(t *testing.T) {
	const name = "options: go test ./cmd/vllm-vcr -run Readme -update"
	got, want := section(t, name), optionTables()
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("the tables of flags are out of date; run go test ./cmd/vllm-vcr -run Readme -update\n%s", firstDifference(got, want))
	}
	text := strings.Replace(readme(t), "<!-- "+name+" -->\n"+got, "<!-- "+name+" -->\n"+want, 1)
	if err := os.WriteFile(readmePath, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// optionTables has a table for each group of options.
func optionTables() string {
	var text strings.Builder
	group := ""
	c := config.Default()
	for _, o := range config.Options() {
		if o.Group != group {
			group = o.Group
			title := group
			if group == config.GroupOpenAI {
				title += " (`serve` and `frontend`)"
			}
			fmt.Fprintf(&text, "\n### %s\n\n| Flag | Default | Allowed | Variable | Effect |\n|---|---|---|---|---|\n", title)
		}
		v := o.Value(&c)
		given, effect := "", o.Help
		if v.String() != "" {
			given = "`" + v.String() + "`"
		}
		if o.Live {
			effect = "*Live.* " + effect
		}
		fmt.Fprintf(&text, "| `--%s` | %s | %s | `%s` | %s |\n", o.Flag, given, v.Allowed(), o.Env, effect)
	}
	return text.String() + "\n"
}

// TestReadme_Tests looks for every test that the README names.
func TestReadme_Tests(t *testing.T) {
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2:
			return filepath.SkipDir // .git, .cache
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, match := range declared.FindAllSubmatch(text, -1) {
			there[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(readme(t), -1)
	if len(named) < 10 {
		t.Errorf("README.md names %d tests, want one for each promise", len(named))
	}
	for _, match := range named {
		if !there[match[1]] {
			t.Errorf("README.md names %s, which is no test", match[1])
		}
	}
}

// TestReadme_Targets looks for every make target that the documents name, and the other way round.
func TestReadme_Targets(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^([a-z-]+):.*## `).FindAllStringSubmatch(string(makefile), -1) {
		there[match[1]] = true
	}
	contributing, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile("(?m)(?:`|^)make ([a-z-]+)").FindAllStringSubmatch(readme(t)+string(contributing), -1) {
		if !there[match[1]] {
			t.Errorf("the documents name make %s, which is no target", match[1])
		}
	}
	for target := range there {
		if target != "clean" && !strings.Contains(readme(t), "make "+target) {
			t.Errorf("README.md says nothing of make %s", target)
		}
	}
}

// TestReadme_Curl runs the examples of the README against engines that wait for their frontend.
func TestReadme_Curl(t *testing.T) {
	p := start(t, nil, "play", "--handshake-address", nowhere(t), "--engine-count", "3", "--control-address", "127.0.0.1:0")
	tryCurl(t, "curl", 14, "localhost:8001", p.awaitLog(t, "control API listening"))
}

// TestReadme_Faults runs those of faults, of which one ends an engine, against engines that have joined.
func TestReadme_Faults(t *testing.T) {
	tryCurl(t, "faults", 9, "localhost:8001", startServe(t, 3).awaitLog(t, "control API listening"))
}

// TestReadme_Own runs those of requests with settings of their own.
func TestReadme_Own(t *testing.T) {
	tryCurl(t, "own", 2, "localhost:8000", startServe(t, 1).awaitLog(t, "OpenAI API listening"))
}

// tryCurl runs the lines of a section of the README, of which there are as many as wanted, against the address in a line of
// the log in place of the README's.
func tryCurl(t *testing.T, name string, want int, here string, listening logLine) {
	t.Helper()
	tried := 0
	for line := range strings.Lines(section(t, name)) {
		if !strings.HasPrefix(line, "curl ") {
			continue
		}
		tried++
		command := strings.Replace(line, here, fmt.Sprint(listening["address"]), 1)
		if out, err := exec.Command("sh", "-c", strings.Replace(command, "curl -s", "curl -sS --fail-with-body", 1)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", strings.TrimSpace(line), err, out)
		}
	}
	if tried != want {
		t.Errorf("tried %d lines, want %d", tried, want)
	}
}

// TestReadme_Routes makes every call of the table: the API knows it, and answers it as the table says where nothing but that
// has to be known.
func TestReadme_Routes(t *testing.T) {
	p := start(t, nil, "play", "--handshake-address", nowhere(t), "--control-address", "127.0.0.1:0")
	address := fmt.Sprint(p.awaitLog(t, "control API listening")["address"])
	rows := regexp.MustCompile("(?m)^\\| `([A-Z]+) (\\S+)` \\| (\\d+)").FindAllStringSubmatch(section(t, "routes"), -1)
	if len(rows) != 25 {
		t.Errorf("%d routes, want 25", len(rows))
	}
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, row := range rows {
		method, path, want := row[1], strings.Replace(row[2], "{index}", "0", 1), row[3]
		switch {
		case path == "/health/ready":
			want = "503" // no engine has joined
		case method == http.MethodPatch || method == http.MethodPut || want == "201":
			want = "415" // without a body
		case strings.HasSuffix(path, "{id}"):
			want = "404" // there is none
		}
		request, err := http.NewRequest(method, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close() // its status is all that counts
		if got := fmt.Sprint(answer.StatusCode); got != want {
			t.Errorf("%s %s: status = %s, want %s", method, path, got, want)
		}
	}
}
