package worker

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tinylib/msgp/msgp"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/worker/engine"
)

// utilityInput is a utility call: a frontend's question to the engine outside of any request.
type utilityInput struct{ call *enginecore.UtilityCall }

func (in utilityInput) apply(l *loop, now engine.Time) {
	if l.drain.active {
		l.refuseUtility(in.call, now, "Server shutting down")
		return
	}
	method, ok := utilityMethods[in.call.Method]
	if !ok {
		method = (*loop).unknownUtility
	}
	value, err := method(l, now, in.call)
	switch {
	case errors.Is(err, errAnswerLater):
	case err != nil:
		l.log.Warn().Str("method", in.call.Method).Err(err).Msg("utility call refused")
		l.refuseUtility(in.call, now, fmt.Sprintf("Call to %s method failed: %v", in.call.Method, err))
	default:
		l.answerUtility(in.call, now, value)
	}
}

func (l *loop) answerUtility(call *enginecore.UtilityCall, now engine.Time, value msgp.Raw) {
	l.outputs.tell(call.ClientIndex, enginecore.AppendUtilityResult(nil, l.outputs.rank, now.Seconds(), call.CallID, value))
}

// refuseUtility answers with a text that reaches the frontend's client.
func (l *loop) refuseUtility(call *enginecore.UtilityCall, now engine.Time, text string) {
	l.outputs.tell(call.ClientIndex, enginecore.AppendUtilityFailure(nil, l.outputs.rank, now.Seconds(), call.CallID, text))
}

// errAnswerLater says that a call will be answered once nothing runs any more.
var errAnswerLater = errors.New("answer later")

// utilities is what utility calls change and ask for, apart from the engine itself.
type utilities struct {
	asleep        map[string]bool // parts of the engine that sleep
	adapters      map[uint64]string
	weightVersion string
	waiting       []*enginecore.UtilityCall // pauses that wait for running requests
	blockSize     uint64
}

func newUtilities(blockSize uint64) utilities {
	return utilities{asleep: map[string]bool{}, adapters: map[uint64]string{}, weightVersion: "default", blockSize: blockSize}
}

// answerWaiting answers the pauses that waited for running requests, when the last of those has ended.
func (u *utilities) answerWaiting(l *loop, now engine.Time) {
	if len(u.waiting) == 0 || l.engine.Running() > 0 {
		return
	}
	for _, call := range u.waiting {
		l.answerUtility(call, now, nil)
	}
	u.waiting = nil
}

type utilityMethod func(l *loop, now engine.Time, call *enginecore.UtilityCall) (msgp.Raw, error)

// utilityMethods are the methods of vLLM's engine core that mean something to an engine without a model.
var utilityMethods = map[string]utilityMethod{
	"get_supported_tasks":         constant(appendStrings("generate")),
	"is_sleeping":                 (*loop).isSleeping,
	"sleep":                       (*loop).sleep,
	"wake_up":                     (*loop).wakeUp,
	"release_kv_cache_memory":     nothing,
	"pause_scheduler":             (*loop).pauseScheduler,
	"pause_generation":            (*loop).pauseGeneration,
	"resume_scheduler":            (*loop).resume,
	"is_scheduler_paused":         (*loop).isPaused,
	"profile":                     (*loop).profile,
	"reset_mm_cache":              nothing,
	"reset_encoder_cache":         nothing,
	"reset_prefix_cache":          (*loop).resetPrefixCache,
	"add_lora":                    (*loop).addLoRA,
	"remove_lora":                 (*loop).removeLoRA,
	"pin_lora":                    (*loop).pinLoRA,
	"list_loras":                  (*loop).listLoRAs,
	"execute_dummy_batch":         nothing,
	"save_sharded_state":          nothing,
	"collective_rpc":              (*loop).collectiveRPC,
	"set_weight_version":          (*loop).setWeightVersion,
	"get_weight_version":          (*loop).getWeightVersion,
	"compute_weight_checksums":    constant(msgp.AppendArrayHeader(nil, 0)),
	"get_kv_cache_group_metadata": (*loop).cacheGroups,
	"abort":                       (*loop).abortUtility,
}

