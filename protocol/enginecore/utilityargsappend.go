package enginecore

import "github.com/tinylib/msgp/msgp"

// Every function below appends the arguments of the utility method it is named for, all of them, as vLLM's frontends do.

// AppendSleepArgs writes sleep(level, mode).
func AppendSleepArgs(b []byte, level uint64, mode string) msgp.Raw {
	b = msgp.AppendArrayHeader(b, 2)
	return msgp.AppendString(msgp.AppendUint64(b, level), mode)
}

// AppendWakeUpArgs writes wake_up(tags); no tags are nil.
func AppendWakeUpArgs(b []byte, tags []string) msgp.Raw {
	b = msgp.AppendArrayHeader(b, 1)
	if len(tags) == 0 {
		return msgp.AppendNil(b)
	}
	return appendStrings(b, tags)
}

// AppendResetPrefixCacheArgs writes reset_prefix_cache(reset_running_requests, reset_connector).
func AppendResetPrefixCacheArgs(b []byte, running, connector bool) msgp.Raw {
	b = msgp.AppendArrayHeader(b, 2)
	return msgp.AppendBool(msgp.AppendBool(b, running), connector)
}

// AppendAddLoRAArgs writes add_lora(lora_request) as line v has it.
func AppendAddLoRAArgs(b []byte, v Version, l *LoRARequest) msgp.Raw {
	return appendLoRA(msgp.AppendArrayHeader(b, 1), v, l)
}

// AppendLoRAIDArgs writes the arguments of remove_lora(id) and pin_lora(id).
func AppendLoRAIDArgs(b []byte, id uint64) msgp.Raw {
	return msgp.AppendUint64(msgp.AppendArrayHeader(b, 1), id)
}
