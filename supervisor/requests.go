package supervisor

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"vllm-vcr/ipc"
)

// Request is a request and the index of the engine it was sent to.
type Request struct {
	Engine int
	ipc.Request
}

// Requests are those that were asked for, newest arrival first. Of two at the same time that of the lower index comes first, and
// of one engine the later one.
type Requests struct {
	List    []Request
	Matched uint64 // how many there are, in the list or not
	Dropped uint64 // finished ones that the engines have forgotten
}

// Requests asks every engine for the newest q.Limit requests that match, and returns the newest of those.
func (f *Fleet) Requests(ctx context.Context, q ipc.RequestQuery) (Requests, error) {
	return f.requests(ctx, f.members, q)
}

// EngineRequests asks one engine. index must be below Len.
func (f *Fleet) EngineRequests(ctx context.Context, index int, q ipc.RequestQuery) (Requests, error) {
	return f.requests(ctx, f.members[index:index+1], q)
}

func (f *Fleet) requests(ctx context.Context, members []*member, q ipc.RequestQuery) (Requests, error) {
	answers, errs := f.fanOut(ctx, members, ipc.Call{Op: ipc.OpRequests, Query: &q})
	if err := first(errs); err != nil {
		return Requests{}, err
	}
	lists := make([]ipc.Requests, len(answers))
	for i, a := range answers {
		if a.Requests == nil {
			return Requests{}, errors.New("the worker's answer holds no requests")
		}
		lists[i] = *a.Requests
	}
	return merge(lists, members[0].index, q.Limit), nil
}

// merge makes one list of those of several engines, the first of which has the given index. Where a list was cut because no
// more of it went into a frame, what is older than its last request is left out, so that the result has no hole.
func merge(lists []ipc.Requests, firstIndex int, limit uint64) Requests {
	merged := Requests{List: []Request{}}
	var ends []Request // of lists that were cut
	for i, l := range lists {
		merged.Matched += l.Matched
		merged.Dropped += l.Dropped
		for _, r := range l.List {
			merged.List = append(merged.List, Request{firstIndex + i, r})
		}
		if n := len(l.List); n > 0 && uint64(n) < min(limit, l.Matched) {
			ends = append(ends, merged.List[len(merged.List)-1])
		}
	}
	slices.SortFunc(merged.List, newestFirst)
	n := min(uint64(len(merged.List)), limit)
	for _, end := range ends {
		i, _ := slices.BinarySearchFunc(merged.List, end, newestFirst)
		n = min(n, uint64(i)+1)
	}
	merged.List = merged.List[:n]
	return merged
}

func newestFirst(a, b Request) int {
	return cmp.Or(cmp.Compare(b.Arrived, a.Arrived), cmp.Compare(a.Engine, b.Engine), cmp.Compare(b.Number, a.Number))
}
