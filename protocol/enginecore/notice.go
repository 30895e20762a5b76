package enginecore

import "github.com/tinylib/msgp/msgp"

// AppendUtilityResult appends the whole message that answers a utility call. The value is msgpack, one value; empty means nil, which
// is what methods without a result answer. For the timestamp see [Batch.Finish].
func AppendUtilityResult(b []byte, engineIndex uint32, timestamp float64, id CallID, value msgp.Raw) []byte {
	b = appendUtilityHead(b, engineIndex, timestamp, id)
	b = msgp.AppendNil(b)
	b = msgp.AppendArrayHeader(b, 2) // [type, value]: no type, as one is refused
	return appendRaw(msgp.AppendNil(b), value)
}

// AppendUtilityFailure appends the whole message that refuses a utility call. The text reaches the client of the frontend.
func AppendUtilityFailure(b []byte, engineIndex uint32, timestamp float64, id CallID, text string) []byte {
	b = appendUtilityHead(b, engineIndex, timestamp, id)
	return msgp.AppendNil(msgp.AppendString(b, text))
}

func appendUtilityHead(b []byte, engineIndex uint32, timestamp float64, id CallID) []byte {
	b = appendNoOutputs(b, outputsUtility+1, engineIndex, timestamp)
	b = msgp.AppendArrayHeader(b, 3)
	return id.append(b)
}

// AppendOutputsWaveComplete appends the whole message by which rank 0 tells a coordinator that all ranks ran idle in a wave.
func AppendOutputsWaveComplete(b []byte, engineIndex uint32, timestamp float64, wave uint64) []byte {
	b = appendNoOutputs(b, outputsWaveComplete+1, engineIndex, timestamp)
	b = msgp.AppendNil(msgp.AppendNil(b))
	return msgp.AppendUint64(b, wave)
}

// AppendOutputsStartWave appends the whole message by which an idle engine that got a request asks a coordinator to start a wave.
func AppendOutputsStartWave(b []byte, engineIndex uint32, timestamp float64, wave uint64) []byte {
	b = appendNoOutputs(b, outputsStartWave+1, engineIndex, timestamp)
	b = msgp.AppendNil(msgp.AppendNil(msgp.AppendNil(b)))
	return msgp.AppendUint64(b, wave)
}

// appendNoOutputs writes the first four elements of a message without outputs and stats.
func appendNoOutputs(b []byte, elements, engineIndex uint32, timestamp float64) []byte {
	b = msgp.AppendArrayHeader(b, elements)
	b = msgp.AppendUint32(b, engineIndex)
	b = msgp.AppendArrayHeader(b, 0)
	b = msgp.AppendNil(b)
	return msgp.AppendFloat64(b, timestamp)
}
