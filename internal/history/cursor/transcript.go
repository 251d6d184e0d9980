package cursor

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// transcript is a text copy of a conversation that Cursor keeps, without results, ids, times, models and tokens. It
// counts only where no store has the conversation.
type transcript struct {
	in    *history.Intake
	whole history.Whole
	keys  history.Repeats
	stale bool // a store has the conversation
}

// readTranscript reads a transcript. Its name is the id of the conversation.
func readTranscript(in *history.Intake) {
	path := in.Found.Path
	id := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".txt"), ".jsonl")
	t := &transcript{in: in, keys: history.Repeats{}}
	t.whole.New.SourceID = history.Plain(id)
	if folder := filepath.Dir(path); filepath.Base(folder) == "subagents" {
		t.whole.New.Kind, t.whole.ParentID = "subagent", filepath.Base(filepath.Dir(folder))
	}
	t.whole.Notes = jsonx.Object{
		jsonx.MemberOf("transcript", "no store has the conversation: without results, times and usage"),
	}
	here := in.Session(t.whole.New.SourceID)
	t.stale = here != nil && history.Notes(here, string(session.SourceCursor)).Get("transcript") == nil
	if strings.HasSuffix(path, ".txt") {
		t.readText()
	} else {
		t.readLines()
	}
	if len(t.whole.Items) > 0 {
		in.AddWhole(&t.whole)
	}
}

// readLines reads a transcript of JSON lines. The program writes it anew after a compaction.
func (t *transcript) readLines() {
	known := false
	t.in.EachLine(func(l history.FileLine) {
		if t.stale {
			known = true
			t.in.Skip(skipCopy, 1)
			return
		}
		o, _, ok := history.ParseLine(l.Bytes)
		content := o.Inner("message").Get("content")
		item := history.Item{}
		switch kind, role := o.String("type"), o.String("role"); {
		case ok && content != nil && role == "user":
			item.Message, _ = promptOf(session.Time{}, shown(history.Blocks(content)))
		case ok && content != nil && role == "assistant":
			item.Message = history.Say(session.Assistant, session.Time{}, shown(history.Blocks(content))...)
		case ok && (kind == "turn_ended" || kind == "metadata"):
			known = true
			t.in.Skip(skipTurnEnd, 1)
			return
		case ok && kind == "error":
			item.Message = history.Note(session.Time{}, "error: "+o.String("error"))
		default:
			item = history.RawItem("", l.Bytes, "not a JSON line of a transcript of Cursor", session.Time{})
			item.At, item.Line = l.At, l.Number
			if ok && kind != "" {
				item.Problem = "" // of a newer version
			}
			t.add(item)
			return
		}
		known = true
		if len(item.Message.Parts) == 0 {
			t.in.Skip(skipEmpty, 1)
			return
		}
		item.At, item.Line = l.At, l.Number
		t.add(item)
	})
	if !known && len(t.whole.Items) > 0 {
		t.in.Fail(session.Errorf(session.Invalid, "no transcript of Cursor: no line has a role and a message"))
	}
}

// add adds an item under a name that it keeps when the file is written anew.
func (t *transcript) add(item history.Item) {
	sum := sha256.New()
	fmt.Fprint(sum, item.Message.Role)
	for i := range item.Message.Parts {
		p := &item.Message.Parts[i]
		fmt.Fprint(sum, p.Kind, p.ToolName, p.Arguments, p.Text)
	}
	item.Key = t.keys.Key(hex.EncodeToString(sum.Sum(nil)[:12]))
	t.whole.Items = append(t.whole.Items, item)
}

// shown returns parts without the marks of thoughts that Cursor hides.
func shown(parts []session.Part) (rest []session.Part) {
	for _, p := range parts {
		if p.Kind == session.PartText {
			p.Text = strings.TrimSpace(strings.ReplaceAll(p.Text, "[REDACTED]", ""))
		}
		if p.Kind != session.PartText || p.Text != "" {
			rest = append(rest, p)
		}
	}
	return rest
}

// readText reads a transcript of the older form: blocks of text that begin with who speaks.
func (t *transcript) readText() {
	var role session.Role
	var lines []string
	number := 0
	flush := func() {
		if role != "" {
			t.block(role, lines, number)
		}
		lines = nil
	}
	for l := range t.in.Lines() {
		switch line := strings.TrimRight(string(l.Bytes), "\r"); line {
		case "user:", "assistant:":
			flush()
			role, number = session.Role(strings.TrimSuffix(line, ":")), l.Number
		default:
			lines = append(lines, line)
		}
	}
	flush()
	if role == "" {
		t.in.Fail(session.Errorf(session.Invalid, "no transcript of Cursor: no line is `user:` or `assistant:`"))
	}
}

// block adds what one of the two says.
func (t *transcript) block(role session.Role, lines []string, number int) {
	if t.stale {
		t.in.Skip(skipCopy, 1)
		return
	}
	item := history.Item{Line: number}
	if role == session.User {
		text := strings.TrimSpace(strings.Join(lines, "\n"))
		item.Message, _ = promptOf(session.Time{}, []session.Part{session.TextPart(text)})
	} else {
		item.Message = history.Say(session.Assistant, session.Time{}, shown(textParts(lines))...)
	}
	if len(item.Message.Parts) == 0 {
		t.in.Skip(skipEmpty, 1)
		return
	}
	t.add(item)
}

// textParts parses what an assistant's block says: thoughts, texts, and calls with their arguments, which are
// indented. Of results there is the name of the tool alone.
func textParts(lines []string) (parts []session.Part) {
	const thinking, calls, result, ended = "[Thinking] ", "[Tool call] ", "[Tool result]", "Turn ended:"
	var text []string
	flush := func() {
		if said := strings.TrimSpace(strings.Join(text, "\n")); said != "" {
			parts = append(parts, session.TextPart(said))
		}
		text = nil
	}
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case strings.HasPrefix(line, thinking):
			flush()
			parts = append(parts, session.Part{Kind: session.PartReasoning, Text: line[len(thinking):]})
		case strings.HasPrefix(line, calls):
			flush()
			var arguments jsonx.Object
			for ; i+1 < len(lines) && strings.HasPrefix(lines[i+1], "  "); i++ {
				name, value, _ := strings.Cut(strings.TrimSpace(lines[i+1]), ": ")
				arguments.SetText(name, value)
			}
			parts = append(parts, history.CallPart("", line[len(calls):], arguments.Value()))
		case strings.HasPrefix(line, result), strings.HasPrefix(line, ended):
			flush()
		default:
			text = append(text, line)
		}
	}
	flush()
	return parts
}
