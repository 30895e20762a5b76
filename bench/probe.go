package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// probeArg makes bench a client of a control API, in a process of its own as curl is: bench itself is busy with the load. Its
// arguments are the API's base URL and how long to call. It prints the times of each of controlCalls, in nanoseconds.
const probeArg = "probe"

// probe times the control calls from another process while the load runs.
func probe(ctx context.Context, l *load, base string, d time.Duration) ([]hist, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var out, words bytes.Buffer
	cmd := exec.CommandContext(ctx, self, probeArg, base, d.String())
	cmd.Stdout, cmd.Stderr = &out, &words
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Run() }()
	select {
	case err = <-ended:
	case <-l.failedC:
		cancel()
		return nil, errors.Join(l.err, <-ended)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, words.String())
	}
	var times [][]time.Duration
	if err := json.Unmarshal(out.Bytes(), &times); err != nil {
		return nil, err
	}
	hists := make([]hist, len(times))
	for i := range times {
		for _, t := range times[i] {
			hists[i].add(t)
		}
	}
	return hists, nil
}

func runProbe(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%s: %d arguments, want a URL and a duration", probeArg, len(args))
	}
	d, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	times, err := timeCalls(ctx, args[0], d)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(times)
}

// timeCalls makes the calls in turn, over one connection.
func timeCalls(ctx context.Context, base string, d time.Duration) ([][]time.Duration, error) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	times := make([][]time.Duration, len(controlCalls))
	for end := time.Now().Add(d); time.Now().Before(end); {
		for i, c := range controlCalls {
			start := time.Now()
			if err := c.do(ctx, client, base); err != nil {
				return nil, err
			}
			times[i] = append(times[i], time.Since(start))
			if err := pause(ctx, betweenCalls); err != nil {
				return nil, err
			}
		}
	}
	return times, nil
}

// do makes the call, which must be a success.
func (c controlCall) do(ctx context.Context, client *http.Client, base string) error {
	_, err := fetch(ctx, client, c.method, base+c.path, c.body)
	return err
}

// fetch makes a call of a control API and returns the whole answer, which must be a success.
func fetch(ctx context.Context, client *http.Client, method, url, body string) ([]byte, error) {
	q, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	a, err := client.Do(q)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(a.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, url, err)
	}
	if a.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s: status %d: %.200s", method, url, a.StatusCode, answer)
	}
	return answer, nil
}
