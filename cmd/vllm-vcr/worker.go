package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"vllm-vcr/ipc"
	"vllm-vcr/worker"
)

// The descriptors that a supervisor hands to a worker.
const (
	supervisorFD = 3
	pageFD       = 4
)

// newWorker is the sub-command by which a supervisor starts its workers.
func newWorker() *cobra.Command {
	return &cobra.Command{
		Use:    "worker",
		Short:  "Run one engine for a supervisor",
		Hidden: true,
		Args:   noArguments,
		RunE:   func(*cobra.Command, []string) error { return runWorker() },
	}
}

func runWorker() error {
	nameProcess()
	conn, page, err := inherited()
	if err != nil {
		return usageError{fmt.Errorf("this command is for a supervisor to start, use play: %w", err)}
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	return worker.Run(worker.Env{Supervisor: conn, Page: page, Stderr: os.Stderr, Signals: signals})
}

// inherited takes over what the supervisor left open for this process.
func inherited() (net.Conn, *ipc.Page, error) {
	socket := os.NewFile(supervisorFD, "supervisor")
	pageFile := os.NewFile(pageFD, "page")
	if socket == nil || pageFile == nil {
		return nil, nil, errors.New("no supervisor's socket")
	}
	defer socket.Close()
	defer pageFile.Close()
	conn, err := net.FileConn(socket)
	if err != nil {
		return nil, nil, fmt.Errorf("descriptor %d is no socket: %w", supervisorFD, err)
	}
	page, err := ipc.OpenPage(pageFile)
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, page, nil
}
