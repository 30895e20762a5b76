package enginecore

// DecodeAbort reads the ids of an ABORT's payload. The strings are copies.
func DecodeAbort(b []byte) ([]string, error) {
	d := decoder{b: b}
	ids := d.strings()
	return ids, d.end("abort")
}

// AppendAbort appends an ABORT's payload.
func AppendAbort(b []byte, ids []string) []byte { return appendStrings(b, ids) }
