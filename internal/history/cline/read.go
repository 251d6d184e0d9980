package cline

import (
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// read reads the folder of a session or of a task.
func read(in *history.Intake) {
	id := filepath.Base(in.Found.Path)
	messages, _ := filepath.Glob(filepath.Join(in.Found.Path, "*"+messagesEnd)) // the pattern is a good one
	if len(messages) > 0 {
		readSession(in, id, messages)
		return
	}
	readTask(in, id)
}

// isThere reports whether the folder has a file.
func isThere(in *history.Intake, name string) bool {
	_, err := os.Stat(filepath.Join(in.Found.Path, name))
	return err == nil
}

// load reads a file of the folder. Programs write it in place: one that is cut is read again when it is at rest, and
// is a problem then. A missing one has nothing.
func load(in *history.Intake, name string) (value jsontext.Value, ok bool) {
	path := filepath.Join(in.Found.Path, name)
	info, err := os.Stat(path)
	if err != nil {
		return nil, false
	}
	if info.Size() > history.MaxLine {
		in.ProblemIn(path, "the file is over 64 MiB; left out")
		return nil, false
	}
	text, err := history.ReadFile(path)
	if err != nil {
		in.ProblemIn(path, history.Reason(err))
		return nil, false
	}
	text = history.Unmarked(text)
	switch {
	case jsonx.Valid(text) && !jsonx.DeeperThan(text, history.MaxDepth):
		return text, true
	case !in.Quiet():
		in.LookAgain()
	case len(text) == 0:
		in.ProblemIn(path, "the file is empty")
	default:
		in.ProblemIn(path, "it is no JSON, or cut off, or a name occurs twice")
	}
	return nil, false
}

// object returns a value as an object, nothing for any other.
func object(v jsontext.Value) jsonx.Object {
	o, _ := jsonx.ReadFields(v)
	return o
}

// part returns the part of a block: attached files hold text that no person typed.
func part(o jsonx.Object) (parts []session.Part) {
	switch o.String("type") {
	case "file", "file_content":
		p := session.Part{Kind: session.PartData, Text: o.String("content")}
		p.Extra = o.Only("path").Column()
		return []session.Part{p}
	}
	return history.Blocks(o.Value())
}

// resultText returns what the result of a call says, and whether the call failed: a text, or queries with their
// results.
func resultText(content jsontext.Value) (text string, failed bool) {
	raw := content
	if said, isText := jsonx.Text(content); isText {
		if raw = jsontext.Value(said); !jsonx.IsObject(raw) && jsonx.KindOf(raw) != '[' {
			return said, false
		}
	}
	answers := jsonx.ReadObjects(raw)
	if jsonx.KindOf(raw) == '{' {
		answers = []jsonx.Object{object(raw)}
	}
	for i, a := range answers {
		if !a.Has("result") || !a.Has("success") && !a.Has("query") {
			return history.ResultText(content), failed
		}
		if i > 0 {
			text += "\n"
		}
		text += history.ResultText(a.Get("result"))
		if said := a.String("error"); said != "" {
			text += said
		}
		failed = failed || string(a.Get("success")) == "false"
	}
	if len(answers) == 0 {
		return history.ResultText(content), false
	}
	return text, failed
}
