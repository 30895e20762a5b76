package enginecore

import (
	"fmt"

	"github.com/tinylib/msgp/msgp"
)

// Every function below reads the arguments of the utility method it is named for. Missing ones and nil have vLLM's defaults,
// surplus ones are ignored, and an error says which argument is wrong.

// DecodeSleepArgs reads sleep(level, mode): the level is 1 or 2, the mode "abort", "wait" or "keep".
func DecodeSleepArgs(args msgp.Raw) (level uint64, mode string, err error) {
	level, mode = 1, "abort"
	err = decodeArgs("sleep", args, func(d *decoder, i int) {
		switch i {
		case 0:
			level = d.uint()
		case 1:
			mode = d.string()
		default:
			d.skip()
		}
	})
	return level, mode, err
}

// DecodeWakeUpArgs reads wake_up(tags); no tags mean all.
func DecodeWakeUpArgs(args msgp.Raw) (tags []string, err error) {
	err = decodeArgs("wake_up", args, func(d *decoder, i int) {
		if i > 0 {
			d.skip()
			return
		}
		tags = d.strings()
	})
	return tags, err
}

// DecodePauseArgs reads pause_scheduler(mode, clear_cache) and pause_generation, which has the same.
func DecodePauseArgs(args msgp.Raw) (mode string, clearCache bool, err error) {
	mode, clearCache = "abort", true
	err = decodeArgs("pause", args, func(d *decoder, i int) {
		switch i {
		case 0:
			mode = d.string()
		case 1:
			clearCache = d.bool()
		default:
			d.skip()
		}
	})
	return mode, clearCache, err
}

// DecodeAddLoRAArgs reads add_lora(lora_request). The request is never nil without an error.
func DecodeAddLoRAArgs(args msgp.Raw) (*LoRARequest, error) {
	var lora *LoRARequest
	err := decodeArgs("add_lora", args, func(d *decoder, i int) {
		if i > 0 {
			d.skip()
			return
		}
		lora = d.lora()
	})
	if err == nil && lora == nil {
		err = fmt.Errorf("add_lora arguments: no adapter")
	}
	return lora, err
}

// DecodeLoRAIDArgs reads remove_lora(id) and pin_lora(id).
func DecodeLoRAIDArgs(args msgp.Raw) (uint64, error) {
	var id Optional[uint64]
	err := decodeArgs("LoRA", args, func(d *decoder, i int) {
		if i > 0 {
			d.skip()
			return
		}
		id = d.optionalUint()
	})
	if err == nil && !id.Set {
		err = fmt.Errorf("LoRA arguments: no adapter id")
	}
	return id.Value, err
}

// DecodeResetPrefixCacheArgs reads reset_prefix_cache(reset_running_requests, reset_connector).
func DecodeResetPrefixCacheArgs(args msgp.Raw) (running, connector bool, err error) {
	err = decodeArgs("reset_prefix_cache", args, func(d *decoder, i int) {
		switch i {
		case 0:
			running = d.bool()
		case 1:
			connector = d.bool()
		default:
			d.skip()
		}
	})
	return running, connector, err
}

// DecodeProfileArgs reads profile(is_start, …).
func DecodeProfileArgs(args msgp.Raw) (start bool, err error) {
	start = true
	err = decodeArgs("profile", args, func(d *decoder, i int) {
		if i > 0 {
			d.skip()
			return
		}
		start = d.bool()
	})
	return start, err
}

// DecodeWeightVersionArgs reads set_weight_version(label).
func DecodeWeightVersionArgs(args msgp.Raw) (string, error) {
	var label Optional[string]
	err := decodeArgs("set_weight_version", args, func(d *decoder, i int) {
		if i > 0 {
			d.skip()
			return
		}
		if !d.null() {
			label = Some(d.string())
		}
	})
	if err == nil && !label.Set {
		err = fmt.Errorf("set_weight_version arguments: no label")
	}
	return label.Value, err
}

// CollectiveRPC are the arguments of collective_rpc(method, timeout, args, kwargs). The opaque parts alias what they were read from.
type CollectiveRPC struct {
	Method  string
	Timeout Optional[float64] // seconds
	Args    msgp.Raw
	Kwargs  msgp.Raw
}

// DecodeCollectiveRPCArgs reads collective_rpc's arguments.
func DecodeCollectiveRPCArgs(args msgp.Raw) (CollectiveRPC, error) {
	var call CollectiveRPC
	err := decodeArgs("collective_rpc", args, func(d *decoder, i int) {
		switch i {
		case 0:
			call.Method = d.string()
		case 1:
			call.Timeout = d.optionalFloat()
		case 2:
			call.Args = d.raw()
		case 3:
			call.Kwargs = d.raw()
		default:
			d.skip()
		}
	})
	return call, err
}

// DecodeAbortArgs reads the utility form of an abort: abort(ids, internal), where the flag says that the ids are the engine's own.
func DecodeAbortArgs(args msgp.Raw) (ids []string, internal bool, err error) {
	err = decodeArgs("abort", args, func(d *decoder, i int) {
		switch i {
		case 0:
			ids = d.strings()
		case 1:
			internal = d.bool()
		default:
			d.skip()
		}
	})
	return ids, internal, err
}

// decodeArgs walks an argument list. An argument that is nil is left at its default, so read is called for the others only.
func decodeArgs(method string, args msgp.Raw, read func(d *decoder, i int)) error {
	if len(args) == 0 {
		return nil
	}
	d := &decoder{b: args}
	d.array(nil, func(i int) {
		if !d.null() {
			read(d, i)
		}
	})
	return d.end(method + " arguments")
}
