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
	bytes   []byte // of the line, where they are no UTF-8
}

func rowOf(o history.Object, size int) *row {
	r := &row{Object: o, kind: o.String("type"), uuid: plain(o.String("uuid")), parent: plain(o.String("parentUuid")), size: size}
	r.at, r.timed = history.ParseTime(o.String("timestamp"))
	r.side = string(o.Get("isSidechain")) == "true"
	if r.kind == typeUser || r.kind == typeAssistant {
		r.message, _ = history.Fields(o.Get("message"))
		r.content = r.message.Get("content")
	}
	return r
}

func plain(s string) string { return history.Plain([]byte(s)) }

// linked tells whether the row is one of the chain.
func (r *row) linked() bool {
	switch r.kind {
	case typeUser, typeAssistant, typeSystem, typeProgress, typeAttachment:
		return r.uuid != ""
	}
	return r.uuid != "" && r.Get("parentUuid") != nil
}

func (r *row) flag(key string) bool { return string(r.Get(key)) == "true" }

// reply gives the id of the response that an assistant's row is a piece of.
func (r *row) reply() string {
	if r.kind != typeAssistant {
		return ""
	}
	if id := r.message.String("id"); id != "" {
		return plain(id)
	}
	return r.uuid
}

// made tells whether an assistant's row was made by the program itself.
func (r *row) made() bool {
	return r.message.String("model") == "<synthetic>" || r.flag("isApiErrorMessage")
}

// blocks gives the types of the content's blocks, nil for a content that is a text.
func (r *row) blocks() []string {
	var kinds []string
	elements, _ := history.Elements(r.content)
	for _, e := range elements {
		o, _ := history.Fields(e)
		kinds = append(kinds, o.String("type"))
	}
	return kinds
}

// text gives what a content says in text.
func (r *row) text() string {
	if text, _ := history.Text(r.content); text != "" {
		return text
	}
	var texts []string
	elements, _ := history.Elements(r.content)
	for _, e := range elements {
		if o, ok := history.Fields(e); ok && o.String("type") == "text" {
			texts = append(texts, o.String("text"))
		}
	}
	return strings.Join(texts, "\n")
}

// answers gives the ids of the calls that a user's row answers.
func (r *row) answers() []string {
	var ids []string
	elements, _ := history.Elements(r.content)
	for _, e := range elements {
		if o, ok := history.Fields(e); ok && o.String("type") == "tool_result" {
			ids = append(ids, plain(o.String("tool_use_id")))
		}
	}
	return ids
}

// Kinds of rows in the user's role.
const (
	saysPerson   = "person"
	saysResult   = "result"
	saysCommand  = "command"
	saysShell    = "shell"
	saysProgram  = "program"
	saysSummary  = "summary"
	saysAgent    = "agent"
	saysNotPrint = "state"
)

// speaker tells who made a row in the user's role. Source of the prefixes: readers of real
// transcripts, see the tests.
func (r *row) speaker() string {
	switch {
	case len(r.answers()) > 0:
		return saysResult
	case r.flag("isCompactSummary"):
		return saysSummary
	}
	origin, _ := history.Fields(r.Get("origin"))
	if kind := origin.String("kind"); r.flag("isMeta") || kind != "" && kind != "human" {
		return saysProgram
	}
	return speakerOf(r.text())
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
