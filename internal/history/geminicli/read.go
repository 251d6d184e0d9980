package geminicli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Read implements history.Source.
func (s *Source) Read(ctx context.Context, found history.Found, cursor *history.Cursor, known history.Known, emit func(history.Batch) error) ([]history.Problem, error) {
	file, found, err := history.OpenFound(found)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	head := make([]byte, 1)
	if _, err := file.ReadAt(head, 0); err != nil {
		return nil, err
	}
	first, _, _, err := history.NewLines(file, 0, found.Size).Next()
	if err != nil {
		return nil, err
	}
	o, _, whole := history.ParseLine(first)
	lines := whole && o.String("sessionId") != "" && o.Get("messages") == nil
	var at io.ReaderAt
	if lines {
		at = file
	}
	in, err := history.NewIntake(ctx, session.SourceGeminiCLI, found, at, cursor, known, s.now(), emit)
	if err != nil {
		return nil, err
	}
	switch {
	case head[0] == '[':
		err = readLog(in)
	case lines:
		err = readLines(in, file)
	default:
		err = readDocument(in)
	}
	if err != nil {
		return nil, err
	}
	return in.Finish()
}

// readLines reads a file of generation 2. The last reply waits while it may get its calls.
func readLines(in *history.Intake, file *os.File) error {
	limit, waiting, err := lastReply(in, file)
	if err != nil {
		return err
	}
	var f *folded
	lines := history.NewLines(file, 0, limit)
	for number := 1; ; number++ {
		text, at, ended, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		in.At(at, lines.Offset())
		var l line
		switch broken := json.Unmarshal(history.Unmarked(text), &l, jsontext.AllowInvalidUTF8(true)); {
		case lines.TooLarge():
			in.Skip(history.SkipTooLarge, 1)
			in.Problem(number, "the line is over 64 MiB; left out")
		case strings.TrimSpace(string(text)) == "":
			in.Skip(history.SkipBlank, 1)
		case broken != nil && !ended:
			in.Wait(at, 1)
		case broken != nil && f == nil:
			return session.Errorf(session.Invalid, "no session of Gemini CLI: its first line is no header")
		case broken != nil:
			f.add(&entry{raw: []byte(string(text)), why: "not a JSON object, or a name occurs twice", lines: []place{{at, number}}})
		case f == nil:
			var h header
			if json.Unmarshal(history.Unmarked(text), &h, jsontext.AllowInvalidUTF8(true)) != nil {
				return session.Errorf(session.Invalid, "no session of Gemini CLI: its first line is no header")
			}
			f = newFolded(h)
			in.Import(1)
		default:
			f.line(in, &l, []byte(string(text)), place{at, number})
		}
		if err := in.Context().Err(); err != nil {
			return err
		}
	}
	if waiting > 0 {
		in.Wait(limit, waiting)
	}
	return f.emit(in)
}

// line folds one line in. Its forms are told in the order in which Gemini CLI tells them.
func (f *folded) line(in *history.Intake, l *line, text []byte, at place) {
	switch {
	case l.Rewind != nil:
		f.rewind(*l.Rewind)
		in.Import(1)
	case l.ID != nil:
		var m message
		if err := json.Unmarshal(text, &m, jsontext.AllowInvalidUTF8(true)); err != nil || m.Type == "" {
			f.add(&entry{raw: text, why: "not a message of Gemini CLI", lines: []place{at}})
		} else if f.message(m, at) {
			in.Skip(skipCarrier, 1)
		}
	case l.Set != nil:
		set := object(l.Set)
		if summary, ok := history.Text(set.Get("summary")); ok {
			f.Summary = summary
		}
		if messages := set.Get("messages"); messages != nil {
			f.replace(jsontext.Value(messages), at)
			in.Import(1)
		} else if set.Get("summary") != nil {
			in.Import(1)
		} else {
			in.Skip(skipSettings, 1)
		}
	case l.Session != "":
		in.Skip(skipHeader, 1)
	default:
		f.add(&entry{raw: text, why: "not a line of Gemini CLI", lines: []place{at}})
	}
}

