package httpserve

import "vllm-vcr/logs"

// DebugLog is a fasthttp.Logger that takes the server's lines about broken requests, which any client can cause, to Log at
// level debug.
type DebugLog struct{ Log *logs.Logger }

// Printf writes one line.
func (l DebugLog) Printf(format string, args ...any) { l.Log.Debug().Msgf(format, args...) }
