package tokenizer

// Message is one turn of a conversation.
type Message struct {
	Role    string // system, developer, user, assistant, tool or function; any other is written out
	Content string
}

// Chat returns the ids of a conversation: each message is a special id for its role, its content and the special id <|end|>.
// With addGenerationPrompt, the role of the assistant follows, for an engine to go on from.
//
//	<|system|>Be brief.<|end|><|user|>Hello<|end|><|assistant|>
//
// A role of another name is <|role|>, the name and a line feed in front of the content.
func (t *Tokenizer) Chat(messages []Message, addGenerationPrompt bool) []uint32 {
	var ids []uint32
	for _, m := range messages {
		ids = append(t.appendMessage(ids, m), endOfMessage)
	}
	if addGenerationPrompt {
		ids = append(ids, startAssistant)
	}
	return ids
}

// ContinueChat returns the ids of a conversation whose last message is unfinished: it lacks <|end|>, for an engine to go on with.
func (t *Tokenizer) ContinueChat(messages []Message) []uint32 {
	ids := t.Chat(messages, false)
	return ids[:max(0, len(ids)-1)]
}

// appendMessage appends the role and the content of m. Both are encoded apart from what is around them, so their ids do not depend
// on it.
func (t *Tokenizer) appendMessage(ids []uint32, m Message) []uint32 {
	switch m.Role {
	case "system", "developer":
		ids = append(ids, startSystem)
	case "user":
		ids = append(ids, startUser)
	case "assistant":
		ids = append(ids, startAssistant)
	case "tool", "function":
		ids = append(ids, startTool)
	default:
		ids = t.append(append(ids, startOther), m.Role+"\n")
	}
	return t.append(ids, m.Content)
}
