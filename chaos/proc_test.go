//go:build chaos

package chaos

import (
	"slices"
	"testing"

	"github.com/prometheus/procfs"

	"vllm-vcr/proctest"
)

// zombies are the children of a process that have ended and were not waited for.
func zombies(t *testing.T, pid int) []int {
	t.Helper()
	var found []int
	for _, child := range proctest.Children(t, pid) {
		if proctest.State(child) == "Z" {
			found = append(found, child)
		}
	}
	return found
}

// named are those of the processes that run a program of this name.
func named(pids []int, name string) []int {
	return slices.DeleteFunc(pids, func(pid int) bool {
		p, err := procfs.NewProc(pid)
		if err != nil {
			return true // it has just gone
		}
		comm, err := p.Comm()
		return err != nil || comm != name
	})
}

// resident is the memory of a process at the moment, and peak the most it ever had, in bytes.
func resident(t *testing.T, pid int) (now, peak int64) {
	t.Helper()
	s := proctest.Status(t, pid)
	return int64(s.VmRSS), int64(s.VmHWM)
}

// frontEnd finds serve's front end among its children.
func frontEnd(t *testing.T, p *program) int {
	t.Helper()
	return proctest.ChildNamed(t, p.pid(), "front-end")
}