// lastReply finds where a file ends for now: before the first line of the last message, if that
// is a reply that may get more. waiting counts the lines behind.
func lastReply(in *history.Intake, file *os.File) (limit int64, waiting int, err error) {
	limit = in.Found.Size
	if in.Quiet() {
		return limit, 0, nil
	}
	first, last := map[string]int64{}, ""
	after := map[string]int{}
	n := 0
	lines := history.NewLines(file, 0, limit)
	for {
		text, at, ended, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, 0, err
		}
		n++
		var m struct {
			ID   string `json:"id"`
			Type string `json:"type"`
		}
		if !ended || json.Unmarshal(text, &m, jsontext.AllowInvalidUTF8(true)) != nil || m.ID == "" {
			continue
		}
		last = ""
		if m.Type != "gemini" {
			continue
		}
		if last = m.ID; after[last] == 0 {
			first[last], after[last] = at, n
		}
	}
	if last == "" {
		return limit, 0, nil
	}
	return first[last], n - after[last] + 1, nil
}

// document is a file of generation 1.
type document struct {
	header
	Messages []jsontext.Value `json:"messages"`
}

// readDocument reads a file of generation 1. It is rewritten as a whole, so it may be read cut.
func readDocument(in *history.Intake) error {
	if in.Found.Size > history.MaxLine {
		return session.Errorf(session.TooLarge, "the file is over 64 MiB")
	}
	text, err := history.ReadFile(in.Found.Path)
	if err != nil {
		return err
	}
	var d document
	if err := json.Unmarshal(history.Unmarked(text), &d, jsontext.AllowInvalidUTF8(true)); err != nil || d.SessionID == "" || d.Messages == nil {
		return session.Errorf(session.Invalid, "no session of Gemini CLI: neither an object with a sessionId and messages, nor lines that begin with a header")
	}
	f := newFolded(d.header)
	in.Import(1)
	for i, raw := range d.Messages {
		var m message
		if json.Unmarshal(raw, &m, jsontext.AllowInvalidUTF8(true)) != nil {
			f.add(&entry{raw: []byte(raw), why: "not a message of Gemini CLI", lines: []place{{0, i + 1}}})
			continue
		}
		if i == len(d.Messages)-1 && m.Type == "gemini" && !in.Quiet() {
			in.Wait(0, 1)
			break
		}
		if f.message(m, place{0, i + 1}) {
			in.Skip(skipCarrier, 1)
		}
	}
	return f.emit(in)
}

// emit adds the folded session to the store.
func (f *folded) emit(in *history.Intake) error {
	if f == nil {
		return session.Errorf(session.Invalid, "no session of Gemini CLI: it holds no header")
	}
	id := history.PlainText(f.SessionID)
	directory := directoryOf(in.Found.Path, f.ProjectHash)
	created, ok := history.ParseTime(f.StartTime)
	if !ok {
		created = session.At(in.Found.ModifiedAt)
	}
	new := history.NewSession{
		Source: session.SourceGeminiCLI, SourceID: id, Directory: directory, CreatedAt: &created, Provider: "google", Model: f.model(),
		Metadata: session.JSONOf(map[string]any{"gemini-cli": map[string]string{"project_hash": f.ProjectHash}}),
	}
	new.Title, new.TitleSource = f.title()
	if f.Kind == "subagent" {
		new.Kind = "subagent"
	}
	c, err := in.Conversation(new)
	if err != nil {
		return err
	}
	if err := f.link(in, c); err != nil {
		return err
	}
	for _, e := range f.all {
		if err := f.addEntry(in, c, e, directory); err != nil {
			return err
		}
	}
	for _, o := range f.compactions {
		if err := c.Compact(o.overlay()); err != nil {
			return err
		}
	}
	if e := f.end(); e != nil && (c.Here == nil || c.Fresh() > 0) {
		c.Head = e.tail()
	}
	if new.TitleSource == "source" {
		c.Title = new.Title
	}
	return nil
}

func (f *folded) addEntry(in *history.Intake, c *history.Conversation, e *entry, directory string) error {
	added := history.Entry{Key: e.key(), Parent: e.parent.tail(), At: e.list.offset, Line: e.list.number, NoRecords: len(e.lines) == 0, Decode: e.decode}
	settled := len(e.lines) > 0
	for _, l := range e.lines {
		if added.At, added.Line = l.offset, l.number; !in.Old(l.offset) {
			added.Records++
			settled = false
		}
	}
	if err := c.Add(added); err != nil || settled {
		return err
	}
	if call, ok := e.usage(directory); ok {
		return c.Call(call)
	}
	return nil
}

// overlay says of a compaction what it stands for.
func (o *compaction) overlay() history.Compaction {
	c := history.Compaction{Key: o.summary.key(), ThroughKey: o.through.tail()}
	c.Strategy, c.Trigger, c.Status = session.StrategySummarize, session.TriggerImport, session.StatusDone
	c.Summary, c.CreatedAt = history.PlainText(textOf(&o.summary.message)), o.summary.at
	if o.kept != nil {
		c.FirstKeptKey = o.kept.key()
	}
	return c
}

