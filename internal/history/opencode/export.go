package opencode

import (
	"errors"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// export is a conversation in one file: {info, messages: [{info, parts}]}, or the flat list of a
// share, [{type, data}].
type export struct {
	in       *history.Intake
	about    *about
	messages []history.Span
	parts    map[string][]history.Span // of a share: by the ids of their messages
}

func readExport(in *history.Intake) error {
	e := &export{in: in, parts: map[string][]history.Span{}}
	err := e.scan()
	switch {
	case err != nil && e.about == nil:
		return session.Errorf(session.Invalid, "no opencode session: %w", err)
	case err != nil:
		return session.Errorf(session.Invalid, "the export cannot be read: %w", err)
	case e.about == nil || e.about.id == "":
		return session.Errorf(session.Invalid, "no opencode session: it is neither an export nor a share")
	}
	e.about.store = inExport
	r := &reader{in: in, about: *e.about}
	for _, at := range e.messages {
		m, err := e.message(at)
		if err != nil {
			return err
		}
		m.load = func() (*message, error) { return e.message(at) }
		r.add(m)
	}
	return r.run()
}

// scan finds the session and where its messages are.
func (e *export) scan() error {
	in := e.in.Document()
	kind, err := in.Enter()
	if err != nil {
		return err
	}
	return in.Members(func(key string) error {
		switch {
		case kind == '[':
			return e.entry(in)
		case key == "info":
			at, err := in.Value()
			if err != nil {
				return err
			}
			info, err := e.parse(at)
			if err != nil || info.why != "" {
				return errors.Join(err, errors.New("its info is no object"))
			}
			e.about = new(aboutObject(info.Object))
		case key == "messages":
			if kind, err := in.Enter(); err != nil || kind != '[' {
				return errors.Join(err, errors.New("its messages are no list"))
			}
			return in.Members(func(string) error {
				at, err := in.Value()
				e.messages = append(e.messages, at)
				return err
			})
		}
		return nil
	})
}

// entry reads an entry of a share.
func (e *export) entry(in *history.Document) error {
	at, err := in.Value()
	if err != nil {
		return err
	}
	o, err := e.parse(at)
	data := o.Inner("data")
	switch o.String("type") {
	case "session":
		e.about = new(aboutObject(data))
	case "part":
		id := data.String("messageID")
		e.parts[id] = append(e.parts[id], at)
	default:
		e.messages = append(e.messages, at)
	}
	return err
}

// parse parses a value of the file.
func (e *export) parse(at history.Span) (body, error) {
	value, err := e.in.Bytes(at.At, at.Size)
	return parse(value), err
}

// message reads one message of the file.
func (e *export) message(at history.Span) (*message, error) {
	o, err := e.parse(at)
	in := &message{records: 1, data: o}
	if err != nil || o.why != "" {
		return in, err
	}
	if info, ok := history.Fields(o.Get("info")); ok {
		in.id, in.data = info.String("id"), body{Object: info}
		list, _ := history.Elements(o.Get("parts"))
		for _, element := range list {
			in.addPart(element)
		}
		return in, nil
	}
	data, ok := history.Fields(o.Get("data"))
	if !ok || o.String("type") != "message" {
		in.data.why = "it is no message"
		return in, nil
	}
	in.id, in.data = data.String("id"), body{Object: data}
	for _, at := range e.parts[in.id] {
		entry, err := e.parse(at)
		if err != nil {
			return nil, err
		}
		in.addPart(entry.Get("data"))
	}
	return in, nil
}

func (m *message) addPart(element []byte) {
	p := parse(element)
	m.parts = append(m.parts, part{p.String("id"), p})
	m.records++
}
