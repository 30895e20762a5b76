// Bench measures engines: it starts an engine command behind a frontend of our own, drives it as named scenarios say, and
// prints what it saw beside the bar that each figure has to keep.
//
//	go run ./bench                                      every scenario, with bin/vllm-vcr
//	go run ./bench -run 'idle|ready' -- CMD ARG…        two of them, with another command
//	go run ./bench -peer 'old=/tmp/old play …'          a second engine in the same run, and the ratio to it
//
// In a command {handshake} stands for the frontend's address and {flags} for what a scenario needs, in the words of
// `vllm-vcr play`. A command in other words takes it from {engines}, {seqs}, {ttft}, {itl} (in milliseconds) and {control}, the
// address for the control API.
//
// It guarantees that nothing it started outlives it (but for SIGKILL), that what an engine used is read from /proc and so
// excludes bench itself, and that each scenario checks the answers it times: a request with a wrong number of tokens is an
// error, not a figure. It takes one or two of the machine's cores itself, so the figure that says how much is among them.
//
// It must never know how an engine works inside: whatever speaks the engine-core protocol can be measured.
package main
