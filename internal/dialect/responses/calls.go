package responses

import (
	"encoding/json"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// call reads an item that calls a tool. The arguments are the bytes of the wire: a string's
// text, or the whole value where it is no string.
func (d *decoder) call(path string, o wire.Object, kind string, spec callSpec) error {
	b := built{Part: session.Part{Kind: session.PartToolCall, ToolName: spec.tool}}
	var err error
	if b.CallID, err = d.callID(&o, path, spec.needsID); err != nil {
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
	if err := d.nameAndArguments(path, &o, &b, spec); err != nil {
		return err
	}
	return d.add(path, newMessage(session.Assistant, session.Model), o, []built{b})
}

// callID takes call_id. One that is empty stays in the item, since no column tells it from none.
func (d *decoder) callID(o *wire.Object, path string, needed bool) (string, error) {
	raw := o.Get("call_id")
	if !needed && wire.IsNull(raw) {
		return "", nil
	}
	id, err := d.take(o, path, "call_id")
	if err == nil && id == "" {
		o.Set("call_id", raw)
	}
	return id, err
}

func (d *decoder) nameAndArguments(path string, o *wire.Object, b *built, spec callSpec) error {
	var err error
	if spec.tool == "" {
		if b.ToolName, err = d.take(o, path, "name"); err != nil {
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
		if b.Arguments, err = d.take(o, path, spec.arguments); !o.Has(spec.arguments) {
			b.x.Field = spec.arguments
		}
		return err
	case wire.KindOf(raw) == '{' || wire.KindOf(raw) == '[':
		b.Arguments = string(raw) // some servers give the object itself; it stays in the item
		return nil
	}
	return wire.Errorf(session.Invalid, wire.Join(path, spec.arguments), "must be a string, not %s", wire.Describe(raw))
}

// output reads the item of a tool's result. Its first text is the result's; other elements
// follow under the same call id.
func (d *decoder) output(path string, o wire.Object, kind string) error {
	b := built{Part: session.Part{Kind: session.PartToolResult}}
	b.ToolName, _ = outputTool(kind)
	var err error
	switch needed := kind == itemFunctionOutput || kind == itemCustomOutput; {
	case kind == itemLocalShellOutput: // what it says of ids stays in the item
		b.CallID = d.shellOf(&o)
	case needed && wire.IsNull(o.Get("call_id")) && o.Has("call_id"): // Codex writes null
	default:
		if b.CallID, err = d.callID(&o, path, needed || kind == itemComputerOutput); err != nil {
			return err
		}
	}
	if b.ToolName == "" {
		b.ToolName, _ = wire.TextOf(o.Get("name")) // some programs say it; it stays in the item
	}
	parts := []built{b}
	switch kind {
	case itemComputerOutput:
		parts, err = d.screenshot(path, &o, b)
	case itemShellOutput:
		parts[0].Text, parts[0].x.Shape = shellText(o.Get("output")), shapeAbsent // it stays in the item
	case itemToolSearchOutput:
		parts[0].x.Shape = shapeAbsent
	default:
		parts, err = d.result(path, &o, b)
	}
	if err != nil {
		return err
	}
	if status, _ := wire.TextOf(o.Get("status")); kind == itemApplyPatchOutput && (status == "failed" || status == "completed") {
		failed := status == "failed"
		parts[0].IsError = &failed
	}
	return d.add(path, newMessage(session.Tool, session.ByTool), o, parts)
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
func (d *decoder) result(path string, o *wire.Object, b built) ([]built, error) {
	raw := o.Get("output")
	path = wire.Join(path, "output")
	switch wire.KindOf(raw) {
	case 'n':
		b.x.Shape = nullOrAbsent(raw)
		o.Drop("output")
	case '"':
		text, exact := d.text(path, raw)
		b.Text, b.x.Shape = text, shapeString
		if exact {
			o.Drop("output")
		}
	case '[':
		elements, err := d.elements(path, raw, typeInputText)
		if err != nil {
			return nil, err
		}
		o.Drop("output")
		if len(elements) == 0 {
			b.x.Shape = shapeArray
			return []built{b}, nil
		}
		return results(b, elements), nil
	default: // older programs wrote objects; it stays in the item
		b.Text = plainText(raw)
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
func (d *decoder) screenshot(path string, o *wire.Object, b built) ([]built, error) {
	raw := o.Get("output")
	if wire.KindOf(raw) != '{' {
		b.x.Shape = shapeAbsent
		return []built{b}, nil // it stays as it is
	}
	e, err := d.element(wire.Join(path, "output"), raw, typeInputText)
	if err != nil {
		return nil, err
	}
	o.Drop("output")
	b.x.Made = true
	e.CallID, e.x.Of = b.CallID, "output"
	return []built{b, e}, nil
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
