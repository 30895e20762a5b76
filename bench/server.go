package main

import (
	"fmt"
	"os"
	"strings"
)

// server is an HTTP front end with a name, and how it gets its engines.
type server struct {
	name    string
	url     string // of one that runs already, http://HOST:PORT; "" = it is started
	front   target
	engines target // joins the front end; without a command it brings its own
	plain   bool   // its engines send plainTokens
	alone   target // the engines for a client of theirs, to compare with; without a command there is nothing to compare with
}

// rustServer is where conformance/fetch-frontends.sh puts vLLM's.
const rustServer = ".cache/frontends/0.33.0/vllm-rs"

// rivalName is what the table calls it.
const rivalName = "vllm-rs"

// plainTokens has engines draw ids below 94. In the vocabulary of serve and in that of the conformance tests' model each is
// one visible ASCII character, so that every token of every server is a piece of text of the same length.
var plainTokens = []string{"--token-source", "random", "--vocab-size", "94"}

// plainEngines are the engines of all servers here.
func plainEngines() target {
	command := append([]string{"bin/vllm-vcr", "play", "--handshake-address", "{handshake}", "--vllm-version", "0.33"}, plainTokens...)
	return target{command: append(command, "{flags}")}
}

// ownServer is the front end that is judged.
func ownServer() server {
	command := append([]string{"bin/vllm-vcr", "serve", "--port", "{port}", "--handshake-address", "{handshake}"}, plainTokens...)
	return server{name: "serve", plain: true, front: target{command: append(command, "{flags}")}, alone: plainEngines()}
}

// vllmServer is vLLM's own over the same engines.
func vllmServer() server {
	front := "env HF_HUB_OFFLINE=1 NO_COLOR=1 " + rustServer + " serve conformance/testdata/model-dense --host 127.0.0.1 --port {port}" +
		" --data-parallel-size {engines} --data-parallel-size-local 0 --data-parallel-address 127.0.0.1 --data-parallel-rpc-port {rpc}"
	return server{name: rivalName, plain: true, front: target{command: strings.Fields(front)}, engines: plainEngines(), alone: plainEngines()}
}

// defaultServers are ours, and vLLM's if it was fetched.
func defaultServers() []server {
	servers := []server{ownServer()}
	if _, err := os.Stat(rustServer); err == nil {
		servers = append(servers, vllmServer())
	}
	return servers
}

// parseServer reads NAME=URL or NAME=COMMAND.
func parseServer(s string) (server, error) {
	name, where, found := strings.Cut(s, "=")
	if found && name != "" && strings.HasPrefix(where, "http://") {
		return server{name: name, url: strings.TrimRight(where, "/")}, nil
	}
	p, err := parsePeer(s)
	if err != nil {
		return server{}, fmt.Errorf("%q: want NAME=http://HOST:PORT or NAME=COMMAND", s)
	}
	if !p.mentions("{port}") {
		return server{}, fmt.Errorf("%q: no {port} in the command", s)
	}
	return server{name: p.name, front: p}, nil
}
