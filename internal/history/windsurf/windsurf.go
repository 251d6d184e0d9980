// Package windsurf reads the transcripts of Cascade, the agent of Windsurf, which is called Devin Desktop now.
//
// The program's own store is encrypted. A transcript is written where a hook asks for it
// (`post_cascade_response_with_transcript`), anew after each reply: a step a line, without ids, times, model and usage.
package windsurf

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// New makes the source, with Windsurf's folder from the environment.
func New(env func(string) string, now func() time.Time) *history.Program {
	folder := history.FolderIn(history.Expand("~", env), ".windsurf/transcripts")
	return &history.Program{
		Source: session.SourceWindsurf, Folders: history.InFolders(folder), Now: now, Search: search, Replay: read,
		Commands: []string{"windsurf"},
	}
}

// maxDepth reaches from a home to its transcripts.
const maxDepth = 3

func search(f *history.Finder, folder string) {
	f.Folder(folder, maxDepth, func(name string) bool { return strings.HasSuffix(name, ".jsonl") })
}

// skipEmpty is the reason to skip a step that says nothing.
const skipEmpty = "step without words"

// talk is a session on its way into the store.
type talk struct {
	in    *history.Intake
	whole history.Whole
	known bool // a line was a step
}

func read(in *history.Intake) {
	t := &talk{in: in}
	in.EachLine(t.line)
	w := &t.whole
	if in.Err() == nil && !t.known {
		in.Fail(session.Errorf(session.Invalid, "no transcript of Windsurf: no line is a step of its agent"))
		return
	}
	w.New.SourceID = strings.TrimSuffix(filepath.Base(in.Found.Path), ".jsonl")
	w.Notes = jsonx.Object{jsonx.MemberOf("usage", "not recorded"), jsonx.MemberOf("model", "not recorded")}
	in.AddWhole(w)
}

// add adds the items of a line.
func (t *talk) add(l history.FileLine, items ...history.Item) {
	for i, item := range items {
		item.At, item.Line, item.NoRecords = l.At, l.Number, i > 0
		t.whole.Items = append(t.whole.Items, item)
	}
}

// line reads a step, which the number of its line names.
func (t *talk) line(l history.FileLine) {
	o, _, ok := history.ParseLine(l.Bytes)
	kind, key := o.String("type"), fmt.Sprint("line ", l.Number)
	step := o.Inner(kind)
	if !ok || jsonx.DeeperThan(l.Bytes, history.MaxDepth) {
		t.add(l, history.RawItem(key, l.Bytes, "no JSON object, or nested too deep", session.Time{}))
		return
	}
	t.known = t.known || step != nil
	var none session.Time
	switch text := session.TextPart(step.String("user_response") + step.String("response")); {
	case step == nil:
		t.add(l, history.RawItem(key, l.Bytes, "a line that is no step", none))
	case (kind == "user_input" || kind == "planner_response") && strings.TrimSpace(text.Text) == "":
		t.in.SkipAt(l.At, skipEmpty, 1)
	case kind == "user_input":
		t.add(l, history.Item{Key: key, Message: history.Say(session.User, none, text)})
	case kind == "planner_response":
		t.add(l, history.Item{Key: key, Message: history.Say(session.Assistant, none, text)})
	default:
		t.call(l, key, kind, o.String("status"), step)
	}
}

// call adds a step that is a call and its result.
func (t *talk) call(l history.FileLine, key, kind, status string, step jsonx.Object) {
	var arguments jsonx.Object
	var results []string
	for _, m := range step {
		switch m.Key {
		case "output", "content":
			results = append(results, history.ResultText(m.Value))
		case "exit_code", "user_rejected", "acknowledgement_type", "total_results":
			results = append(results, m.Key+": "+history.ResultText(m.Value))
		default:
			if text, _ := jsonx.Text(m.Value); strings.HasPrefix(text, "file://") {
				m = jsonx.MemberOf(m.Key, history.FolderOfURI(text))
			}
			arguments = append(arguments, m)
		}
	}
	if t.whole.New.Directory == "" {
		t.whole.New.Directory = history.FolderOfURI(step.String("cwd"))
	}
	exit, isExit := history.Number(step.Get("exit_code"))
	failed := status == "error" || string(step.Get("user_rejected")) == "true" || isExit && exit != 0
	none := session.Time{}
	t.add(l,
		history.Item{Key: key, Message: history.Say(session.Assistant, none,
			history.CallPart(key, kind, jsontext.Value(arguments.Value())))},
		history.Item{Key: key + " result", Message: history.Say(session.Tool, none,
			history.ResultPart(key, kind, strings.Join(results, "\n"), &failed))})
}
