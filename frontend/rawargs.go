package frontend

import (
	"bytes"
	"strconv"

	"github.com/goccy/go-json"
	"github.com/tinylib/msgp/msgp"

	"vllm-vcr/frontend/openai"
)

// extraArgs are vllm_xargs and kv_transfer_params as the engine gets them: one map, the second inside the first. nil = none.
func extraArgs(s *openai.Sampling) (msgp.Raw, error) {
	args := map[string]any{}
	if err := unmarshal(s.ExtraArgs, &args); err != nil {
		return nil, openai.BadRequest("vllm_xargs", "vllm_xargs: %v", err)
	}
	var transfer map[string]any
	if err := unmarshal(s.KVTransfer, &transfer); err != nil {
		return nil, openai.BadRequest("kv_transfer_params", "kv_transfer_params: %v", err)
	}
	if transfer != nil {
		args["kv_transfer_params"] = transfer
	}
	if len(args) == 0 {
		return nil, nil
	}
	return appendValue(nil, args), nil
}

// unmarshal keeps numbers as they are written; nothing and null leave into alone.
func unmarshal(raw json.RawMessage, into *map[string]any) error {
	if len(raw) == 0 || raw[0] == 'n' {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}

// appendValue appends a decoded JSON value in msgpack.
func appendValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case map[string]any:
		b = msgp.AppendMapHeader(b, uint32(len(v)))
		for key, each := range v {
			b = appendValue(msgp.AppendString(b, key), each)
		}
	case []any:
		b = msgp.AppendArrayHeader(b, uint32(len(v)))
		for _, each := range v {
			b = appendValue(b, each)
		}
	case string:
		b = msgp.AppendString(b, v)
	case bool:
		b = msgp.AppendBool(b, v)
	case json.Number:
		b = appendNumber(b, v)
	default:
		b = msgp.AppendNil(b)
	}
	return b
}

func appendNumber(b []byte, n json.Number) []byte {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return msgp.AppendInt64(b, i)
	}
	if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
		return msgp.AppendUint64(b, u)
	}
	f, _ := n.Float64() // what is out of range is infinite
	return msgp.AppendFloat64(b, f)
}

// jsonOf is a value of msgpack in JSON; nil for one that has no such form.
func jsonOf(raw msgp.Raw) []byte {
	if len(raw) == 0 {
		return nil
	}
	var b bytes.Buffer
	if _, err := msgp.UnmarshalAsJSON(&b, raw); err != nil || !json.Valid(b.Bytes()) {
		return nil
	}
	return b.Bytes()
}

// parseID reads a token id that was checked with its request.
func parseID(s string) uint64 {
	id, _ := strconv.ParseUint(s, 10, 32)
	return id
}
