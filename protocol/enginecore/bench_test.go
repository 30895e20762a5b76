package enginecore

import (
	"fmt"
	"testing"
)

const benchRequests = 512

// plainBatch fills b with one token for each of 512 requests, whose ids are as long as a frontend's.
func plainBatch(b *Batch, ids []EncodedID, tokens []uint32) {
	b.Reset(Version{}, 0)
	for i := range ids {
		b.Token(ids[i], tokens[i:i+1])
	}
}

func benchIDs() ([]EncodedID, []uint32) {
	ids := make([]EncodedID, benchRequests)
	tokens := make([]uint32, benchRequests)
	for i := range ids {
		ids[i] = EncodeID(fmt.Sprintf("cmpl-8faf18a50a9a%08x", i))
		tokens[i] = uint32(i * 300)
	}
	return ids, tokens
}

func perToken(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRequests, "ns/token")
}

func BenchmarkBatch_512Tokens(b *testing.B) {
	var batch Batch
	ids, tokens := benchIDs()
	stats := SchedulerStats{Running: benchRequests, KVCacheUsage: 0.5}
	b.ReportAllocs()
	for b.Loop() {
		plainBatch(&batch, ids, tokens)
		batch.Finish(&stats, 1234.5)
	}
	perToken(b)
}

func BenchmarkBatch_512Finished(b *testing.B) {
	var batch Batch
	ids, tokens := benchIDs()
	b.ReportAllocs()
	for b.Loop() {
		batch.Reset(Version{}, 0)
		for i := range ids {
			batch.Add(ids[i], &Output{Tokens: tokens[i : i+1], Finish: FinishLength})
			batch.Finished(ids[i])
		}
		batch.Finish(nil, 1234.5)
	}
	perToken(b)
}

func BenchmarkDecodeOutputs_512Tokens(b *testing.B) {
	var batch Batch
	ids, tokens := benchIDs()
	plainBatch(&batch, ids, tokens)
	message := batch.Finish(&SchedulerStats{}, 1234.5)
	var o Outputs
	b.ReportAllocs()
	for b.Loop() {
		if err := DecodeOutputs(message, &o); err != nil {
			b.Fatal(err)
		}
	}
	perToken(b)
}

func BenchmarkDecodeRequest(b *testing.B) {
	for _, name := range []string{"0.33.0-python-add_chat_simple-add", "0.33.0-rust-add_chat_simple-add"} {
		b.Run(name, func(b *testing.B) {
			payload := goldenNamed(b, name)
			var r Request
			b.ReportAllocs()
			for b.Loop() {
				if err := DecodeRequest(payload, &r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A long prompt, of ids as a real vocabulary has them.
func BenchmarkDecodeRequest_Prompt(b *testing.B) {
	prompt := make([]uint32, 1024)
	for i := range prompt {
		prompt[i] = uint32(i * i % 150_000)
	}
	sampling := DefaultSampling()
	payload := AppendRequest(nil, Version{}, &Request{ID: "cmpl-1", PromptTokens: prompt, Sampling: &sampling})
	var r Request
	b.ReportAllocs()
	for b.Loop() {
		if err := DecodeRequest(payload, &r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(prompt)), "ns/token")
}

func BenchmarkAppendRequest(b *testing.B) {
	var r Request
	if err := DecodeRequest(goldenNamed(b, "0.33.0-python-add_chat_simple-add"), &r); err != nil {
		b.Fatal(err)
	}
	r.Sampling.Wire = nil
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendRequest(buf[:0], Version{}, &r)
	}
}
