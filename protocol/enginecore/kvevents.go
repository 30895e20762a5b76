package enginecore

import "github.com/tinylib/msgp/msgp"

// KVEventsConfig says where an engine publishes the events of its prefix cache.
type KVEventsConfig struct {
	Enabled        bool
	Publisher      string // "zmq"
	Endpoint       string // the engine's own
	ReplayEndpoint string // "" = nil
	BufferSteps    uint64
	HighWater      uint64 // messages
	MaxQueueSize   uint64 // messages
	Topic          string
}

func appendKVEvents(b []byte, c *KVEventsConfig) []byte {
	if c == nil {
		return msgp.AppendNil(b)
	}
	b = msgp.AppendMapHeader(b, 8)
	b = appendBoolField(b, "enable_kv_cache_events", c.Enabled)
	b = appendStringField(b, "publisher", c.Publisher)
	b = appendStringField(b, "endpoint", c.Endpoint)
	b = appendTextField(b, "replay_endpoint", c.ReplayEndpoint)
	b = appendUintField(b, "buffer_steps", c.BufferSteps)
	b = appendUintField(b, "hwm", c.HighWater)
	b = appendUintField(b, "max_queue_size", c.MaxQueueSize)
	return appendStringField(b, "topic", c.Topic)
}

func (d *decoder) kvEvents() *KVEventsConfig {
	if d.null() {
		return nil
	}
	c := &KVEventsConfig{}
	d.fields(func(key []byte) {
		switch string(key) {
		case "enable_kv_cache_events":
			c.Enabled = d.bool()
		case "publisher":
			c.Publisher = d.string()
		case "endpoint":
			c.Endpoint = d.string()
		case "replay_endpoint":
			c.ReplayEndpoint = d.string()
		case "buffer_steps":
			c.BufferSteps = d.uint()
		case "hwm":
			c.HighWater = d.uint()
		case "max_queue_size":
			c.MaxQueueSize = d.uint()
		case "topic":
			c.Topic = d.string()
		default:
			d.skip()
		}
	})
	return c
}
