// Bench measures engines: it starts an engine command behind a frontend of our own, drives it as named scenarios say, and
// prints what it saw beside the bar that each figure has to keep.
//
//	go run ./bench                                      every scenario, with bin/vllm-vcr
//	go run ./bench -run 'idle|ready' -- CMD ARG…        two of them, with another command
//	go run ./bench -peer 'old=/tmp/old play …'          a second engine in the same run, and the ratio to it
//
// The scenarios whose names begin with http measure servers instead: vllm-vcr serve, vLLM's own if
// conformance/fetch-frontends.sh has fetched it, both over the same engines, and those of -http:
//
//	go run ./bench -run http -http sim=http://127.0.0.1:8000     one that runs, with latencies of its own
//	go run ./bench -run http -http 'sim=/tmp/sim -p {port}'      one that bench starts for each scenario
//
// In a command {handshake} stands for the frontend's address and {flags} for what a scenario needs, in the words of
// `vllm-vcr play`. A command in other words takes it from {engines}, {seqs}, {ttft}, {itl} (in milliseconds) and {control}, the
// address for the control API. A server's command may also have {port}, for its API, and {rpc}, the port of {handshake}.
//
// It guarantees that nothing it started outlives it (but for SIGKILL), that what an engine used is read from /proc and so
// excludes bench itself (of a server the process that listens is read, apart from its engines), and that each scenario checks
// the answers it times: a request with a wrong number of tokens is an error, not a figure. It takes one or two of the machine's
// cores itself, so the figure that says how much is among them.
//
// It must never know how an engine works inside: whatever speaks the engine-core protocol can be measured.
package main
