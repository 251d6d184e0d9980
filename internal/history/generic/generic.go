// Package generic reads conversations of programs that no reader of their own knows: messages with a role and a
// content, as lines, as a list, or in two tables of a database.
//
// A file of lines may hold one message a line, or one conversation a line, in the words of OpenAI or Anthropic. What a
// program names otherwise a mapping file in the same folder says.
package generic

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// New makes the source. It has no usual place: only what the user names is read.
func New(now func() time.Time) *history.Program {
	return &history.Program{
		Source: session.SourceGeneric, Folders: history.InFolders(), Now: now, Replay: read, Database: readDatabase,
		Search: func(f *history.Finder, folder string) {
			const depth = 3
			before := len(f.Found)
			f.Folder(folder, depth, func(name string) bool {
				return name != MappingName && slices.Contains(endings, filepath.Ext(name))
			})
			f.WithLogs(before, history.IsDatabaseName)
		},
	}
}

var endings = []string{".jsonl", ".ndjson", ".json", ".db", ".sqlite", ".sqlite3"}

// MappingName is the file that says how the programs of a folder name what a message has: an object, as
// {"role": "speaker", "content": "body"}.
const MappingName = "sessiond-mapping.json"

// names are the names under which a message may have each of its fields.
type names map[string][]string

// usual are the names that need no mapping.
var usual = names{
	"role":      {"role", "sender", "from", "author", "speaker", "type"},
	"content":   {"content", "text", "message", "body", "value", "parts"},
	"timestamp": {"timestamp", "created_at", "createdAt", "create_time", "time", "ts", "date"},
	"session":   {"session_id", "sessionId", "conversation_id", "conversationId", "thread_id", "chat_id"},
	"id":        {"id", "uuid", "message_id"},
	"model":     {"model", "model_id"},
	"title":     {"title", "name", "subject"},
	"directory": {"cwd", "directory", "workspace"},
	"messages":  {"messages", "conversation", "conversations", "history", "turns"},
}

// namesFor reads the mapping beside a file. A wrong one is a problem.
func namesFor(in *history.Intake) names {
	path := filepath.Join(filepath.Dir(in.Found.Path), MappingName)
	text, err := history.ReadFile(path)
	if err != nil {
		return usual
	}
	o, ok := jsonx.ReadObject(history.Unmarked(text))
	if !ok {
		in.ProblemIn(path, "the mapping is no JSON object of texts, as {\"role\": \"speaker\"}; it was left out")
		return usual
	}
	all := names{}
	for field, known := range usual {
		all[field] = known
	}
	for _, m := range o {
		name, isText := jsonx.Text(m.Value)
		if _, known := usual[m.Key]; !known || !isText {
			in.ProblemIn(path, "the mapping has no field "+history.Plain(m.Key)+"; it has role, content, timestamp, session, "+
				"id, model, title, directory and messages, each with a text")
			continue
		}
		all[m.Key] = []string{name}
	}
	return all
}

// value returns a field of a message, nil if it has none.
func (n names) value(o jsonx.Object, field string) []byte {
	return o.First(n[field]...)
}

func (n names) text(o jsonx.Object, field string) string {
	text, _ := jsonx.Text(n.value(o, field))
	return text
}

// roleOf returns the role that a program's word names, "" for none.
func roleOf(word string) session.Role {
	switch strings.ToLower(word) {
	case "user", "human", "person", "customer", "me":
		return session.User
	case "assistant", "ai", "bot", "model", "agent", "gpt", "llm":
		return session.Assistant
	case "tool", "function", "tool_result":
		return session.Tool
	case "system", "developer":
		return session.System
	}
	return ""
}
