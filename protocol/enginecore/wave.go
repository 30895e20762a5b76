package enginecore

import "github.com/tinylib/msgp/msgp"

// StartWave is the payload of a START_DP_WAVE, which a coordinator sends to all its engines: [wave, exclude].
type StartWave struct {
	Wave uint64
	// Exclude is the engine that has begun already. Coordinators send its rank, or its identity: two bytes, little-endian.
	Exclude Optional[uint64]
	// ByIdentity tells that Exclude was sent as an identity, and is to be written so.
	ByIdentity bool
}

var waveNames = []string{"wave", "exclude_engine_index"}

// DecodeStartWave reads a START_DP_WAVE's payload.
func DecodeStartWave(b []byte) (StartWave, error) {
	var w StartWave
	d := decoder{b: b}
	n := d.array(waveNames, func(i int) {
		switch i {
		case 0:
			w.Wave = d.uint()
		case 1:
			w.Exclude, w.ByIdentity = d.excluded()
		default:
			d.skip()
		}
	})
	if d.err == nil && n < 1 {
		d.fail("no elements, want at least 1")
	}
	return w, d.end("start wave")
}

func (d *decoder) excluded() (engine Optional[uint64], byIdentity bool) {
	if d.err != nil || msgp.NextType(d.b) != msgp.BinType {
		return d.optionalUint(), false
	}
	identity, rest, err := msgp.ReadBytesZC(d.b)
	d.took(rest, err)
	if d.err == nil && len(identity) != 2 {
		d.fail("identity of %d bytes, want 2", len(identity))
	}
	if d.err != nil {
		return engine, false
	}
	return Some(uint64(identity[0]) | uint64(identity[1])<<8), true
}

// AppendStartWave appends a START_DP_WAVE's payload.
func AppendStartWave(b []byte, w StartWave) []byte {
	b = msgp.AppendArrayHeader(b, 2)
	b = msgp.AppendUint64(b, w.Wave)
	if w.ByIdentity && w.Exclude.Set {
		return msgp.AppendBytes(b, []byte{byte(w.Exclude.Value), byte(w.Exclude.Value >> 8)})
	}
	return appendOptionalUint(b, w.Exclude)
}
