// Package zmtp speaks ZMTP 3.1, ZeroMQ's wire protocol, with the NULL mechanism
// over tcp:// and ipc://, as the connecting and as the accepting end.
//
// Its unit is one connection to one peer. There is no socket that hides many
// peers and silent reconnects behind it: [Dial] returns a [Conn], the Conn ends
// when its connection does, and whoever wants another one dials again. So the
// user always knows that a peer was lost, and which messages went to whom.
// [RouterSocket] and [Puller] put many accepted connections behind one Recv,
// for the side of the protocol that a frontend plays.
//
// # Guarantees
//
//   - Messages arrive whole, once, and in the order of Send, or not at all.
//   - Send never blocks and never waits for the peer; what it accepted is
//     counted in bytes until the kernel has it.
//   - A peer can end its own connection and nothing else. It can make us hold
//     at most MaxMessage bytes, and never more than twice what it really sent.
//   - Close flushes, then waits for every goroutine of the connection.
//   - PING is answered while the connection is read. Its TTL is ignored, and no
//     PING of ours is sent: a peer that vanishes without a trace is found by TCP.
//
// Nothing is promised about a message that Send accepted before the connection
// was lost: ZMTP has no acknowledgements. The package knows nothing of what the
// frames mean; msgpack and vLLM's messages belong to its users.
//
// # Layout
//
// Layouts are those of ZeroMQ RFC 23 (ZMTP 3.0) and RFC 37 (ZMTP 3.1). Numbers
// are big-endian. Each side sends a greeting of 64 bytes:
//
//	0        1 … 8    9      10     11     12 … 31            32         33 … 63
//	+------+---------+------+------+------+------------------+----------+--------+
//	| 0xFF | padding | 0x7F | 0x03 | 0x01 | mechanism, NUL   | as-server| filler |
//	+------+---------+------+------+------+------------------+----------+--------+
//	                         major  minor   "NULL" 0 0 0 …     0          0 …
//
// and then frames:
//
//	+-------+-----------------+------+   flags: 0x01 MORE     a frame of this message follows
//	| flags | size: 1 or 8 B  | body |          0x02 LONG     size has 8 bytes
//	+-------+-----------------+------+          0x04 COMMAND  body is a command, not application data
//
// The body of a command is its name and its data:
//
//	+-----------+------+------+
//	| name size | name | data |
//	+-----------+------+------+
//
//	READY      *( name size 1 B, name, value size 4 B, value )   Socket-Type, Identity
//	ERROR      reason size 1 B, reason
//	PING       TTL 2 B (tenths of a second), context 0 … 16 B
//	PONG       context of the PING
//	SUBSCRIBE  prefix      3.1; a 3.0 peer sends the message 0x01 prefix
//	CANCEL     prefix      3.1; a 3.0 peer sends the message 0x00 prefix
//
// Under NULL the first frame of each side is its READY (or an ERROR).
package zmtp
