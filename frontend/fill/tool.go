package fill

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Tool is a function that may be called.
type Tool struct {
	Name       string
	Parameters []byte // schema of its arguments; empty or null = it has none
}

// Call is a call of a tool.
type Call struct {
	Name      string
	Arguments []byte // a JSON object that the tool's schema allows
}

// CallTool calls the tool of this name, or one that the seed chooses where name is empty.
func CallTool(tools []Tool, name string, seed uint64) (Call, error) {
	if len(tools) == 0 {
		return Call{}, errors.New("tools: none, want at least one")
	}
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name })
	if name == "" {
		i = rand.New(rand.NewPCG(seed, 0)).IntN(len(tools))
	}
	if i < 0 {
		return Call{}, fmt.Errorf("tool %q: no tool has that name", name)
	}
	arguments, err := argumentsOf(tools[i], seed)
	if err != nil {
		return Call{}, fmt.Errorf("tool %q: parameters: %w", tools[i].Name, err)
	}
	return Call{Name: tools[i].Name, Arguments: arguments}, nil
}

// argumentsOf fills the parameters of t, which are an object even where their schema does not say so.
func argumentsOf(t Tool, seed uint64) ([]byte, error) {
	if len(t.Parameters) == 0 || string(t.Parameters) == "null" {
		return []byte("{}"), nil
	}
	s, err := compile(t.Parameters)
	if err != nil {
		return nil, err
	}
	v, err := find(both(s, &schema{types: object}), seed)
	return v.append(nil), err
}
