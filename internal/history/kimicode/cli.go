package kimicode

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// cliLine reads a line of a log of kimi-cli.
func (r *reader) cliLine(l history.FileLine, m jsonx.Object) {
	payload := m.Inner("payload")
	switch m.String("type") {
	case "TurnBegin", "SteerInput":
		r.endStep("")
		item := history.Item{Key: history.LineKey(l.Bytes)}
		item.Message = history.Say(session.User, r.at, history.Blocks(payload.Get("user_input"))...)
		r.push(l, item, entry{typed: true})
	case "StepBegin":
		r.endStep("")
		r.beginStep(l, "")
	case "ContentPart":
		raw := m.Get("payload")
		r.add(l, history.Blocks(raw)...)
	case "ToolCall":
		function := payload.Inner("function")
		r.add(l, history.CallPart(payload.String("id"), function.String("name"), function.Get("arguments")))
	case "ToolCallPart":
		r.continueCall(l, payload)
	case "ToolResult":
		value := payload.Inner("return_value")
		text := cmp.Or(history.ResultText(value.Get("output")), value.String("message"))
		r.result(l, payload.String("tool_call_id"), text, string(value.Get("is_error")) == "true", nil)
	case "StatusUpdate":
		r.in.ImportInto(r.here, 1)
		u := payload.Inner("token_usage")
		r.count(l, history.Call{Call: session.Call{
			CreatedAt: r.at, InputTokens: history.Count(u.Get("input_other")), OutputTokens: history.Count(u.Get("output")),
			CacheReadTokens:  history.Count(u.Get("input_cache_read")),
			CacheWriteTokens: history.Count(u.Get("input_cache_creation")),
		}}, r.begun == "")
	case "CompactionEnd":
		r.cliCompaction(l)
	case "TurnEnd", "StepInterrupted":
		r.endStep("")
		r.in.Skip(skipNotes, 1)
	default:
		r.in.Skip(skipNotes, 1)
	}
}

// continueCall adds the rest of a call's arguments, which came later.
func (r *reader) continueCall(l history.FileLine, payload jsonx.Object) {
	if s := r.step; s != nil && len(s.parts) > 0 {
		if p := &s.parts[len(s.parts)-1]; p.Kind == session.PartToolCall {
			p.Arguments += payload.String("arguments_part")
			s.lines++
			s.offset = l.At
			return
		}
	}
	r.in.Skip(skipNotes, 1)
}

// cliCompaction reads a compaction. The log does not have the summary: the newest one begins the context.
func (r *reader) cliCompaction(l history.FileLine) {
	r.endStep("")
	contexts, _ := filepath.Glob(filepath.Join(filepath.Dir(r.in.Found.Path), "context_*.jsonl")) // a good pattern
	summary := ""
	if r.compactions++; r.compactions == len(contexts) {
		summary = r.newestSummary()
	}
	said := history.Note(r.at, cmp.Or(summary, "The context was compacted."))
	item := history.Item{Key: history.LineKey(l.Bytes), Message: said}
	if r.now != nil && summary != "" {
		c := &history.Compaction{Key: item.Key, ThroughKey: r.now.key, Record: history.Place{Key: item.Key}}
		c.Summary, c.CreatedAt = summary, r.at
		item.Summary = c
	}
	r.push(l, item, entry{cut: true})
}

const compacted = "<system>Previous context has been compacted."

// newestSummary returns the summary that the context begins with, "" if it begins with none.
func (r *reader) newestSummary() string {
	text, err := history.ReadFile(filepath.Join(filepath.Dir(r.in.Found.Path), contextName))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		o, _ := jsonx.ReadObject([]byte(line))
		parts := history.Blocks(o.Get("content"))
		if o.String("role") == "user" && len(parts) > 1 && strings.HasPrefix(parts[0].Text, compacted) {
			return parts[1].Text
		}
	}
	return ""
}

// readContexts reads the contexts of a session of kimi-cli that has no log, the oldest first: a compaction begins a
// new one, which repeats what it keeps.
func (r *reader) readContexts() {
	folder := filepath.Dir(r.in.Found.Path)
	files, _ := filepath.Glob(filepath.Join(folder, "context_*.jsonl")) // a good pattern
	slices.SortFunc(files, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	seen := map[string]bool{}
	for _, file := range append(files, r.in.Found.Path) {
		text, err := history.ReadFile(file)
		if err != nil {
			r.in.ProblemIn(file, history.Reason(err))
			continue
		}
		keys := history.Repeats{}
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			o, _, ok := history.ParseLine([]byte(strings.TrimSpace(line)))
			if !ok || jsonx.DeeperThan([]byte(line), history.MaxDepth) {
				if strings.TrimSpace(line) != "" {
					r.in.Skip(skipNotes, 1)
				}
				continue
			}
			said := o.String("role") + string(o.Get("content")) + string(o.Get("tool_calls"))
			key := keys.Key(history.LineKey([]byte(said)))
			if seen[key] {
				r.in.Skip(history.SkipDuplicate, 1)
				continue
			}
			seen[key] = true
			r.contextLine(history.FileLine{Number: number, Bytes: []byte(line)}, key, o)
		}
	}
	r.whole.Notes = append(r.whole.Notes, jsonx.MemberOf("context", "only the context is left: without times and usage"))
}

func (r *reader) contextLine(l history.FileLine, key string, o jsonx.Object) {
	parts := history.Blocks(o.Get("content"))
	item := history.Item{Key: key}
	e := entry{}
	switch role := o.String("role"); {
	case role == "user" && len(parts) > 1 && strings.HasPrefix(parts[0].Text, compacted):
		item.Message = history.Note(session.Time{}, parts[1].Text)
		if r.now != nil {
			item.Summary = &history.Compaction{Key: key, ThroughKey: r.now.key, Record: history.Place{Key: key}}
			item.Summary.Summary = parts[1].Text
		}
		e.cut = true
	case role == "user" && isOfProgram(parts):
		item.Message = history.Hint(session.Time{}, parts...)
	case role == "user":
		item.Message, e.typed = history.Say(session.User, session.Time{}, parts...), true
	case role == "assistant":
		item.Message = history.Say(session.Assistant, session.Time{}, append(parts, callsOf(o)...)...)
	case role == "tool":
		item.Message = history.Say(session.Tool, session.Time{}, history.ResultPart(o.String("tool_call_id"), "",
			history.ResultText(o.Get("content")), nil))
	default:
		r.known = r.known || strings.HasPrefix(role, "_")
		r.in.Skip(skipNotes, 1)
		return
	}
	r.known = true
	if len(item.Message.Parts) == 0 {
		r.in.Skip(skipEmpty, 1)
		return
	}
	r.push(l, item, e)
}
