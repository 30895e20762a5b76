package enginecore

import "github.com/tinylib/msgp/msgp"

// Logprobs are the log probabilities of the tokens of one output, or of the prompt. Row = one position; column 0 = the token that is
// there, the others the most likely ones in order.
type Logprobs struct {
	TokenIDs Tensor // int32 or int64, [rows, k+1]
	Logprobs Tensor // float32, [rows, k+1]
	Ranks    Tensor // int32 or int64, [rows]: of the token that is there, 1 and up
}

// logprobs reads [token_ids, logprobs, ranks, …]; what follows is nil in what one request gets. Nil gives nil.
func (d *decoder) logprobs() *Logprobs {
	if d.null() {
		return nil
	}
	l := &Logprobs{}
	n := d.array(nil, func(i int) {
		switch i {
		case 0:
			d.requiredTensor(&l.TokenIDs)
		case 1:
			d.requiredTensor(&l.Logprobs)
		case 2:
			d.requiredTensor(&l.Ranks)
		default:
			d.skip()
		}
	})
	if d.err == nil && n < 3 {
		d.fail("logprobs of %d elements, want at least 3", n)
	}
	if d.err != nil {
		return nil
	}
	return l
}

func (d *decoder) requiredTensor(into *Tensor) {
	t := d.tensor()
	if t == nil {
		d.fail("nil, want a tensor")
		return
	}
	*into = *t
}

// append writes four elements, or five where the line's tuple has another one: the frontends check the length.
func (l *Logprobs) append(b []byte, five bool) []byte {
	if l == nil {
		return msgp.AppendNil(b)
	}
	if five {
		b = msgp.AppendArrayHeader(b, 5)
	} else {
		b = msgp.AppendArrayHeader(b, 4)
	}
	b = l.TokenIDs.append(b)
	b = l.Logprobs.append(b)
	b = l.Ranks.append(b)
	if five {
		b = msgp.AppendNil(b)
	}
	return msgp.AppendNil(b)
}
