package control

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-json"
	"github.com/valyala/fasthttp"

	"vllm-vcr/ipc"
)

// faultNumber is a key of a fault that holds a number.
type faultNumber struct {
	key         string
	least, most uint64   // most is up to the fleet for the engine
	kinds       []string // that have a use for it
	needed      bool     // by all of these
}

var (
	requestFaults = []string{ipc.FaultError, ipc.FaultLength, ipc.FaultRepetition, ipc.FaultStall, ipc.FaultCrash}
	lateFaults    = []string{ipc.FaultStall, ipc.FaultSlowHandshake}
)

var faultNumbers = []faultNumber{
	{key: "engine", kinds: ipc.FaultKinds[:]},
	{key: "count", least: 1, most: math.MaxUint64, kinds: append(slices.Clone(requestFaults), ipc.FaultSlowHandshake)},
	{key: "duration", least: 1, most: ipc.MaxFaultTime, kinds: ipc.FaultKinds[:]},
	{key: "after_tokens", most: math.MaxUint64, kinds: requestFaults},
	{key: "delay", least: 1, most: ipc.MaxFaultTime, kinds: lateFaults, needed: true},
}

// faultKeys are all keys of a fault.
var faultKeys = []string{"kind", "engine", "count", "duration", "after_tokens", "delay"}

// decodeFault reads the object that describes a fault for one of so many engines, or for all. Syntax is 400, then shape 422,
// what a kind has no use for included, then ranges 400, all of them at once. null is as if the key were absent.
func decodeFault(body []byte, engines int) (ipc.Fault, error) {
	kind, given := "", map[string]uint64{}
	err := walkObject(body, func(key string, raw []byte) (err error) {
		switch {
		case !slices.Contains(faultKeys, key):
			return unknownKey(key, faultKeys)
		case string(raw) == "null":
		case key == "kind":
			kind, err = faultKind(raw)
		default:
			given[key], err = faultValue(key, raw, engines)
		}
		return err
	})
	if err == nil {
		err = checkFaultKeys(kind, given)
	}
	if err == nil {
		err = checkFaultRanges(given, engines)
	}
	if err != nil {
		return ipc.Fault{}, err
	}
	return newFault(kind, given), nil
}

func faultKind(raw []byte) (string, error) {
	var kind string
	if err := json.Unmarshal(raw, &kind); err != nil || !slices.Contains(ipc.FaultKinds[:], kind) {
		return "", faultf(fasthttp.StatusUnprocessableEntity, "kind: %s: want one of %s", shorten(string(raw)), strings.Join(ipc.FaultKinds[:], ", "))
	}
	return kind, nil
}

func faultValue(key string, raw []byte, engines int) (uint64, error) {
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil {
		number := faultNumbers[slices.IndexFunc(faultNumbers, func(n faultNumber) bool { return n.key == key })]
		return 0, faultf(fasthttp.StatusUnprocessableEntity, "%s: %s: %s", key, shorten(string(raw)), number.wanted(engines))
	}
	return n, nil
}

// greatest is the largest number that is allowed where there are so many engines.
func (n *faultNumber) greatest(engines int) uint64 {
	if n.key == "engine" {
		return uint64(engines - 1)
	}
	return n.most
}

func (n *faultNumber) wanted(engines int) string {
	return fmt.Sprintf("want an integer from %d to %d", n.least, n.greatest(engines))
}

// checkFaultKeys compares the keys with what the kind has a use for.
func checkFaultKeys(kind string, given map[string]uint64) error {
	if kind == "" {
		return faultf(fasthttp.StatusUnprocessableEntity, "kind: missing, want one of %s", strings.Join(ipc.FaultKinds[:], ", "))
	}
	for _, number := range faultNumbers {
		value, there := given[number.key]
		switch useful := slices.Contains(number.kinds, kind); {
		case there && !useful:
			return faultf(fasthttp.StatusUnprocessableEntity, "%s: %d: a fault of kind %s has none", number.key, value, kind)
		case !there && useful && number.needed:
			return faultf(fasthttp.StatusUnprocessableEntity, "%s: missing: a fault of kind %s needs it", number.key, kind)
		}
	}
	return nil
}

func checkFaultRanges(given map[string]uint64, engines int) error {
	var faults []string
	for _, number := range faultNumbers {
		if value, there := given[number.key]; there && (value < number.least || value > number.greatest(engines)) {
			faults = append(faults, fmt.Sprintf("%s: %d: %s", number.key, value, number.wanted(engines)))
		}
	}
	if len(faults) > 0 {
		return faultf(fasthttp.StatusBadRequest, "%s", strings.Join(faults, "; "))
	}
	return nil
}

// newFault strikes once where nothing says how often or how long. A crash of which nothing is said comes at once, and a hang
// counts nothing.
func newFault(kind string, given map[string]uint64) ipc.Fault {
	f := ipc.Fault{Kind: kind, Count: given["count"], Duration: given["duration"], Delay: given["delay"]}
	if index, there := given["engine"]; there {
		engine := int(index)
		f.Engine = &engine
	}
	if k, there := given["after_tokens"]; there {
		f.AfterTokens = &k
	}
	if f.Count == 0 && f.Duration == 0 && !f.AtOnce() && kind != ipc.FaultHang {
		f.Count = 1
	}
	return f
}
