package openai

import (
	"fmt"
	"net/http"
	"strconv"
)

// The types of errors, as vLLM's servers name them.
const (
	TypeBadRequest   = "BadRequestError"         // a value that is refused
	TypeMalformed    = "Bad Request"             // a body that does not have the shape of the request
	TypeNotFound     = "NotFoundError"           // a model, an adapter or a response that is not there
	TypeInternal     = "InternalServerError"     // the engine or the server is at fault
	TypeUnavailable  = "ServiceUnavailableError" // come again later
	TypeNotSupported = "NotImplementedError"     // a part of the API that is not here
)

// Error is what a request is refused with, or fails with. Its JSON is the value of "error" in the body of the answer.
type Error struct {
	Message string
	Type    string
	Param   string // the field at fault; "" is null
	Status  int    // the HTTP status, which is also the "code"
}

// Error is the message for the client.
func (e *Error) Error() string { return e.Message }

// Append appends the object {"error": {…}}.
func (e *Error) Append(b []byte) []byte {
	b = append(b, `{"error":{"message":`...)
	b = AppendString(b, e.Message)
	b = append(b, `,"type":`...)
	b = AppendString(b, e.Type)
	b = append(b, `,"param":`...)
	if e.Param == "" {
		b = append(b, `null`...)
	} else {
		b = AppendString(b, e.Param)
	}
	b = append(b, `,"code":`...)
	b = strconv.AppendInt(b, int64(e.Status), 10)
	return append(b, "}}"...)
}

// BadRequest refuses the value of a field; param may be "".
func BadRequest(param, format string, args ...any) *Error {
	return &Error{fmt.Sprintf(format, args...), TypeBadRequest, param, http.StatusBadRequest}
}

// Malformed refuses a body.
func Malformed(param, format string, args ...any) *Error {
	return &Error{fmt.Sprintf(format, args...), TypeMalformed, param, http.StatusBadRequest}
}

// NotFound says that what a field names does not exist.
func NotFound(param, format string, args ...any) *Error {
	return &Error{fmt.Sprintf(format, args...), TypeNotFound, param, http.StatusNotFound}
}

// ModelNotFound says that no model has the name.
func ModelNotFound(name string) *Error {
	return NotFound("model", "The model `%s` does not exist.", shorten(name))
}

// Internal says that a request failed through no fault of the client.
func Internal(format string, args ...any) *Error {
	return &Error{fmt.Sprintf(format, args...), TypeInternal, "", http.StatusInternalServerError}
}

// Unavailable asks the client to come again.
func Unavailable(format string, args ...any) *Error {
	return &Error{fmt.Sprintf(format, args...), TypeUnavailable, "", http.StatusServiceUnavailable}
}

// NotSupported refuses what vLLM may do and this server does not.
func NotSupported(param, format string, args ...any) *Error {
	return &Error{fmt.Sprintf(format, args...), TypeNotSupported, param, http.StatusNotImplemented}
}

// HTTP is an error of the protocol below the API, whose type is the name of the status.
func HTTP(status int, format string, args ...any) *Error {
	return &Error{fmt.Sprintf(format, args...), http.StatusText(status), "", status}
}

// shorten cuts what an answer quotes out of a request.
func shorten(s string) string {
	const most = 100 // bytes
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}
