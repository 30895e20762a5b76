package frontend

import (
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-json"

	"vllm-vcr/frontend/openai"
	"vllm-vcr/protocol/enginecore"
)

// card describes a model in the list of models.
type card struct {
	ID          string       `json:"id"`
	Object      string       `json:"object"`
	Created     int64        `json:"created"`
	OwnedBy     string       `json:"owned_by"`
	Root        string       `json:"root"`
	Parent      *string      `json:"parent"` // of an adapter: the model
	MaxModelLen *int         `json:"max_model_len"`
	Permission  []permission `json:"permission"`
}

// permission is what OpenAI once told of who may do what.
type permission struct {
	ID            string  `json:"id"`
	Object        string  `json:"object"`
	Created       int64   `json:"created"`
	CreateEngine  bool    `json:"allow_create_engine"`
	Sampling      bool    `json:"allow_sampling"`
	Logprobs      bool    `json:"allow_logprobs"`
	SearchIndices bool    `json:"allow_search_indices"`
	View          bool    `json:"allow_view"`
	FineTuning    bool    `json:"allow_fine_tuning"`
	Organization  string  `json:"organization"`
	Group         *string `json:"group"`
	IsBlocking    bool    `json:"is_blocking"`
}

// models lists the served names, then the adapters.
func (s *Server) models(c *call) error {
	return writeValue(c, struct {
		Object string `json:"object"`
		Data   []card `json:"data"`
	}{"list", s.cards()})
}

// model describes one of them.
func (s *Server) model(c *call) error {
	name, _ := c.ctx.UserValue("model").(string)
	cards := s.cards()
	i := slices.IndexFunc(cards, func(each card) bool { return each.ID == name })
	if i < 0 {
		return openai.ModelNotFound(name)
	}
	return writeValue(c, cards[i])
}

func (s *Server) cards() []card {
	length := s.limits().MaxModelLen
	var cards []card
	for _, name := range s.Models {
		cards = append(cards, s.card(name, s.Root, nil, &length))
	}
	for _, l := range s.engines.LoRAs() {
		cards = append(cards, s.card(l.Name, l.Path, &s.Models[0], nil))
	}
	return cards
}

func (s *Server) card(id, root string, parent *string, length *int) card {
	return card{
		ID: id, Object: "model", Created: s.started, OwnedBy: "vllm", Root: root, Parent: parent, MaxModelLen: length,
		Permission: []permission{{
			ID: "modelperm-" + randomID(), Object: "model_permission", Created: s.started,
			Sampling: true, Logprobs: true, View: true, Organization: "*",
		}},
	}
}

// resolve finds what a request asks for: the name that its answer tells, and the adapter if it is one.
func (s *Server) resolve(name string) (string, *enginecore.LoRARequest, error) {
	if name == "" || slices.Contains(s.Models, name) {
		return s.Models[0], nil, nil
	}
	if l, ok := s.engines.LoRA(name); ok {
		return l.Name, &l, nil
	}
	return "", nil, openai.ModelNotFound(name)
}

// loadLoRA makes an adapter known to all engines.
func (s *Server) loadLoRA(c *call) error {
	var r openai.LoadLoRARequest
	if err := c.decode(&r); err != nil {
		return err
	}
	if err := r.Check(); err != nil {
		return err
	}
	if slices.Contains(s.Models, r.Name) {
		return openai.BadRequest("lora_name", "The name '%s' is the model's.", r.Name)
	}
	ctx, cancel := c.deadline()
	defer cancel()
	if _, err := s.engines.LoadLoRA(ctx, r.Name, r.Path); err != nil {
		return adapterFailure(r.Name, err)
	}
	writeText(c, "Success: LoRA adapter '"+r.Name+"' added successfully.")
	return nil
}

// unloadLoRA takes it away from them.
func (s *Server) unloadLoRA(c *call) error {
	var r openai.UnloadLoRARequest
	if err := c.decode(&r); err != nil {
		return err
	}
	if err := r.Check(); err != nil {
		return err
	}
	ctx, cancel := c.deadline()
	defer cancel()
	if err := s.engines.UnloadLoRA(ctx, r.Name); err != nil {
		return adapterFailure(r.Name, err)
	}
	writeText(c, "Success: LoRA adapter '"+r.Name+"' removed successfully.")
	return nil
}

func writeText(c *call, text string) {
	c.ctx.SetContentType("text/plain; charset=utf-8")
	c.ctx.SetBodyString(strings.ToValidUTF8(text, "\uFFFD"))
}

// writeValue answers with a value that is seldom asked for. It panics for one that has no JSON form, which is ours to avoid.
func writeValue(c *call, value any) error {
	body, err := json.MarshalWithOption(value, json.DisableHTMLEscape())
	if err != nil {
		panic("JSON of an answer: " + err.Error())
	}
	writeJSON(c.ctx, body)
	return nil
}

// load is the number of requests under way.
func (s *Server) load(c *call) error {
	b := strconv.AppendInt([]byte(`{"server_load":`), int64(s.gate.load()), 10)
	writeJSON(c.ctx, append(b, '}'))
	return nil
}
