//go:build chaos

package chaos

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// F36: bodies that are too large, too deep, too many or no JSON, to both APIs.
func TestF36_Bodies(t *testing.T) {
	p := serve(t, 1)
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":1,`, i)
		}
		return `{` + b.String() + `"z":1}`
	}
	utf16 := "\xff\xfe{\x00}\x00"
	bodies := []struct {
		name, body   string
		control, api int
	}{
		{"100,000 arrays in one another", strings.Repeat("[", 100_000), 400, 400},
		{"100,000 objects in one another", strings.Repeat(`{"a":`, 100_000), 400, 400},
		{"100,000 of both, closed", strings.Repeat(`{"a":[`, 50_000) + strings.Repeat("]}", 50_000), 400, 400},
		{"100,000 keys", keys(100_000), 422, 200},
		{"a million keys", keys(1_000_000), 413, 400},
		{"a key twice", `{"max_num_seqs": 1, "max_num_seqs": 2}`, 422, 200},
		{"NaN", `{"time_factor_under_load": NaN}`, 400, 400},
		{"Infinity", `{"time_factor_under_load": Infinity}`, 400, 400},
		{"1e400", `{"time_factor_under_load": 1e400}`, 400, 200},
		{"2^64", `{"max_num_seqs": 18446744073709551616}`, 422, 200},
		{"UTF-16", utf16, 400, 400},
		{"a byte order mark", "\xef\xbb\xbf{}", 400, 400},
		{"NUL", "{\"max_num_seqs\": 1}\x00", 400, 400},
		{"NUL inside", "{\"max\x00num\": 1}", 400, 400},
		{"nothing", "", 400, 400},
		{"null", "null", 422, 400},
	}
	before := p.control.must(t, "GET", "/config", "")
	for _, b := range bodies {
		for api, want := range map[*client]int{p.control: b.control, p.api: b.api} {
			method, path, body := "PATCH", "/config", b.body
			if api == p.api {
				method, path = "POST", "/v1/completions"
				if want == 200 { // unknown keys are none of its business
					body = strings.Replace(body, "{", `{"prompt": "x", "max_tokens": 1, `, 1)
				}
			}
			status, text, err := api.call(method, path, body, "Content-Type", "application/json")
			if err != nil || status != want || (want != 200 && !strings.HasPrefix(text, `{"error":`)) {
				t.Errorf("%s: %s: %d %.200s, %v, want %d in JSON", b.name, path, status, text, err, want)
			}
		}
	}
	if after := p.control.must(t, "GET", "/config", ""); after != before {
		t.Errorf("config = %s, want %s as before", after, before)
	}
}

// F36: a gigabyte. Where its length is told beforehand it costs less memory than a body may have; where it comes in chunks that, and what
// the process needs for the first time at such a size.
func TestF36_Gigabyte(t *testing.T) {
	p := serve(t, 1)
	for _, c := range []struct {
		name    string
		pid     int
		address string
		request string
		cap     int64
	}{
		{"control", p.pid(), p.control.address, "PATCH /config", 8 << 20},
		{"OpenAI", frontEnd(t, p), p.api.address, "POST /v1/completions", 32 << 20},
	} {
		for length, beside := range map[string]int64{"Content-Length: 1073741824": 0, "Transfer-Encoding: chunked": 2 << 20} {
			t.Run(c.name+" "+length, func(t *testing.T) {
				now, _ := resident(t, c.pid)
				status := flood(t, c.address, c.request, length)
				if status != http.StatusRequestEntityTooLarge {
					t.Errorf("status = %d, want 413", status)
				}
				if _, peak := resident(t, c.pid); peak-now > c.cap+beside {
					t.Errorf("resident memory rose by %d KB, want at most the %d of a body and %d", (peak-now)>>10, c.cap>>10, beside>>10)
				}
			})
		}
	}
}

// flood sends a gigabyte, or as much of it as is taken, and returns the status of the answer.
func flood(t *testing.T, address, request, length string) int {
	t.Helper()
	conn := dial(t, address)
	if _, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\n\r\n", request, length); err != nil {
		t.Fatal(err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		block := bytes.Repeat([]byte(" "), 1<<20)
		if strings.Contains(length, "chunked") {
			block = append(fmt.Appendf(nil, "%x\r\n", len(block)), append(block, "\r\n"...)...)
		}
		for range 1024 {
			if _, err := conn.Write(block); err != nil {
				return // it has been refused
			}
		}
	}()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	_ = conn.Close()
	<-sent
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}
