package openaichat

import (
	"encoding/json"
	"slices"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// calls reads tool_calls and the older function_call.
func (d *decoder) calls(o *wire.Fields, m *session.Message) error {
	if calls := o.Value(fieldToolCalls); !wire.IsNull(calls.Raw) {
		elements, err := calls.Elements()
		if err != nil {
			return err
		}
		for _, e := range elements {
			p, err := call(e)
			if err != nil {
				return err
			}
			m.Parts = append(m.Parts, p)
		}
		o.Drop(fieldToolCalls)
		if len(elements) == 0 { // no part stands for an empty array
			o.Set(fieldToolCalls, json.RawMessage("[]"))
		}
	}
	if !wire.IsNull(o.Get(fieldFunctionCall)) {
		p := session.Part{Kind: session.PartToolCall}
		x := partExtra{Field: fieldFunctionCall}
		if err := x.function(o, fieldFunctionCall, "arguments", &p); err != nil {
			return err
		}
		x.store(&p)
		m.Parts = append(m.Parts, p)
	}
	return nil
}

// call reads one element of tool_calls: a function's, a custom tool's, or a type that is not
// known and is kept whole.
func call(e wire.Value) (session.Part, error) {
	p := session.Part{Kind: session.PartToolCall}
	o, err := e.Fields()
	if err != nil {
		return p, err
	}
	var x partExtra
	kind, arguments := typeFunction, "arguments"
	if t := o.Get("type"); t == nil {
		x.Absent = append(x.Absent, "type") // some servers leave it out
	} else if kind, _ = wire.TextOf(t); kind == "" {
		return p, o.Value("type").Not("function or custom")
	}
	switch kind {
	case typeFunction:
	case typeCustom:
		x.Type, arguments = kind, "input"
	default:
		e.Warn("has the unknown type %q: kept for export, not sent", wire.Clip(kind))
		return dataPart(e.Raw, partExtra{Field: fieldToolCalls, Type: kind}), nil
	}
	o.Drop("type")
	if p.CallID, err = o.Take("id"); err != nil {
		return p, err
	}
	if err := x.function(&o, kind, arguments, &p); err != nil {
		return p, err
	}
	if err := o.Fits(); err != nil {
		return p, err
	}
	x.Fields = o.Object
	x.store(&p)
	return p, nil
}

// function reads {name, arguments} in a field. Arguments are kept byte for byte, whatever they
// hold; some servers give them as an object: then its bytes are the arguments, and stay in
// extra too.
func (x *partExtra) function(o *wire.Fields, field, arguments string, p *session.Part) error {
	inner, err := o.Inner(field)
	if err != nil {
		return err
	}
	if p.ToolName, err = inner.Take("name"); err != nil {
		return err
	}
	switch raw := inner.Get(arguments); wire.KindOf(raw) {
	case '"':
		if p.Arguments, err = inner.Take(arguments); err != nil {
			return err
		}
	case 'n':
		if raw == nil {
			x.Absent = append(x.Absent, arguments)
		}
	case '{', '[':
		p.Arguments = string(raw)
	default:
		return inner.Value(arguments).Not("a string")
	}
	return x.keepInner(field, o, inner)
}

// exportCall gives an element of tool_calls, or the function_call, back.
func exportCall(p *session.Part, x *partExtra) (json.RawMessage, error) {
	if p.Kind == session.PartData {
		if err := wire.Loaded(p); err != nil {
			return nil, err
		}
		return rawOf(p, x)
	}
	kind, arguments := typeFunction, "arguments"
	if x.Type == typeCustom {
		kind, arguments = typeCustom, "input"
	}
	var inner wire.Object
	inner.SetText("name", p.ToolName)
	if !slices.Contains(x.Absent, arguments) {
		inner.SetText(arguments, p.Arguments)
	}
	inner.Overlay(x.Inner)
	if x.Field == fieldFunctionCall {
		return inner.JSON(), nil
	}
	var o wire.Object
	o.SetText("id", p.CallID)
	if !slices.Contains(x.Absent, "type") {
		o.SetText("type", kind)
	}
	o.Set(kind, inner.JSON())
	o.Overlay(x.Fields)
	return o.JSON(), nil
}
