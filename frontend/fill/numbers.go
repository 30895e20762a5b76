package fill

import (
	"errors"
	"math"
	"math/big"
)

// reach is how many multiples of a step are considered.
const reach = 100

var errNoNumber = errors.New("no number found within the bounds")

// number makes a number of one of the kinds: a multiple of multipleOf where that is set, else an integer, or a number with as few
// digits behind the point as the bounds allow, but one.
func (g *generator) number(w *whole, kind types) (value, error) {
	step := w.multiple
	if step == nil {
		step = big.NewRat(1, 1)
	}
	if kind&fraction == 0 {
		step = leastCommonMultiple(step, big.NewRat(1, 1))
	}
	if w.multiple != nil || kind&fraction == 0 {
		return g.multiple(w, step)
	}
	for range maxDigits / 2 {
		step = new(big.Rat).Quo(step, big.NewRat(10, 1))
		if v, err := g.multiple(w, step); err == nil || g.spent() {
			return v, err
		}
	}
	return value{}, errNoNumber
}

// multiple makes a number that is a multiple of step. Of several it prefers one that binary fractions show to be a multiple too.
func (g *generator) multiple(w *whole, step *big.Rat) (value, error) {
	first, count := multiples(w.low, w.high, step)
	if count <= 0 || !g.step() {
		return value{}, errNoNumber
	}
	start := g.random.Int64N(count)
	var r *big.Rat
	for i := range count {
		k := new(big.Int).Add(first, big.NewInt((start+i)%count))
		r = new(big.Rat).Mul(new(big.Rat).SetInt(k), step)
		if w.multiple == nil || plainMultiple(r, w.multiple) {
			break
		}
	}
	digits, _ := r.FloatPrec()
	v := value{kind: number, text: r.FloatString(digits)}
	g.grow(len(v.text))
	return v, nil
}

// multiples returns which multiples of step are considered: count of them, from first times step on. They begin at the bound that
// is nearest to 0 where it is known.
func multiples(low, high *bound, step *big.Rat) (first *big.Int, count int64) {
	var last *big.Int
	if low != nil {
		first = floor(new(big.Rat).Neg(new(big.Rat).Quo(low.at, step)))
		first.Neg(first) // rounded up
		if !low.allows(times(first, step), 1) {
			first.Add(first, big.NewInt(1))
		}
	}
	if high != nil {
		last = floor(new(big.Rat).Quo(high.at, step))
		if !high.allows(times(last, step), -1) {
			last.Sub(last, big.NewInt(1))
		}
	}
	switch {
	case first == nil && last == nil:
		return new(big.Int), reach
	case last == nil:
		return first, reach
	case first == nil:
		first = new(big.Int).Sub(last, big.NewInt(reach-1))
		if last.Sign() >= 0 && first.Sign() < 0 {
			first.SetInt64(0)
		}
	}
	n := new(big.Int).Sub(last, first)
	if !n.IsInt64() {
		return first, int64(reach * max(0, n.Sign()))
	}
	return first, min(n.Int64(), reach-1) + 1
}

func times(k *big.Int, step *big.Rat) *big.Rat {
	return new(big.Rat).Mul(new(big.Rat).SetInt(k), step)
}

// floor rounds down.
func floor(r *big.Rat) *big.Int {
	return new(big.Int).Div(r.Num(), r.Denom())
}

// plainMultiple says whether dividing in binary gives an integer, as 0.3 by 0.1 does not.
func plainMultiple(r, step *big.Rat) bool {
	a, _ := r.Float64()
	b, _ := step.Float64()
	q := a / b
	return q == math.Trunc(q)
}
