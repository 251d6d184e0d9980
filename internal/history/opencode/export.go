package opencode

import (
	"errors"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// export is a conversation in one file: {info, messages: [{info, parts}]}, or the flat list of a
// share, [{type, data}].
type export struct {
	about    *about
	messages []body
	parts    map[string][]body // of a share: by the ids of their messages
}

func readExport(in *history.Intake) {
	e := &export{parts: map[string][]body{}}
	err := in.Document("messages", e.value)
	switch {
	case err != nil && e.about == nil:
		err = session.Errorf(session.Invalid, "no opencode session: %w", err)
	case err != nil:
		err = session.Errorf(session.Invalid, "the export cannot be read: %w", err)
	case e.about == nil || e.about.id == "":
		err = session.Errorf(session.Invalid, "no opencode session: it is neither an export nor a share")
	}
	if in.Fail(err); err != nil {
		return
	}
	e.about.store = inExport
	r := &reader{in: in, about: *e.about}
	for _, o := range e.messages {
		r.add(e.message(o))
	}
	r.run()
}

// value reads a value of the file.
func (e *export) value(name string, element bool, value raw) error {
	o := parse(value)
	data := o.Inner("data")
	switch kind := o.String("type"); {
	case name == "info" && o.why != "":
		return errors.New("its info is no object")
	case name == "info":
		e.about = new(aboutObject(o.Object))
	case !element:
	case name == "" && kind == "session":
		e.about = new(aboutObject(data))
	case name == "" && kind == "part":
		id := data.String("messageID")
		e.parts[id] = append(e.parts[id], o)
	default:
		e.messages = append(e.messages, o)
	}
	return nil
}

// message makes a message of an element of the list.
func (e *export) message(o body) *message {
	in := &message{records: 1, data: o}
	if o.why != "" {
		return in
	}
	if info, ok := jsonx.ReadFields(o.Get("info")); ok {
		in.id, in.data = info.String("id"), body{Object: info}
		list, _ := jsonx.ReadArray(o.Get("parts"))
		for _, element := range list {
			in.addPart(element)
		}
		return in
	}
	data, ok := jsonx.ReadFields(o.Get("data"))
	if !ok || o.String("type") != "message" {
		in.data.why = "it is no message"
		return in
	}
	in.id, in.data = data.String("id"), body{Object: data}
	for _, entry := range e.parts[in.id] {
		in.addPart(entry.Get("data"))
	}
	return in
}

func (m *message) addPart(element []byte) {
	p := parse(element)
	m.parts = append(m.parts, part{p.String("id"), p})
	m.records++
}
