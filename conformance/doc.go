// Package conformance holds vllm-vcr against programs that nobody here wrote. Our engines stand behind vLLM's own frontends, taken
// unchanged from its wheels. Our own front end, which the tests named TestOwn and TestSDK start, is asked by the OpenAI SDK, by
// Prometheus' parser and by a load generator, over our engines and over a foreign one (testdata/foreign_engine.py).
//
// Every test starts a real server and the real binary on free ports of 127.0.0.1, drives the server over HTTP and the engines
// over the control API, and leaves no process behind. Nothing here imports the packages under test: what a test
// knows of the engines it has learnt from a socket, so any engine command can be put in their place (VLLM_VCR_BIN).
//
// The tests need the frontends and the clients, and so hide behind build tags. "conformance" drives vLLM's Rust server of two
// versions and our own front end (make conformance fetches what it needs with fetch-frontends.sh and fetch-sdk.sh),
// "conformance_python" vLLM's Python server (make conformance-python, fetch-python.sh), and "conformance_load" beside "conformance"
// adds the load generator (fetch-sdk.sh aiperf). The model that vLLM's servers serve has a tokenizer but no weights:
// testdata/make_model.py.
package conformance
