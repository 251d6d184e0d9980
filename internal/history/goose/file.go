package goose

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// readFile reads a file of either form.
func readFile(in *history.Intake) {
	is, err := readExport(in)
	if in.Fail(err); err == nil && !is {
		readLines(in)
	}
}

// readLines reads a file of before the database: what it says of the session, then a message in
// each line.
func readLines(in *history.Intake) {
	var r *reader
	var header history.FileLine
	in.EachLine(func(l history.FileLine) {
		if r == nil {
			a, isHeader, err := begin(in, l.Bytes)
			r = newReader(in, a)
			if in.Fail(err); isHeader {
				header = l
				return
			}
		}
		m := rowOf(l.Bytes)
		m.ID, m.line, m.offset = int64(l.Number), l.Number, l.At
		r.add(m)
	})
	if r == nil {
		in.Fail(session.Errorf(session.Invalid, "no Goose session: its first line is not finished"))
	}
	if in.Err() == nil {
		in.At(header.At, header.End)
		r.read()
	}
}

// begin parses a file's first line: isHeader is false where the metadata are lost, and it is a
// message. Codes: Invalid.
func begin(in *history.Intake, line []byte) (a about, isHeader bool, err error) {
	o, _, ok := history.ParseLine(line)
	isMessage := o.Get("role") != nil && o.Get("content") != nil
	isHeader = o.Get("working_dir") != nil || o.Get("description") != nil || o.Get("message_count") != nil
	switch {
	case !ok || o.Get("type") != nil || !isMessage && !isHeader:
		return a, false, session.Errorf(session.Invalid,
			"no Goose session: its first line is neither a session's metadata nor a message")
	case isMessage:
		isHeader = false
		a.inFile = true
		a.typed("")
		a.note("in_file", "true")
	default:
		a = aboutFile(o)
	}
	if a.id == "" {
		path := in.Found.Path
		a.id = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	a.otherwise = session.At(in.Found.ModifiedAt)
	return a, isHeader, nil
}

// aboutFile parses the session's columns in an object.
func aboutFile(o jsonx.Object) about {
	var row history.Row
	for _, member := range o.Without(keyConversation, "message_count", "usage", "accumulated_usage") {
		name, text := member.Key, history.Plain(member.Value)
		switch text {
		case "null":
			continue
		case "true":
			text = "1"
		case "false":
			text = "0"
		}
		if member.Value[0] == '"' {
			text, _ = jsonx.Text(member.Value)
		}
		switch name { // as the newest exports nest them
		case "model_config", "recipe", "user_recipe_values":
			name += "_json"
		}
		row = append(row, history.Column{Name: name, Text: text})
	}
	a := aboutRow(row)
	if nested := o.Inner("accumulated_usage"); len(nested) > 0 {
		a.balance = usageOf(func(name string) []byte {
			inNewest := strings.Replace(name, "_tokens", "_input_tokens", 1) // of the cache
			return []byte(cmp.Or(string(nested.Get(name)), string(nested.Get(inNewest)), row.Get("accumulated_"+name)))
		})
	}
	a.inFile = true
	a.note("in_file", "true")
	return a
}

const keyConversation = "conversation"

// readExport reads an exported session: one object, its messages in a list. Where its JSON is
// broken the messages before that are read. is is false for a file of lines, which begins with a
// short object.
func readExport(in *history.Intake) (is bool, err error) {
	r := newReader(in, about{})
	var o jsonx.Object
	broken := in.Document(keyConversation, func(name string, element bool, value raw) error {
		switch {
		case element && name == keyConversation:
			r.addElement(value)
		case name == keyConversation:
			is = true
		case !element:
			o = append(o, jsonx.Member{Key: name, Value: bytes.ToValidUTF8(value, []byte(string(utf8.RuneError)))})
		}
		return in.Err()
	})
	switch {
	case broken != nil && session.CodeOf(broken) != session.Invalid:
		return is, broken
	case broken != nil && !is && filepath.Ext(in.Found.Path) == ".json":
		return false, session.Errorf(session.Invalid, "no Goose session: the export cannot be read: %w", broken)
	case !is:
		return false, nil
	case o.String("id") == "":
		return true, session.Errorf(session.Invalid, "no Goose session: the export has no id")
	case broken != nil:
		in.Problem(0, fmt.Sprintf("the export is broken: %s; %d messages before that are imported", history.Reason(broken),
			len(r.records)))
	}
	r.about = aboutFile(o)
	r.about.otherwise = session.At(in.Found.ModifiedAt)
	r.read()
	return true, nil
}

// addElement remembers the next message of an export.
func (r *reader) addElement(value raw) {
	n := len(r.records)
	if len(value) > history.MaxLine {
		r.in.Skip(history.SkipTooLarge, 1)
		r.in.Problem(0, fmt.Sprintf("the message after %d others is over %d MiB; left out", n, history.MaxLine>>20))
		return
	}
	m := rowOf(value)
	m.ID = int64(n + 1)
	r.add(m)
}

// rowOf parses a message of a file.
func rowOf(line []byte) *row {
	o, _, ok := history.ParseLine(line)
	switch {
	case !ok:
		return &row{Content: line, broken: fmt.Sprintf("not a JSON object (%d bytes)", len(line))}
	case o.Get("role") == nil || o.Get("content") == nil:
		return &row{Content: line, broken: "no message: it has no role, or no content"}
	case jsonx.DeeperThan(line, history.MaxDepth):
		return &row{Content: line, broken: "nested too deep"}
	}
	return &row{
		MessageID: o.String("id"), Role: o.String("role"), Created: createdOf(o.Get("created")),
		Content: o.Get("content"), Metadata: o.Get("metadata"),
	}
}

// createdOf parses a time that may be spelled out.
func createdOf(value []byte) []byte {
	if text, ok := jsonx.Text(value); ok {
		if at := timeText(text); at != nil {
			return []byte(strconv.FormatInt(at.Unix(), 10))
		}
	}
	return value
}
