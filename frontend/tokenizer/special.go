package tokenizer

// The special ids. cl100k_base leaves the numbers from 100256 to 100276 to special tokens and gives names to five of them; the others
// are this project's.
const (
	EndOfText = Ordinary + 1 + iota // ends a text; a prompt may be separated with it too
	_                               // fim_prefix
	_                               // fim_middle
	_                               // fim_suffix
	endOfMessage
	startSystem
	startUser
	startAssistant
	startTool
	startOther
)

// specialNames are the special tokens, from the id Ordinary on. Ids without a use have a name too, so that every id has text.
var specialNames = [...]string{
	"<|reserved_0|>",
	"<|endoftext|>",
	"<|fim_prefix|>",
	"<|fim_middle|>",
	"<|fim_suffix|>",
	"<|end|>",
	"<|system|>",
	"<|user|>",
	"<|assistant|>",
	"<|tool|>",
	"<|role|>",
	"<|reserved_1|>",
	"<|reserved_2|>",
	"<|reserved_3|>",
	"<|reserved_4|>",
	"<|reserved_5|>",
	"<|reserved_6|>",
	"<|reserved_7|>",
	"<|reserved_8|>",
	"<|reserved_9|>",
	"<|endofprompt|>",
}

// Special says that id is special: its text is a name, and no text has it.
func Special(id uint32) bool { return id >= Ordinary && id < Size }
