package logs

import (
	"testing"

	"github.com/rs/zerolog"
)

func TestFilter_Level(t *testing.T) {
	tests := []struct {
		filter, target string
		want           zerolog.Level
	}{
		{"", Engine, zerolog.Disabled},
		{"info", Engine, zerolog.InfoLevel},
		{"off", Engine, zerolog.Disabled},
		{"vllm_vcr=debug,warn", Engine, zerolog.DebugLevel},
		{"vllm_vcr=debug,warn", "other", zerolog.WarnLevel},
		{"vllm_vcr=debug", "other", zerolog.Disabled},
		{"vllm_vcr::eng=trace,info", Engine, zerolog.TraceLevel},
		{"vllm_vcr::eng=trace,info", EngineCore, zerolog.TraceLevel},
		{"vllm_vcr::eng=trace,info", IO, zerolog.InfoLevel},
		{"vllm_vcr::engine_core=warn,vllm_vcr::engine=trace", EngineCore, zerolog.WarnLevel},
		{"vllm_vcr::engine_core=warn,vllm_vcr::engine=trace", Engine, zerolog.TraceLevel},
		{"vllm_vcr::engine=off,trace", Engine, zerolog.Disabled},
		{"vllm_vcr::engine=off,trace", IO, zerolog.TraceLevel},
		{"vllm_vcr::engine::deep=trace,info", Engine, zerolog.InfoLevel},
		{"info,[span]=trace,[{f}]=trace,vllm_vcr::engine[{f=1}]=trace", Engine, zerolog.InfoLevel},
		{"vllm_vcr::engine[{f}]=trace", Engine, zerolog.Disabled},
	}
	for _, tt := range tests {
		t.Run(tt.filter+" "+tt.target, func(t *testing.T) {
			f, err := ParseFilter(tt.filter)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.level(tt.target); got != tt.want {
				t.Errorf("level = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestFilter_Zero(t *testing.T) {
	var f Filter
	if got := f.String(); got != "" {
		t.Errorf("normal form = %q, want none", got)
	}
	if got := f.level(Process); got != zerolog.Disabled {
		t.Errorf("level = %v, want disabled", got)
	}
}
