package control

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"vllm-vcr/ipc"
)

// The number of requests that a call may ask for, and does where it says nothing.
const (
	defaultLimit = 100
	maxLimit     = 10_000
)

// requestsQuery is which requests a call wants.
type requestsQuery struct {
	ipc.RequestQuery
	engine int // the one to ask, -1 = all
}

// decodeQuery reads the query string of a call for requests. Nothing in it is passed over: an unknown parameter, one that comes
// twice and a value out of its range are 400, and the text says what is allowed.
func decodeQuery(raw string, engines int) (requestsQuery, error) {
	wanted := requestsQuery{ipc.RequestQuery{Limit: defaultLimit}, -1}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return wanted, faultf(fasthttp.StatusBadRequest, "the query cannot be read: %s", shorten(err.Error()))
	}
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys) // so that of several faults it is always the same that is told
	for _, key := range keys {
		if err := wanted.set(key, values[key], engines); err != nil {
			return wanted, faultf(fasthttp.StatusBadRequest, "%v", err)
		}
	}
	return wanted, nil
}

func (q *requestsQuery) set(key string, values []string, engines int) (err error) {
	value := values[0]
	switch key {
	case "state":
		q.States, err = readStates(value)
	case "limit":
		var n int
		n, err = readNumber(key, value, 1, maxLimit)
		q.Limit = uint64(n)
	case "engine":
		q.engine, err = readNumber(key, value, 0, engines-1)
	default:
		return fmt.Errorf("%q: unknown parameter, want one of state, limit, engine", shorten(key))
	}
	if len(values) > 1 {
		return cmp.Or(err, fmt.Errorf("%s: given twice", key))
	}
	return err
}

func readStates(text string) ([]string, error) {
	states := strings.Split(text, ",")
	for _, state := range states {
		if !slices.Contains(ipc.RequestStates, state) {
			return nil, fmt.Errorf("state: %q: want one or more of %s, separated by commas", shorten(state), strings.Join(ipc.RequestStates, ", "))
		}
	}
	return states, nil
}

func readNumber(key, text string, least, most int) (int, error) {
	n, ok := decimal(text)
	if !ok || n < least || n > most {
		return 0, fmt.Errorf("%s: %q: want an integer from %d to %d", key, shorten(text), least, most)
	}
	return n, nil
}

// decimal reads a number in its plain form, the only one that addresses take.
func decimal(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && strconv.Itoa(n) == text
}
