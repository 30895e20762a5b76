package enginecore

import (
	"strconv"

	"github.com/tinylib/msgp/msgp"
)

// UtilityCall is the payload of a UTILITY: [client_index, call_id, method, args].
type UtilityCall struct {
	ClientIndex uint32 // the output socket that the answer belongs to
	CallID      CallID
	Method      string
	Args        msgp.Raw // an array; nil for none. Read it with one of the Decode…Args functions
}

var utilityNames = []string{"client_index", "call_id", "method", "args"}

// DecodeUtility reads a UTILITY's payload. Args aliases b.
func DecodeUtility(b []byte) (UtilityCall, error) {
	var c UtilityCall
	d := decoder{b: b}
	n := d.array(utilityNames, func(i int) {
		switch i {
		case 0:
			c.ClientIndex = d.uint32()
		case 1:
			c.CallID = d.callID()
		case 2:
			c.Method = d.string()
		case 3:
			c.Args = d.args()
		default:
			d.skip()
		}
	})
	if d.err == nil && n < 3 {
		d.fail("%d elements, want at least 3", n)
	}
	return c, d.end("utility call")
}

// args reads an array without looking into it.
func (d *decoder) args() msgp.Raw {
	if d.err == nil && !msgp.IsNil(d.b) && msgp.NextType(d.b) != msgp.ArrayType {
		d.fail("%s, want an array", msgp.NextType(d.b))
	}
	return d.raw()
}

// AppendUtility appends a UTILITY's payload; no args are an empty array.
func AppendUtility(b []byte, c UtilityCall) []byte {
	b = msgp.AppendArrayHeader(b, 4)
	b = msgp.AppendUint32(b, c.ClientIndex)
	b = c.CallID.append(b)
	b = msgp.AppendString(b, c.Method)
	if len(c.Args) == 0 {
		return msgp.AppendArrayHeader(b, 0)
	}
	return append(b, c.Args...)
}

// CallID tells the utility calls of one frontend apart. It is any integer of msgpack, signed or unsigned, of which -1 and -2 are
// reserved for notices that nobody asked for. It is comparable, and made by [NewCallID] or a decoder.
type CallID struct {
	bits     uint64 // as two's complement where negative
	negative bool
}

// NewCallID is the id with the value n.
func NewCallID(n uint64) CallID { return CallID{bits: n} }

// String is the id in decimal.
func (id CallID) String() string {
	if id.negative {
		return strconv.FormatInt(int64(id.bits), 10)
	}
	return strconv.FormatUint(id.bits, 10)
}

func (id CallID) append(b []byte) []byte {
	if id.negative {
		return msgp.AppendInt64(b, int64(id.bits))
	}
	return msgp.AppendUint64(b, id.bits)
}

func (d *decoder) callID() CallID {
	if d.err == nil && msgp.NextType(d.b) == msgp.IntType {
		n := d.int()
		return CallID{bits: uint64(n), negative: n < 0}
	}
	return CallID{bits: d.uint()}
}
