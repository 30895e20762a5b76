package supervisor

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
)

// The ways in which a worker of these tests behaves. All but good go wrong in one respect, some of them only when a role's
// call comes, which is what opPoke is for.
const (
	good = "good"

	// at start
	diesAtOnce     = "dies at once"
	mute           = "mute"           // says nothing
	neverReady     = "never ready"    // says hello and answers, but joins no frontend
	greetsThenDies = "greets, dies"   // before it is ready
	wrongVersion   = "wrong version"  // of the protocol
	garbage        = "garbage"        // a body that is no JSON
	strangeKind    = "strange kind"   // of frame
	strangeState   = "strange state"  // a word that is the supervisor's own
	huge           = "huge"           // a frame of 4 GB
	drainsSlowly   = "drains slowly"  // leaves 300 ms after it was told to
	lingers        = "lingers"        // as long, and without its socket
	stubborn       = "stubborn"       // heeds neither drain nor SIGTERM
	parent         = "parent"         // starts a process of its own; its pid is in Page.Dropped
	closesSocket   = "closes socket"  // at a poke, and stays
	losesFrontend  = "loses frontend" // at a poke
	exits          = "exits"          // at a poke, with code 0
	exits3         = "exits 3"        // at a poke, with code 3
	panics         = "panics"         // at a poke
	cut            = "cut"            // at a poke: half a frame, then silence
	freezes        = "freezes"        // at a poke: stops itself
	quiet          = "quiet"          // at a poke: never answers it, nor anything later

	// at calls
	refuses       = "refuses"       // a prepare
	diesAsked     = "dies asked"    // at a prepare, before it answers
	diesAgreed    = "dies agreed"   // right after it answered a prepare
	diesToldTo    = "dies told to"  // at a commit, before it is done
	slow          = "slow"          // every answer takes slowAnswer
	slowToPrepare = "slow prepare"  // that answer takes slowAnswer
	slowToConfirm = "slow confirm"  // answers to config take slowAnswer
	answersTwice  = "answers twice" // every call
	answersOther  = "answers other" // another call's number, before its own
	neverAnswers  = "answers wrong" // another call's number only
	deafReady     = "deaf"          // is ready and reads nothing
)

const slowAnswer = 700 * time.Millisecond

// Calls that only puppets know. They play what a frontend's requests do to an engine's counters.
const (
	opPoke   = "test-poke"
	opArrive = "test-arrive" // Call.Timeout requests arrive and run
	opFinish = "test-finish" // as many of them complete
	opAbort  = "test-abort"  // as many are aborted
	opStick  = "test-stick"  // from now on it refuses changes, Timeout 0 = no longer
	opStrike = "test-strike" // the fault in slot Change strikes until it has Timeout times
)

const joinedBy = "a test's word"

// puppet is a worker that speaks ipc and simulates nothing. The change that it has prepared is in Page.LogDropped, the sum of
// the ids of its faults in Page.HeldBytes.
type puppet struct {
	role     string
	conn     net.Conn
	page     *ipc.Page
	start    ipc.Start
	live     config.Live
	prepared ipc.Call
	sticky   bool
	faults   []uint64 // ids
	drained  chan struct{}
}

// playWorker is the life of a worker process and returns its exit code.
func playWorker(role string) int {
	if role == diesAtOnce {
		return 3
	}
	p := &puppet{role: role, drained: make(chan struct{})}
	if err := p.inherit(); err != nil {
		fmt.Fprintln(os.Stderr, "puppet:", err)
		return 4
	}
	if role == mute {
		_, _ = io.Copy(io.Discard, p.conn)
		return 0
	}
	p.heedSignals()
	p.greet()
	return p.serve()
}

func (p *puppet) inherit() error {
	socket, page := os.NewFile(3, "supervisor"), os.NewFile(4, "page")
	defer socket.Close()
	defer page.Close()
	var err error
	if p.conn, err = net.FileConn(socket); err != nil {
		return err
	}
	if p.page, err = ipc.OpenPage(page); err != nil {
		return err
	}
	f, _, err := ipc.ReadFrame(p.conn, nil)
	if err != nil {
		return err
	}
	if err := f.Decode(&p.start); err != nil {
		return err
	}
	p.live = p.start.Config.Live
	for _, f := range p.start.Faults {
		p.arm(f)
	}
	p.page.Generation.Store(p.start.Generation)
	return p.start.Check()
}

func (p *puppet) heedSignals() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if p.role == stubborn {
		return
	}
	go func() {
		<-signals
		os.Exit(p.leave())
	}()
}

