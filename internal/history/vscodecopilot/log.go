package vscodecopilot

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
)

// node is a value that operations change. It is taken apart where an operation reaches into it, and not before.
type node struct {
	raw    jsontext.Value // as it came, until it is taken apart
	names  []string       // of an object
	inner  []*node        // of an object or a list
	isList bool
}

// operation is a line of a log.
type operation struct {
	Kind  float64          `json:"kind"`
	Path  []jsontext.Value `json:"k"`
	Value jsontext.Value   `json:"v"`
	Index *float64         `json:"i"`
}

// Kinds of operations.
const (
	opWhole  = 0
	opSet    = 1
	opPush   = 2
	opRemove = 3
)

var errOperation = errors.New("an operation that does not fit the chat")

// open takes a value apart.
func (n *node) open() {
	if n.raw == nil {
		return
	}
	raw := n.raw
	n.raw = nil
	switch jsonx.KindOf(raw) {
	case '{':
		o, _ := jsonx.ReadFields(raw)
		for _, m := range o {
			n.names, n.inner = append(n.names, m.Key), append(n.inner, &node{raw: m.Value})
		}
	case '[':
		values, _ := jsonx.ReadArray(raw)
		n.isList = true
		for _, v := range values {
			n.inner = append(n.inner, &node{raw: v})
		}
	default:
		n.raw = raw
	}
}

// at returns the value under a name or number; make says that a missing one of an object is made. nil: there is none.
func (n *node) at(key jsontext.Value, make bool) *node {
	n.open()
	if name, isName := jsonx.Text(key); isName {
		for i := range n.names {
			if n.names[i] == name {
				return n.inner[i]
			}
		}
		if !make || n.isList || n.raw != nil {
			return nil
		}
		added := &node{raw: jsontext.Value("null")}
		n.names, n.inner = append(n.names, name), append(n.inner, added)
		return added
	}
	i, ok := history.Number(key)
	if !ok || !n.isList || i < 0 || int(i) > len(n.inner) || int(i) == len(n.inner) && !make {
		return nil
	}
	if int(i) == len(n.inner) {
		n.inner = append(n.inner, &node{raw: jsontext.Value("null")})
	}
	return n.inner[int(i)]
}

// apply applies an operation.
func (n *node) apply(op *operation) error {
	if op.Kind == opWhole {
		*n = node{raw: op.Value}
		return nil
	}
	at := n
	for i, key := range op.Path {
		last := i == len(op.Path)-1
		if last && op.Kind == opRemove {
			at.remove(key)
			return nil
		}
		if at = at.at(key, last); at == nil {
			return errOperation
		}
	}
	if len(op.Path) == 0 {
		return errOperation
	}
	switch op.Kind {
	case opSet:
		*at = node{raw: op.Value}
		if op.Value == nil {
			at.raw = jsontext.Value("null")
		}
	case opPush:
		return at.push(op)
	default:
		return errOperation
	}
	return nil
}

// push cuts a list to a length, if the operation names one, and appends values.
func (n *node) push(op *operation) error {
	n.open()
	if !n.isList {
		*n = node{isList: true}
	}
	if op.Index != nil && *op.Index >= 0 && int(*op.Index) < len(n.inner) {
		n.inner = n.inner[:int(*op.Index)]
	}
	if op.Value == nil {
		return nil
	}
	values, ok := jsonx.ReadArray(op.Value)
	if !ok {
		return errOperation
	}
	for _, v := range values {
		n.inner = append(n.inner, &node{raw: v})
	}
	return nil
}

func (n *node) remove(key jsontext.Value) {
	n.open()
	name, _ := jsonx.Text(key)
	for i := range n.names {
		if n.names[i] == name {
			n.names = append(n.names[:i:i], n.names[i+1:]...)
			n.inner = append(n.inner[:i:i], n.inner[i+1:]...)
			return
		}
	}
}

// value writes the value.
func (n *node) value() jsontext.Value {
	if n.raw != nil {
		return n.raw
	}
	if n.isList {
		all := make([]jsontext.Value, len(n.inner))
		for i := range n.inner {
			all[i] = n.inner[i].value()
		}
		return jsontext.Value(jsonx.Array(all))
	}
	var o jsonx.Object
	for i := range n.inner {
		o = append(o, jsonx.Member{Key: n.names[i], Value: n.inner[i].value()})
	}
	return o.Value()
}
