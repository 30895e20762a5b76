package engineclient

import (
	"errors"
	"fmt"

	"vllm-vcr/protocol/enginecore"
)

// maxEngines is the number of identities that two bytes have.
const maxEngines = 1 << 16

// maxClients bounds the pairs of data sockets.
const maxClients = 256

// Options describe a frontend.
type Options struct {
	// Handshake is where engines say HELLO: tcp://host:port, where port may be 0, or ipc:///path. The data sockets are opened
	// beside it, at free ports of the same host or at the same path with a suffix, and told to the engines in the form in
	// which they were opened: the host must be one that engines can reach.
	Handshake string

	// Engines is the number of engines awaited, of the ranks 0 to Engines-1. 1 to 65,536.
	Engines int

	// Clients is the number of pairs of data sockets. 0 means 1, at most 256.
	Clients int

	// Version is the line that the engines speak.
	Version enginecore.Version

	// Coordinator opens the sockets of a data-parallel coordinator as well. An engine's READY is then refused before all
	// engines have subscribed.
	Coordinator bool

	// KeepHandshake keeps the handshake address open when all engines are up, so that one which was restarted can say HELLO
	// again. vLLM's own frontends close it.
	KeepHandshake bool

	Events
}

// Events are what a frontend tells its user; nil ones are not called. Of the frontend they may use what a Client does without
// waiting, and nothing else; they must not wait for another event. Up and Lost of one engine are called in order, one at a time;
// everything else may be called concurrently.
type Events struct {
	// Outputs is called with every message on an output, except answers to [Client.Utility], on the goroutine of its
	// connection. The delivery and all that it holds is valid until Outputs returns; until then nothing more is read from that
	// connection, so a slow user slows its engine down and nobody else.
	Outputs func(*Delivery)

	// Up tells that an engine can be used, and what it registered with: at the start, and again whenever it comes back.
	Up func(rank int, r enginecore.ReadyResponse)

	// Lost tells that an engine which was up is gone from an input, and why. Its last outputs may still be delivered after
	// that. What it was asked and has not answered is lost. It isn't called for what Close ends.
	Lost func(rank int, err error)

	// Dead tells that ENGINE_CORE_DEAD came on the output of a client. rank is that of the connection's earlier outputs, and
	// -1 if there were none: the message doesn't name an engine.
	Dead func(client, rank int)

	// Report is called with every message of an engine to the coordinator, under the rules of Outputs.
	Report func(*enginecore.Outputs)

	// Refused tells of what an engine did wrong: a connection or a message that was given up.
	Refused func(error)
}

func (o Options) check() error {
	var errs []error
	if o.Engines < 1 || o.Engines > maxEngines {
		errs = append(errs, fmt.Errorf("engines: %d, want 1 to %d", o.Engines, maxEngines))
	}
	if o.Clients < 0 || o.Clients > maxClients {
		errs = append(errs, fmt.Errorf("clients: %d, want 0 to %d", o.Clients, maxClients))
	}
	return errors.Join(errs...)
}
