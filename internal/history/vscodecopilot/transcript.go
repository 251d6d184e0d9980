package vscodecopilot

import (
	"path/filepath"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// readTranscript reads the extension's copy of a chat, in the lines of Copilot CLI. It counts only if no chat names it
// as its own, by the id that the extension gives to its session.
func readTranscript(in *history.Intake) {
	id := strings.TrimSuffix(filepath.Base(in.Found.Path), ".jsonl")
	w := &history.Whole{}
	w.New.SourceID, w.New.Directory = id, folderOf(filepath.Dir(in.Found.Path), nil)
	w.Notes = jsonx.Object{jsonx.MemberOf("transcript", "no chat has the conversation: without most results and usage")}
	here := in.Session(history.Plain(id))
	copied := here != nil && history.Notes(here, string(session.SourceVSCodeCopilot)).Get("transcript") == nil ||
		isNamed(in.Found.Path, id)
	known, names := false, map[string]string{}
	in.EachLine(func(l history.FileLine) {
		if copied {
			known = true
			in.Skip(skipCopy, 1)
			return
		}
		o, _, ok := history.ParseLine(l.Bytes)
		data, at := o.Inner("data"), history.TimeOf(o.Get("timestamp"))
		item := history.Item{Key: o.String("id"), At: l.At, Line: l.Number}
		switch kind := o.String("type"); {
		case ok && kind == "user.message":
			item.Message = history.Say(session.User, at, session.TextPart(data.String("content")))
		case ok && kind == "assistant.message":
			item.Message = history.Say(session.Assistant, at, repliesOf(data, names)...)
			item.Message.Provider = "copilot"
		case ok && kind == "tool.execution_complete":
			call := data.String("toolCallId")
			text := history.ResultText(data.Inner("result").First("content", "detailedContent"))
			item.Message = history.Say(session.Tool, at,
				history.ResultPart(call, names[call], text, new(string(data.Get("success")) == "false")))
		case ok && kind == "session.start":
			known = true
			if !at.IsZero() {
				w.New.CreatedAt = &at
			}
			in.Skip(skipTurn, 1)
			return
		case ok && (strings.HasPrefix(kind, "assistant.turn_") || kind == "tool.execution_start"):
			in.Skip(skipTurn, 1)
			return
		default:
			item.Message = history.RawItem("", l.Bytes, "not a line of a transcript of Copilot Chat", at).Message
			item.Raw, item.Problem = true, "not a line of a transcript of Copilot Chat; kept raw"
		}
		if item.Key == "" {
			item.Key = history.LineKey(l.Bytes)
		}
		known = known || !item.Raw
		w.Items = append(w.Items, item)
	})
	if !known {
		in.Fail(session.Errorf(session.Invalid, "no transcript of Copilot Chat: no line has a known type"))
		return
	}
	if !copied {
		in.AddWhole(w)
	}
}

func repliesOf(data jsonx.Object, names map[string]string) (parts []session.Part) {
	if thought := data.String("reasoningText"); thought != "" {
		parts = append(parts, session.Part{Kind: session.PartReasoning, Text: thought})
	}
	if text := data.String("content"); text != "" {
		parts = append(parts, session.TextPart(text))
	}
	for _, call := range jsonx.ReadObjects(data.Get("toolRequests")) {
		id := call.String("toolCallId")
		names[id] = call.String("name")
		parts = append(parts, history.CallPart(id, names[id], call.Get("arguments")))
	}
	return parts
}

var sessionName = pattern.New(`"sessionId"\s*:\s*"([^"]+)"`)

// isNamed reports whether a chat of the same workspace says that a transcript is its copy.
func isNamed(transcript, id string) bool {
	workspace := filepath.Dir(filepath.Dir(filepath.Dir(transcript)))
	files, _ := filepath.Glob(filepath.Join(workspace, chats, "*.json*")) // the pattern is a good one
	for _, file := range files {
		text, err := history.ReadFile(file)
		if err != nil {
			continue
		}
		for _, found := range sessionName.FindAllStringSubmatch(string(text), -1) {
			if found[1] == id {
				return true
			}
		}
	}
	return false
}
