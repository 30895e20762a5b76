package enginecore

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tinylib/msgp/msgp"
)

func TestHello_RoundTrip(t *testing.T) {
	for _, want := range []Hello{
		{Status: StatusHello, Headless: true},
		{Status: StatusReady, Local: true},
		{Status: StatusReady, Headless: true, ParallelConfigHash: "0123abcd"},
	} {
		got, err := DecodeHello(AppendHello(nil, want))
		if err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

// A Rust-made message has a nil hash, and an elastic one keys of its own.
func TestDecodeHello_Tolerance(t *testing.T) {
	b := append([]byte{0x85}, AppendHello(nil, Hello{Status: StatusHello, Headless: true})[1:]...)
	b = msgp.AppendNil(msgp.AppendString(b, "parallel_config_hash"))
	b = msgp.AppendInt(msgp.AppendString(b, "coord_store_port"), 1)
	if got, err := DecodeHello(b); err != nil || got != (Hello{Status: StatusHello, Headless: true}) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, b := range [][]byte{nil, {0x80}, {0xc0}, {0x90}, {0x81, 0xa1, 'a'}, []byte(EngineCoreDead)} {
		if _, err := DecodeHello(b); err == nil || !strings.HasPrefix(err.Error(), "handshake message: ") {
			t.Errorf("DecodeHello(%x): error %v", b, err)
		}
	}
}

func TestDecodeInit_Addresses(t *testing.T) {
	two := []string{"tcp://a:1", "tcp://a:2"}
	for _, c := range []struct {
		name, want string
		in         Init
	}{
		{"fine", "", Init{Inputs: two, Outputs: two, CoordinatorInput: "i", CoordinatorOutput: "o", StatsPublish: "p", ParallelConfig: msgp.Raw{0x80}}},
		{"no input", "no input", Init{}},
		{"one output too few", "2 inputs, 1 outputs, want as many", Init{Inputs: two, Outputs: two[:1]}},
		{"half a coordinator", `coordinator input "i", output "", want both or none`, Init{Inputs: two, Outputs: two, CoordinatorInput: "i"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := DecodeInit(AppendInit(nil, c.in))
			if c.want == "" {
				if diff := cmp.Diff(c.in, got); err != nil || diff != "" {
					t.Errorf("%v, init differs (-want +got):\n%s", err, diff)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

// Optional keys may be missing, and others be there.
func TestDecodeInit_Tolerance(t *testing.T) {
	b := msgp.AppendMapHeader(nil, 2)
	b = msgp.AppendNil(msgp.AppendString(b, "later"))
	b = msgp.AppendMapHeader(msgp.AppendString(b, "addresses"), 3)
	b = appendStrings(msgp.AppendString(b, "outputs"), []string{"o"})
	b = appendStrings(msgp.AppendString(b, "inputs"), []string{"i"})
	b = msgp.AppendBool(msgp.AppendString(b, "later"), true)
	got, err := DecodeInit(b)
	if diff := cmp.Diff(Init{Inputs: []string{"i"}, Outputs: []string{"o"}}, got); err != nil || diff != "" {
		t.Errorf("%v, init differs (-want +got):\n%s", err, diff)
	}
}

func TestReady_RoundTrip(t *testing.T) {
	want := ReadyResponse{
		MaxModelLen: 1, GPUBlocks: 2, BlockSize: 3, StatsAddress: "s", DType: "float32", Version: "0.33.0", WorldSize: 4, DataParallelSize: 5,
		TensorParallelSize: 6, PipelineParallelSize: 7, DecodeContextParallelSize: 8, DataParallelRank: 9, MaxNumSeqs: 10,
		MaxNumBatchedTokens: 11, InstanceID: "id", SupportsLoRA: true, MaxLoRAs: 12, MambaBlockSize: Some[uint64](0), KVCacheTokens: Some[uint64](13),
		KVCacheConcurrency: Some(1.0), WeightTransferBackend: "w", EnableSleepMode: true, SupportsDraftWeightUpdates: true,
		AttentionBlockSize: Some[uint64](14), CoordStorePort: 15, CoordinatorInput: "i", CoordinatorOutput: "o",
		KVEvents: &KVEventsConfig{
			Enabled: true, Publisher: "zmq", Endpoint: "tcp://*:1", ReplayEndpoint: "r", BufferSteps: 16, HighWater: 17, MaxQueueSize: 18, Topic: "t",
		},
	}
	got, err := DecodeReady(AppendReady(nil, &want))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, registration differs (-want +got):\n%s", err, diff)
	}
}

// Python frontends refuse a registration without one of these keys, whatever it holds.
func TestAppendReady_RequiredKeys(t *testing.T) {
	got := generic(t, AppendReady(nil, &ReadyResponse{})).(map[string]any)
	for _, key := range []string{
		"max_model_len", "num_gpu_blocks", "block_size", "dp_stats_address", "dtype", "vllm_version", "world_size", "data_parallel_size",
		"tensor_parallel_size", "pipeline_parallel_size", "decode_context_parallel_size", "data_parallel_rank", "max_num_seqs",
		"max_num_batched_tokens", "instance_id", "supports_lora", "max_loras",
	} {
		if _, there := got[key]; !there {
			t.Errorf("no key %s", key)
		}
	}
	if got["dp_stats_address"] != nil {
		t.Errorf("dp_stats_address = %v, want nil", got["dp_stats_address"])
	}
}

func TestDecodeStartWave(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		want StartWave
	}{
		{[]byte{0x92, 4, 1}, StartWave{Wave: 4, Exclude: Some[uint64](1)}},
		{[]byte{0x92, 4, 0xc0}, StartWave{Wave: 4}},
		{[]byte{0x91, 4}, StartWave{Wave: 4}},
		{[]byte{0x92, 0, 0xc4, 2, 1, 2}, StartWave{Exclude: Some[uint64](0x201), ByIdentity: true}},
		{[]byte{0x93, 4, 1, 0x80}, StartWave{Wave: 4, Exclude: Some[uint64](1)}},
	} {
		if got, err := DecodeStartWave(c.b); err != nil || got != c.want {
			t.Errorf("DecodeStartWave(%x) = %+v, %v, want %+v", c.b, got, err, c.want)
		}
	}
	for _, b := range [][]byte{nil, {0x90}, {0x92, 0xff, 1}, {0x92, 0, 0xc4, 3, 1, 2, 3}, {0x92, 0, 0xc4, 9, 1}, {0x92, 0, 0xa1, 'x'}} {
		if _, err := DecodeStartWave(b); err == nil || !strings.HasPrefix(err.Error(), "start wave: ") {
			t.Errorf("DecodeStartWave(%x): error %v", b, err)
		}
	}
}

func TestDecodeAbort(t *testing.T) {
	if ids, err := DecodeAbort([]byte{0x92, 0xa1, 'a', 0xa0}); err != nil || !cmp.Equal(ids, []string{"a", ""}) {
		t.Errorf("ids %q, %v", ids, err)
	}
	for want, b := range map[string][]byte{
		"abort: array of 4294967295 elements in 1 bytes": {0xdd, 0xff, 0xff, 0xff, 0xff, 0xa0},
		"abort: element 1: ":                             {0x92, 0xa1, 'a', 7},
		"abort: 1 bytes":                                 {0x90, 0xc0},
	} {
		if _, err := DecodeAbort(b); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("DecodeAbort(%x): error %v, want %q", b, err, want)
		}
	}
	many := append([]byte{0xdd, 0, 0x10, 0, 1}, make([]byte, 2*MaxItems)...)
	if _, err := DecodeAbort(many); err == nil || !strings.Contains(err.Error(), "array of 1048577 elements, want at most 1048576") {
		t.Errorf("more ids than allowed: error %v", err)
	}
}