func (p *puppet) greet() {
	hello := ipc.Hello{Version: ipc.Version}
	switch p.role {
	case wrongVersion:
		hello.Version = 7
	case parent:
		p.page.Dropped.Store(uint64(startGrandchild()))
	}
	p.say(ipc.KindHello, 0, hello)
	switch p.role {
	case garbage:
		p.write(ipc.AppendFrame(nil, ipc.Frame{Kind: ipc.KindState, Body: []byte("}{")}))
	case strangeKind:
		p.write(ipc.AppendFrame(nil, ipc.Frame{Kind: 99, Body: []byte("{}")}))
	case strangeState:
		p.say(ipc.KindState, 0, ipc.State{State: StateDead})
	case huge:
		p.write(binary.LittleEndian.AppendUint32(nil, 1<<32-1))
	case greetsThenDies:
		os.Exit(3)
	}
	if slices.Contains([]string{wrongVersion, garbage, strangeKind, strangeState, huge}, p.role) {
		select {} // and takes no notice of the answer
	}
	p.say(ipc.KindState, 0, ipc.State{State: ipc.StateStarting})
	if p.role != neverReady {
		p.say(ipc.KindState, 0, ipc.State{State: ipc.StateReady, Joined: joinedBy, Addresses: p.addresses()})
	}
}

// addresses are what the configuration calls the handshake: tests have no frontend, but some listen for a dead engine.
func (p *puppet) addresses() *ipc.Addresses {
	return &ipc.Addresses{Inputs: []string{"tcp://127.0.0.1:9"}, Outputs: strings.Split(p.start.Config.HandshakeAddress, ",")}
}

func startGrandchild() int {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), grandchildVar+"=1")
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return cmd.Process.Pid
}

// serve answers calls until it was drained or the supervisor is gone.
func (p *puppet) serve() int {
	if p.role == deafReady {
		select {}
	}
	var buf []byte
	for {
		var f ipc.Frame
		var err error
		if f, buf, err = ipc.ReadFrame(p.conn, buf); err != nil {
			return 0
		}
		var c ipc.Call
		if err := f.Decode(&c); err != nil {
			fmt.Fprintln(os.Stderr, "puppet:", err)
			return 5
		}
		if c.Op == ipc.OpDrain && p.role != stubborn && !c.Stay {
			return p.leave()
		}
		p.obey(f.Call, c)
	}
}

func (p *puppet) leave() int {
	p.say(ipc.KindState, 0, ipc.State{State: ipc.StateDraining})
	if p.role == lingers {
		p.conn.Close()
	}
	if p.role == drainsSlowly || p.role == lingers {
		<-time.After(300 * time.Millisecond)
	}
	return 0
}

// obey does what one call asks, in the way of the role.
func (p *puppet) obey(number uint64, c ipc.Call) {
	switch {
	case p.role == diesAsked && c.Op == ipc.OpPrepare, p.role == diesToldTo && c.Op == ipc.OpCommit:
		die()
	case p.role == slow, p.role == slowToPrepare && c.Op == ipc.OpPrepare, p.role == slowToConfirm && (c.Op == ipc.OpConfig || c.Op == ipc.OpPing):
		<-time.After(slowAnswer)
	case c.Op == opPoke:
		p.poked()
	}
	p.answer(number, p.perform(c))
	if p.role == diesAgreed && c.Op == ipc.OpPrepare {
		die()
	}
}

func (p *puppet) answer(number uint64, a ipc.Answer) {
	if number == 0 {
		return
	}
	if p.role == answersOther || p.role == neverAnswers {
		p.say(ipc.KindAnswer, number+1000, a)
	}
	if p.role == answersTwice {
		p.say(ipc.KindAnswer, number, a)
	}
	if p.role != neverAnswers {
		p.say(ipc.KindAnswer, number, a)
	}
}

// poked goes wrong, where that is the role.
func (p *puppet) poked() {
	switch p.role {
	case closesSocket:
		p.conn.Close()
		select {}
	case losesFrontend:
		p.say(ipc.KindState, 0, ipc.State{State: ipc.StateReconnecting})
	case exits:
		os.Exit(0)
	case exits3:
		os.Exit(3)
	case panics:
		panic("a puppet's string tore")
	case cut:
		p.write([]byte{200, 0, 0, 0, byte(ipc.KindAnswer), 1})
		select {}
	case quiet:
		select {}
	case freezes:
		continued := make(chan os.Signal, 1)
		signal.Notify(continued, syscall.SIGCONT)
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		<-continued // not all threads stop at once
	}
}

