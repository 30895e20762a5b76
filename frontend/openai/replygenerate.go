package openai

import "strconv"

// Generation is the answer of POST /inference/v1/generate that is whole.
type Generation struct {
	Head
	Choices    []Choice
	Usage      Usage
	KVTransfer []byte // JSON; nil = null
}

// Append appends the answer. What is told about the prompt is taken from the first choice.
func (g *Generation) Append(b []byte) []byte {
	b = append(b, `{"request_id":`...)
	b = AppendString(b, g.ID)
	b = append(b, `,"model":`...)
	b = AppendString(b, g.Model)
	b = append(b, `,"created":`...)
	b = strconv.AppendInt(b, g.Created, 10)
	b = append(b, `,"usage":`...)
	b = g.Usage.appendWhole(b, false)
	b = append(b, `,"prompt_logprobs":`...)
	b = appendRaw(b, g.Choices[0].PromptLogprobs)
	b = append(b, `,"prompt_token_id_logprobs":null,"prompt_token_ids":`...)
	b = AppendIDs(b, g.Choices[0].PromptTokenIDs)
	b = append(b, `,"mm_placeholders":null,"metrics":null,"kv_transfer_params":`...)
	b = appendRaw(b, g.KVTransfer)
	b = append(b, `,"ec_transfer_params":null,"output_mode":"tokens","choices":[`...)
	for i := range g.Choices {
		if i > 0 {
			b = append(b, ',')
		}
		b = g.Choices[i].appendGeneration(b)
	}
	return append(b, `]}`...)
}

func (c *Choice) appendGeneration(b []byte) []byte {
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, int64(c.Index), 10)
	b = append(b, `,"finish_reason":`...)
	b = appendFinish(b, c.Finish)
	b = append(b, `,"stop_reason":`...)
	b = appendRaw(b, c.Stop)
	b = append(b, `,"token_ids":`...)
	b = AppendIDs(b, c.TokenIDs)
	b = append(b, `,"routed_experts":null,"sampling_mask":null,"weight_versions":null,"logprobs":`...)
	b = appendRaw(b, c.Logprobs)
	return append(b, '}')
}

// GenerationEvents writes the events of a streamed generation.
type GenerationEvents struct{ Head }

// Append appends an event with one choice; usage is told where not nil.
func (e *GenerationEvents) Append(b []byte, c *Choice, usage *Usage) []byte {
	b = append(b, `data: {"request_id":`...)
	b = AppendString(b, e.ID)
	b = append(b, `,"model":`...)
	b = AppendString(b, e.Model)
	b = append(b, `,"created":`...)
	b = strconv.AppendInt(b, e.Created, 10)
	b = append(b, `,"choices":[`...)
	if c != nil {
		b = c.appendGeneration(b)
	}
	b = append(b, ']')
	if usage != nil {
		b = append(b, `,"usage":`...)
		b = usage.appendFinal(b, false)
	}
	return append(b, "}"+endOfEvent...)
}
