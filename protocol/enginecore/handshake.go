package enginecore

import "github.com/tinylib/msgp/msgp"

// What an engine says at the handshake address: HELLO first, READY once it can be used.
const (
	StatusHello = "HELLO"
	StatusReady = "READY"
)

// Hello is both messages an engine sends to the handshake address. A frontend that starts no engine itself wants Local false and
// Headless true.
type Hello struct {
	Status             string // StatusHello or StatusReady
	Local              bool   // on the frontend's host, started by it
	Headless           bool   // started without an API server
	ParallelConfigHash string // in READY, where ranks step together; "" = left out
}

// DecodeHello reads HELLO or READY.
func DecodeHello(b []byte) (Hello, error) {
	var h Hello
	d := decoder{b: b}
	d.fields(func(key []byte) {
		switch string(key) {
		case "status":
			h.Status = d.string()
		case "local":
			h.Local = d.bool()
		case "headless":
			h.Headless = d.bool()
		case "parallel_config_hash":
			h.ParallelConfigHash = d.string()
		default:
			d.skip()
		}
	})
	if d.err == nil && h.Status == "" {
		d.fail("no status")
	}
	return h, d.end("handshake message")
}

// AppendHello appends HELLO or READY.
func AppendHello(b []byte, h Hello) []byte {
	n := uint32(3)
	if h.ParallelConfigHash != "" {
		n = 4
	}
	b = msgp.AppendMapHeader(b, n)
	b = appendStringField(b, "status", h.Status)
	b = appendBoolField(b, "local", h.Local)
	b = appendBoolField(b, "headless", h.Headless)
	if h.ParallelConfigHash != "" {
		b = appendStringField(b, "parallel_config_hash", h.ParallelConfigHash)
	}
	return b
}
