package main

import (
	"errors"
	"fmt"
)

// books are how the requests of a client ended, as it saw it.
type books struct {
	sent, completed, failed, aborted uint64
	unseen                           uint64 // their engine, their frontend or they themselves went before their end
	tokens                           uint64
}

func (b books) plus(o books) books {
	return books{b.sent + o.sent, b.completed + o.completed, b.failed + o.failed, b.aborted + o.aborted, b.unseen + o.unseen, b.tokens + o.tokens}
}

// agree says where an engine at rest counts something else than its client did. What the client saw is certain; what it did not see is
// anybody's guess, once for each request.
func (b books) agree(s stats, lost uint64) error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	within := func(name string, n, certain uint64) {
		check(n >= certain && n <= certain+b.unseen, "%s is %d, its clients saw %d and did not see the end of %d", name, n, certain, b.unseen)
	}
	check(s.Running+s.Waiting == 0, "%d requests run and %d wait", s.Running, s.Waiting)
	check(s.Received == s.Completed+s.Failed+s.Aborted, "received %d, but %d ended", s.Received, s.Completed+s.Failed+s.Aborted)
	check(b.sent == b.completed+b.failed+b.aborted+b.unseen, "of %d requests sent, %d are accounted for", b.sent, b.completed+b.failed+b.aborted+b.unseen)
	check(lost <= s.Failed, "%d are lost and only %d failed", lost, s.Failed)
	within("received", s.Received, b.sent-b.unseen)
	within("completed", s.Completed, b.completed)
	within("aborted", s.Aborted, b.aborted)
	within("failed, less lost,", s.Failed-lost, b.failed)
	within("lost", lost, 0)
	return errors.Join(errs...)
}
