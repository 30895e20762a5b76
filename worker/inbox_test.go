package worker

import (
	"testing"

	"vllm-vcr/fuzzlimit"
	"vllm-vcr/logs"
	"vllm-vcr/protocol/enginecore"
)

// FuzzReader_Decode gives the reader messages of two frames. Whatever they hold, they become an input that can be
// applied, are refused, or mean nothing.
func FuzzReader_Decode(f *testing.F) {
	req := request("a", 3)
	f.Add([]byte{enginecore.FrameAdd}, enginecore.AppendRequest(nil, enginecore.Version{}, &req))
	f.Add([]byte{enginecore.FrameAbort}, enginecore.AppendAbort(nil, []string{"a", "b"}))
	f.Add([]byte{enginecore.FrameUtility}, enginecore.AppendUtility(nil, enginecore.UtilityCall{Method: "sleep", Args: []byte{0x92, 1, 0xa4, 'w', 'a', 'i', 't'}}))
	f.Add([]byte{enginecore.FrameStartWave}, []byte{0x92, 1, 0xc0})
	f.Add([]byte{9, 9}, []byte{0xc1})
	f.Fuzz(func(t *testing.T, kind, payload []byte) {
		defer fuzzlimit.Watch(t, len(payload))()
		r := reader{loop: &loop{outputs: &outputs{log: logs.Nop()}}, clients: 2, vocabulary: 100}
		in, err := r.decode([][]byte{kind, payload})
		if err != nil {
			return
		}
		switch in := in.(type) {
		case arrivalInput:
			if in.request.Client >= 2 || len(in.request.Caller.(*caller).id) == 0 {
				t.Errorf("request %+v", in.request)
			}
		case rejectedInput:
			if in.request.Client >= 2 || in.request.ID == "" {
				t.Errorf("request %+v", in.request)
			}
		}
	})
}
