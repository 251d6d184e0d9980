package goose

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Read implements history.Source.
func (s *Source) Read(ctx context.Context, found history.Found, cursor *history.Cursor, known history.Known, emit func(history.Batch) error) ([]history.Problem, error) {
	file, info, err := history.Open(found.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	head := make([]byte, 16)
	n, err := io.ReadFull(file, head)
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return nil, session.Errorf(session.Invalid, "the file is empty")
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, err
	case bytes.HasPrefix(head, []byte("SQLite format 3")) || isDatabase(found.Path):
		return readDatabase(ctx, found, cursor, known, emit)
	}
	f := &lines{file: file, size: info.Size(), path: found.Path, cuts: history.NewCuts(file, found, cutRule())}
	a, err := f.begin(session.At(info.ModTime()))
	if err != nil {
		return nil, err
	}
	r := &reader{ctx: ctx, known: known, emit: emit, path: found.Path, about: a, from: f, cuts: f.cuts}
	modified := session.At(info.ModTime())
	err = r.run(func() *history.Cursor {
		r.batch.Records.Wait(f.torn)
		r.batch.Records.Skip(history.SkipBlank, f.blank)
		r.batch.Records.Skip(history.SkipTooLarge, len(f.large))
		for _, line := range f.large {
			r.problems = append(r.problems, history.Problem{Path: found.Path, Line: int(line), Error: "the line is over 64 MiB; left out"})
		}
		return &history.Cursor{Source: session.SourceGoose, Path: found.Path, Size: info.Size(), ModifiedAt: &modified}
	})
	return r.problems, err
}

// lines is a conversation in a file: a message in each line after the first one, or the list
// of an export.
type lines struct {
	file  *os.File
	path  string
	size  int64
	cuts  *history.Cuts
	from  int64   // where the messages begin
	first int64   // line that they begin with
	large []int64 // lines over 64 MiB, which are not read
	list  bool    // an export: one object with a list
	torn  int
	blank int
}

// begin reads what the file says of the session. Codes: Invalid.
func (f *lines) begin(modified session.Time) (about, error) {
	if f.isExport() {
		return f.export()
	}
	stem := strings.TrimSuffix(filepath.Base(f.path), filepath.Ext(f.path))
	in := history.NewLines(f.file, 0, f.size).Cut(f.cuts)
	line, _, ended, err := in.Next()
	if err != nil {
		return about{}, err
	}
	o, ok := parse(line)
	switch {
	case !ok && bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) && filepath.Ext(f.path) == ".json":
		return f.export()
	case !ok && !ended:
		return about{}, session.Errorf(session.Invalid, "no Goose session: its first line is not finished")
	case !ok || o.Get("type") != nil:
		return about{}, session.Errorf(session.Invalid, "no Goose session: its first line is neither a session's metadata nor a message")
	case o.Get("role") != nil && o.Get("content") != nil: // the metadata are lost
		a := about{id: stem, inFile: true, otherwise: modified}
		a.typed("")
		a.note("in_file", "true")
		return a, nil
	case o.Get("working_dir") == nil && o.Get("description") == nil && o.Get("message_count") == nil:
		return about{}, session.Errorf(session.Invalid, "no Goose session: its first line is neither a session's metadata nor a message")
	}
	f.from, f.first = in.Offset(), 1
	a := aboutFile(o)
	if a.id == "" {
		a.id = stem
	}
	a.otherwise = modified
	return a, nil
}

// aboutFile reads the session's columns from an object.
func aboutFile(o history.Object) about {
	c, order := columns{}, []string{}
	for _, field := range o {
		var text string
		switch value := string(field.Raw); {
		case field.Key == "conversation" || value == "null" || field.Key == "message_count":
			continue
		case value[0] == '"':
			text, _ = history.Text(field.Raw)
		case value == "true":
			text = "1"
		case value == "false":
			text = "0"
		default:
			text = value
		}
		name := field.Key
		switch name { // as the newest exports nest them
		case "model_config", "recipe", "user_recipe_values":
			name += "_json"
		}
		c[name] = &text
		order = append(order, name)
	}
	nested, _ := history.Fields(o.Get("accumulated_usage"))
	for _, field := range nested {
		name := "accumulated_" + strings.Replace(field.Key, "_input_tokens", "_tokens", 1)
		text := history.Plain(field.Raw)
		if field.Key == "input_tokens" {
			name = "accumulated_input_tokens"
		}
		c[name] = &text
	}
	for _, name := range []string{"usage", "accumulated_usage"} {
		delete(c, name)
	}
	a := aboutRow(c, order)
	a.inFile = true
	a.note("in_file", "true")
	return a
}

