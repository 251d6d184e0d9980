package opencode

import (
	"errors"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// export is a conversation in one file: {info, messages: [{info, parts}]}, or the flat list of a
// share, [{type, data}].
type export struct {
	in       *history.Document
	about    *about
	messages []body
	parts    map[string][]body // of a share: by the ids of their messages
}

func readExport(in *history.Intake) {
	e := &export{in: in.Document(), parts: map[string][]body{}}
	err := e.scan()
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

// scan reads the session and its messages.
func (e *export) scan() error {
	kind, err := e.in.Enter()
	if err != nil {
		return err
	}
	return e.in.Members(func(key string) error {
		switch {
		case kind == '[':
			return e.entry()
		case key == "info":
			info, err := e.value()
			if err != nil || info.why != "" {
				return errors.Join(err, errors.New("its info is no object"))
			}
			e.about = new(aboutObject(info.Object))
		case key == "messages":
			if kind, err := e.in.Enter(); err != nil || kind != '[' {
				return errors.Join(err, errors.New("its messages are no list"))
			}
			return e.in.Members(func(string) error {
				o, err := e.value()
				e.messages = append(e.messages, o)
				return err
			})
		}
		return nil
	})
}

func (e *export) value() (body, error) {
	text, err := e.in.Value()
	return parse(text), err
}

// entry reads an entry of a share.
func (e *export) entry() error {
	o, err := e.value()
	data := o.Inner("data")
	switch o.String("type") {
	case "session":
		e.about = new(aboutObject(data))
	case "part":
		id := data.String("messageID")
		e.parts[id] = append(e.parts[id], o)
	default:
		e.messages = append(e.messages, o)
	}
	return err
}

// message makes a message of an element of the list.
func (e *export) message(o body) *message {
	in := &message{records: 1, data: o}
	if o.why != "" {
		return in
	}
	if info, ok := history.Fields(o.Get("info")); ok {
		in.id, in.data = info.String("id"), body{Object: info}
		list, _ := history.Elements(o.Get("parts"))
		for _, element := range list {
			in.addPart(element)
		}
		return in
	}
	data, ok := history.Fields(o.Get("data"))
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
