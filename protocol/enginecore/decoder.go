package enginecore

import (
	"fmt"
	"math"

	"github.com/tinylib/msgp/msgp"
)

// decoder reads one message from front to back and keeps the first error; after it every read gives the zero value. A nil reads as
// the zero value of whatever is asked for.
type decoder struct {
	b   []byte
	err error
}

// fail records an error unless there is one.
func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// within puts a name before an error that arose while what it names was read.
func (d *decoder) within(name string) {
	if d.err != nil {
		d.err = fmt.Errorf("%s: %w", name, d.err)
	}
}

// at does the same for an element of an array.
func (d *decoder) at(i int) {
	if d.err != nil {
		d.err = fmt.Errorf("element %d: %w", i, d.err)
	}
}

// null consumes a nil. It reports true after an error too, so that a reader may stop at it.
func (d *decoder) null() bool {
	if d.err != nil {
		return true
	}
	if !msgp.IsNil(d.b) {
		return false
	}
	d.b = d.b[1:]
	return true
}

func (d *decoder) skip() {
	if d.err == nil {
		d.b, d.err = skip(d.b)
	}
}

// raw reads any value; nil gives nil. The result aliases the message.
func (d *decoder) raw() msgp.Raw {
	if d.null() {
		return nil
	}
	start := d.b
	d.skip()
	if d.err != nil {
		return nil
	}
	n := len(start) - len(d.b)
	return msgp.Raw(start[:n:n])
}

func (d *decoder) uint() uint64 {
	if d.null() {
		return 0
	}
	v, rest, err := msgp.ReadUint64Bytes(d.b)
	d.took(rest, err)
	return v
}

func (d *decoder) uint32() uint32 {
	v := d.uint()
	if v > math.MaxUint32 {
		d.fail("%d, want at most %d", v, uint32(math.MaxUint32))
		return 0
	}
	return uint32(v)
}

func (d *decoder) int() int64 {
	if d.null() {
		return 0
	}
	v, rest, err := msgp.ReadInt64Bytes(d.b)
	d.took(rest, err)
	return v
}

// float reads a number of any kind.
func (d *decoder) float() float64 {
	if d.null() {
		return 0
	}
	switch msgp.NextType(d.b) {
	case msgp.IntType:
		return float64(d.int())
	case msgp.UintType:
		return float64(d.uint())
	}
	v, rest, err := msgp.ReadFloat64Bytes(d.b)
	d.took(rest, err)
	return v
}

func (d *decoder) bool() bool {
	if d.null() {
		return false
	}
	v, rest, err := msgp.ReadBoolBytes(d.b)
	d.took(rest, err)
	return v
}

// text reads a string; the result aliases the message.
func (d *decoder) text() []byte {
	if d.null() {
		return nil
	}
	v, rest, err := msgp.ReadStringZC(d.b)
	d.took(rest, err)
	return v
}

func (d *decoder) string() string { return string(d.text()) }

func (d *decoder) took(rest []byte, err error) {
	if err != nil {
		d.err = err
		return
	}
	d.b = rest
}

// arrayLen reads the header of an array of at most limit elements. Nil counts as empty.
func (d *decoder) arrayLen(limit int) int {
	if d.null() {
		return 0
	}
	n, rest, err := msgp.ReadArrayHeaderBytes(d.b)
	d.took(rest, err)
	if d.err != nil {
		return 0
	}
	if uint64(n) > uint64(len(rest)) {
		d.fail("array of %d elements in %d bytes", n, len(rest))
		return 0
	}
	if int(n) > limit {
		d.fail("array of %d elements, want at most %d", n, limit)
		return 0
	}
	return int(n)
}

// array reads an array whose elements are named (as far as names go) and calls each for every element, which must consume it.
func (d *decoder) array(names []string, each func(i int)) int {
	n := d.arrayLen(MaxItems)
	for i := 0; i < n && d.err == nil; i++ {
		each(i)
		if i < len(names) {
			d.within(names[i])
		} else {
			d.at(i)
		}
	}
	return n
}

// fields reads a map with string keys and calls each for every key, which must consume the value. Nil counts as empty.
func (d *decoder) fields(each func(key []byte)) {
	if d.null() {
		return
	}
	n, rest, err := msgp.ReadMapHeaderBytes(d.b)
	d.took(rest, err)
	if d.err == nil && 2*uint64(n) > uint64(len(rest)) {
		d.fail("map of %d pairs in %d bytes", n, len(rest))
	}
	for i := uint32(0); i < n && d.err == nil; i++ {
		d.field(int(i), each)
	}
}

func (d *decoder) field(i int, each func(key []byte)) {
	if t := msgp.NextType(d.b); t != msgp.StrType { // no map of ours has such keys: nothing we know
		d.skip()
		d.skip()
		d.at(i)
		return
	}
	key := d.text()
	if d.err == nil {
		each(key)
	}
	if d.err != nil {
		d.within(fmt.Sprintf("key %.64q", key))
	}
}

// uint32s reads an array of numbers into dst, overwriting it. Nil gives nil, an empty array an empty slice.
func (d *decoder) uint32s(dst []uint32, limit int) []uint32 {
	if d.null() {
		return nil
	}
	n := d.arrayLen(limit)
	if d.err != nil {
		return nil
	}
	if cap(dst) < n || dst == nil {
		dst = make([]uint32, 0, n)
	}
	dst, d.b = appendPlainTokens(dst[:0], d.b, n)
	for i := len(dst); i < n && d.err == nil; i++ {
		dst = append(dst, d.uint32())
		d.at(i)
	}
	return dst
}

// uints reads an array of numbers into dst, overwriting it. Nil gives nil.
func (d *decoder) uints(dst []uint64) []uint64 {
	if d.null() {
		return nil
	}
	dst = append(dst[:0], make([]uint64, d.arrayLen(MaxItems))...)
	for i := 0; i < len(dst) && d.err == nil; i++ {
		dst[i] = d.uint()
		d.at(i)
	}
	return dst
}

// strings reads an array of strings. Nil gives nil, an empty array an empty slice.
func (d *decoder) strings() []string {
	if d.null() {
		return nil
	}
	out := make([]string, d.arrayLen(MaxItems))
	for i := range out {
		out[i] = d.string()
		d.at(i)
		if d.err != nil {
			return nil
		}
	}
	return out
}

// end closes a message: the error so far, under the message's name. Bytes behind the message are an error.
func (d *decoder) end(message string) error {
	if d.err == nil && len(d.b) > 0 {
		d.fail("%d bytes behind the message", len(d.b))
	}
	if d.err != nil {
		return fmt.Errorf("%s: %w", message, d.err)
	}
	return nil
}
