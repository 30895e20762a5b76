package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"

	"vllm-vcr/protocol/enginecore"
)

// An id is as long as a frontend's and carries the slot that the request runs in, so that no map is needed to find it:
//
//	cmpl-bench-SSSSSSSS-GGGGGGGG    slot and generation in hexadecimal
const (
	idTemplate   = "cmpl-bench-00000000-00000000"
	slotAt       = len("cmpl-bench-")
	generationAt = slotAt + 9
)

// shortPrompt and longPrompt are lengths of prompts, in tokens; the first is that of a shape that names none.
const shortPrompt, longPrompt = 32, 1024

// request is an encoded ADD of which only the id changes.
type request struct {
	payload []byte
	id      []byte // the part of payload that is the id
}

// newRequest encodes an ADD with a prompt of that many tokens that asks for so many.
func newRequest(prompted, tokens int) *request {
	sampling := enginecore.DefaultSampling()
	sampling.MaxTokens = uint32(tokens)
	sampling.IgnoreEOS = true
	prompt := make([]uint32, prompted)
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
	var b [8]byte
	binary.BigEndian.PutUint32(b[:4], uint32(slot))
	binary.BigEndian.PutUint32(b[4:], generation)
	hex.Encode(r.id[slotAt:], b[:4])
	hex.Encode(r.id[generationAt:], b[4:])
	return r.payload
}

// parseID reads slot and generation of an id; false if it is none of ours.
func parseID(id []byte) (slot int, generation uint32, ok bool) {
	var b [8]byte
	if len(id) != len(idTemplate) || id[generationAt-1] != '-' {
		return 0, 0, false
	}
	_, err1 := hex.Decode(b[:4], id[slotAt:generationAt-1])
	_, err2 := hex.Decode(b[4:], id[generationAt:])
	if err1 != nil || err2 != nil {
		return 0, 0, false
	}
	return int(binary.BigEndian.Uint32(b[:4])), binary.BigEndian.Uint32(b[4:]), true
}
