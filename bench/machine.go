package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/procfs"
)

// machine tells how fast and how quiet the machine was, so that figures of two runs can be compared, or not.
type machine struct {
	CPUs        int     `json:"cpus"`
	LoadAverage float64 `json:"load_average"` // one minute's, at the start
	SpinBefore  float64 `json:"spin_ms"`      // a fixed piece of work, the best of several
	SpinAfter   float64 `json:"spin_after_ms"`
	SleepMedian float64 `json:"sleep_late_p50_ms"` // how late a sleep of 1 ms ends
	SleepWorst  float64 `json:"sleep_late_p99_ms"`
}

// calibrate takes about a third of a second.
func calibrate() machine {
	var late hist
	for range 200 {
		start := time.Now()
		time.Sleep(time.Millisecond)
		late.add(time.Since(start) - time.Millisecond)
	}
	return machine{
		CPUs:        runtime.NumCPU(),
		LoadAverage: loadAverage(),
		SpinBefore:  spin(),
		SleepMedian: milliseconds(late.quantile(0.5)),
		SleepWorst:  milliseconds(late.quantile(0.99)),
	}
}

func (m *machine) finish() { m.SpinAfter = spin() }

// String is the line above all tables.
func (m machine) String() string {
	return fmt.Sprintf("machine: %d CPUs, load average %.1f, calibration %.1f ms (less is faster), a sleep of 1 ms is late by %.3f ms p50, %.3f p99",
		m.CPUs, m.LoadAverage, m.SpinBefore, m.SleepMedian, m.SleepWorst)
}

// drift is the line below all tables.
func (m machine) drift() string {
	return fmt.Sprintf("machine: calibration %.1f ms before, %.1f ms after", m.SpinBefore, m.SpinAfter)
}

// spin is the best of ten times for five million steps of a generator that no compiler can shorten, in milliseconds.
func spin() float64 {
	best := time.Hour
	x := uint64(88172645463325252)
	for range 10 {
		start := time.Now()
		for range 5_000_000 {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		best = min(best, time.Since(start))
	}
	runtime.KeepAlive(x)
	return milliseconds(best)
}

// loadAverage is the machine's of the last minute, 0 where it isn't told.
func loadAverage() float64 {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	load, err := fs.LoadAvg()
	if err != nil {
		return 0
	}
	return load.Load1
}
