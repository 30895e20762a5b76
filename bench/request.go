package main

import (
	"bytes"
	"encoding/hex"

	"vllm-vcr/protocol/enginecore"
)

// An id is as long as a frontend's and carries the slot that the request runs in, so that no map is needed to find it:
//
//	cmpl-bench-SSSS-GGGGGGGG    slot and generation in hexadecimal
const (
	idTemplate   = "cmpl-bench-0000-00000000"
	slotAt       = len("cmpl-bench-")
	generationAt = slotAt + 5
)

// promptTokens is the length of every prompt.
const promptTokens = 16

// request is an encoded ADD of which only the id changes.
type request struct {
	payload []byte
	id      []byte // the part of payload that is the id
}

// newRequest encodes an ADD that asks for that many tokens.
func newRequest(tokens int) *request {
	sampling := enginecore.DefaultSampling()
	sampling.MaxTokens = uint32(tokens)
	sampling.IgnoreEOS = true
	prompt := make([]uint32, promptTokens)
	for i := range prompt {
		prompt[i] = uint32(1000 + i)
	}
	payload := enginecore.AppendRequest(nil, enginecore.Version{}, &enginecore.Request{
		ID: idTemplate, PromptTokens: prompt, Sampling: &sampling,
	})
	at := bytes.Index(payload, []byte(idTemplate))
	return &request{payload: payload, id: payload[at : at+len(idTemplate)]}
}

// number sets the id, and returns the payload, which is valid until the next call.
func (r *request) number(slot int, generation uint32) []byte {
	hex.Encode(r.id[slotAt:], []byte{byte(slot >> 8), byte(slot)})
	hex.Encode(r.id[generationAt:], []byte{byte(generation >> 24), byte(generation >> 16), byte(generation >> 8), byte(generation)})
	return r.payload
}

// parseID reads slot and generation of an id; false if it is none of ours.
func parseID(id []byte) (slot int, generation uint32, ok bool) {
	var b [6]byte
	if len(id) != len(idTemplate) || id[generationAt-1] != '-' {
		return 0, 0, false
	}
	_, err1 := hex.Decode(b[:2], id[slotAt:slotAt+4])
	_, err2 := hex.Decode(b[2:], id[generationAt:])
	if err1 != nil || err2 != nil {
		return 0, 0, false
	}
	return int(b[0])<<8 | int(b[1]), uint32(b[2])<<24 | uint32(b[3])<<16 | uint32(b[4])<<8 | uint32(b[5]), true
}
