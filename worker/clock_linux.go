package worker

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"vllm-vcr/worker/engine"
)

// NewClock finds out what CLOCK_MONOTONIC shows. Go hides its own origin, so the pair of readings with the shortest
// bracket out of ten ties the two together, within some microseconds.
func NewClock() Clock {
	var best Clock
	shortest := time.Hour
	for range 10 {
		before := time.Now()
		var ts unix.Timespec
		// CLOCK_MONOTONIC exists on every Linux: there is no error to expect.
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
		if bracket := time.Since(before); bracket < shortest {
			shortest = bracket
			best = Clock{start: before, base: time.Duration(ts.Nano()) - bracket/2}
		}
	}
	return best
}

// alarm wakes a select at an instant of a Clock. It stands on a timerfd, since runtime timers of an idle Go process fire
// up to a millisecond late. Only one goroutine may use it.
type alarm struct {
	timer *os.File
	tick  chan struct{} // capacity 1: a tick that nobody took yet stands for all later ones
	ended chan struct{} // closed when the reader has left
	armed time.Duration // 0 = not
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timer: %w", err)
	}
	a := &alarm{timer: os.NewFile(uintptr(fd), "timerfd"), tick: make(chan struct{}, 1), ended: make(chan struct{})}
	go a.read()
	return a, nil
}

// read ends when the timer is closed.
func (a *alarm) read() {
	defer close(a.ended)
	raw, err := a.timer.SyscallConn()
	for err == nil {
		if err = raw.Read(takeTick); err != nil {
			return
		}
		select {
		case a.tick <- struct{}{}:
		default:
		}
	}
}

// takeTick takes the expirations of a timer, and reports false where there are none. A call that can't wait needs no word to
// Go's scheduler, whose monitor thread would be woken by every one of them in a process that is idle in between.
func takeTick(timer uintptr) bool {
	var expirations uint64
	_, _, errno := syscall.RawSyscall(syscall.SYS_READ, timer, uintptr(unsafe.Pointer(&expirations)), unsafe.Sizeof(expirations))
	return errno != syscall.EAGAIN
}

// at returns what to select on for an alarm at due: nothing for Never, a channel that is always ready when due has come.
// What is due never goes through the timer, which a busy process is told about late. A tick may be a stale one.
func (a *alarm) at(now, due time.Duration) <-chan struct{} {
	switch {
	case due == engine.Never:
		return nil
	case due <= now:
		return always
	}
	if due != a.armed {
		a.armed = due
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(due, 1)))}
		if err := a.arm(&spec); err != nil {
			panic(fmt.Sprintf("timer at %v: %v", due, err))
		}
	}
	return a.tick
}

func (a *alarm) arm(spec *unix.ItimerSpec) error {
	raw, err := a.timer.SyscallConn()
	if err != nil {
		return err
	}
	var armed error
	err = raw.Control(func(fd uintptr) {
		armed = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, spec, nil)
	})
	return errors.Join(err, armed)
}

// close ends the reader and waits for it.
func (a *alarm) close() {
	_ = a.timer.Close() // only a second close could fail
	<-a.ended
}
