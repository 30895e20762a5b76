package control

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-json"
	"github.com/valyala/fasthttp"
)

// bodyLimit is the largest body of a call with one, in bytes. Up to bodyCeiling what is too much is read and then
// refused, so that 404, 405 and 415 come first.
const bodyLimit = 2 << 20

// jsonBody returns the body of a call that takes JSON: checked are its content type, then its size. It is valid until
// the handler returns.
func jsonBody(ctx *fasthttp.RequestCtx) ([]byte, error) {
	if contentType := string(ctx.Request.Header.ContentType()); !isJSON(contentType) {
		return nil, faultf(fasthttp.StatusUnsupportedMediaType, "content type %q, want application/json", shorten(contentType))
	}
	body := ctx.PostBody()
	if len(body) > bodyLimit {
		return nil, faultf(fasthttp.StatusRequestEntityTooLarge, "body of %d bytes, want at most %d", len(body), bodyLimit)
	}
	return body, nil
}

// isJSON accepts application/json and application/…+json, with any parameters.
func isJSON(contentType string) bool {
	mediaType, _, _ := strings.Cut(contentType, ";")
	subtype, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(mediaType)), "application/")
	return ok && (subtype == "json" || strings.HasSuffix(subtype, "+json"))
}

// walkObject calls visit for each member of the object that body holds, in order, until one is refused. Nothing is
// visited unless the whole body is well-formed JSON (else 400); another value than an object and a key that comes twice
// are 422. raw is the value as written, and aliases nothing that changes later.
//
// A JSON library's own way into a struct would let too much through: repeated keys, keys in another case, a bare null,
// broken UTF-8.
func walkObject(body []byte, visit func(key string, raw []byte) error) error {
	if err := checkSyntax(body); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		return faultf(fasthttp.StatusUnprocessableEntity, "the body is %s, want a JSON object", shorten(string(body)))
	}
	seen := map[string]bool{}
	for dec.More() {
		key, raw, err := nextMember(dec)
		if err != nil {
			return faultf(fasthttp.StatusBadRequest, "the body is not valid JSON: %v", err)
		}
		if seen[key] {
			return faultf(fasthttp.StatusUnprocessableEntity, "%s: given twice", shorten(key))
		}
		seen[key] = true
		if err := visit(key, raw); err != nil {
			return err
		}
	}
	return nil
}

func nextMember(dec *json.Decoder) (string, []byte, error) {
	token, err := dec.Token()
	if err != nil {
		return "", nil, err
	}
	key, ok := token.(string)
	if !ok {
		return "", nil, errors.New("want a key")
	}
	var raw json.RawMessage
	err = dec.Decode(&raw)
	return key, bytes.TrimSpace(raw), err
}

// checkSyntax is about everything that makes a body no JSON document at all, wherever in it.
func checkSyntax(body []byte) error {
	switch {
	case !utf8.Valid(body):
		return faultf(fasthttp.StatusBadRequest, "the body is not valid UTF-8")
	case !json.Valid(body):
		return faultf(fasthttp.StatusBadRequest, "the body is not valid JSON")
	}
	if number := hugeNumber(body); number != "" {
		return faultf(fasthttp.StatusBadRequest, "the body is not valid JSON: number %s is out of range", shorten(number))
	}
	return nil
}

// hugeNumber returns the first number in a valid JSON document that is too large for a float64, or "".
func hugeNumber(doc []byte) string {
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case c == '"':
			i = stringEnd(doc, i)
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(doc) && strings.IndexByte("0123456789+-.eE", doc[end]) >= 0 {
				end++
			}
			number := string(doc[i:end])
			if f, err := strconv.ParseFloat(number, 64); errors.Is(err, strconv.ErrRange) && math.IsInf(f, 0) {
				return number
			}
			i = end - 1
		}
	}
	return ""
}

// stringEnd returns where the string that begins at doc[start] has its closing quote.
func stringEnd(doc []byte, start int) int {
	for i := start + 1; i < len(doc); i++ {
		switch doc[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(doc)
}
