package enginecore

import (
	"bytes"
	"slices"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"vllm-vcr/fuzzlimit"
)

// seed adds every golden of a kind, and shapes that no frontend sends.
func seed(f *testing.F, kind string, add func(b []byte)) {
	f.Helper()
	for _, g := range goldens(f) {
		if g.kind() == kind {
			add(g.payload())
		}
	}
	for _, b := range [][]byte{
		{}, {0xc0}, {0xc1}, {0x90}, {0x80}, {0xdd, 0xff, 0xff, 0xff, 0xff}, {0xdf, 0xff, 0xff, 0xff, 0xff}, bytes.Repeat([]byte{0x91}, 4096),
	} {
		add(b)
	}
}

// recode decodes a message and encodes what came out.
type recode func(b []byte) ([]byte, error)

// stable holds the property of all decoders that have an encoder: what is encoded decodes, and says the same.
func stable(t *testing.T, b []byte, again recode) {
	t.Helper()
	defer fuzzlimit.Watch(t, len(b))()
	first, err := again(b)
	if err != nil || first == nil {
		return
	}
	first = slices.Clone(first)
	second, err := again(first)
	if err != nil {
		t.Fatalf("%x became %x: %v", b, first, err)
	}
	if !bytes.Equal(first, second) {
		t.Fatalf("%x became\n%x, and that\n%x", b, first, second)
	}
}

func fuzzBytes(f *testing.F, kind string, again recode) {
	f.Helper()
	seed(f, kind, func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) { stable(t, b, again) })
}

func FuzzDecodeRequest(f *testing.F) {
	seed(f, "add", func(b []byte) { f.Add(b, true) })
	f.Fuzz(func(t *testing.T, b []byte, keepWire bool) {
		var r Request
		stable(t, b, func(b []byte) ([]byte, error) {
			if err := DecodeRequest(b, &r); err != nil {
				return nil, err
			}
			if r.Sampling != nil && !keepWire {
				r.Sampling.Wire = nil
			}
			return AppendRequest(nil, Version{}, &r), nil
		})
	})
}

func FuzzDecodeAbort(f *testing.F) {
	fuzzBytes(f, "abort", func(b []byte) ([]byte, error) {
		ids, err := DecodeAbort(b)
		return AppendAbort(nil, ids), err
	})
}

func FuzzDecodeUtility(f *testing.F) {
	fuzzBytes(f, "utility", func(b []byte) ([]byte, error) {
		call, err := DecodeUtility(b)
		return AppendUtility(nil, call), err
	})
}

func FuzzDecodeArgs(f *testing.F) {
	for _, g := range goldens(f) {
		if g.kind() == "utility" {
			call, err := DecodeUtility(g.payload())
			if err != nil {
				f.Fatal(err)
			}
			f.Add([]byte(call.Args))
		}
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		defer fuzzlimit.Watch(t, len(args))()
		for _, decode := range argReaders {
			_ = decode(args) // any error will do: it must not panic
		}
	})
}

func FuzzDecodeStartWave(f *testing.F) {
	fuzzBytes(f, "start wave", func(b []byte) ([]byte, error) {
		w, err := DecodeStartWave(b)
		return AppendStartWave(nil, w), err
	})
}

func FuzzDecodeHello(f *testing.F) {
	fuzzBytes(f, "hello", func(b []byte) ([]byte, error) {
		h, err := DecodeHello(b)
		return AppendHello(nil, h), err
	})
}

func FuzzDecodeInit(f *testing.F) {
	fuzzBytes(f, "init", func(b []byte) ([]byte, error) {
		in, err := DecodeInit(b)
		return AppendInit(nil, in), err
	})
}

func FuzzDecodeReady(f *testing.F) {
	fuzzBytes(f, "ready response", func(b []byte) ([]byte, error) {
		r, err := DecodeReady(b)
		return AppendReady(nil, &r), err
	})
}

func FuzzDecodeOutputs(f *testing.F) {
	seed(f, "outputs", func(b []byte) { f.Add(b, uint8(0)); f.Add(b, uint8(newestMinor-oldestMinor)) })
	f.Fuzz(func(t *testing.T, b []byte, behind uint8) {
		o := Outputs{Version: Version{behind: behind % (newestMinor - oldestMinor + 1)}}
		stable(t, b, func(b []byte) ([]byte, error) {
			err := DecodeOutputs(b, &o)
			if err != nil {
				return nil, err
			}
			return encodeOutputs(&o), nil
		})
	})
}

// skip agrees with the library's, which recurses, on what a value is and where it ends.
func FuzzSkip(f *testing.F) {
	seed(f, "outputs", func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) {
		defer fuzzlimit.Watch(t, len(b))()
		rest, err := skip(b)
		want, wantErr := msgp.Skip(b)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("skip(%x): %v, the library: %v", b, err, wantErr)
		}
		if err == nil && len(rest) != len(want) {
			t.Fatalf("skip(%x): %d bytes left, the library has %d", b, len(rest), len(want))
		}
	})
}
