package httpserve

import (
	"errors"
	"net"
	"syscall"
	"time"

	"vllm-vcr/logs"
)

// Patient is ln, waiting out a shortage of descriptors or memory instead of ending the server: quiet connections are closed
// one by one, and those at work end. Each shortage is one warning in log, where name is what cannot accept connections. Accept
// ends with [net.ErrClosed] in a shortage when stopC is closed, and otherwise as ln's does.
func (c *Connections) Patient(ln net.Listener, stopC <-chan struct{}, name string, log *logs.Logger) net.Listener {
	return &patientListener{ln, c, stopC, name, log}
}

type patientListener struct {
	net.Listener
	conns *Connections
	stopC <-chan struct{}
	name  string
	log   *logs.Logger
}

const acceptPause = 50 * time.Millisecond

func (l *patientListener) Accept() (net.Conn, error) {
	for short := false; ; short = true {
		conn, err := l.Listener.Accept()
		if err == nil || !isShortage(err) {
			return conn, err
		}
		if !short {
			l.log.Warn().Err(err).Msgf("%s cannot accept connections", l.name)
		}
		l.conns.makeRoom()
		if !l.pause() {
			return nil, net.ErrClosed
		}
	}
}

// pause says whether the server goes on.
func (l *patientListener) pause() bool {
	timer := time.NewTimer(acceptPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.stopC:
		return false
	}
}

// isShortage says whether an accept that failed may succeed a little later.
func isShortage(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