// link ties a sub-agent to the session that started it, when that is here.
func (f *folded) link(in *history.Intake, c *history.Conversation) error {
	id := parentOf(in.Found.Path)
	if id == "" || id == f.SessionID {
		return nil
	}
	parent, err := in.Session(id)
	if err != nil {
		return err
	}
	if parent == nil {
		in.Await(id)
		return nil
	}
	if circle, err := history.ComesFrom(in.Context(), in.Known, parent, c.Here); circle || err != nil {
		return err
	}
	c.New.ParentID, c.New.ParentKind = parent.ID, session.ParentChild
	err = in.Known.Entries(in.Context(), parent.ID, func(m *session.Message) bool {
		for _, p := range m.Calls() {
			rest, _ := history.Fields(object(jsontext.Value(p.Extra)).Get("rest"))
			if rest.String("agentId") == f.SessionID {
				c.New.Started, c.New.StartedCall = &m.ID, p.CallID
				return false
			}
		}
		return true
	})
	if c.Here != nil && c.Here.ParentID == "" {
		c.Fields = &history.Changes{ParentID: parent.ID, ParentKind: session.ParentChild, Started: c.New.Started, StartedCall: c.New.StartedCall}
	}
	return err
}

// title is the summary that Gemini CLI wrote, which of a sub-agent is its result; else what was
// said first.
func (f *folded) title() (title, source string) {
	if title := history.FirstLine(history.PlainText(f.Summary)); title != "" && f.Kind != "subagent" {
		return title, "source"
	}
	for _, e := range f.all {
		text := strings.TrimSpace(textOf(&e.message))
		if e.Type != "user" || text == "" || isContext(&e.message) || strings.HasPrefix(text, "/") || strings.HasPrefix(text, "?") {
			continue
		}
		return history.FirstLine(history.PlainText(text)), "first_message"
	}
	return "", ""
}

// model is that of the newest reply.
func (f *folded) model() string {
	for i := len(f.list) - 1; i >= 0; i-- {
		if f.list[i].Model != "" {
			return history.PlainText(f.list[i].Model)
		}
	}
	return ""
}

// readLog reads the log of prompts: it counts for sessions of which no file is left.
func readLog(in *history.Intake) error {
	if filepath.Base(in.Found.Path) != logName {
		return session.Errorf(session.Invalid, "no session of Gemini CLI: an array, which only %s is", logName)
	}
	text, err := history.ReadFile(in.Found.Path)
	if err != nil {
		return err
	}
	var prompts []struct {
		Session   string         `json:"sessionId"`
		Message   jsontext.Value `json:"message"`
		ID        jsontext.Value `json:"messageId"`
		Timestamp string         `json:"timestamp"`
		Type      string         `json:"type"`
	}
	if err := json.Unmarshal(history.Unmarked(text), &prompts, jsontext.AllowInvalidUTF8(true)); err != nil {
		return session.Errorf(session.Invalid, "no log of prompts: %v", err)
	}
	sessions, order := map[string]*folded{}, []string{}
	for i, p := range prompts {
		f := sessions[p.Session]
		if f == nil {
			f = newFolded(header{SessionID: p.Session, StartTime: p.Timestamp})
			sessions[p.Session] = f
			order = append(order, p.Session)
		}
		f.message(message{ID: "log-" + string(p.ID), Timestamp: p.Timestamp, Type: p.Type, Content: p.Message}, place{0, i + 1})
	}
	for _, id := range order {
		f := sessions[id]
		here, err := in.Session(id)
		if err != nil {
			return err
		}
		if hasFile(in.Found.Path, id) || here != nil && !strings.Contains(string(here.Metadata), `"log"`) {
			in.Skip(skipPrompt, len(f.all))
			continue
		}
		if err := f.emit(in); err != nil {
			return err
		}
	}
	return nil
}

// hasFile reports whether a session has a file beside the log. Several may have the name that is
// made of the beginning of an id.
func hasFile(log, id string) bool {
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(log), "chats", "session-*-"+id[:min(8, len(id))]+".json*")) // the pattern is a good one
	return slices.ContainsFunc(found, func(path string) bool {
		file, _, err := history.Open(path)
		if err != nil {
			return false
		}
		defer file.Close()
		head := make([]byte, 4096)
		n, _ := file.Read(head)
		return strings.Contains(string(head[:n]), `"`+id+`"`)
	})
}
