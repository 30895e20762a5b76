//go:build chaos && linux && amd64

package chaos

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// F55: the clock of every process is set an hour forward, and then two hours back, while tokens come. To spare the machine's own clock the
// processes' code to ask for it is replaced while they are stopped; of what a step is to a process nothing is missing.
func TestF55_ClockStep(t *testing.T) {
	needRoot(t)
	const itl, echoes = 20 * time.Millisecond, 12 // 108 tokens, 2.2 s
	p := serve(t, 2, "--token-source", "echo", "--inter-token-latency", "20", "--log-requests", "--restart", "on-failure")
	family := append(proctest.Children(t, p.pid()), p.pid())
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		streams := []*stream{p.begin(0, echoes), p.begin(1, echoes)}
		p.awaitRunning(t, 2)
		<-time.After(500 * time.Millisecond)
		var stopped time.Duration
		for _, pid := range family {
			stopped += stepClock(t, pid, step)
		}
		for _, s := range streams {
			if err := s.wait(t).exact(echoes); err != nil {
				t.Error(err)
			}
			for i := 1; i < len(s.events); i++ {
				if gap := s.events[i].Sub(s.events[i-1]); gap > itl+stopped+500*time.Millisecond {
					t.Errorf("a gap of %v, want about %v, or %v more while processes were stopped", gap, itl, stopped)
				}
			}
			// The last token is late by what the machine makes it, not by what it made the others.
			if whole := s.ended.Sub(s.begun); whole < (echoes*echoedTokens-1)*itl || whole > 3*time.Second {
				t.Errorf("the stream took %v, want 2.14 s", whole)
			}
		}
		var answer struct{ Created int64 }
		if err := json.Unmarshal([]byte(p.api.must(t, "POST", "/v1/completions", `{"prompt": "x", "max_tokens": 1}`)), &answer); err != nil {
			t.Fatal(err)
		}
		if off := time.Since(time.Unix(answer.Created, 0)) + step; off < -2*time.Second || off > 2*time.Second {
			t.Errorf("created is %v, %v off the clock that was set: nothing was tried", answer.Created, off)
		}
	}
	if err := p.control.want(200, "GET", "/health", ""); err != nil {
		t.Error(err)
	}
	if want := time.Now().Add(-time.Hour).UTC().Format(`"time":"2006-01-02T15:`); !strings.Contains(p.printed(t), want) {
		t.Errorf("no line of the log has the time that was set, %s", want)
	}
	kill(t, p.engines(t)[0].PID, syscall.SIGKILL) // a restart has its pause by the same clock as ever
	p.awaitBack(t, 0, 1)
}

// stepClock has a process read the real-time clock with this offset from the machine's, and every other clock as it is. It returns for how
// long the process was stopped.
func stepClock(t *testing.T, pid int, step time.Duration) (stopped time.Duration) {
	t.Helper()
	code := []byte{
		0xb8, 0xe4, 0, 0, 0, // mov eax, 228: clock_gettime
		0x0f, 0x05, // syscall
		0x85, 0xff, // test edi, edi: CLOCK_REALTIME is 0
		0x75, 0x07, // jnz over the next
		0x48, 0x81, 0x06, 0, 0, 0, 0, // add qword [rsi], seconds
		0xc3, // ret
	}
	binary.LittleEndian.PutUint32(code[14:], uint32(int32(step/time.Second)))
	begin, end := vdso(t, pid)
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = memory.Close() }() // what was written is there
	image := make([]byte, end-begin)
	if _, err := memory.ReadAt(image, begin); err != nil {
		t.Fatal(err)
	}
	at, begun := begin+clockGettime(t, image), time.Now()
	suspend(t, pid)
	_, err = memory.WriteAt(code, at)
	kill(t, pid, syscall.SIGCONT)
	if err != nil {
		t.Fatal(err)
	}
	return time.Since(begun)
}

// vdso is where the kernel's own code lies in a process.
func vdso(t *testing.T, pid int) (begin, end int64) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	for scan := bufio.NewScanner(bytes.NewReader(maps)); scan.Scan(); {
		if !strings.HasSuffix(scan.Text(), "[vdso]") {
			continue
		}
		if _, err := fmt.Sscanf(scan.Text(), "%x-%x", &begin, &end); err != nil {
			t.Fatal(err)
		}
	}
	if begin == 0 {
		t.Fatalf("process %d has no vDSO", pid)
	}
	return begin, end
}

// clockGettime is where in the vDSO that function begins.
func clockGettime(t *testing.T, image []byte) int64 {
	t.Helper()
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" {
			return int64(s.Value)
		}
	}
	t.Fatal("the vDSO has no clock_gettime")
	return 0
}
