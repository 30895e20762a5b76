//go:build conformance || conformance_python

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// callLimit bounds every HTTP call of a test, so that a server which hangs fails the test instead of stopping it.
const callLimit = 60 * time.Second

// client speaks HTTP to one port of 127.0.0.1.
type client struct {
	base string
	http *http.Client
}

func newClient(t *testing.T, port int) *client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{base: fmt.Sprintf("http://127.0.0.1:%d", port), http: &http.Client{Transport: transport, Timeout: callLimit}}
}

// reply is an HTTP answer read to its end.
type reply struct {
	status int
	header http.Header
	body   string
}

// request makes a call with a JSON body ("" = none) and returns the answer unread; the caller closes its body.
func (c *client) request(ctx context.Context, method, path, body string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for key, values := range header {
		req.Header[key] = values
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return c.http.Do(req)
}

// try makes a call and reads the whole answer.
func (c *client) try(method, path, body string) (reply, error) {
	resp, err := c.request(context.Background(), method, path, body, nil)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end or given up
	text, err := io.ReadAll(resp.Body)
	return reply{status: resp.StatusCode, header: resp.Header, body: string(text)}, err
}

// call makes a call that must be answered, with whatever status.
func (c *client) call(t *testing.T, method, path, body string) reply {
	t.Helper()
	r, err := c.try(method, path, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

// expect makes a call that must be answered with status.
func (c *client) expect(t *testing.T, status int, method, path, body string) reply {
	t.Helper()
	r := c.call(t, method, path, body)
	if r.status != status {
		t.Fatalf("%s %s %s: status = %d, want %d: %s", method, path, body, r.status, status, r.body)
	}
	return r
}

// healthy returns nil once GET path is answered with 200.
func (c *client) healthy(path string) error {
	r, err := c.try(http.MethodGet, path, "")
	if err != nil {
		return err
	}
	if r.status != http.StatusOK {
		return fmt.Errorf("GET %s: status %d: %s", path, r.status, r.body)
	}
	return nil
}

// decode reads the JSON of r into a T, and refuses what is no JSON.
func decode[T any](t *testing.T, r reply) T {
	t.Helper()
	var value T
	if err := json.NewDecoder(bytes.NewBufferString(r.body)).Decode(&value); err != nil {
		t.Fatalf("body %q: %v", r.body, err)
	}
	return value
}
