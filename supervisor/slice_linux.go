package supervisor

import (
	"time"

	"golang.org/x/sys/unix"
)

// workerSlice is how long a worker runs before another busy process has its turn. With the kernel's own, some milliseconds,
// a call to eight engines that are all busy waits for many of them: shorter slices halved the slowest calls and cost no
// tokens (docs/performance.md).
const workerSlice = 500 * time.Microsecond

// shortenSlice sets the time slice of the calling thread, which the processes it starts inherit. Linux knows such slices since
// 6.12 (sched_setattr(2), sched_runtime of a thread of the normal policy); where it does not, nothing changes.
func shortenSlice() {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL {
		return // somebody chose a policy, and knows why
	}
	attr.Runtime = uint64(workerSlice)
	_ = unix.SchedSetAttr(0, attr, 0) // a kernel that refuses goes on as before
}
