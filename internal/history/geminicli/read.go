package geminicli

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// read reads a file of any generation, which its first line tells.
func read(in *history.Intake) {
	var first []byte
	for line := range in.Survey {
		first = history.Unmarked(line.Bytes)
		break
	}
	var d document
	switch {
	case bytes.HasPrefix(first, []byte("[")):
		readLog(in)
	case jsonx.Unmarshal(first, &d) == nil && d.SessionID != "" && d.Messages == nil:
		readLines(in, d.header)
	default:
		readDocument(in)
	}
}

// readLines reads a file of generation 2. The last message and what follows it wait while it is a
// reply that may get its calls.
func readLines(in *history.Intake, h header) {
	var lines []line
	last := "" // the id of the last message, if it is a reply
	in.EachLine(func(l history.FileLine) {
		read := line{at: l}
		if read.broken = jsonx.Unmarshal(history.Unmarked(l.Bytes), &read) != nil; !read.broken && read.ID != "" {
			if last = ""; read.Type == "gemini" {
				last = read.ID
			}
		}
		lines = append(lines, read)
	})
	ready := len(lines)
	if last != "" && in.ReplyWaits(stateOf(lines, last)) {
		ready = slices.IndexFunc(lines, func(l line) bool { return !l.broken && l.ID == last && l.Type == "gemini" })
	}
	f := newFolded(h)
	for l := range in.Repeated {
		f.repeat(&l)
	}
	for i := range lines[:ready] {
		in.At(lines[i].at.At, lines[i].at.End)
		f.line(in, &lines[i])
	}
	if ready < len(lines) {
		in.Wait(lines[ready].at.At, len(lines)-ready)
	}
	f.emit(in)
}

// stateOf reports whether the lines of a reply say something, and whether a call has no result.
func stateOf(lines []line, id string) (says, open bool) {
	for i := range lines {
		if l := &lines[i]; !l.broken && l.ID == id && l.Type == "gemini" {
			text, waits := l.state()
			says, open = says || text, waits || open && isEmpty(l.ToolCalls)
		}
	}
	return says, open
}

// state reports whether a reply says something, be it with calls, and whether a call has no result.
func (m *message) state() (says, open bool) {
	var calls []call
	_ = jsonx.Unmarshal(m.ToolCalls, &calls) // of another form: none
	for _, c := range calls {
		open = open || !c.ended()
	}
	return len(calls) > 0 || strings.TrimSpace(textOf(m)) != "", open
}

const tooDeep = "nested too deep"

// line folds one line in.
func (f *folded) line(in *history.Intake, l *line) {
	at := place{l.at.At, l.at.Number}
	switch {
	case l.broken:
		f.keep(l.at.Bytes, "not a JSON line of Gemini CLI, or a name occurs twice", at)
	case l.Set == nil && jsonx.DeeperThan(l.at.Bytes, history.MaxDepth):
		f.keep(l.at.Bytes, tooDeep, at)
	case l.Rewind != nil:
		f.rewind(*l.Rewind)
		in.Import(1)
	case l.ID != "" && l.Type != "":
		if f.message(l.message, at) {
			in.Skip(skipCarrier, 1)
		}
	case l.Set != nil:
		if l.Set.Summary != "" {
			f.Summary = l.Set.Summary
		}
		if l.Set.Messages != nil {
			f.replace(l.Set.Messages, at)
		}
		if l.Set.Messages == nil && l.Set.Summary == "" {
			in.Skip(skipSettings, 1)
		} else {
			in.Import(1)
		}
	case l.Session != "" && at.number == 1:
		in.Import(1)
	case l.Session != "":
		in.Skip(skipHeader, 1)
	default:
		f.keep(l.at.Bytes, "not a line of Gemini CLI", at)
	}
}

