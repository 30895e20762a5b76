// Package model checks the books: it takes whole fleets, a supervisor over worker processes under a frontend of ours, through random
// histories of requests, aborts, patches, resets, kills, restarts and drains, and holds what the fleet says of itself against
// what its client saw and what a small model allows.
//
// A history is a function of its seed. Where a race leaves two outcomes possible, the client's own observation decides which
// of them the counters have to tell; where nothing races, the model knows every counter and gauge exactly.
//
// It is tests alone, and never looks inside a process: what it knows came over a socket or from the fleet's methods.
package model
