package enginecore

import "github.com/tinylib/msgp/msgp"

// scalarKey describes a key that always has a value.
func scalarKey[T comparable](
	name string, def T, field func(*SamplingParams) *T, read func(*decoder) T, write func([]byte, T) []byte,
) samplingKey {
	return samplingKey{
		name: name,
		read: func(d *decoder, s *SamplingParams) {
			if !d.null() {
				*field(s) = read(d)
			}
		},
		isDefault: func(s *SamplingParams) bool { return *field(s) == def },
		write:     func(b []byte, s *SamplingParams) []byte { return write(b, *field(s)) },
	}
}

// listKey describes a key that holds a list, empty by default.
func listKey[T any](
	name string, field func(*SamplingParams) *[]T, read func(*decoder) []T, write func([]byte, []T) []byte,
) samplingKey {
	return samplingKey{
		name:      name,
		read:      func(d *decoder, s *SamplingParams) { *field(s) = read(d) },
		isDefault: func(s *SamplingParams) bool { return len(*field(s)) == 0 },
		write:     func(b []byte, s *SamplingParams) []byte { return write(b, *field(s)) },
	}
}

func floatKey(name string, def float64, field func(*SamplingParams) *float64) samplingKey {
	return scalarKey(name, def, field, (*decoder).float, msgp.AppendFloat64)
}

func intKey(name string, field func(*SamplingParams) *int64) samplingKey {
	return scalarKey(name, 0, field, (*decoder).int, appendInt)
}

func uintKey(name string, field func(*SamplingParams) *uint64) samplingKey {
	return scalarKey(name, 0, field, (*decoder).uint, msgp.AppendUint64)
}

func uint32Key(name string, def uint32, field func(*SamplingParams) *uint32) samplingKey {
	return scalarKey(name, def, field, (*decoder).uint32, msgp.AppendUint32)
}

func boolKey(name string, def bool, field func(*SamplingParams) *bool) samplingKey {
	return scalarKey(name, def, field, (*decoder).bool, msgp.AppendBool)
}

func optionalIntKey(name string, field func(*SamplingParams) *Optional[int64]) samplingKey {
	return scalarKey(name, Optional[int64]{}, field, (*decoder).optionalInt, appendOptionalInt)
}

func optionalUintKey(name string, field func(*SamplingParams) *Optional[uint64]) samplingKey {
	return scalarKey(name, Optional[uint64]{}, field, (*decoder).optionalUint, appendOptionalUint)
}

func optionalUint32Key(name string, field func(*SamplingParams) *Optional[uint32]) samplingKey {
	return scalarKey(name, Optional[uint32]{}, field, (*decoder).optionalUint32, appendOptionalUint32)
}

func optionalBoolKey(name string, field func(*SamplingParams) *Optional[bool]) samplingKey {
	return scalarKey(name, Optional[bool]{}, field, (*decoder).optionalBool, appendOptionalBool)
}

func stringsKey(name string, field func(*SamplingParams) *[]string) samplingKey {
	return listKey(name, field, (*decoder).strings, appendStrings)
}

func tokensKey(name string, field func(*SamplingParams) *[]uint32) samplingKey {
	read := func(d *decoder) []uint32 { return d.uint32s(nil, MaxItems) }
	write := func(b []byte, tokens []uint32) []byte {
		if tokens == nil {
			return msgp.AppendArrayHeader(b, 0)
		}
		return appendTokens(b, tokens)
	}
	return listKey(name, field, read, write)
}

func opaqueKey(name string, field func(*SamplingParams) *msgp.Raw) samplingKey {
	return samplingKey{
		name:      name,
		read:      func(d *decoder, s *SamplingParams) { *field(s) = d.raw() },
		isDefault: func(s *SamplingParams) bool { return len(*field(s)) == 0 },
		write:     func(b []byte, s *SamplingParams) []byte { return appendRaw(b, *field(s)) },
	}
}

// maxTokensKey is the one key whose nil is no default: it lifts the limit.
func maxTokensKey() samplingKey {
	return samplingKey{
		name: "max_tokens",
		read: func(d *decoder, s *SamplingParams) {
			s.MaxTokens = Unlimited
			if !d.null() {
				s.MaxTokens = d.uint32()
			}
		},
		isDefault: func(s *SamplingParams) bool { return s.MaxTokens == 16 },
		write: func(b []byte, s *SamplingParams) []byte {
			return appendOptionalUint32(b, Optional[uint32]{Value: s.MaxTokens, Set: s.MaxTokens != Unlimited})
		},
	}
}

func repetitionKey() samplingKey {
	return samplingKey{
		name:      "repetition_detection",
		read:      func(d *decoder, s *SamplingParams) { s.RepetitionDetection = d.repetition() },
		isDefault: func(s *SamplingParams) bool { return s.RepetitionDetection == nil },
		write:     func(b []byte, s *SamplingParams) []byte { return appendRepetition(b, s.RepetitionDetection) },
	}
}

func (d *decoder) repetition() *RepetitionDetection {
	if d.null() {
		return nil
	}
	r := &RepetitionDetection{}
	d.fields(func(key []byte) {
		switch string(key) {
		case "max_pattern_size":
			r.MaxPatternSize = d.uint()
		case "min_pattern_size":
			r.MinPatternSize = d.uint()
		case "min_count":
			r.MinCount = d.uint()
		default:
			d.skip()
		}
	})
	return r
}

func appendRepetition(b []byte, r *RepetitionDetection) []byte {
	if r == nil {
		return msgp.AppendNil(b)
	}
	b = msgp.AppendMapHeader(b, 3)
	b = appendUintField(b, "max_pattern_size", r.MaxPatternSize)
	b = appendUintField(b, "min_pattern_size", r.MinPatternSize)
	return appendUintField(b, "min_count", r.MinCount)
}
