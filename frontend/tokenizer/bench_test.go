package tokenizer

import (
	"strings"
	"testing"
)

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	text := strings.Repeat("The engine waits for the next step, and the queue behind it grows. ", 1000)
	ids := 0
	b.ReportAllocs()
	for b.Loop() {
		ids += len(vocabulary().Encode(text))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(ids), "ns/token")
}

func BenchmarkDetokenizer(b *testing.B) {
	ids := vocabulary().Encode(strings.Repeat("The engine waits for the next step, and the queue behind it grows. ", 1000))
	for name, s := range map[string]*Stops{"plain": nil, "stops": stops(b, "\n\nHuman:", "<|im_end|>")} {
		b.Run(name, func(b *testing.B) {
			var buf []byte
			fed := 0
			b.ReportAllocs()
			for b.Loop() {
				d := vocabulary().NewDetokenizer(DetokenizerOptions{Stops: s})
				for _, id := range ids {
					buf = d.Append(buf[:0], id)
				}
				fed += len(ids)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(fed), "ns/token")
		})
	}
}
