package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A step of growth gives each curve a point.
func TestGrowth(t *testing.T) {
	var fs figures
	s := shape{engines: 2, slots: 3, tokens: 128}
	if err := fs.growth(within(t), fake(t, "good"), s, 200*time.Millisecond, "engines", 2); err != nil {
		t.Fatal(err)
	}
	if f, ok := fs.find("2 engines: messages"); !ok || f.Value <= 0 {
		t.Errorf("messages = %v, want more than 0 of %+v", f.Value, fs.list)
	}
	if len(fs.curves) != len(fs.list) || fs.curves[0].x != 2 || fs.curves[0].of != "engines" {
		t.Errorf("curves = %+v, want a point at 2 engines for each figure", fs.curves)
	}
}

// awaitReceived asks until the engine has what was sent to it.
func TestAwaitReceived(t *testing.T) {
	var asked atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"requests_received": %d}`, 10*asked.Add(1))
	}))
	defer api.Close()
	if err := awaitReceived(within(t), strings.TrimPrefix(api.URL, "http://"), 30); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("asked %d times, want 3", n)
	}
}
