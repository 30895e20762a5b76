// Soak keeps eight engines in two or three fleets under a mixed load for as long as it is told, does something nasty to them every ten seconds,
// and then wants everything to be as it was:
//
//   - the books of every engine close, and agree with what its clients saw;
//   - memory, descriptors, threads and goroutines of every process are what they were after the warm-up, within bounds;
//   - every control call was answered in time, and 99 % of them within 250 ms;
//   - every process ends by itself, with code 0, when it is told to.
//
// One fleet stands under vllm-vcr's own front end, a process of its own, with HTTP clients that stream, wait, read slowly or hang up. The
// other one stands under a frontend in this program, which speaks the engine-core protocol and counts for each engine how its
// requests ended. A third fleet stands under vLLM's own Rust server, where -vllm names it, with the same HTTP clients; none of its engines is
// killed, since that server does not notice and would have its clients wait. It knows the program under test by its command line and its sockets alone.
//
// What is exact where a worker is killed or a frontend vanishes: a request whose end its client saw is counted as that; one whose end
// nobody saw is counted at most once, and as lost at most once. The bounds are as wide as there are such requests, engine by engine.
package main
