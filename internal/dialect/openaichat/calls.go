package openaichat

import (
	"encoding/json"
	"slices"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// calls reads tool_calls and the older function_call.
func (d *decoder) calls(path string, o *wire.Object, m *session.Message, _ *messageExtra) error {
	if raw := o.Get(fieldToolCalls); !wire.IsNull(raw) {
		list := wire.Join(path, fieldToolCalls)
		elements, err := parts(list, raw)
		if err != nil {
			return err
		}
		for i, e := range elements {
			p, err := d.call(wire.Index(list, i), e)
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
	if raw := o.Get(fieldFunctionCall); !wire.IsNull(raw) {
		p := session.Part{Kind: session.PartToolCall}
		x := partExtra{Field: fieldFunctionCall}
		if err := d.function(wire.Join(path, fieldFunctionCall), raw, "arguments", &p, &x); err != nil {
			return err
		}
		x.store(&p)
		m.Parts = append(m.Parts, p)
		o.Drop(fieldFunctionCall)
	}
	return nil
}

// call reads one element of tool_calls: a function's, a custom tool's, or a type that is not
// known and is kept whole.
func (d *decoder) call(path string, raw json.RawMessage) (session.Part, error) {
	p := session.Part{Kind: session.PartToolCall}
	o, err := wire.ParseObject(path, raw)
	if err != nil {
		return p, err
	}
	var x partExtra
	kind, arguments := typeFunction, "arguments"
	if t := o.Get("type"); t == nil {
		x.Absent = append(x.Absent, "type") // some servers leave it out
	} else if kind, _ = wire.TextOf(t); kind == "" {
		return p, wire.Errorf(session.Invalid, wire.Join(path, "type"), "must be function or custom, not %s", wire.Describe(t))
	}
	switch kind {
	case typeFunction:
	case typeCustom:
		x.Type, arguments = kind, "input"
	default:
		d.warn(path, "has the unknown type %q: kept for export, not sent", wire.Clip(kind))
		return dataPart(raw, partExtra{Field: fieldToolCalls, Type: kind}), nil
	}
	o.Drop("type")
	if p.CallID, err = d.take(&o, path, "id"); err != nil {
		return p, err
	}
	if err := d.function(wire.Join(path, kind), o.Get(kind), arguments, &p, &x); err != nil {
		return p, err
	}
	o.Drop(kind)
	if err := wire.FitsExtra(path, &o); err != nil {
		return p, err
	}
	x.Fields = o
	x.store(&p)
	return p, nil
}

// function reads {name, arguments}. Arguments are kept byte for byte, whatever they hold; some
// servers give them as an object: then its bytes are the arguments, and stay in extra too.
func (d *decoder) function(path string, raw json.RawMessage, arguments string, p *session.Part, x *partExtra) error {
	inner, err := wire.ParseObject(path, raw)
	if err != nil {
		return err
	}
	if p.ToolName, err = d.take(&inner, path, "name"); err != nil {
		return err
	}
	switch raw := inner.Get(arguments); wire.KindOf(raw) {
	case '"':
		if p.Arguments, err = d.take(&inner, path, arguments); err != nil {
			return err
		}
	case 'n':
		if raw == nil {
			x.Absent = append(x.Absent, arguments)
		}
	case '{', '[':
		p.Arguments = string(raw)
	default:
		return wire.Errorf(session.Invalid, wire.Join(path, arguments), "must be a string, not %s", wire.Describe(raw))
	}
	if err := wire.FitsExtra(path, &inner); err != nil {
		return err
	}
	x.Inner = inner
	return nil
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