// readDocument reads a file of generation 1. It is rewritten as a whole, so it may be read cut.
func readDocument(in *history.Intake) {
	if in.Found.Size > history.MaxLine {
		in.Fail(session.Errorf(session.TooLarge, "the file is over 64 MiB"))
		return
	}
	text := in.Bytes(0, in.Found.Size)
	var d document
	if err := jsonx.Unmarshal(history.Unmarked(text), &d); err != nil || d.SessionID == "" || d.Messages == nil {
		in.Fail(session.Errorf(session.Invalid,
			"no session of Gemini CLI: neither an object with a sessionId and messages, nor lines that begin with a header"))
		return
	}
	f := newFolded(d.header)
	in.Import(1)
	for i, raw := range d.Messages {
		var m message
		at := place{0, i + 1}
		switch {
		case jsonx.Unmarshal(raw, &m) != nil:
			f.keep(raw, "not a message of Gemini CLI", at)
		case jsonx.DeeperThan(raw, history.MaxDepth):
			f.keep(raw, tooDeep, at)
		case i == len(d.Messages)-1 && m.Type == "gemini" && in.ReplyWaits(m.state()):
			in.Wait(0, 1)
		case f.message(m, at):
			in.Skip(skipCarrier, 1)
		}
	}
	for _, e := range f.all {
		e.grown = true // what it said before is not in the file
	}
	f.emit(in)
}

// emit adds the folded session to the store.
func (f *folded) emit(in *history.Intake) {
	directory := directoryOf(in.Found.Path, f.ProjectHash)
	created, ok := history.ParseTime(f.StartTime)
	if !ok {
		created = session.At(in.Found.ModifiedAt)
	}
	about := map[string]string{"project_hash": f.ProjectHash}
	new := history.NewSession{
		Source: session.SourceGeminiCLI, SourceID: history.Plain(f.SessionID), Directory: directory, CreatedAt: &created,
		Provider: "google", Model: f.model(),
	}
	new.Title, new.TitleSource = f.title()
	switch f.Kind {
	case "subagent":
		new.Kind = "subagent"
	case kindLog:
		about["kind"] = kindLog
	}
	new.Metadata = session.JSONOf(map[string]any{"gemini-cli": about})
	c := in.Conversation(new)
	f.link(in, c)
	f.base = c.Base()
	speaks := func(e *entry) bool { return !e.repeats && !isContext(&e.message) }
	if !slices.ContainsFunc(f.all, speaks) { // a session that is resumed begins a second file, and leaves it
		c.Silent = skipSilent
	}
	for _, e := range f.all {
		if e.repeats {
			continue
		}
		if e.grown && e.Type == "gemini" {
			e.longer = isShorter(in, c, e)
		}
		f.addEntry(in, c, e, directory)
	}
	for _, o := range f.compactions {
		if o.kept == nil || !o.kept.repeats {
			c.Compact(f.overlay(&o))
		}
	}
	if e := f.end(); e != nil && !e.repeats && (c.Here == nil || c.Fresh() > 0) {
		c.Head = e.tail()
	}
	if new.TitleSource == "source" {
		c.Title = new.Title
	}
}

// isShorter reports whether an entry is stored with nothing but the beginning of its text.
func isShorter(in *history.Intake, c *history.Conversation, e *entry) bool {
	if !c.Has(e.key()) {
		return false
	}
	ref := in.Message(c.Here.ID, e.key())
	if ref == nil {
		return false
	}
	stored, now := in.Load(*ref), history.Plain(textOf(&e.message))
	return stored != nil && stored.Text() != now && strings.HasPrefix(now, stored.Text())
}

func (f *folded) addEntry(in *history.Intake, c *history.Conversation, e *entry, directory string) {
	added := history.Entry{
		Key: e.key(), Parent: f.tail(e.parent), At: e.list.offset, Line: e.list.number,
		NoRecords: len(e.lines) == 0, Decode: e.decode,
	}
	for _, l := range e.lines {
		if added.At, added.Line = l.offset, l.number; !in.Old(l.offset) {
			added.Records++
		}
	}
	c.Add(added)
	if call, ok := e.usage(directory); ok && (added.NoRecords || added.Records > 0) {
		c.Call(call)
	}
}

// tail names the message that follows what an entry became. That of a conversation which was handed over is its last
// one.
func (f *folded) tail(e *entry) string {
	if e == nil || e.repeats {
		return f.base
	}
	return e.tail()
}

