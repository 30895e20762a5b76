package frontend

import (
	"errors"
	"net"
	"syscall"
	"time"

	"vllm-vcr/logs"
)

// patientListener waits out a shortage of descriptors or memory instead of ending the server: the connections that
// caused it go away with their time-outs.
type patientListener struct {
	net.Listener
	stopC <-chan struct{}
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
			l.log.Warn().Err(err).Msg("the API cannot accept connections")
		}
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
