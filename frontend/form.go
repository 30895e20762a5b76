package frontend

import (
	"math/rand/v2"
	"slices"

	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/frontend/fill"
	"vllm-vcr/frontend/openai"
	"vllm-vcr/protocol/enginecore"
)

// form is what answers must be, where the front end and not the engine decides what they say. The engine gets the tokens
// beforehand and hands them out: when, how many and whether at all stays its own.
type form struct {
	field  string // of the request, to which faults belong
	fill   func(seed uint64) (content, error)
	seed   uint64
	finish string // of a call of a tool that is complete
}

// content is one answer.
type content struct {
	text []byte
	tool string // that is called, the text being the arguments; "" = none
}

// constrain has answers take the form that a request asks for, if any.
func (o *order) constrain(r *openai.Output, w *wanted) error {
	c, err := r.Constraint()
	if err != nil || c.IsZero() {
		return err
	}
	o.form = &form{field: "response_format", fill: filler(c), seed: w.firstSeed(rand.Uint64())}
	if r.Structured != nil && r.ResponseFormat == nil {
		o.form.field = "structured_outputs"
	}
	return nil
}

func filler(c openai.Constraint) func(uint64) (content, error) {
	return func(seed uint64) (content, error) {
		switch {
		case c.Schema != nil:
			text, err := fill.JSON(c.Schema, seed)
			return content{text: text}, err
		case c.JSONObject:
			return content{text: fill.Object(seed)}, nil
		case c.Choice != nil:
			text, err := fill.Choice(c.Choice, seed)
			return content{text: []byte(text)}, err
		default:
			text, err := fill.Regex(c.Regex, seed)
			return content{text: []byte(text)}, err
		}
	}
}

// callTools has answers call a tool where the request wants one called, or leaves that to the model and the turn is the user's: after
// the result of a call the model speaks.
func (o *order) callTools(r *openai.ChatRequest, w *wanted) {
	finish := "tool_calls"
	switch last := r.Messages[len(r.Messages)-1].Role; r.ToolChoice.Mode {
	case openai.ToolsNone:
		return
	case openai.ToolsAuto:
		if last != "user" {
			return
		}
	case openai.ToolsNamed:
		finish = "" // as it is: the model had no choice
	}
	tools := make([]fill.Tool, 0, len(r.Tools))
	for i := range r.Tools {
		tools = append(tools, fill.Tool{Name: r.Tools[i].Function.Name, Parameters: r.Tools[i].Function.Parameters})
	}
	name := r.ToolChoice.Name
	o.form = &form{field: "tools", seed: w.firstSeed(rand.Uint64()), finish: finish, fill: func(seed uint64) (content, error) {
		call, err := fill.CallTool(tools, name, seed)
		return content{text: call.Arguments, tool: call.Name}, err
	}}
}

// impose fills the choices of a request, which differ by their seed.
func (f *form) impose(s *Server, r *dispatch.Request, choices []*choice) error {
	answers := make([][]uint32, len(choices))
	for i, c := range choices {
		content, err := f.fill(f.seed + uint64(i))
		if err != nil {
			return openai.BadRequest(f.field, "%s: %v", f.field, err)
		}
		answers[i] = slices.Concat(s.tokens.Encode(string(content.text)), []uint32{s.tokens.EOS()})
		if content.tool != "" {
			c.Call = &openai.Call{ID: "chatcmpl-tool-" + randomID(), Name: content.tool}
			c.callFinish = f.finish
		}
	}
	eos := s.tokens.EOS()
	r.Vary = func(i int, p *enginecore.SamplingParams) {
		p.TraceDecodeTokenIDs = answers[i]
		p.MinTokens, p.IgnoreEOS, p.EOSTokenID = 0, false, enginecore.Some(eos)
	}
	return nil
}
