package httpserve

import (
	"net"
	"time"
)

// What is read of a request that is refused before its end.
const (
	discardBytes   = 64 << 20
	discardTimeout = 2 * time.Second
	discardSilence = 100 * time.Millisecond // one that sends nothing for so long waits for the answer
)

// discard reads the rest of a request that is refused before its end, at most 64 MiB and for two seconds: a client that still
// sends when the connection is closed gets a reset and never sees the answer. It sets conn's read deadline; the connection
// is good for the answer and nothing else.
func discard(conn net.Conn) {
	buf := make([]byte, 64<<10)
	end := time.Now().Add(discardTimeout)
	for left := discardBytes; left > 0 && time.Now().Before(end); {
		if err := conn.SetReadDeadline(time.Now().Add(discardSilence)); err != nil {
			return
		}
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		left -= n
	}
}
