package tokens

import "slices"

// Avoid is a set of ids that a request must not get, such as its stop ids while it has too few tokens. The zero value avoids none.
type Avoid struct {
	ranges []idRange // ascending, with at least one id between two of them
	size   uint64    // of the vocabulary
}

// idRange is the ids from first to last.
type idRange struct{ first, last uint32 }

// NewAvoid returns the set of ids, in any order, repeated or not, for a vocabulary of this size. It does not keep ids.
func NewAvoid(ids []uint32, vocabulary uint32) Avoid {
	a := Avoid{size: uint64(vocabulary)}
	for _, id := range slices.Sorted(slices.Values(ids)) {
		n := len(a.ranges)
		switch {
		case id >= vocabulary:
			return a
		case n > 0 && uint64(id) <= uint64(a.ranges[n-1].last)+1:
			a.ranges[n-1].last = id
		default:
			a.ranges = append(a.ranges, idRange{first: id, last: id})
		}
	}
	return a
}

// Next returns the first id from id on, upwards and around the end of the vocabulary, that is not in the set; id itself where every
// one is. It allocates nothing and takes time logarithmic in the size of the set.
func (a Avoid) Next(id uint32) uint32 {
	last, found := a.runAt(id)
	if !found {
		return id
	}
	if uint64(last)+1 < a.size {
		return last + 1
	}
	last, found = a.runAt(0)
	switch {
	case !found:
		return 0
	case uint64(last)+1 < a.size:
		return last + 1
	default:
		return id
	}
}

// runAt returns the end of the range that id is in.
func (a Avoid) runAt(id uint32) (last uint32, found bool) {
	i, _ := slices.BinarySearchFunc(a.ranges, id, func(r idRange, id uint32) int {
		if r.last < id {
			return -1
		}
		return 1
	})
	if i == len(a.ranges) || a.ranges[i].first > id {
		return 0, false
	}
	return a.ranges[i].last, true
}
