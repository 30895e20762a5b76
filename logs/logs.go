// Package logs writes a process's log lines through a filter per target that can be swapped while the process runs.
//
// A line has a level, a target (which part of the program speaks), a message and fields. A [Filter] in the syntax of
// RUST_LOG decides by target and level what is written; [Root.SetFilter] replaces it in every [Logger] that exists, at
// once. What is switched off costs one atomic load.
//
// The package guarantees that no caller ever waits for the reader of the log: lines go into a bounded queue, and those
// that do not fit are dropped and counted. Lines of one process keep their order, and each leaves in one write.
//
// It must never know what the lines are about, nor look for a terminal, a file or an environment variable itself: the
// caller brings the writer and says what kind it is.
package logs

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"
)

// The targets in use. A filter matches them by prefix, so Process alone covers all.
const (
	Process    = "vllm_vcr"              // the life of the processes
	Engine     = "vllm_vcr::engine"      // requests and steps
	EngineCore = "vllm_vcr::engine_core" // draining and shutdown of an engine
	IO         = "vllm_vcr::io"          // messages from and to a frontend
	Control    = "vllm_vcr::control"     // calls of the control API
)

// Root is the log of one process. All of its methods may be called from any goroutine.
type Root struct {
	lines *queue
	zl    zerolog.Logger

	mu     sync.Mutex
	filter Filter
	levels map[string]*atomic.Int32 // by target; what its Loggers look at
}

// New returns a log that writes to w, in format, what f lets through. It starts the goroutine that writes; [Root.Close]
// ends it. Nothing else may write to w meanwhile if lines are to stay whole.
func New(w io.Writer, format Format, f Filter) *Root {
	lines := newQueue(format.writer(w))
	return &Root{
		lines:  lines,
		zl:     zerolog.New(lines),
		filter: f,
		levels: map[string]*atomic.Int32{},
	}
}

// Target returns the logger of a target, usually one of this package's constants.
func (r *Root) Target(name string) *Logger {
	r.mu.Lock()
	defer r.mu.Unlock()
	level, ok := r.levels[name]
	if !ok {
		level = new(atomic.Int32)
		level.Store(int32(r.filter.level(name)))
		r.levels[name] = level
	}
	return &Logger{zl: r.zl, target: name, level: level}
}

// SetFilter replaces the filter: every line begun after it returns, in whatever Logger, is judged by f.
func (r *Root) SetFilter(f Filter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.filter = f
	for target, level := range r.levels {
		level.Store(int32(f.level(target)))
	}
}

// Filter returns the filter in force.
func (r *Root) Filter() Filter {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.filter
}

// Dropped counts the lines that were lost since the start: the queue was full, the writer refused them, or they came
// after Close.
func (r *Root) Dropped() uint64 { return r.lines.dropped.Load() }

// Close writes what is queued and ends the writing goroutine. It waits at most a second: where the reader takes nothing,
// the rest is lost, the goroutine stays behind in its write, and the error says so. Lines begun later are dropped. The
// writer given to New is not closed.
func (r *Root) Close() error { return r.lines.close() }