// isExport tells whether the file begins with an object that holds a conversation. A file of
// lines begins with a short one.
func (f *lines) isExport() bool {
	found := errors.New("it is there")
	return errors.Is(f.members(func(key string, _ *history.Document) error {
		if key == keyConversation {
			return found
		}
		return nil
	}), found)
}

const keyConversation = "conversation"

// export reads what an exported session says of itself: one object, its messages in a list.
func (f *lines) export() (about, error) {
	f.list = true
	var o history.Object
	err := f.members(func(key string, in *history.Document) error {
		if key == keyConversation {
			return nil
		}
		at, err := in.Value()
		if err != nil {
			return err
		}
		value := make([]byte, at.Size)
		if err := history.ReadAgain(f.file, value, at.At); err != nil {
			return err
		}
		value = bytes.ToValidUTF8(value, []byte(string(utf8.RuneError)))
		if !history.Valid(value) {
			return session.Errorf(session.Invalid, "no JSON at byte %d", at.At)
		}
		o = append(o, history.Field{Key: key, Raw: value})
		return nil
	})
	if err != nil {
		return about{}, session.Errorf(session.Invalid, "no Goose session: the export cannot be read: %w", err)
	}
	if o.String("id") == "" {
		return about{}, session.Errorf(session.Invalid, "no Goose session: the export has no id")
	}
	return aboutFile(o), nil
}

// value reads a message of the file, shortened if it is a long one.
func (f *lines) value(at history.Span) ([]byte, error) {
	return f.cuts.ReadAgain(f.file, nil, at.At, at.Size)
}

// members yields the members of the file's object; yield may take the value.
func (f *lines) members(yield func(key string, in *history.Document) error) error {
	in := history.NewDocument(f.file, f.size)
	if kind, err := in.Enter(); err != nil || kind != '{' {
		return errors.Join(err, errors.New("it is no object"))
	}
	return in.Members(func(key string) error { return yield(key, in) })
}

func (f *lines) scan(ctx context.Context, yield func(*row) error) error {
	if f.list {
		return f.scanList(ctx, yield)
	}
	in := history.NewLines(f.file, f.from, f.size).Cut(f.cuts)
	f.torn, f.blank, f.large = 0, 0, nil
	for n := f.first + 1; ; n++ {
		line, at, ended, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if in.TooLarge() {
			f.large = append(f.large, n)
			continue
		}
		if len(bytes.TrimSpace(line)) == 0 {
			f.blank++
			continue
		}
		made := rowOf(line)
		if made.broken != "" && !ended {
			f.torn++ // the next import sees it whole
			return nil
		}
		made.id, made.offset, made.size = n, at, int64(in.Size())
		if err := yield(made); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (f *lines) scanList(ctx context.Context, yield func(*row) error) error {
	n := int64(0)
	return f.members(func(key string, in *history.Document) error {
		if key != keyConversation {
			return nil
		}
		if kind, err := in.Enter(); err != nil || kind != '[' {
			return errors.Join(err, session.Errorf(session.Invalid, "its conversation is no list"))
		}
		return in.Members(func(string) error {
			at, err := in.Value()
			if err != nil {
				return err
			}
			value, err := f.value(at)
			if err != nil {
				return err
			}
			n++
			made := rowOf(value)
			made.id, made.offset, made.size = n, at.At, at.Size
			return cmp.Or(yield(made), ctx.Err())
		})
	})
}

func (f *lines) load(_ context.Context, l *records, i int) (*row, error) {
	r := *l.at(i)
	line, err := f.value(history.Span{At: r.offset, Size: r.size})
	if err != nil {
		return nil, fmt.Errorf("read line %d again: %w", r.id, err)
	}
	in := rowOf(line)
	in.id = r.id
	return in, nil
}

func (f *lines) close() error { return nil }

// rowOf reads a message of a file.
func rowOf(line []byte) *row {
	o, ok := parse(line)
	if !ok {
		return &row{content: line, broken: "not a JSON object"}
	}
	if o.Get("role") == nil || o.Get("content") == nil {
		return &row{content: line, broken: "no message: it has no role, or no content"}
	}
	if history.Depth(line) > maxDepth {
		return &row{content: line, broken: "nested too deep"}
	}
	return &row{
		messageID: o.String("id"), role: o.String("role"), created: createdOf(o.Get("created")), content: o.Get("content"), metadata: o.Get("metadata"),
	}
}

// createdOf reads a time that may be spelled out.
func createdOf(value []byte) []byte {
	if text, ok := history.Text(value); ok {
		if at := timeText(text); at != nil {
			return []byte(strconv.FormatInt(at.Unix(), 10))
		}
	}
	return value
}

// parse reads a line that is one JSON object.
func parse(line []byte) (history.Object, bool) {
	o, _, ok := history.ParseLine(line)
	return o, ok
}
