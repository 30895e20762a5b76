package dispatch

import (
	"encoding/binary"
	"io"
	"math"
	"strings"
	"testing"

	"vllm-vcr/fuzzlimit"
	"vllm-vcr/protocol/enginecore"

	"github.com/google/go-cmp/cmp"
)

func ints(dtype string, shape []int, values ...uint32) enginecore.Tensor {
	var data []byte
	for _, v := range values {
		if strings.HasSuffix(dtype, "8") || strings.HasSuffix(dtype, "64") {
			data = binary.LittleEndian.AppendUint64(data, uint64(v))
		} else {
			data = binary.LittleEndian.AppendUint32(data, v)
		}
	}
	return enginecore.Tensor{DType: dtype, Shape: shape, Data: data}
}

func floats(dtype string, shape []int, values ...float32) enginecore.Tensor {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return enginecore.Tensor{DType: dtype, Shape: shape, Data: data}
}

// row is the logprobs of one token: itself and one alternative.
func row(token, other uint32) *enginecore.Logprobs {
	return &enginecore.Logprobs{
		TokenIDs: ints("<i8", []int{1, 2}, token, other), Logprobs: floats("<f4", []int{1, 2}, -0.5, -1), Ranks: ints("<i4", []int{1}, 1),
	}
}

func TestStream_Logprobs(t *testing.T) {
	r := newRig(t, 1, nil)
	s, last := r.submit(t, request("a", 9)), r.submit(t, request("b", 9))
	prompt := &enginecore.Logprobs{
		TokenIDs: ints("int32", []int{2, 1}, 7, 8), Logprobs: floats("float32", []int{2, 1}, -2, -3), Ranks: ints("int64", []int{2}, 4, 5),
	}
	e := r.engines[0]
	e.send(1, nil, output{s.ID(), enginecore.Output{Tokens: []uint32{1}, Logprobs: row(1, 10), PromptLogprobs: prompt}})
	e.send(2, nil, output{s.ID(), enginecore.Output{Tokens: []uint32{2}, Logprobs: row(2, 20)}})
	e.send(3, nil, finished(last.ID(), enginecore.FinishLength, 1))
	drain(within(t), last)
	c, err := s.Next(within(t))
	if err != nil {
		t.Fatal(err)
	}
	want := Logprobs{Width: 2, Tokens: []uint32{1, 10, 2, 20}, Values: []float32{-0.5, -1, -0.5, -1}, Ranks: []uint32{1, 1}}
	if diff := cmp.Diff(want, c.Logprobs); diff != "" {
		t.Errorf("logprobs (-want +got):\n%s", diff)
	}
	wantPrompt := Logprobs{Width: 1, Tokens: []uint32{7, 8}, Values: []float32{-2, -3}, Ranks: []uint32{4, 5}}
	if diff := cmp.Diff(wantPrompt, c.PromptLogprobs); diff != "" {
		t.Errorf("prompt logprobs (-want +got):\n%s", diff)
	}
	if tokens, values := c.Logprobs.Row(1); !cmp.Equal(tokens, []uint32{2, 20}) || !cmp.Equal(values, []float32{-0.5, -1}) {
		t.Errorf("row 1 = %v, %v", tokens, values)
	}
	e.send(4, nil, output{s.ID(), enginecore.Output{Tokens: []uint32{3}, Finish: enginecore.FinishLength, Logprobs: row(3, 30)}})
	c, err = s.Next(within(t))
	if err != nil || c.Logprobs.Rows() != 1 || c.PromptLogprobs.Rows() != 0 {
		t.Errorf("next chunk: %d rows and %d of the prompt, %v; want 1 and 0", c.Logprobs.Rows(), c.PromptLogprobs.Rows(), err)
	}
}

func TestStream_Pooling(t *testing.T) {
	r := newRig(t, 1, nil)
	req := request("a", 1)
	req.Sampling, req.Pooling = nil, []byte{0x80}
	s := r.submit(t, req)
	vector := floats("float32", []int{3}, 0.5, -0.25, 1)
	r.engines[0].send(1, nil, output{s.ID(), enginecore.Output{Pooling: &vector, Finish: enginecore.FinishStop}})
	c, err := s.Next(within(t))
	if diff := cmp.Diff([]float32{0.5, -0.25, 1}, c.Pooling); diff != "" || err != nil {
		t.Errorf("pooling: %v (-want +got):\n%s", err, diff)
	}
	if _, err := s.Next(within(t)); err != io.EOF {
		t.Errorf("after it: %v, want io.EOF", err)
	}
}

