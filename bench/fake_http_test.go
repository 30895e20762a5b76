package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// fakeHTTPArg makes the test binary a server instead of a test. Its arguments are the port and a behaviour.
const fakeHTTPArg = "fake-http"

func fakeServer(args []string) int {
	if err := http.ListenAndServe("127.0.0.1:"+args[0], chat(args[1])); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

// fakeCommand is the test binary as a server with engines of its own, and with a process beside it that does nothing.
func fakeCommand(t *testing.T, behaviour string) server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return server{
		name: "fake", plain: true, front: target{command: []string{self, fakeHTTPArg, "{port}", behaviour}},
		engines: target{command: []string{"sleep", "60"}}, alone: fake(t, "good"),
	}
}

// fakeURL is a server in this process.
func fakeURL(t *testing.T, behaviour string) server {
	t.Helper()
	s := httptest.NewServer(chat(behaviour))
	t.Cleanup(s.Close)
	return server{name: "fake", url: s.URL, plain: behaviour == "long"}
}

// chat answers chats at once with 128 tokens of one letter each, four in an event, unless the behaviour says otherwise.
func chat(behaviour string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) {
		if behaviour == "ill" {
			http.Error(w, "I am ill", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, map[bool]string{false: `{"data":[{"id":"fake"}]}`, true: `{"data":[]}`}[behaviour == "nameless"])
	})
	mux.HandleFunc("/v1/chat/completions", func(w http.ResponseWriter, _ *http.Request) { speak(w, behaviour) })
	return mux
}

func speak(w http.ResponseWriter, behaviour string) {
	usage, letters := 128, 4
	switch behaviour {
	case "busy":
		http.Error(w, "I am busy", http.StatusTooManyRequests)
		return
	case "whole":
		fmt.Fprint(w, `{"choices":[]}`)
		return
	case "crash":
		fmt.Fprint(os.Stderr, "I crash")
		os.Exit(1)
	case "short":
		usage = 127
	case "long":
		letters = 5
	}
	data := func(s string) { fmt.Fprintf(w, "data: %s\n\n", s) }
	data(`{"choices":[{"delta":{"role":"assistant","content":""}}]}`)
	if behaviour == "error" {
		data(`{"error":{"message":"I am wrong"}}`)
	}
	for range 32 {
		if behaviour != "mute" {
			data(`{"choices":[{"delta":{"content":"` + strings.Repeat("a", letters) + `"}}]}`)
		}
	}
	w.(http.Flusher).Flush()
	if behaviour == "cut" {
		panic(http.ErrAbortHandler)
	}
	data(fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":%d}}`, usage))
	if behaviour != "endless" {
		data("[DONE]")
	}
}

// brief is a load that a fake server bears.
var brief = shape{engines: 1, slots: 8, tokens: 128}

const briefly = 100 * time.Millisecond
