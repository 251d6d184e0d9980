package claudecode

import (
	"slices"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// row is one line of a transcript.
type row struct {
	jsonx.Object
	kind    string
	uuid    string
	parent  string
	side    bool // of a sub-agent
	at      session.Time
	timed   bool
	message jsonx.Object   // of user and assistant
	blocks  []jsonx.Object // of the message's content, once it is parsed
	text    string         // of the same

	number      int // of its line
	offset, end int64
	size        int
	bytes       []byte // of the line, where they are no UTF-8
}

// parseRow reads a line. ok is false for one that is no JSON object.
func parseRow(l history.FileLine) (w *row, ok bool) {
	o, exact, ok := history.ParseLine(l.Bytes)
	if !ok {
		return nil, false
	}
	w = rowOf(o)
	w.number, w.offset, w.end, w.size = l.Number, l.At, l.End, len(l.Bytes)
	if !exact {
		w.bytes = l.Bytes
	}
	return w, true
}

func rowOf(o jsonx.Object) *row {
	w := &row{Object: o, kind: o.String("type"), uuid: plain(o.String("uuid")), parent: plain(o.String("parentUuid"))}
	w.at, w.timed = history.ParseTime(o.String("timestamp"))
	w.side = w.flag("isSidechain")
	if w.kind == typeUser || w.kind == typeAssistant {
		w.message = o.Inner("message")
	}
	return w
}

// ofAgent returns what a row of progress repeats of a sub-agent's conversation; ok is false if it
// repeats nothing.
func (w *row) ofAgent() (agent string, said *row, ok bool) {
	if w.kind != typeProgress {
		return "", nil, false
	}
	data := w.Inner("data")
	if data.String("type") != "agent_progress" {
		return "", nil, false
	}
	inner, is := jsonx.ReadFields(data.Get("message"))
	if agent = plain(data.String("agentId")); !is || agent == "" || inner.String("uuid") == "" {
		return "", nil, false
	}
	said = rowOf(inner)
	said.number, said.offset, said.end, said.size = w.number, w.offset, w.end, w.size
	if !said.timed {
		said.at = w.at
	}
	said.Object = inner.With("from", []byte(`"progress"`)).With("version", []byte(session.JSONOf(w.String("version"))))
	return agent, said, true
}

func plain(s string) string { return history.Plain(s) }

// linked reports whether the row is one of the chain.
func (w *row) linked() bool {
	switch w.kind {
	case typeUser, typeAssistant, typeSystem, typeProgress, typeAttachment:
		return w.uuid != ""
	}
	return w.uuid != "" && w.Get("parentUuid") != nil
}

func (w *row) flag(key string) bool { return string(w.Get(key)) == "true" }

// reply is the id of the response that an assistant's row is a piece of.
func (w *row) reply() string {
	if w.kind != typeAssistant {
		return ""
	}
	if id := w.message.String("id"); id != "" {
		return plain(id)
	}
	return w.uuid
}

// made reports whether an assistant's row was made by the program itself.
func (w *row) made() bool {
	return w.message.String("model") == "<synthetic>" || w.flag("isApiErrorMessage")
}

// parseContent parses the content of a message.
func (w *row) parseContent() { w.parseBlocks(w.message.Get("content")) }

func (w *row) parseBlocks(content []byte) {
	var texts []string
	elements, _ := jsonx.ReadArray(content)
	for _, e := range elements {
		o, _ := jsonx.ReadFields(e)
		w.blocks = append(w.blocks, o)
		if o.String("type") == "text" {
			texts = append(texts, o.String("text"))
		} else if text, _ := jsonx.Text(e); text != "" {
			texts = append(texts, text)
		}
	}
	if w.text, _ = jsonx.Text(content); w.text == "" {
		w.text = strings.Join(texts, "\n")
	}
}

// calls returns the ids of the calls that an assistant's row makes.
func (w *row) calls() []string { return w.ids("tool_use", "id") }

// answers returns the ids of the calls that a user's row answers.
func (w *row) answers() []string { return w.ids("tool_result", "tool_use_id") }

// ids returns what the blocks of a kind have under a key.
func (w *row) ids(kind, key string) []string {
	var ids []string
	for _, o := range w.blocks {
		if o.String("type") == kind {
			ids = append(ids, plain(o.String(key)))
		}
	}
	return ids
}

// Kinds of rows in the user's role.
const (
	saysPerson  = "person"
	saysResult  = "result"
	saysCommand = "command"
	saysShell   = "shell"
	saysProgram = "program"
	saysNotice  = "notice" // of the program for the model alone
	saysSummary = "summary"
	saysAgent   = "agent"
)

// speaker returns who made a row in the user's role. Source of the prefixes: readers of real
// transcripts, see the tests.
func (w *row) speaker() string {
	switch {
	case len(w.answers()) > 0:
		return saysResult
	case w.flag("isCompactSummary"):
		return saysSummary
	}
	switch w.Inner("origin").String("kind") {
	case "human", "channel": // a channel brings a person's words from elsewhere
		return speakerOf(w.text)
	case "":
		if !w.flag("isMeta") {
			return speakerOf(w.text)
		}
	}
	if speakerOf(w.text) == saysNotice {
		return saysNotice
	}
	return saysProgram
}

// speakerOf returns who made a text in the user's role. A tag that is not closed, and words behind a notice, are a
// person's: people ask about tags, too.
func speakerOf(text string) string {
	text = strings.TrimSpace(text)
	for _, p := range [...]struct{ tag, says string }{
		{"command-name", saysCommand},
		{"command-message", saysCommand},
		{"bash-input", saysShell},
		{"local-command-stdout", saysProgram},
		{"local-command-stderr", saysProgram},
		{"bash-stdout", saysProgram},
		{"bash-stderr", saysProgram},
		{"teammate-message", saysAgent},
		{"agent-message", saysAgent},
	} {
		if strings.HasPrefix(text, "<"+p.tag+">") && strings.Contains(text, "</"+p.tag+">") {
			return p.says
		}
	}
	if text == "[Request interrupted by user]" || text == "[Request interrupted by user for tool use]" {
		return saysProgram
	}
	if text != "" && withoutNotices(text) == "" {
		return saysNotice
	}
	return saysPerson
}

// noticeTags are around what the program tells the model at the beginning of a text.
var noticeTags = []string{
	"local-command-caveat", "task-notification", "system-reminder", "session-start-hook", "tick", "goal",
	"ide_opened_file", "ide_selection",
}

// withoutNotices returns a text without what the program tells the model at its beginning.
func withoutNotices(text string) string {
	for {
		if strings.HasPrefix(text, "Caveat: The messages below were generated by the user while running local commands.") {
			return ""
		}
		tag, _, isTag := strings.Cut(strings.TrimPrefix(text, "<"), ">")
		if !isTag || text[0] != '<' || !slices.Contains(noticeTags, tag) {
			return text
		}
		_, rest, closed := strings.Cut(text, "</"+tag+">")
		if !closed {
			return text
		}
		text = strings.TrimSpace(rest)
	}
}
