package main

import (
	"testing"
	"time"
)

// The limit keeps the rules that every engine is held to, alone and in several processes, for which it answers as one command.
func TestLimitEngine(t *testing.T) {
	limit, ok := limitTarget()
	if !ok {
		t.Fatal("this program can't find itself")
	}
	fs, err := measureFleet(within(t), limit, 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tokens of all", "engine CPU per million tokens", "outputs per message"} {
		if f, ok := fs.find(name); !ok || f.Value <= 0 {
			t.Errorf("%s = %v, want more than 0", name, f.Value)
		}
	}
}

func TestRunLimit_Refuses(t *testing.T) {
	for _, args := range [][]string{nil, {"tcp://127.0.0.1:1", "x", "0"}, {"tcp://127.0.0.1:1", "1", "x"}} {
		if err := runLimit(within(t), args); err == nil {
			t.Errorf("arguments %q were taken", args)
		}
	}
}