func nothing(*loop, engine.Time, *enginecore.UtilityCall) (msgp.Raw, error) { return nil, nil }

func constant(value msgp.Raw) utilityMethod {
	return func(*loop, engine.Time, *enginecore.UtilityCall) (msgp.Raw, error) { return value, nil }
}

func (l *loop) unknownUtility(engine.Time, *enginecore.UtilityCall) (msgp.Raw, error) {
	return nil, errors.New("this engine has no such method")
}

// sleepingParts are what sleep puts to sleep and wake_up names in its tags.
var sleepingParts = []string{"weights", "kv_cache"}

func (l *loop) isSleeping(engine.Time, *enginecore.UtilityCall) (msgp.Raw, error) {
	return msgp.AppendBool(nil, len(l.utilities.asleep) > 0), nil
}

func (l *loop) sleep(now engine.Time, call *enginecore.UtilityCall) (msgp.Raw, error) {
	level, mode, err := enginecore.DecodeSleepArgs(call.Args)
	if err != nil {
		return nil, err
	}
	if level > 2 {
		return nil, fmt.Errorf("level %d, want 0 to 2", level)
	}
	value, err := l.pause(now, call, mode, false)
	if err != nil && !errors.Is(err, errAnswerLater) {
		return nil, err
	}
	for _, part := range sleepingParts {
		l.utilities.asleep[part] = true
	}
	return value, err
}

// wakeUp answers whether all is awake, to frontends that want to know.
func (l *loop) wakeUp(now engine.Time, call *enginecore.UtilityCall) (msgp.Raw, error) {
	tags, err := enginecore.DecodeWakeUpArgs(call.Args)
	if err != nil {
		return nil, err
	}
	if len(tags) == 0 {
		tags = sleepingParts
	}
	for _, tag := range tags {
		if !slices.Contains(sleepingParts, tag) {
			return nil, fmt.Errorf("tag %q, want one of %q", tag, sleepingParts)
		}
		delete(l.utilities.asleep, tag)
	}
	awake := len(l.utilities.asleep) == 0
	if awake {
		l.engine.Resume(now)
	}
	if !l.outputs.version.AtLeast(33) {
		return nil, nil
	}
	return msgp.AppendBool(nil, awake), nil
}

func (l *loop) pauseScheduler(now engine.Time, call *enginecore.UtilityCall) (msgp.Raw, error) {
	mode, _, err := enginecore.DecodePauseArgs(call.Args)
	if err != nil {
		return nil, err
	}
	return l.pause(now, call, mode, false)
}

// pauseGeneration refuses new requests as well, unless the old ones are kept.
func (l *loop) pauseGeneration(now engine.Time, call *enginecore.UtilityCall) (msgp.Raw, error) {
	mode, _, err := enginecore.DecodePauseArgs(call.Args)
	if err != nil {
		return nil, err
	}
	return l.pause(now, call, mode, mode != "keep")
}

func (l *loop) pause(now engine.Time, call *enginecore.UtilityCall, word string, refuse bool) (msgp.Raw, error) {
	mode, ok := map[string]engine.PauseMode{"abort": engine.PauseAbort, "wait": engine.PauseWait, "keep": engine.PauseKeep}[word]
	if !ok {
		return nil, fmt.Errorf("mode %q, want abort, wait or keep", word)
	}
	l.engine.Pause(now, mode, refuse)
	if mode == engine.PauseWait && l.engine.Running() > 0 {
		l.utilities.waiting = append(l.utilities.waiting, call)
		return nil, errAnswerLater
	}
	return nil, nil
}

func (l *loop) resume(now engine.Time, _ *enginecore.UtilityCall) (msgp.Raw, error) {
	l.engine.Resume(now)
	return nil, nil
}

func (l *loop) isPaused(engine.Time, *enginecore.UtilityCall) (msgp.Raw, error) {
	return msgp.AppendBool(nil, l.engine.Paused()), nil
}

func (l *loop) profile(_ engine.Time, call *enginecore.UtilityCall) (msgp.Raw, error) {
	_, err := enginecore.DecodeProfileArgs(call.Args)
	return nil, err
}

