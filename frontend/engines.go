package frontend

import (
	"context"
	"errors"

	"github.com/tinylib/msgp/msgp"

	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/protocol/enginecore"
)

// Engines are what the server asks of the engines. All methods may be called from any goroutine; those with a context wait, and
// end with it.
type Engines interface {
	// Submit gives requests to engines, all of them or none. It doesn't wait.
	Submit(requests []dispatch.Request) (Streams, error)

	// Health is nil if all engines take requests.
	Health() error

	// MaxModelLen is the smallest of the engines' limits; 0 before the first has joined.
	MaxModelLen() uint64

	LoadLoRA(ctx context.Context, name, path string) (enginecore.LoRARequest, error)
	UnloadLoRA(ctx context.Context, name string) error
	LoRA(name string) (enginecore.LoRARequest, bool)
	LoRAs() []enginecore.LoRARequest

	Sleep(ctx context.Context, level uint64, mode string) error
	WakeUp(ctx context.Context, tags []string) error
	IsSleeping(ctx context.Context) (bool, error)
	ResetPrefixCache(ctx context.Context, running, connector bool) (bool, error)
	Call(ctx context.Context, method string, args msgp.Raw) ([]dispatch.Answer, error)
}

// Streams are the answers to the requests of one Submit: one for each choice of each request, in order.
type Streams interface {
	// Next waits for what is next of any stream, and says of which. The chunk is valid until the next of that stream. The error
	// is io.EOF when all have ended, that of one that failed, or the cause of ctx. One goroutine may call it at a time.
	Next(ctx context.Context) (stream int, c dispatch.Chunk, err error)

	// Stop ends one stream whose text is complete. Nothing more comes of it.
	Stop(stream int)

	// Cancel ends all that have not ended. It may be called from any goroutine, more than once.
	Cancel()
}

// Over makes a dispatcher's engines the server's.
func Over(d *dispatch.Dispatcher) Engines { return &dispatched{d} }

type dispatched struct{ *dispatch.Dispatcher }

func (d *dispatched) Submit(requests []dispatch.Request) (Streams, error) {
	s := &streams{}
	for _, r := range requests {
		each, err := d.SubmitAll(r)
		if err != nil {
			s.Cancel()
			return nil, err
		}
		s.all = append(s.all, each...)
	}
	if len(s.all) > 1 {
		s.merge()
	}
	return s, nil
}

// streams are those of a dispatcher. A single one is read directly.
type streams struct {
	all    []*dispatch.Stream
	merged *dispatch.Merged
	number map[*dispatch.Stream]int // with merged
}

func (s *streams) merge() {
	s.merged = dispatch.Merge(s.all...)
	s.number = make(map[*dispatch.Stream]int, len(s.all))
	for i, each := range s.all {
		s.number[each] = i
	}
}

func (s *streams) Next(ctx context.Context) (int, dispatch.Chunk, error) {
	if s.merged == nil {
		c, err := s.all[0].Next(ctx)
		return 0, c, err
	}
	for {
		each, c, err := s.merged.Next(ctx)
		if each == nil || err == nil {
			return s.number[each], c, err
		}
		if errors.Is(err, dispatch.ErrCanceled) {
			continue // it was stopped here
		}
		return s.number[each], c, err
	}
}

func (s *streams) Stop(stream int) { s.all[stream].Stop() }

func (s *streams) Cancel() {
	for _, each := range s.all {
		each.Cancel()
	}
}
