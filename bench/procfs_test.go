package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
)

func TestProcessTree(t *testing.T) {
	p, err := startProcess([]string{"sh", "-c", "sleep 100 & sleep 100 & echo there; wait"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	var tree []member
	for end := time.Now().Add(20 * time.Second); !strings.Contains(p.lastWords(), "there") || len(tree) < 3; {
		if tree, err = processTree(p.pid()); err != nil || time.Now().After(end) {
			t.Fatalf("tree = %+v, %v; want three processes", tree, err)
		}
	}
	if len(tree) != 3 || tree[0].PID != p.pid() || tree[1].parent != p.pid() || tree[2].parent != p.pid() {
		t.Fatalf("tree = %+v, want %d and its two children", tree, p.pid())
	}
	u, err := readUsage(p.pid())
	if err != nil {
		t.Fatal(err)
	}
	if len(u.cpu) != 3 || u.workers() != 1 || u.resident[0] < 1<<12 || u.resident[0] > 1<<30 {
		t.Errorf("usage = %+v, want that of three processes", u)
	}
	if err := p.ended(); err != nil {
		t.Errorf("ended = %v, want nil", err)
	}
	p.stop()
	for _, m := range tree {
		if now, err := readMember(m.PID); err == nil && now.start == m.start && now.parent != 1 {
			t.Errorf("process %d is left", m.PID)
		}
	}
}

func TestMember_CPUTime(t *testing.T) {
	self, err := readMember(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	before, _, err := self.cpuTime()
	if err != nil {
		t.Fatal(err)
	}
	spin()
	after, _, err := self.cpuTime()
	if err != nil || after <= before {
		t.Errorf("CPU time from %v to %v, %v; want it to grow by work", before, after, err)
	}
}

// TestMember_Kill: a process that only has the id of another is left alone.
func TestMember_Kill(t *testing.T) {
	self, err := readMember(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	self.start++
	self.kill()
}

func TestProcfs_NoSuchProcess(t *testing.T) {
	const none = 1 << 30
	if _, err := readUsage(none); err == nil {
		t.Error("usage of no process: no error")
	}
	if _, _, err := (member{Proc: procfs.Proc{PID: none}}).cpuTime(); err == nil {
		t.Error("CPU time of no process: no error")
	}
}

func TestProcess_LastWords(t *testing.T) {
	p, err := startProcess([]string{"sh", "-c", "yes word | head -c 10000; echo; echo the end"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	<-p.doneC
	if s := p.lastWords(); len(s) != 4096 || !strings.HasSuffix(s, "\nthe end\n") {
		t.Errorf("%d bytes, %q; want the last 4096", len(s), s)
	}
	if err := p.ended(); err == nil || !strings.Contains(err.Error(), "the end") {
		t.Errorf("ended = %v, want an error with what it said", err)
	}
}
