// Package conformance holds vllm-vcr against clients that nobody here wrote: vLLM's own frontends, taken unchanged from
// its wheels, with our engines where a GPU's would be.
//
// Every test starts a real server and the real binary on free ports of 127.0.0.1, drives the server over HTTP and the engines
// over the control API, and leaves no process behind. Nothing here imports the packages under test: what a test
// knows of the engines it has learnt from a socket, so any engine command can be put in their place (VLLM_VCR_BIN).
//
// The tests need the frontends and so hide behind build tags. "conformance" drives the Rust server of two versions
// (make conformance fetches it with fetch-frontends.sh), "conformance_python" the Python one (make conformance-python,
// fetch-python.sh). The model they serve has a tokenizer but no weights: testdata/make_model.py.
package conformance
