package zmtp

import (
	"io"
	"net"
	"sync/atomic"
)

// maxWrite bounds what one system call is given, so that Queued and the water
// marks follow a slow reader closely.
const maxWrite = 1 << 20

// writer empties a queue into a connection, as many messages in one write as
// are there.
type writer struct {
	queue      *queue
	dst        io.Writer
	onLowWater func() // may be nil
	bytes      atomic.Uint64

	pieces [][]byte    // memory of each batch
	batch  net.Buffers // here and not on the stack: WriteTo makes it escape
}

// run writes until the queue is sealed and empty, or killed, or the connection
// refuses bytes.
func (w *writer) run() error {
	var chunks [][]byte
	for {
		var more bool
		if chunks, more = w.queue.take(chunks); !more {
			return nil
		}
		if err := w.write(chunks); err != nil {
			return err
		}
		w.queue.recycle(chunks)
	}
}

func (w *writer) write(chunks [][]byte) error {
	offset := 0 // into chunks[0]
	for len(chunks) > 0 {
		w.pieces = w.pieces[:0]
		for room := maxWrite; len(chunks) > 0 && room > 0; {
			piece := chunks[0][offset:]
			piece = piece[:min(len(piece), room)]
			w.pieces = append(w.pieces, piece)
			room -= len(piece)
			offset += len(piece)
			if offset == len(chunks[0]) {
				chunks, offset = chunks[1:], 0
			}
		}
		if err := w.flush(); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) flush() error {
	w.batch = w.pieces
	n, err := w.batch.WriteTo(w.dst)
	clear(w.pieces)
	w.bytes.Add(uint64(n))
	if w.queue.wrote(n) && w.onLowWater != nil {
		w.onLowWater()
	}
	return err
}
