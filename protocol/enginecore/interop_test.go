//go:build interop

package enginecore

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tinylib/msgp/msgp"
)

// peer is a Python process that decodes what we encode with strict msgspec structs, and encodes it itself.
type peer struct {
	in  io.WriteCloser
	out *bufio.Scanner
}

// startPeer runs testdata/peer.py with the interpreter that PYTHON names, which must have msgspec.
func startPeer(t *testing.T) *peer {
	t.Helper()
	python := os.Getenv("PYTHON")
	if python == "" {
		t.Fatal("PYTHON: not set, want a Python interpreter that has msgspec")
	}
	if out, err := exec.Command(python, "-c", "import msgspec").CombinedOutput(); err != nil {
		t.Fatalf("PYTHON=%s: %v, want a Python interpreter that has msgspec\n%s", python, err, out)
	}
	cmd := exec.Command(python, "testdata/peer.py")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // ends the peer, whatever it answers
		if err := cmd.Wait(); err != nil {
			t.Errorf("peer: %v", err)
		}
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<24)
	return &peer{in: in, out: lines}
}

// ask gives Python's encoding of what it read in b, or its complaint.
func (p *peer) ask(t *testing.T, kind, line string, b []byte) (encoded []byte, complaint string) {
	t.Helper()
	question := map[string]string{"kind": kind, "line": line, "hex": hex.EncodeToString(b)}
	if err := json.NewEncoder(p.in).Encode(question); err != nil {
		t.Fatal(err)
	}
	if !p.out.Scan() {
		t.Fatalf("peer gave no answer: %v", p.out.Err())
	}
	var answer struct{ Hex, Error string }
	if err := json.Unmarshal(p.out.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	encoded, err := hex.DecodeString(answer.Hex)
	if err != nil {
		t.Fatal(err)
	}
	return encoded, answer.Error
}

// accepted is ask for a message that Python must take.
func (p *peer) accepted(t *testing.T, kind, line string, b []byte) []byte {
	t.Helper()
	encoded, complaint := p.ask(t, kind, line, b)
	if complaint != "" {
		t.Fatalf("%s of %s: Python says %q about %x", kind, line, complaint, b)
	}
	return encoded
}

func outputsForPeer(v Version) map[string][]byte {
	var batch, stats, finished Batch
	full := fullOutput()
	batch.Reset(v, 3)
	batch.Add(EncodeID("full"), &full)
	batch.Token(EncodeID("plain"), []uint32{1, 1 << 31})
	batch.Add(EncodeID("stop"), &Output{Finish: FinishStop, StopReason: StopReason{Token: Some[int64](2045)}})
	batch.Finished(EncodeID("stop"))
	batch.WeightVersion("v7")
	stats.Reset(v, 0)
	finished.Reset(v, 0)
	finished.Finished(EncodeID("a"))
	spec := &SpecDecodingStats{SpecTokens: 2, AcceptedByPosition: []uint64{1, 0}}
	return map[string][]byte{
		"batch":         batch.Finish(&SchedulerStats{Running: 3, SpecDecoding: spec, Connector: &PrefixCacheStats{}, RunningLoRAs: []LoRACount{{"l", 1}}}, 12.5),
		"stats alone":   stats.Finish(&SchedulerStats{KVCacheUsage: 1}, 12.5),
		"finished":      finished.Finish(nil, 12.5),
		"void result":   AppendUtilityResult(nil, 1, 12.5, NewCallID(1<<63), nil),
		"result":        AppendUtilityResult(nil, 1, 12.5, NewCallID(7), list(msgp.AppendString(nil, "generate"))),
		"failure":       AppendUtilityFailure(nil, 1, 12.5, NewCallID(7), "Call to x method failed: no"),
		"wave complete": AppendOutputsWaveComplete(nil, 1, 12.5, 4),
		"start wave":    AppendOutputsStartWave(nil, 1, 12.5, 4),
	}
}

// What we encode passes the strict structs of its line, and what those encode, untrimmed, says the same to us.
func TestInterop_Outputs(t *testing.T) {
	p := startPeer(t)
	for _, line := range []string{"0.25", "0.26", "0.27", "0.32", "0.33"} {
		v := mustVersion(t, line)
		for name, ours := range outputsForPeer(v) {
			t.Run(line+" "+name, func(t *testing.T) {
				theirs := p.accepted(t, "outputs", line, ours)
				want, got := Outputs{Version: v}, Outputs{Version: v}
				if err := DecodeOutputs(ours, &want); err != nil {
					t.Fatal(err)
				}
				if err := DecodeOutputs(theirs, &got); err != nil {
					t.Fatalf("decoding Python's %x: %v", theirs, err)
				}
				sameOutputs(t, &got, &want)
			})
		}
	}
}

// The check is worth something: a message of a later line is refused by an earlier one.
func TestInterop_StrictAboutLines(t *testing.T) {
	p := startPeer(t)
	for _, c := range []struct{ encoded, decoded string }{{"0.33", "0.27"}, {"0.27", "0.25"}, {"0.25", "0.27"}} {
		if _, complaint := p.ask(t, "outputs", c.decoded, outputsForPeer(mustVersion(t, c.encoded))["batch"]); complaint == "" {
			t.Errorf("a full batch of %s passed the structs of %s", c.encoded, c.decoded)
		}
	}
}

// An ADD from fields alone is, byte for byte, what msgspec makes of it.
func TestInterop_Add(t *testing.T) {
	p := startPeer(t)
	full := fullRequest()
	full.MMFeatures, full.Pooling, full.KVHints, full.ReasoningParser = msgp.Raw{0x90}, nil, msgp.Raw{0x80}, msgp.Raw{0x80}
	full.PromptEmbeds, full.PromptIsTokens, full.TraceHeaders = nil, msgp.Raw{0x91, 0xc3}, msgp.Raw{0x80}
	full.Sampling.Stop, full.Sampling.StopTokenIDs, full.Sampling.BadWords = []string{"a"}, []uint32{300}, []string{}
	full.Sampling.Explicit = KeyStop | KeyStopTokenIDs | KeyBadWords
	full.Sampling.RepetitionDetection = &RepetitionDetection{MaxPatternSize: 3, MinPatternSize: 1, MinCount: 2}
	full.Sampling.MinTokens, full.Sampling.TopK, full.Sampling.Temperature = 2, -1, 0.25
	pooling := Request{ID: "p", PromptTokens: []uint32{}, Pooling: msgp.Raw{0x91, 0xc0}}
	for _, line := range []string{"0.25", "0.27", "0.32", "0.33"} {
		for _, r := range []Request{full, pooling} {
			ours := AppendRequest(nil, mustVersion(t, line), &r)
			sameBytes(t, p.accepted(t, "add", line, ours), ours)
		}
	}
}

func TestInterop_SmallMessages(t *testing.T) {
	p := startPeer(t)
	answer := Init{Inputs: []string{"tcp://a:1"}, Outputs: []string{"tcp://a:2"}, CoordinatorInput: "i", CoordinatorOutput: "o"}
	ready := ReadyResponse{DType: "float32", KVCacheConcurrency: Some(3.0), KVEvents: &KVEventsConfig{Publisher: "zmq"}, MaxModelLen: 1 << 20}
	for kind, messages := range map[string][][]byte{
		"ready": {AppendReady(nil, &ReadyResponse{}), AppendReady(nil, &ready)},
		"hello": {AppendHello(nil, Hello{Status: StatusHello, Headless: true}), AppendHello(nil, Hello{Status: StatusReady, ParallelConfigHash: "ab"})},
		"init":  {AppendInit(nil, answer)},
		"utility": {
			AppendUtility(nil, UtilityCall{CallID: NewCallID(1<<64 - 1), Method: "sleep", Args: msgp.Raw{0x91, 1}}),
			AppendUtility(nil, UtilityCall{Method: "m"}),
		},
		"abort": {AppendAbort(nil, nil), AppendAbort(nil, []string{"a", "b"})},
		"wave":  {AppendStartWave(nil, StartWave{Wave: 3}), AppendStartWave(nil, StartWave{Exclude: Some[uint64](1), ByIdentity: true})},
	} {
		for _, ours := range messages {
			theirs := p.accepted(t, kind, "", ours)
			if diff := cmp.Diff(generic(t, ours), generic(t, theirs)); diff != "" {
				t.Errorf("%s differs (-ours +Python's):\n%s", kind, diff)
			}
		}
	}
}
