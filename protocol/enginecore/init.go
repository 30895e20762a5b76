package enginecore

import "github.com/tinylib/msgp/msgp"

// Init is the frontend's answer to HELLO: where the data sockets are. An engine registers at every input and answers at the output
// of the same index.
type Init struct {
	Inputs, Outputs   []string // at least one each, and as many
	CoordinatorInput  string   // both or none; "" = no coordinator
	CoordinatorOutput string
	StatsPublish      string   // between frontend and coordinator: of no use to an engine; "" = none
	ParallelConfig    msgp.Raw // opaque map; nil = none
}

// DecodeInit reads INIT and checks that its addresses fit together.
func DecodeInit(b []byte) (Init, error) {
	var in Init
	d := decoder{b: b}
	d.fields(func(key []byte) {
		switch string(key) {
		case "addresses":
			d.addresses(&in)
		case "parallel_config":
			in.ParallelConfig = d.raw()
		default:
			d.skip()
		}
	})
	d.checkAddresses(&in)
	return in, d.end("init")
}

func (d *decoder) addresses(in *Init) {
	d.fields(func(key []byte) {
		switch string(key) {
		case "inputs":
			in.Inputs = d.strings()
		case "outputs":
			in.Outputs = d.strings()
		case "coordinator_input":
			in.CoordinatorInput = d.string()
		case "coordinator_output":
			in.CoordinatorOutput = d.string()
		case "frontend_stats_publish_address":
			in.StatsPublish = d.string()
		default:
			d.skip()
		}
	})
}

func (d *decoder) checkAddresses(in *Init) {
	switch {
	case d.err != nil:
	case len(in.Inputs) == 0:
		d.fail("addresses: no input")
	case len(in.Inputs) != len(in.Outputs):
		d.fail("addresses: %d inputs, %d outputs, want as many", len(in.Inputs), len(in.Outputs))
	case (in.CoordinatorInput == "") != (in.CoordinatorOutput == ""):
		d.fail("addresses: coordinator input %.64q, output %.64q, want both or none", in.CoordinatorInput, in.CoordinatorOutput)
	}
}

// AppendInit appends INIT.
func AppendInit(b []byte, in Init) []byte {
	b = msgp.AppendMapHeader(b, 2)
	b = msgp.AppendString(b, "addresses")
	b = msgp.AppendMapHeader(b, 5)
	b = appendStrings(msgp.AppendString(b, "inputs"), in.Inputs)
	b = appendStrings(msgp.AppendString(b, "outputs"), in.Outputs)
	b = appendTextField(b, "coordinator_input", in.CoordinatorInput)
	b = appendTextField(b, "coordinator_output", in.CoordinatorOutput)
	b = appendTextField(b, "frontend_stats_publish_address", in.StatsPublish)
	b = msgp.AppendString(b, "parallel_config")
	if len(in.ParallelConfig) == 0 {
		return msgp.AppendMapHeader(b, 0)
	}
	return append(b, in.ParallelConfig...)
}