// Tensors of more than 255 bytes come in frames behind the message.
func TestLogprobs_Add_Frames(t *testing.T) {
	from := row(1, 2)
	aux := [][]byte{from.TokenIDs.Data, from.Logprobs.Data}
	from.TokenIDs.Data, from.TokenIDs.Frame = nil, 1
	from.Logprobs.Data, from.Logprobs.Frame = nil, 2
	var l Logprobs
	if err := l.add(from, aux); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Logprobs{Width: 2, Tokens: []uint32{1, 2}, Values: []float32{-0.5, -1}, Ranks: []uint32{1}}, l); diff != "" {
		t.Errorf("logprobs (-want +got):\n%s", diff)
	}
	if err := l.add(from, aux[:1]); err == nil || !strings.Contains(err.Error(), "frame 2 of 1") {
		t.Errorf("missing frame: %v", err)
	}
}

func TestLogprobs_Add_Errors(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*enginecore.Logprobs)
		want   string
	}{
		"flat ids":          {func(l *enginecore.Logprobs) { l.TokenIDs.Shape = []int{2} }, "dimensions"},
		"rows don't match":  {func(l *enginecore.Logprobs) { l.Ranks.Shape = []int{2} }, "don't match"},
		"empty rows":        {func(l *enginecore.Logprobs) { l.TokenIDs.Shape, l.Logprobs.Shape = []int{1, 0}, []int{1, 0} }, "1 rows of nothing"},
		"ids of floats":     {func(l *enginecore.Logprobs) { l.TokenIDs.DType = "<f4" }, `token ids: element type "<f4"`},
		"values of doubles": {func(l *enginecore.Logprobs) { l.Logprobs.DType = "<f8" }, `values: element type "<f8"`},
		"too little data":   {func(l *enginecore.Logprobs) { l.TokenIDs.Data = l.TokenIDs.Data[1:] }, "15 bytes for shape [1 2]"},
		"no data":           {func(l *enginecore.Logprobs) { l.Ranks.Data = nil }, "ranks: 0 bytes"},
		"a negative id":     {func(l *enginecore.Logprobs) { l.TokenIDs.Data[7] = 0xff }, "want 0 to"},
		"another width":     {func(l *enginecore.Logprobs) { *l = *wide() }, "rows of 3 after rows of 2"},
		"a shape that bursts": {func(l *enginecore.Logprobs) {
			l.TokenIDs.Shape, l.Logprobs.Shape, l.Ranks.Shape = huge(2), huge(2), huge(1)
		}, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			var l Logprobs
			if err := l.add(row(1, 2), nil); err != nil {
				t.Fatal(err)
			}
			bad := row(3, 4)
			c.change(bad)
			if err := l.add(bad, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
			if l.Rows() != 1 || len(l.Tokens) != 2 || len(l.Values) != 2 {
				t.Errorf("the error left %+v, want one row", l)
			}
		})
	}
}

func wide() *enginecore.Logprobs {
	return &enginecore.Logprobs{
		TokenIDs: ints("<i8", []int{1, 3}, 1, 2, 3), Logprobs: floats("<f4", []int{1, 3}, -1, -2, -3), Ranks: ints("<i8", []int{1}, 1),
	}
}

func huge(dimensions int) []int {
	return []int{math.MaxInt, 2}[:dimensions]
}

func FuzzAppendTensor(f *testing.F) {
	good := row(1, 2)
	f.Add(good.TokenIDs.DType, uint32(1), uint32(2), uint32(0), good.TokenIDs.Data)
	f.Add(good.Logprobs.DType, uint32(1), uint32(2), uint32(1), good.Logprobs.Data)
	f.Add("int32", uint32(math.MaxUint32), uint32(math.MaxUint32), uint32(9), []byte{1})
	f.Fuzz(func(t *testing.T, dtype string, rows, columns, frame uint32, data []byte) {
		defer fuzzlimit.Watch(t, len(data))()
		elements := uint64(rows) * uint64(columns)
		tensor := enginecore.Tensor{DType: dtype, Shape: []int{int(rows), int(columns)}, Data: data, Frame: frame}
		whole, err := appendInts(nil, &tensor, [][]byte{data})
		if err == nil && uint64(len(whole)) != elements {
			t.Errorf("%d ints of shape %v", len(whole), tensor.Shape)
		}
		broken, err := appendFloats(nil, &tensor, [][]byte{data})
		if err == nil && uint64(len(broken)) != elements {
			t.Errorf("%d floats of shape %v", len(broken), tensor.Shape)
		}
	})
}
