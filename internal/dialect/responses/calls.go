package responses

import (
	"encoding/json"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// call reads an item that calls a tool. The arguments are the bytes of the wire: a string's
// text, or the whole value where it is no string.
func (d *decoder) call(o *wire.Fields, kind string, spec callSpec) error {
	b := built{Part: session.Part{Kind: session.PartToolCall, ToolName: spec.tool}}
	var err error
	if b.CallID, err = callID(o, spec.needsID); err != nil {
		return err
	}
	switch kind {
	case itemCustomCall:
		b.x.Type = typeCustom
	case itemLocalShellCall:
		if id, _ := wire.TextOf(o.Get("id")); id != "" {
			if d.shells == nil {
				d.shells = map[string]string{}
			}
			d.shells[id] = b.CallID
		}
	}
	if err := b.nameAndArguments(o, spec); err != nil {
		return err
	}
	return d.add(newMessage(session.Assistant, session.Model), o, []built{b})
}

// callID takes call_id. One that is empty stays in the item, since no column tells it from none.
func callID(o *wire.Fields, needed bool) (string, error) {
	raw := o.Get("call_id")
	if !needed && wire.IsNull(raw) {
		return "", nil
	}
	id, err := o.Take("call_id")
	if err == nil && id == "" {
		o.Set("call_id", raw)
	}
	return id, err
}

func (b *built) nameAndArguments(o *wire.Fields, spec callSpec) error {
	var err error
	if spec.tool == "" {
		if b.ToolName, err = o.Take("name"); err != nil {
			return err
		}
	}
	raw := o.Get(spec.arguments)
	switch {
	case wire.IsNull(raw):
		return nil // it stays as it is
	case !spec.text:
		b.Arguments, b.x.Field = string(raw), spec.arguments
		o.Drop(spec.arguments)
		return nil
	case wire.KindOf(raw) == '"':
		if b.Arguments, err = o.Take(spec.arguments); !o.Has(spec.arguments) {
			b.x.Field = spec.arguments
		}
		return err
	case wire.KindOf(raw) == '{' || wire.KindOf(raw) == '[':
		b.Arguments = string(raw) // some servers give the object itself; it stays in the item
		return nil
	}
	return o.Value(spec.arguments).Not("a string")
}

// output reads the item of a tool's result. Its first text is the result's; other elements
// follow under the same call id.
func (d *decoder) output(o *wire.Fields, kind string) error {
	b := built{Part: session.Part{Kind: session.PartToolResult}}
	b.ToolName, _ = outputTool(kind)
	var err error
	switch needed := kind == itemFunctionOutput || kind == itemCustomOutput; {
	case kind == itemLocalShellOutput: // what it says of ids stays in the item
		b.CallID = d.shellOf(&o.Object)
	case needed && wire.IsNull(o.Get("call_id")) && o.Has("call_id"): // Codex writes null
	default:
		if b.CallID, err = callID(o, needed || kind == itemComputerOutput); err != nil {
			return err
		}
	}
	if b.ToolName == "" {
		b.ToolName, _ = wire.TextOf(o.Get("name")) // some programs say it; it stays in the item
	}
	parts := []built{b}
	switch kind {
	case itemComputerOutput:
		parts, err = screenshot(o, b)
	case itemShellOutput:
		parts[0].Text, parts[0].x.Shape = shellText(o.Get("output")), shapeAbsent // it stays in the item
	case itemToolSearchOutput:
		parts[0].x.Shape = shapeAbsent
	default:
		parts, err = result(o, b)
	}
	if err != nil {
		return err
	}
	if status, _ := wire.TextOf(o.Get("status")); kind == itemApplyPatchOutput && (status == "failed" || status == "completed") {
		failed := status == "failed"
		parts[0].IsError = &failed
	}
	return d.add(newMessage(session.Tool, session.ByTool), o, parts)
}

// shellOf gives the call id that the output of a local shell answers. By the API's reference
// its id is that of the call; some take that for the id of the call's item, which may be of an
// earlier append: then it is matched by name.
func (d *decoder) shellOf(o *wire.Object) string {
	if id, _ := wire.TextOf(o.Get("call_id")); id != "" {
		return id
	}
	id, _ := wire.TextOf(o.Get("id"))
	if call, known := d.shells[id]; known {
		return call
	}
	if strings.HasPrefix(id, "lsh_") {
		return session.MadeCallID + id
	}
	return id
}

// result reads an output that is a string or an array of elements.
func result(o *wire.Fields, b built) ([]built, error) {
	output := o.Value("output")
	switch output.Kind() {
	case 'n':
		b.x.Shape = nullOrAbsent(output.Raw)
		o.Drop("output")
	case '"':
		text, exact := output.Text()
		b.Text, b.x.Shape = text, shapeString
		if exact {
			o.Drop("output")
		}
	case '[':
		all, err := elements(output, typeInputText)
		if err != nil {
			return nil, err
		}
		o.Drop("output")
		if len(all) == 0 {
			b.x.Shape = shapeArray
			return []built{b}, nil
		}
		return results(b, all), nil
	default: // older programs wrote objects; it stays in the item
		b.Text = plainText(output.Raw)
	}
	return []built{b}, nil
}

// results puts a result before the elements that it came in.
func results(b built, elements []built) []built {
	at := -1
	for i := range elements {
		elements[i].CallID = b.CallID
		if at < 0 && elements[i].Kind == session.PartText {
			at = i
		}
	}
	if at >= 0 {
		b.Text, b.x.Fields = elements[at].Text, elements[at].x.Fields
		elements = append(elements[:at], elements[at+1:]...)
	}
	if at != 0 {
		b.x.At = &at
	}
	return append([]built{b}, elements...)
}

// screenshot reads an output that is one image.
func screenshot(o *wire.Fields, b built) ([]built, error) {
	output := o.Value("output")
	if output.Kind() != '{' {
		b.x.Shape = shapeAbsent
		return []built{b}, nil // it stays as it is
	}
	var image built
	if err := image.element(output, typeInputText); err != nil {
		return nil, err
	}
	o.Drop("output")
	b.x.Made = true
	image.CallID, image.x.Of = b.CallID, "output"
	return []built{b, image}, nil
}

// shellText gives what a shell's output says, for reading: each command's stdout and stderr.
func shellText(raw json.RawMessage) string {
	if wire.KindOf(raw) != '[' {
		return plainText(raw)
	}
	commands, _ := wire.ParseArray("output", raw)
	var texts []string
	for _, c := range commands {
		o, err := wire.ParseObject("output", c)
		if err != nil {
			continue
		}
		for _, f := range [...]string{"stdout", "stderr"} {
			if text, _ := wire.TextOf(o.Get(f)); text != "" {
				texts = append(texts, text)
			}
		}
	}
	return strings.Join(texts, "\n")
}

// plainText gives a value for reading: a string's text, anything else as it stands.
func plainText(raw json.RawMessage) string {
	switch wire.KindOf(raw) {
	case 'n':
		return ""
	case '"':
		text, _ := wire.Text(raw)
		return text
	}
	return string(raw)
}
