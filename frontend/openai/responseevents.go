package openai

import "strconv"

// ResponseEvents writes the events of a streamed response: the response, its one item, the item's text in pieces, and all of them
// again when they are whole.
type ResponseEvents struct {
	Response
	sequence int64
}

// Open appends the events before the first piece of text.
func (e *ResponseEvents) Open(b []byte) []byte {
	for _, name := range []string{"response.created", "response.in_progress"} {
		b = e.begin(b, name)
		b = append(b, `,"response":`...)
		b = e.Response.Append(b)
		b = e.finish(b)
	}
	b = e.begin(b, "response.output_item.added")
	b = append(b, `,"output_index":0,"item":`...)
	b = e.appendItem(b)
	b = e.finish(b)
	if e.Call != nil {
		return b
	}
	b = e.beginPart(b, "response.content_part.added")
	b = append(b, `,"part":`...)
	b = appendPart(b, nil, `[]`)
	return e.finish(b)
}

// Delta appends the event with the next piece of text, and keeps it for the end.
func (e *ResponseEvents) Delta(b, text []byte) []byte {
	e.Text = append(e.Text, text...)
	if e.Call != nil {
		b = e.beginItem(b, "response.function_call_arguments.delta")
		b = append(b, `,"delta":`...)
		return e.finish(appendText(b, text))
	}
	b = e.beginPart(b, "response.output_text.delta")
	b = append(b, `,"delta":`...)
	b = appendText(b, text)
	b = append(b, `,"logprobs":[]`...)
	return e.finish(b)
}

// Done appends the events at the end; the response's finish and usage are set.
func (e *ResponseEvents) Done(b []byte) []byte {
	if e.Call != nil {
		b = e.beginItem(b, "response.function_call_arguments.done")
		b = append(b, `,"name":`...)
		b = AppendString(b, e.Call.Name)
		b = append(b, `,"arguments":`...)
		b = e.finish(appendText(b, e.Text))
	} else {
		b = e.donePart(b)
	}
	b = e.begin(b, "response.output_item.done")
	b = append(b, `,"output_index":0,"item":`...)
	b = e.finish(e.appendItem(b))
	b = e.begin(b, "response.completed")
	b = append(b, `,"response":`...)
	return e.finish(e.Response.Append(b))
}

func (e *ResponseEvents) donePart(b []byte) []byte {
	b = e.beginPart(b, "response.output_text.done")
	b = append(b, `,"text":`...)
	b = appendText(b, e.Text)
	b = append(b, `,"logprobs":[]`...)
	b = e.finish(b)
	b = e.beginPart(b, "response.content_part.done")
	b = append(b, `,"part":`...)
	return e.finish(appendPart(b, e.Text, `[]`))
}

// begin appends an event up to its number in the stream.
func (e *ResponseEvents) begin(b []byte, name string) []byte {
	b = append(append(b, `event: `...), name...)
	b = append(append(b, "\ndata: {\"type\":\""...), name...)
	b = append(b, `","sequence_number":`...)
	b = strconv.AppendInt(b, e.sequence, 10)
	e.sequence++
	return b
}

func (e *ResponseEvents) beginItem(b []byte, name string) []byte {
	b = e.begin(b, name)
	b = append(b, `,"item_id":`...)
	b = AppendString(b, e.ItemID)
	return append(b, `,"output_index":0`...)
}

func (e *ResponseEvents) beginPart(b []byte, name string) []byte {
	return append(e.beginItem(b, name), `,"content_index":0`...)
}

func (e *ResponseEvents) finish(b []byte) []byte { return append(b, "}"+endOfEvent...) }
