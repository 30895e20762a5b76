package main

import (
	"strings"
	"testing"
)

func TestBooks_Agree(t *testing.T) {
	exact := books{sent: 10, completed: 6, failed: 1, aborted: 3}
	unsure := books{sent: 10, completed: 6, aborted: 2, unseen: 2}
	tests := []struct {
		name string
		b    books
		s    stats
		lost uint64
		want string // "" = they agree
	}{
		{"exact", exact, stats{Received: 10, Completed: 6, Failed: 1, Aborted: 3}, 0, ""},
		{"one too few", exact, stats{Received: 9, Completed: 5, Failed: 1, Aborted: 3}, 0, "received is 9"},
		{"aborted instead of completed", exact, stats{Received: 10, Completed: 5, Failed: 1, Aborted: 4}, 0, "completed is 5"},
		{"books not closed", exact, stats{Received: 10, Completed: 6, Failed: 0, Aborted: 3}, 0, "but 9 ended"},
		{"still running", exact, stats{Received: 10, Completed: 6, Failed: 1, Aborted: 3, Running: 1}, 0, "1 requests run"},
		{"lost without a death", exact, stats{Received: 10, Completed: 6, Failed: 1, Aborted: 3}, 1, "lost is 1"},
		{"lost in a death", unsure, stats{Received: 10, Completed: 6, Failed: 2, Aborted: 2}, 2, ""},
		{"never came", unsure, stats{Received: 8, Completed: 6, Aborted: 2}, 0, ""},
		{"ended unseen", unsure, stats{Received: 10, Completed: 7, Failed: 1, Aborted: 2}, 1, ""},
		{"counted twice", unsure, stats{Received: 11, Completed: 7, Failed: 2, Aborted: 2}, 2, "received is 11"},
		{"client lost count", books{sent: 2, completed: 1}, stats{Received: 1, Completed: 1}, 0, "1 are accounted for"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.b.agree(tt.s, tt.lost)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestUsage_Exceeds(t *testing.T) {
	before := usage{resident: 40 << 20, descriptors: 20, threads: 8, goroutines: 30}
	for name, tt := range map[string]struct {
		after usage
		want  string
	}{
		"the same":    {before, ""},
		"some more":   {usage{50 << 20, 22, 10, 32}, ""},
		"memory":      {usage{80 << 20, 20, 8, 30}, "resident"},
		"descriptors": {usage{40 << 20, 30, 8, 30}, "descriptors"},
		"threads":     {usage{40 << 20, 20, 30, 30}, "threads"},
		"goroutines":  {usage{40 << 20, 20, 8, 40}, "goroutines"},
	} {
		if got := tt.after.exceeds(before); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
