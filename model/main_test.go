package model

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"vllm-vcr/ipc"
	"vllm-vcr/worker"
)

// maxEngines is the size of the largest fleet. A fleet of each size from 1 on is kept at work.
const maxEngines = 8

var (
	histories = flag.Int("histories", 200, "how many histories to check")
	seed      = flag.Uint64("seed", 1, "seed of the first history; those that follow count on from it")
	killEvery = flag.Uint64("kill-every", 25, "one history in so many has workers killed; 0 = none")
)

// The test binary is also what its fleets start as a worker.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "worker" {
		os.Exit(playWorker())
	}
	_ = os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0") // else a process waits for a second before it ends
	_ = flag.Set("test.parallel", fmt.Sprint(maxEngines))             // most of them wait for a restart
	flag.Parse()
	goleak.VerifyTestMain(m)
}

// command is how a fleet starts a worker.
func command() *exec.Cmd { return exec.Command("/proc/self/exe", "worker") }

// playWorker is the worker's process: its socket is descriptor 3, its page is 4.
func playWorker() int {
	page, err := ipc.OpenPage(os.NewFile(4, "page"))
	if err != nil {
		return complain(err)
	}
	conn, err := net.FileConn(os.NewFile(3, "supervisor"))
	if err != nil {
		return complain(err)
	}
	// Its log is about garbage that was meant; a panic goes to the process's own stderr.
	if err := worker.Run(worker.Env{Supervisor: conn, Page: page, Stderr: io.Discard}); err != nil {
		return complain(err)
	}
	return 0
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "worker:", err)
	return 1
}
