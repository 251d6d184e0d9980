package opencode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Read implements history.Source.
func (s *Source) Read(ctx context.Context, found history.Found, _ *history.Cursor, known history.Known, emit func(history.Batch) error) ([]history.Problem, error) {
	info, err := os.Stat(found.Path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return s.readTree(ctx, found, known, emit)
	}
	file, _, err := history.Open(found.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(file, head)
	switch head = bytes.TrimSpace(head[:n]); {
	case n == 0 && errors.Is(err, io.EOF):
		return nil, session.Errorf(session.Invalid, "the file is empty")
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, err
	case len(head) > 0 && (head[0] == '{' || head[0] == '['):
		return s.readExport(ctx, found, file, info.Size(), known, emit)
	}
	return s.readDatabase(ctx, found, known, emit)
}

// export is a conversation in one file: {info, messages: [{info, parts}]}, or the flat list
// of a share, [{type, data}].
type export struct {
	file  *os.File
	size  int64
	flat  bool
	about *about
	parts map[string][]span // of a share: where a message's parts are
}

type span struct{ offset, size int64 }

func (s *Source) readExport(ctx context.Context, found history.Found, file *os.File, size int64, known history.Known, emit func(history.Batch) error) ([]history.Problem, error) {
	e := &export{file: file, size: size, parts: map[string][]span{}}
	if err := e.look(); err != nil {
		return nil, err
	}
	e.about.store = inExport
	r := &reader{ctx: ctx, known: known, emit: emit, path: found.Path, now: s.now(), about: *e.about, from: e}
	err := r.run(func(r *reader) *history.Cursor {
		return lastBatch(found, 1, history.Records{}, r.waits).Cursor
	})
	return r.problems, err
}

// look finds what the file is, and what it says of the session. Codes: Invalid.
func (e *export) look() error {
	err := e.values(func(key string, at span, value []byte) error {
		o, _ := parse(value)
		switch {
		case key == "info":
			a := aboutObject(o)
			e.about = &a
		case e.flat && o.String("type") == "session":
			data, _ := history.Fields(o.Get("data"))
			a := aboutObject(data)
			e.about = &a
		case e.flat && o.String("type") == "part":
			data, _ := history.Fields(o.Get("data"))
			e.parts[data.String("messageID")] = append(e.parts[data.String("messageID")], at)
		}
		return nil
	})
	switch {
	case err != nil && e.about == nil:
		return session.Errorf(session.Invalid, "no opencode session: %w", err)
	case err != nil:
		return session.Errorf(session.Invalid, "the export cannot be read: %w", err)
	case e.about == nil || e.about.id == "":
		return session.Errorf(session.Invalid, "no opencode session: it is neither an export nor a share")
	}
	return nil
}

// values yields info and each message of an export, or each entry of a share.
func (e *export) values(yield func(key string, at span, value []byte) error) error {
	in := json.NewDecoder(io.NewSectionReader(e.file, 0, e.size))
	first, err := in.Token()
	if err != nil {
		return err
	}
	list := func() error {
		for in.More() {
			var value json.RawMessage
			if err := in.Decode(&value); err != nil {
				return err
			}
			if err := yield("", span{in.InputOffset() - int64(len(value)), int64(len(value))}, value); err != nil {
				return err
			}
		}
		_, err := in.Token()
		return err
	}
	switch first {
	case json.Delim('['):
		e.flat = true
		return list()
	case json.Delim('{'):
	default:
		return errors.New("it is no object")
	}
	for in.More() {
		token, err := in.Token()
		if err != nil {
			return err
		}
		if token == "messages" {
			if token, err := in.Token(); err != nil || token != json.Delim('[') {
				return errors.Join(err, errors.New("its messages are no list"))
			}
			if err := list(); err != nil {
				return err
			}
			continue
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return err
		}
		if token == "info" {
			if err := yield("info", span{}, value); err != nil {
				return err
			}
		}
	}
	_, err = in.Token()
	return err
}

func (e *export) scan(ctx context.Context, yield func(*message) error) error {
	return e.values(func(key string, at span, value []byte) error {
		if key == "info" {
			return ctx.Err()
		}
		in, err := e.message(at, value)
		if err != nil || in == nil {
			return err
		}
		return yield(in)
	})
}

func (e *export) load(_ context.Context, l *records, i int) (*message, error) {
	at := span{l.at(i).offset, l.at(i).size}
	value, err := e.read(at)
	if err != nil {
		return nil, err
	}
	return e.message(at, value)
}

func (e *export) close() error { return nil }

func (e *export) read(at span) ([]byte, error) {
	value := make([]byte, at.size)
	if err := history.ReadAgain(e.file, value, at.offset); err != nil {
		return nil, fmt.Errorf("read the export again: %w", err)
	}
	return value, nil
}

// message takes one message of the file; nil for what is none.
func (e *export) message(at span, value []byte) (*message, error) {
	in := &message{offset: at.offset, size: at.size, records: 1}
	o, why := parse(value)
	if why != "" {
		in.data, in.broken = value, why
		return in, nil
	}
	if !e.flat {
		info, ok := history.Fields(o.Get("info"))
		if !ok {
			in.data, in.broken = value, "it is no message"
			return in, nil
		}
		in.id, in.data = info.String("id"), info.JSON()
		list, _ := history.Elements(o.Get("parts"))
		for _, element := range list {
			in.addPart(element)
		}
		return in, nil
	}
	data, _ := history.Fields(o.Get("data"))
	switch o.String("type") {
	case "message":
	case "session", "part":
		return nil, nil
	default:
		in.data, in.broken = value, "it is no message"
		return in, nil
	}
	in.id, in.data = data.String("id"), objectJSON(data)
	for _, at := range e.parts[in.id] {
		value, err := e.read(at)
		if err != nil {
			return nil, err
		}
		entry, _ := parse(value)
		in.addPart(entry.Get("data"))
	}
	return in, nil
}

func (m *message) addPart(element []byte) {
	o, _ := history.Fields(element)
	m.parts = append(m.parts, part{o.String("id"), element})
	m.records++
}
