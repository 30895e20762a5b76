package enginecore

import "github.com/tinylib/msgp/msgp"

// Positions in an EngineCoreOutputs; the last exists from 0.33 on. The Rust frontend takes a message for one of three kinds and
// refuses a mix: outputs, stats and finished requests; or a utility result alone; or one of the two wave notices alone.
const (
	outputsEngineIndex = iota
	outputsRequests
	outputsStats
	outputsTimestamp
	outputsUtility
	outputsFinished
	outputsWaveComplete
	outputsStartWave
	outputsWeightVersion
)

// headRoom is space for what goes before the outputs, written last: the header of the message (1 byte), the engine's index and the
// header of the outputs (at most 5 each).
const headRoom = 11

// keptCapacity is the most that a Batch keeps of each buffer from one message to the next, in bytes: one burst must not hold its
// memory for ever.
const keptCapacity = 1 << 20

// Batch builds in place the EngineCoreOutputs that one step of an engine sends to one client. It allocates nothing once its buffers
// have grown. Call Reset first, then Token, Add and Finished in any order, then Finish.
type Batch struct {
	version       Version
	engine        uint32
	buf           []byte // headRoom bytes, then the outputs
	outputs       int
	finished      []byte // ids
	finishedCount int
	weightVersion string
}

// Reset empties the batch, for a message of the engine with that index (its rank) on line v.
func (b *Batch) Reset(v Version, engineIndex uint32) {
	if b.buf == nil || cap(b.buf) > keptCapacity {
		b.buf = make([]byte, headRoom, 4096)
	}
	if cap(b.finished) > keptCapacity {
		b.finished = nil
	}
	*b = Batch{version: v, engine: engineIndex, buf: b.buf[:headRoom], finished: b.finished[:0]}
}

// Token adds an output that is nothing but tokens. Neither slice is kept.
func (b *Batch) Token(id EncodedID, tokens []uint32) {
	b.outputs++
	buf := append(b.buf, 0x92) // an array of two
	buf = append(buf, id...)
	if len(tokens) == 1 {
		buf = append(buf, 0x91)
		b.buf = msgp.AppendUint32(buf, tokens[0])
		return
	}
	buf = msgp.AppendArrayHeader(buf, uint32(len(tokens)))
	for _, t := range tokens {
		buf = msgp.AppendUint32(buf, t)
	}
	b.buf = buf
}

// Add adds any output. Nothing of o is kept.
func (b *Batch) Add(id EncodedID, o *Output) {
	b.outputs++
	b.buf = appendOutput(b.buf, b.version, id, o)
}

// Finished adds a request to those that this message declares finished.
func (b *Batch) Finished(id EncodedID) {
	b.finishedCount++
	b.finished = append(b.finished, id...)
}

// WeightVersion labels the message with the version of the weights its outputs were made with; lines before 0.33 don't say it.
func (b *Batch) WeightVersion(label string) { b.weightVersion = label }

// Len is the number of outputs so far.
func (b *Batch) Len() int { return b.outputs }

// Size is the number of bytes so far, without what Finish adds before and behind.
func (b *Batch) Size() int { return max(0, len(b.buf)-headRoom) + len(b.finished) }

// Finish completes the message and returns it; it is valid until the next Reset. The timestamp is in seconds by the engine's
// monotonic clock. Without outputs, stats and finished requests there is nothing to say, which no frontend takes: the result is nil.
func (b *Batch) Finish(stats *SchedulerStats, timestamp float64) []byte {
	if b.outputs == 0 && b.finishedCount == 0 && stats == nil {
		return nil
	}
	n := b.elements()
	b.buf = appendStats(b.buf, b.version, stats)
	b.buf = msgp.AppendFloat64(b.buf, timestamp)
	if n > outputsUtility {
		b.buf = msgp.AppendNil(b.buf)
		b.buf = b.appendFinished(b.buf)
	}
	if n > outputsWeightVersion {
		b.buf = msgp.AppendNil(msgp.AppendNil(b.buf)) // the waves
		b.buf = msgp.AppendString(b.buf, b.weightVersion)
	}
	return b.withHead(n)
}

// elements is the length of the message: up to its last element that says something.
func (b *Batch) elements() int {
	switch {
	case b.weightVersion != "" && b.version.AtLeast(33):
		return outputsWeightVersion + 1
	case b.finishedCount > 0:
		return outputsFinished + 1
	default:
		return outputsTimestamp + 1
	}
}

func (b *Batch) appendFinished(buf []byte) []byte {
	if b.finishedCount == 0 {
		return msgp.AppendNil(buf)
	}
	buf = msgp.AppendArrayHeader(buf, uint32(b.finishedCount))
	return append(buf, b.finished...)
}

// withHead writes what goes before the outputs, so that it ends where they begin.
func (b *Batch) withHead(elements int) []byte {
	var room [headRoom]byte
	head := msgp.AppendArrayHeader(room[:0], uint32(elements))
	head = msgp.AppendUint32(head, b.engine)
	head = msgp.AppendArrayHeader(head, uint32(b.outputs))
	start := headRoom - len(head)
	copy(b.buf[start:], head)
	return b.buf[start:]
}