// overlay says of a compaction what it stands for.
func (f *folded) overlay(o *compaction) history.Compaction {
	c := history.Compaction{Key: o.summary.key(), ThroughKey: f.tail(o.through)}
	c.Summary, c.CreatedAt = history.Plain(textOf(&o.summary.message)), o.summary.at
	if o.kept != nil {
		c.FirstKeptKey = o.kept.key()
	}
	return c
}

// link links a sub-agent to the session that started it, once that is here.
func (f *folded) link(in *history.Intake, c *history.Conversation) {
	id := parentOf(in.Found.Path)
	if id == "" || id == f.SessionID {
		return
	}
	parent := c.LinkOrAwait(id, session.ParentChild)
	if parent == nil {
		return
	}
	c.StartedIn(parent.ID, func(m *session.Message) string {
		for _, p := range m.Calls() {
			var extra struct {
				Rest struct {
					Agent string `json:"agentId"`
				} `json:"rest"`
			}
			if jsonx.Unmarshal(p.Extra, &extra) == nil && extra.Rest.Agent == f.SessionID {
				return p.CallID
			}
		}
		return ""
	})
}

// title is the summary that Gemini CLI wrote, which of a sub-agent is its result; else the first
// prompt.
func (f *folded) title() (title, source string) {
	if title := history.FirstLine(history.Plain(f.Summary)); title != "" && f.Kind != "subagent" {
		return title, "source"
	}
	for _, e := range f.all {
		text := strings.TrimSpace(textOf(&e.message))
		title := session.TitleOf(history.Plain(text))
		if e.Type != "user" || title == "" || isContext(&e.message) || strings.HasPrefix(text, "?") {
			continue
		}
		return title, "first_message"
	}
	return "", ""
}

// model is that of the newest reply.
func (f *folded) model() string {
	for _, e := range slices.Backward(f.list) {
		if e.Model != "" {
			return history.Plain(e.Model)
		}
	}
	return ""
}

// kindLog is the kind of a session of which only the log of prompts is left.
const kindLog = "log"

// readLog reads the log of prompts: it counts for sessions of which no file is left.
func readLog(in *history.Intake) {
	if filepath.Base(in.Found.Path) != logName {
		in.Fail(session.Errorf(session.Invalid, "no session of Gemini CLI: an array, which only %s is", logName))
		return
	}
	text := in.Bytes(0, in.Found.Size)
	var prompts []struct {
		Session   string         `json:"sessionId"`
		Message   jsontext.Value `json:"message"`
		ID        jsontext.Value `json:"messageId"`
		Timestamp string         `json:"timestamp"`
		Type      string         `json:"type"`
	}
	if err := jsonx.Unmarshal(history.Unmarked(text), &prompts); err != nil {
		in.Fail(session.Errorf(session.Invalid, "no log of prompts: %v", err))
		return
	}
	sessions, order := map[string]*folded{}, []*folded{}
	for i, p := range prompts {
		f := sessions[p.Session]
		if f == nil {
			f = newFolded(header{SessionID: p.Session, StartTime: p.Timestamp, Kind: kindLog})
			sessions[p.Session], order = f, append(order, f)
		}
		f.message(message{ID: "log-" + string(p.ID), Timestamp: p.Timestamp, Type: p.Type, Content: p.Message},
			place{0, i + 1})
	}
	for _, f := range order {
		here := in.Session(f.SessionID)
		if hasFile(in.Found.Path, f.SessionID) || here != nil && history.Notes(here, "gemini-cli").String("kind") != kindLog {
			in.Skip(skipPrompt, len(f.all))
			continue
		}
		f.emit(in)
	}
}

// hasFile reports whether a session has a file beside the log. Several may have the name that is
// made of the beginning of an id.
func hasFile(log, id string) bool {
	// the pattern is a good one
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(log), "chats", "session-*-"+id[:min(8, len(id))]+".json*"))
	return slices.ContainsFunc(found, func(path string) bool {
		head, _ := history.Head(path, 4096)
		return bytes.Contains(head, []byte(`"`+id+`"`))
	})
}
