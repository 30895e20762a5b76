package worker

import (
	"testing"

	"vllm-vcr/ipc"
	"vllm-vcr/logs"
	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
	"vllm-vcr/worker/engine"
)

// clientOf returns outputs with one client, and the socket on which that receives. Low is called as zmtp's OnLowWater is, after each
// message.
func clientOf(t *testing.T, low func()) (*outputs, *zmtp.Puller) {
	t.Helper()
	page, file, err := ipc.NewPage()
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	client, err := zmtp.ListenPull("tcp://127.0.0.1:0", zmtp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := zmtp.Dial(timeout(t), client.Address(), zmtp.Options{Type: zmtp.Push, HighWater: 1, LowWater: 1, OnLowWater: low})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close(expired())
		_ = client.Close()
		_ = page.Close()
	})
	o := &outputs{strain: &strain{page: page}, log: logs.Nop(), journal: newJournal(0, page)}
	o.connect([]*zmtp.Conn{conn}, nil)
	return o, client
}

// An answer to a utility call does not overtake the counts of its turn, but everything else of it.
func TestOutputs_TellWaitsForTheCounts(t *testing.T) {
	o, client := clientOf(t, func() {})
	o.End(&engine.Request{Caller: &caller{id: enginecore.EncodeID("a")}}, engine.Error, engine.Duplicate)
	o.tell(0, []byte("answer"))
	if n := o.clients[0].conn.Traffic().MessagesOut; n != 0 {
		t.Fatalf("%d messages were sent before the counts were published, want none", n)
	}
	o.flushTold()
	o.flush(0, load{}, true)
	if frames, err := client.Recv(); err != nil || string(frames[0]) != "answer" {
		t.Errorf("received %q, %v, want the answer first", frames, err)
	}
	if frames, err := client.Recv(); err != nil || enginecore.DecodeOutputs(frames[0], new(enginecore.Outputs)) != nil {
		t.Errorf("received %q, %v, want the end of a request", frames, err)
	}
	o.flushTold()
	if n := o.clients[0].conn.Traffic().MessagesOut; n != 2 {
		t.Errorf("%d messages were sent, want 2", n)
	}
}

// A session that is renewed in the middle of a turn loses nothing that was gathered for a socket that stays.
func TestOutputs_ConnectKeepsWhatWasGathered(t *testing.T) {
	o, client := clientOf(t, func() {})
	o.End(&engine.Request{Caller: &caller{id: enginecore.EncodeID("a")}}, engine.Error, engine.Duplicate)
	o.connect([]*zmtp.Conn{o.clients[0].conn}, nil)
	o.flush(0, load{}, true)
	var got enginecore.Outputs
	frames, err := client.Recv()
	if err == nil {
		err = enginecore.DecodeOutputs(frames[0], &got)
	}
	if err != nil || len(got.Requests) != 1 || got.Requests[0].Finish != enginecore.FinishError {
		t.Errorf("received %+v, %v, want the end of a request", got, err)
	}
}

// What leaves in one turn and is more than a message may hold leaves in two messages.
func TestOutputs_MoreThanAMessage(t *testing.T) {
	const many = enginecore.MaxOutputs + 1
	request := &engine.Request{Caller: &caller{id: enginecore.EncodeID("a")}}
	for name, output := range map[string]func(*outputs){
		"tokens": func(o *outputs) { o.Chunk(request, []uint32{7}, engine.Length, false) },
		"ends":   func(o *outputs) { o.End(request, engine.Abort, engine.Aborted) },
	} {
		t.Run(name, func(t *testing.T) {
			o, client := clientOf(t, func() {})
			for range many {
				output(o)
			}
			o.flush(0, load{}, true)
			var got enginecore.Outputs
			for requests, finished := 0, 0; requests < many; {
				frames, err := client.Recv()
				if err == nil {
					err = enginecore.DecodeOutputs(frames[0], &got)
				}
				if err != nil {
					t.Fatal(err)
				}
				requests, finished = requests+len(got.Requests), finished+len(got.Finished)
				if requests > many || finished != requests {
					t.Fatalf("%d outputs and %d finished, want %d of both", requests, finished, many)
				}
			}
		})
	}
}
