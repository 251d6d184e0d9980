package claudecode

import (
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// row is one line of a transcript.
type row struct {
	history.Object
	kind    string
	uuid    string
	parent  string
	side    bool
	number  int32
	at      session.Time
	timed   bool
	message history.Object // of user and assistant
	content []byte
	size    int
	bytes   []byte          // of the line, where they are no UTF-8
	blocks  []history.Block // of content, as far as the line told
	parts   *parts          // of content, once they were asked for
}

// parts is a content taken apart.
type parts struct {
	blocks []history.Block
	text   string
}

func rowOf(t history.Talk, size int) *row {
	o := t.Object
	w := &row{Object: o, kind: o.String("type"), uuid: plain(o.String("uuid")), parent: plain(o.String("parentUuid")), size: size}
	w.at, w.timed = history.ParseTime(o.String("timestamp"))
	w.side = string(o.Get("isSidechain")) == "true"
	if w.kind == typeUser || w.kind == typeAssistant {
		w.message, w.blocks = t.Message, t.Blocks
		w.content = w.message.Get("content")
	}
	return w
}

func plain(s string) string { return history.PlainText(s) }

// linked tells whether the row is one of the chain.
func (w *row) linked() bool {
	switch w.kind {
	case typeUser, typeAssistant, typeSystem, typeProgress, typeAttachment:
		return w.uuid != ""
	}
	return w.uuid != "" && w.Get("parentUuid") != nil
}

func (w *row) flag(key string) bool { return string(w.Get(key)) == "true" }

// reply gives the id of the response that an assistant's row is a piece of.
func (w *row) reply() string {
	if w.kind != typeAssistant {
		return ""
	}
	if id := w.message.String("id"); id != "" {
		return plain(id)
	}
	return w.uuid
}

// made tells whether an assistant's row was made by the program itself.
func (w *row) made() bool {
	return w.message.String("model") == "<synthetic>" || w.flag("isApiErrorMessage")
}

// apart takes the content apart, once.
func (w *row) apart() *parts {
	if w.parts != nil {
		return w.parts
	}
	w.parts = &parts{}
	if len(w.blocks) == 0 {
		elements, _ := history.Elements(w.content)
		for _, e := range elements {
			o, _ := history.Fields(e)
			w.blocks = append(w.blocks, history.Block{Object: o, Raw: e})
		}
	}
	var texts []string
	for _, o := range w.blocks {
		if o.String("type") == "text" {
			texts = append(texts, o.String("text"))
		}
	}
	w.parts.blocks = w.blocks
	if w.parts.text, _ = history.Text(w.content); w.parts.text == "" {
		w.parts.text = strings.Join(texts, "\n")
	}
	return w.parts
}

// text gives what a content says in text.
func (w *row) text() string { return w.apart().text }

// answers gives the ids of the calls that a user's row answers.
func (w *row) answers() []string {
	var ids []string
	for _, o := range w.apart().blocks {
		if o.String("type") == "tool_result" {
			ids = append(ids, plain(o.String("tool_use_id")))
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
	saysSummary = "summary"
	saysAgent   = "agent"
)

// speaker tells who made a row in the user's role. Source of the prefixes: readers of real
// transcripts, see the tests.
func (w *row) speaker() string {
	switch {
	case len(w.answers()) > 0:
		return saysResult
	case w.flag("isCompactSummary"):
		return saysSummary
	}
	origin, _ := history.Fields(w.Get("origin"))
	if kind := origin.String("kind"); w.flag("isMeta") || kind != "" && kind != "human" {
		return saysProgram
	}
	return speakerOf(w.text())
}

func speakerOf(text string) string {
	text = strings.TrimSpace(text)
	for _, p := range [...]struct{ prefix, says string }{
		{"<command-name>", saysCommand},
		{"<command-message>", saysCommand},
		{"<bash-input>", saysShell},
		{"<local-command-caveat>", saysProgram},
		{"<local-command-stdout>", saysProgram},
		{"<local-command-stderr>", saysProgram},
		{"<bash-stdout>", saysProgram},
		{"<bash-stderr>", saysProgram},
		{"<task-notification>", saysProgram},
		{"<teammate-message>", saysAgent},
		{"<agent-message>", saysAgent},
		{"<system-reminder>", saysProgram},
		{"<session-start-hook>", saysProgram},
		{"<tick>", saysProgram},
		{"<goal>", saysProgram},
		{"Caveat:", saysProgram},
		{"[Request interrupted by user", saysProgram},
	} {
		if strings.HasPrefix(text, p.prefix) {
			return p.says
		}
	}
	for _, tag := range [...]string{"ide_opened_file", "ide_selection"} {
		if strings.HasPrefix(text, "<"+tag+">") && strings.HasSuffix(text, "</"+tag+">") && strings.Count(text, "</"+tag+">") == 1 {
			return saysProgram
		}
	}
	return saysPerson
}
