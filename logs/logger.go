package logs

import (
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// timeLayout is RFC 3339 with microseconds; the time is always UTC.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// Logger writes lines of one target. The zero Logger is not usable; [Nop] is one that writes nothing.
//
// Its level methods return nil where the level is switched off, and every method of a nil event does nothing: chain
// fields and end with Msg. Arguments are evaluated either way, so what is costly to make belongs behind [Logger.On].
type Logger struct {
	zl     zerolog.Logger
	target string
	fields []any         // key, value, key, value …
	level  *atomic.Int32 // shared with all Loggers of the target, set by the Root
}

// Nop returns a Logger that writes nothing.
func Nop() *Logger {
	off := new(atomic.Int32)
	off.Store(int32(zerolog.Disabled))
	return &Logger{zl: zerolog.Nop(), level: off}
}

// With returns a Logger of the same target whose every line carries one more field.
func (l *Logger) With(key string, value any) *Logger {
	child := *l
	child.fields = append(append([]any{}, l.fields...), key, value)
	return &child
}

// On says whether lines of this level are written.
func (l *Logger) On(level zerolog.Level) bool { return int32(level) >= l.level.Load() }

// Error begins a line about something that went wrong and was not put right.
func (l *Logger) Error() *zerolog.Event { return l.event(zerolog.ErrorLevel) }

// Warn begins a line about something that someone should look at.
func (l *Logger) Warn() *zerolog.Event { return l.event(zerolog.WarnLevel) }

// Info begins a line of which there is a bounded number in the life of a process.
func (l *Logger) Info() *zerolog.Event { return l.event(zerolog.InfoLevel) }

// Debug begins a line of which there may be one for each request.
func (l *Logger) Debug() *zerolog.Event { return l.event(zerolog.DebugLevel) }

// Trace begins a line of which there may be one for each step.
func (l *Logger) Trace() *zerolog.Event { return l.event(zerolog.TraceLevel) }

// event begins a line with its fixed part, in an order that reads well. zerolog would put its own time and level in an
// order and a form that only its global variables can change, hence a line without a level of its own.
func (l *Logger) event(level zerolog.Level) *zerolog.Event {
	if !l.On(level) {
		return nil
	}
	e := l.zl.Log().
		Str("time", time.Now().UTC().Format(timeLayout)).
		Str("level", level.String()).
		Str("target", l.target)
	if len(l.fields) > 0 {
		e.Fields(l.fields)
	}
	return e
}