func die() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }

func (p *puppet) perform(c ipc.Call) ipc.Answer {
	switch c.Op {
	case ipc.OpConfig:
		live := p.live.Clone()
		return ipc.Answer{Config: &live}
	case ipc.OpStats:
		s := p.page.Stats()
		return ipc.Answer{Stats: &s}
	case ipc.OpPrepare:
		return p.prepare(c)
	case ipc.OpCommit:
		p.commit(c)
	case ipc.OpAbort:
		if p.prepared.Change == c.Change {
			p.prepared = ipc.Call{}
			p.page.LogDropped.Store(0)
		}
	case ipc.OpRequests:
		like := ipc.Request{ID: c.Query.ID, State: c.Query.States[0], MaxTokens: c.Query.Limit}
		return ipc.Answer{Requests: &ipc.Requests{List: []ipc.Request{like}, Matched: 1}}
	case ipc.OpDrain:
		return p.drain(c)
	case ipc.OpLog:
		p.page.Merged.Add(1)
		p.page.HeldNanos.Store(uint64(len(c.Filter)))
	case opArrive, opFinish, opAbort:
		p.count(c.Op, c.Timeout)
	case opStrike:
		p.page.SetApplied(int(c.Change), c.Timeout)
	case opStick:
		p.sticky = c.Timeout != 0
	}
	return ipc.Answer{}
}

// drain aborts what runs, as an engine without a time-out does, and leaves the frontend.
func (p *puppet) drain(c ipc.Call) ipc.Answer {
	unfinished := p.page.Running.Load()
	if p.role == stubborn {
		return ipc.Answer{Drain: &ipc.Drain{Unfinished: unfinished, Timeout: c.Timeout}}
	}
	p.count(opAbort, unfinished)
	p.say(ipc.KindState, 0, ipc.State{State: ipc.StateDraining})
	p.say(ipc.KindState, 0, ipc.State{State: ipc.StateReady, Joined: joinedBy, Addresses: p.addresses()}) // links come and go meanwhile
	if c.Timeout == 0 {
		p.say(ipc.KindState, 0, ipc.State{State: ipc.StateDrained})
	}
	return ipc.Answer{Drain: &ipc.Drain{Unfinished: unfinished, Timeout: c.Timeout}}
}

func (p *puppet) prepare(c ipc.Call) ipc.Answer {
	if p.role == refuses || p.sticky {
		return ipc.Answer{Refused: "a puppet has principles"}
	}
	if _, err := c.Patch.Apply(p.live); err != nil {
		return ipc.Answer{Refused: err.Error()}
	}
	p.prepared = c
	p.page.LogDropped.Store(c.Change)
	return ipc.Answer{}
}

func (p *puppet) arm(f ipc.ArmedFault) {
	p.faults = append(p.faults, f.ID)
	p.page.HeldBytes.Add(f.ID)
	p.page.Arm(f)
	if f.AtOnce() {
		p.page.SetApplied(f.Slot, 1)
		die()
	}
}

func (p *puppet) commit(c ipc.Call) {
	p.faults = slices.DeleteFunc(p.faults, func(id uint64) bool {
		if !slices.Contains(c.Disarm, id) {
			return false
		}
		p.page.HeldBytes.Add(-id)
		return true
	})
	if p.prepared.Change != c.Change {
		return
	}
	if p.prepared.Arm != nil {
		p.arm(*p.prepared.Arm)
	}
	if p.prepared.ResetStats {
		p.page.Reset()
	}
	p.live, _ = p.prepared.Patch.Apply(p.live)
	p.prepared = ipc.Call{}
	p.page.Generation.Store(c.Change)
}

func (p *puppet) count(op string, n uint64) {
	counter := map[string]interface{ Add(uint64) uint64 }{
		opArrive: &p.page.Received, opFinish: &p.page.Completed, opAbort: &p.page.Aborted,
	}[op]
	counter.Add(n)
	if op == opArrive {
		p.page.Running.Add(n)
	} else {
		p.page.Running.Add(-n)
	}
}

func (p *puppet) say(kind ipc.Kind, call uint64, body any) {
	frame, err := ipc.Append(nil, kind, call, body)
	if err != nil {
		panic(err)
	}
	p.write(frame)
}

func (p *puppet) write(frame []byte) {
	if _, err := p.conn.Write(frame); err != nil {
		os.Exit(0) // the supervisor is gone
	}
}