// resetPrefixCache succeeds as an empty cache does: not while requests run, unless those may be reset as well.
func (l *loop) resetPrefixCache(_ engine.Time, call *enginecore.UtilityCall) (msgp.Raw, error) {
	running, _, err := enginecore.DecodeResetPrefixCacheArgs(call.Args)
	if err != nil {
		return nil, err
	}
	return msgp.AppendBool(nil, running || l.engine.Running() == 0), nil
}

func (l *loop) addLoRA(_ engine.Time, call *enginecore.UtilityCall) (msgp.Raw, error) {
	adapter, err := enginecore.DecodeAddLoRAArgs(call.Args)
	if err != nil {
		return nil, err
	}
	l.utilities.adapters[adapter.ID] = adapter.Name
	l.log.Info().Str("lora", adapter.Name).Uint64("id", adapter.ID).Bool("ok", true).Msg("add_lora")
	return msgp.AppendBool(nil, true), nil
}

func (l *loop) removeLoRA(_ engine.Time, call *enginecore.UtilityCall) (msgp.Raw, error) {
	id, err := enginecore.DecodeLoRAIDArgs(call.Args)
	if err != nil {
		return nil, err
	}
	name, ok := l.utilities.adapters[id]
	delete(l.utilities.adapters, id)
	l.log.Info().Str("lora", name).Uint64("id", id).Bool("ok", ok).Msg("remove_lora")
	return msgp.AppendBool(nil, ok), nil
}

func (l *loop) pinLoRA(_ engine.Time, call *enginecore.UtilityCall) (msgp.Raw, error) {
	id, err := enginecore.DecodeLoRAIDArgs(call.Args)
	if err != nil {
		return nil, err
	}
	_, ok := l.utilities.adapters[id]
	return msgp.AppendBool(nil, ok), nil
}

func (l *loop) listLoRAs(engine.Time, *enginecore.UtilityCall) (msgp.Raw, error) {
	ids := slices.Sorted(maps.Keys(l.utilities.adapters))
	b := msgp.AppendArrayHeader(nil, uint32(len(ids)))
	for _, id := range ids {
		b = msgp.AppendUint64(b, id)
	}
	return b, nil
}

// collectiveRPC answers for the one worker that a model on one device would have: with None.
func (l *loop) collectiveRPC(_ engine.Time, call *enginecore.UtilityCall) (msgp.Raw, error) {
	if _, err := enginecore.DecodeCollectiveRPCArgs(call.Args); err != nil {
		return nil, err
	}
	return msgp.AppendNil(msgp.AppendArrayHeader(nil, 1)), nil
}

func (l *loop) setWeightVersion(_ engine.Time, call *enginecore.UtilityCall) (msgp.Raw, error) {
	version, err := enginecore.DecodeWeightVersionArgs(call.Args)
	if err == nil {
		l.utilities.weightVersion = version
	}
	return nil, err
}

func (l *loop) getWeightVersion(engine.Time, *enginecore.UtilityCall) (msgp.Raw, error) {
	return msgp.AppendString(nil, l.utilities.weightVersion), nil
}

// cacheGroups describes a model whose layers all attend to everything.
func (l *loop) cacheGroups(engine.Time, *enginecore.UtilityCall) (msgp.Raw, error) {
	b := msgp.AppendArrayHeader(nil, 1)
	b = msgp.AppendMapHeader(b, 3)
	b = msgp.AppendInt(msgp.AppendString(b, "group_idx"), 0)
	b = msgp.AppendString(msgp.AppendString(b, "kind"), "full_attention")
	return msgp.AppendUint64(msgp.AppendString(b, "block_size"), l.utilities.blockSize), nil
}

func (l *loop) abortUtility(now engine.Time, call *enginecore.UtilityCall) (msgp.Raw, error) {
	ids, _, err := enginecore.DecodeAbortArgs(call.Args)
	if err == nil {
		l.engine.Abort(now, ids)
	}
	return nil, err
}

func appendStrings(words ...string) msgp.Raw {
	b := msgp.AppendArrayHeader(nil, uint32(len(words)))
	for _, word := range words {
		b = msgp.AppendString(b, word)
	}
	return b
}
