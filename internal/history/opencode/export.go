package opencode

import (
	"bytes"
	"context"
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
	switch head = bytes.TrimSpace(history.Unmarked(head[:n])); {
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
	cuts  *history.Cuts
	flat  bool
	about *about
	parts shared
}

func (s *Source) readExport(ctx context.Context, found history.Found, file *os.File, size int64, known history.Known, emit func(history.Batch) error) ([]history.Problem, error) {
	e := &export{file: file, size: size, cuts: history.NewCuts(file, found, cutRule()), parts: newShared()}
	defer e.parts.close()
	if err := e.look(); err != nil {
		return nil, err
	}
	e.about.store = inExport
	r := &reader{ctx: ctx, known: known, emit: emit, path: found.Path, now: s.now(), about: *e.about, from: e, cuts: e.cuts}
	err := r.run(func(r *reader) *history.Cursor {
		return lastBatch(found, 1, history.Records{}, r.waits).Cursor
	})
	return r.problems, err
}

// look finds what the file is, and what it says of the session. Codes: Invalid.
func (e *export) look() error {
	err := e.values(func(key string, in *history.Document) error {
		if !e.flat && key != keyInfo {
			return nil
		}
		at, err := in.Value()
		if err != nil {
			return err
		}
		value, err := e.read(at)
		if err != nil {
			return err
		}
		o, why := parse(value)
		data, _ := history.Fields(o.Get("data"))
		switch {
		case key == keyInfo && why != "":
			return session.Errorf(session.Invalid, "its info is no object")
		case key == keyInfo:
			a := aboutObject(o)
			e.about = &a
		case o.String("type") == "session":
			a := aboutObject(data)
			e.about = &a
		case o.String("type") == "part":
			e.parts.add(data.String("messageID"), at)
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

const keyInfo = "info"

// values yields info and each message of an export, or each entry of a share; yield may take the
// value.
func (e *export) values(yield func(key string, in *history.Document) error) error {
	in := history.NewDocument(e.file, e.size)
	kind, err := in.Enter()
	if err != nil {
		return err
	}
	e.flat = kind == '['
	return in.Members(func(key string) error {
		switch {
		case e.flat || key == keyInfo:
			return yield(key, in)
		case key != "messages":
			return nil
		}
		if kind, err := in.Enter(); err != nil || kind != '[' {
			return errors.Join(err, errors.New("its messages are no list"))
		}
		return in.Members(func(string) error { return yield("", in) })
	})
}

func (e *export) scan(ctx context.Context, yield func(*message) error) error {
	return e.values(func(key string, in *history.Document) error {
		if key == keyInfo {
			return ctx.Err()
		}
		at, err := in.Value()
		if err != nil {
			return err
		}
		value, err := e.read(at)
		if err != nil {
			return err
		}
		m, err := e.message(at, value)
		if err != nil || m == nil {
			return err
		}
		return yield(m)
	})
}

func (e *export) load(_ context.Context, l *records, i int) (*message, error) {
	at := history.Span{At: l.at(i).offset, Size: l.at(i).size}
	value, err := e.read(at)
	if err != nil {
		return nil, err
	}
	m, err := e.message(at, value)
	if m == nil && err == nil {
		err = session.Errorf(session.Busy, "the export changed while it was read: import again")
	}
	return m, err
}

func (e *export) close() error { return nil }

// read gives a value of the file, shortened if it is a long one.
func (e *export) read(at history.Span) ([]byte, error) {
	value, err := e.cuts.ReadAgain(e.file, nil, at.At, at.Size)
	if err != nil {
		return nil, fmt.Errorf("read the export again: %w", err)
	}
	return value, nil
}

// message takes one message of the file; nil for what is none.
func (e *export) message(at history.Span, value []byte) (*message, error) {
	in := &message{offset: at.At, size: at.Size, records: 1}
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
	for _, at := range e.parts.of(in.id) {
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
