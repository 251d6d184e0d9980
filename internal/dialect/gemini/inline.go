package gemini

import (
	"encoding/json"
	"strconv"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// codeTool is the name of the tool by which the provider runs code.
const codeTool = "code_execution"

// outcomeOK is the outcome of code that ran to its end.
const outcomeOK = "OUTCOME_OK"

// pair finds the parts of a reply that are a call which the provider ran, and its result
// behind it: by id, or where one has none, the nearest of its kind. It gives each of the two
// the id that they share, made where the wire has none. Either alone is no call: it could never be
// answered, or answers nothing.
func pair(parts []wire.Fields) []string {
	var ids []string
	var open []inlineCall
	made := 0
	for i := range parts {
		field, name := kindOf(&parts[i].Object)
		result := field == fieldCodeResult || field == fieldToolResponse
		if !result && field != fieldCode && field != fieldToolCall {
			continue
		}
		if ids == nil {
			ids = make([]string, len(parts))
		}
		inner, err := wire.ParseObject("", parts[i].Get(name))
		if err != nil {
			continue // whoever reads the part says so
		}
		id, _ := exactText(inner.Get("id"))
		if !result {
			open = append(open, inlineCall{at: i, id: id, code: field == fieldCode})
			continue
		}
		for j := len(open) - 1; j >= 0; j-- {
			c := open[j]
			if c.code != (field == fieldCodeResult) || c.id != id && c.id != "" && id != "" {
				continue
			}
			if id == "" {
				id = c.id
			}
			if id == "" {
				made++
				id = "made_inline_" + strconv.Itoa(made)
			}
			ids[c.at], ids[i] = id, id
			open = append(open[:j], open[j+1:]...)
			break
		}
	}
	return ids
}

type inlineCall struct {
	at   int
	id   string
	code bool
}

// inline reads a part that belongs to a call which the provider ran.
func (r *partReader) inline(o *wire.Fields, field, name string, x *partExtra) error {
	inner, err := inner(o, name)
	if err != nil {
		return err
	}
	x.Type = field
	p := session.Part{Kind: session.PartToolCall, ToolName: codeTool, CallID: r.pair}
	if id, exact := exactText(inner.Get("id")); exact && id == r.pair {
		inner.Drop("id")
	} else {
		x.Made = true
	}
	switch field {
	case fieldCode:
		p.Arguments = string(inner.JSON()) // {language, code}
		inner.Object = wire.Object{}
	case fieldToolCall:
		p.ToolName = takeEither(&inner, "toolType")
		if err := arguments(&inner, &p, x); err != nil {
			return err
		}
	case fieldCodeResult:
		p.Kind = session.PartToolResult
		outcome, _ := wire.TextOf(inner.Get("outcome"))
		failed := outcome != outcomeOK
		p.IsError = &failed
		if wire.KindOf(inner.Get("output")) == '"' {
			if p.Text, err = inner.Take("output"); err != nil {
				return err
			}
			if p.Text == "" {
				inner.SetText("output", "") // no column tells it from none
			}
		}
	case fieldToolResponse:
		p.Kind = session.PartToolResult
		p.ToolName = takeEither(&inner, "toolType")
		if raw := inner.Get("response"); !wire.IsNull(raw) {
			p.Text = string(raw)
			inner.Drop("response")
		}
	}
	if err := inner.Fits(); err != nil {
		return err
	}
	x.Inner = inner.Object
	return r.keep(p, o, x)
}

// exportInline gives such a part back.
func exportInline(p *session.Part, x *partExtra) (wire.Object, error) {
	var o wire.Object
	switch x.Type {
	case fieldCode:
		args, err := wire.Stored("arguments", []byte(p.Arguments))
		if err != nil {
			return o, err
		}
		o = args
	case fieldToolCall:
		if p.ToolName != "" && !x.Inner.Has(snake("toolType")) {
			o.SetText("toolType", p.ToolName)
		}
		exportArguments(&o, p, x)
	case fieldCodeResult:
		if text := p.Content(); text != "" {
			o.SetText("output", text)
		}
	case fieldToolResponse:
		if p.ToolName != "" && !x.Inner.Has(snake("toolType")) {
			o.SetText("toolType", p.ToolName)
		}
		if text := p.Content(); text != "" {
			o.Set("response", json.RawMessage(text))
		}
	}
	if !x.Made {
		o.SetText("id", p.CallID)
	}
	o.Overlay(x.Inner)
	return o, nil
}
