package cline

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// readSession reads the folder of a session of CLI 3 or of extension 4: its messages, those of its sub-agents, and
// what the program says of it beside.
func readSession(in *history.Intake, id string, files []string) {
	lead := id + messagesEnd
	manifest, _ := load(in, id+".json")
	about := object(manifest)
	value, ok := load(in, lead)
	if !ok && slices.Contains(files, filepath.Join(in.Found.Path, lead)) {
		return // reported, or it is read again
	}
	s := &folder{in: in, about: about, metadata: about.Inner("metadata")}
	var talk *history.Conversation
	if ok {
		talk = s.lead(id, object(value))
	}
	for _, file := range files {
		name := filepath.Base(file)
		if value, ok := load(in, name); ok && name != lead {
			s.agent(talk, strings.TrimSuffix(name, messagesEnd), object(value))
		}
	}
}

// folder is the folder of a session.
type folder struct {
	in              *history.Intake
	about, metadata jsonx.Object
	whole           history.Whole // of the lead
}

// lead stores the session itself.
func (s *folder) lead(id string, file jsonx.Object) *history.Conversation {
	w := &s.whole
	w.Records = 1
	w.New.SourceID = cmp.Or(file.String("sessionId"), s.about.String("session_id"), id)
	s.describe(w)
	w.Title = s.metadata.String("title")
	messages := jsonx.ReadObjects(file.Get("messages"))
	here := s.in.Session(history.Plain(w.New.SourceID))
	w.Notes = jsonx.Object{jsonx.MemberOf("source", history.Plain(s.about.String("source")))}
	if notes := history.Notes(here, string(s.in.Source())); notes.Get("task") != nil {
		messages = s.behindTask(messages, here)
		w.Notes = append(w.Notes, jsonx.Member{Key: "task", Value: notes.Get("task")})
	}
	origin := cmp.Or(s.metadata.Inner("fork").String("forkedFromSessionId"), s.metadata.String("restoredFromSessionId"))
	if origin = history.Plain(origin); origin != "" && origin != w.New.SourceID {
		if from := s.in.Session(origin); from != nil {
			w.Origins = []*session.Session{from}
		} else {
			s.in.Await(origin)
		}
	}
	for i, m := range messages {
		s.message(w, m, i)
	}
	if value, ok := load(s.in, id+".compaction.json"); ok {
		s.compaction(object(value))
	}
	return s.in.AddWhole(w)
}

func (s *folder) describe(w *history.Whole) {
	w.New.Directory = cmp.Or(s.about.String("cwd"), s.about.String("workspace_root"))
	w.New.GitBranch = s.metadata.Inner("git").String("branch")
	w.New.Provider, w.New.Model = s.about.String("provider"), s.about.String("model")
	w.New.CreatedAt = history.KnownTime(s.about.Get("started_at"))
}

// behindTask returns the messages that came after a task was converted to the new store. They follow its last message.
func (s *folder) behindTask(messages []jsonx.Object, here *session.Session) []jsonx.Object {
	const warning = "Warning: this is a legacy conversation"
	at := slices.IndexFunc(messages, func(m jsonx.Object) bool {
		return strings.HasPrefix(history.TextOf(m.Get("content")), warning)
	})
	if at < 0 {
		return messages
	}
	s.in.Skip(skipConverted, at+1)
	last := ""
	s.in.Entries(here.ID, func(m *session.Message) bool {
		if strings.HasPrefix(m.ExternalID, taskKey) {
			last = m.ExternalID
		}
		return true
	})
	s.whole.After = last
	return messages[at+1:]
}

// message adds the items of a message: the results of calls, each for itself, and what else it says.
func (s *folder) message(w *history.Whole, m jsonx.Object, index int) {
	id := cmp.Or(m.String("id"), "message "+string(rune('0'+index%10)))
	at := history.TimeOf(m.Get("ts"))
	var parts []session.Part
	items := 0
	add := func(item history.Item) {
		item.NoRecords = items > 0
		items++
		w.Items = append(w.Items, item)
	}
	content := m.Get("content")
	if jsonx.KindOf(content) == '"' {
		parts = history.Blocks(content)
	}
	for _, b := range jsonx.ReadObjects(content) {
		if b.String("type") != "tool_result" {
			parts = append(parts, part(b)...)
			continue
		}
		text, failed := resultText(b.Get("content"))
		failed = failed || string(b.Get("is_error")) == "true"
		call := b.String("tool_use_id")
		add(history.Item{Key: "result/" + call, Message: history.Say(session.Tool, at,
			history.ResultPart(call, b.String("name"), text, &failed))})
	}
	switch {
	case len(parts) == 0 && items == 0:
		s.in.Skip(skipNotice, 1)
	case len(parts) == 0:
	case m.String("role") == "assistant":
		item := history.Item{Key: id, Message: history.Say(session.Assistant, at, parts...)}
		model := m.Inner("modelInfo")
		item.Message.Model, item.Message.Provider = model.String("id"), model.String("provider")
		item.Calls = s.usage(id, at, model, m.Inner("metrics"))
		add(item)
	default:
		add(history.Item{Key: id, Message: promptOf(m, at, parts)})
	}
}

// promptOf makes the message of a prompt, without the tags that the program puts around what was typed.
func promptOf(m jsonx.Object, at session.Time, parts []session.Part) session.Message {
	metadata := m.Inner("metadata")
	typed := parts[:0:0]
	for _, p := range parts {
		if p.Kind == session.PartText {
			p.Text = typedText(p.Text)
		}
		if p.Kind != session.PartText || p.Text != "" {
			typed = append(typed, p)
		}
	}
	if metadata.String("displayRole") == "system" || metadata.String("kind") != "" || len(typed) == 0 {
		return history.Hint(at, parts...)
	}
	return history.Say(session.User, at, typed...)
}

// typedText returns what a person typed of a text.
func typedText(text string) string {
	text = without(text, "mode_notice")
	for _, tag := range []string{"user_input", "user_command"} {
		open := strings.Index(text, "<"+tag)
		if open < 0 {
			continue
		}
		head, inner, ok := strings.Cut(text[open:], ">")
		if !ok {
			continue
		}
		inner, rest, _ := strings.Cut(inner, "</"+tag+">")
		if _, slash, isCommand := strings.Cut(head, `slash="`); isCommand {
			name, _, _ := strings.Cut(slash, `"`)
			inner = "/" + name + " " + inner
		}
		text = text[:open] + inner + rest
	}
	return strings.TrimSpace(text)
}

// without removes an element from a text.
func without(text, tag string) string {
	before, rest, found := strings.Cut(text, "<"+tag)
	_, after, closed := strings.Cut(rest, "</"+tag+">")
	if !found || !closed {
		return text
	}
	return strings.TrimSpace(before + after)
}

// usage returns the row of the ledger of a reply. Its input includes what came from and went to caches.
func (s *folder) usage(id string, at session.Time, model, metrics jsonx.Object) []history.Call {
	count := func(key string) int64 { return history.Count(metrics.Get(key)) }
	c := history.Call{Call: session.Call{
		ExternalID: string(s.in.Source()) + ":" + id, CreatedAt: at,
		Provider: model.String("provider"), Model: model.String("id"),
		CacheReadTokens: count("cacheReadTokens"), CacheWriteTokens: count("cacheWriteTokens"),
		OutputTokens: count("outputTokens"),
	}}
	c.InputTokens = max(0, count("inputTokens")-c.CacheReadTokens-c.CacheWriteTokens)
	if c.ContextTokens() == 0 {
		return nil
	}
	if nano, ok := history.NanoUSD(metrics.Get("cost")); ok && nano > 0 {
		c.CostNanoUSD = &nano
	}
	return []history.Call{c}
}

// compaction makes the last summary an overlay: it stands for all before the copies that it keeps.
func (s *folder) compaction(file jsonx.Object) {
	messages := jsonx.ReadObjects(file.Get("messages"))
	w := &s.whole
	if len(messages) == 0 || len(w.Items) == 0 {
		return
	}
	summary := messages[0].Inner("metadata")
	if summary.String("kind") != "compaction_summary" {
		return // the other kind alters messages, and says no summary
	}
	index := func(id string) int {
		return slices.IndexFunc(w.Items, func(i history.Item) bool { return i.Key == id })
	}
	through, kept := len(w.Items)-1, ""
	for _, m := range messages[1:] {
		if at := index(m.String("id")); at > 0 {
			through, kept = at-1, w.Items[at].Key
			break
		}
	}
	o := &history.Compaction{Key: "compaction", ThroughKey: w.Items[through].Key, FirstKeptKey: kept}
	o.Summary = cmp.Or(summary.String("summary"), history.TextOf(messages[0].Get("content")))
	o.CreatedAt, o.TokensBefore = history.TimeOf(summary.Get("generatedAt")), history.Count(summary.Get("tokensBefore"))
	if o.CreatedAt.IsZero() {
		o.CreatedAt = history.TimeOf(file.Get("updated_at"))
	}
	w.Items[len(w.Items)-1].Summary = o
}

// agent stores the session of a sub-agent, or of a task of a team.
func (s *folder) agent(lead *history.Conversation, name string, file jsonx.Object) {
	w := &history.Whole{Records: 1}
	w.New.SourceID, w.New.Kind = cmp.Or(file.String("sessionId"), filepath.Base(s.in.Found.Path)+"__"+name), "subagent"
	s.describe(w)
	w.New.CreatedAt = nil
	for i, m := range jsonx.ReadObjects(file.Get("messages")) {
		s.message(w, m, i)
	}
	if len(w.Items) == 0 {
		s.in.Skip(history.SkipSilent, 1)
		return
	}
	first := &w.Items[0].Message
	task := first.Text()
	first.Origin = session.Program
	if lead != nil {
		w.Parent = lead
		for i := range s.whole.Items {
			for _, p := range s.whole.Items[i].Message.Calls() {
				if arguments, _ := jsonx.ReadObject([]byte(p.Arguments)); arguments.String("task") == task && task != "" {
					w.ParentKey, w.ParentCall = s.whole.KeyOf(s.whole.Items[i].Key), p.CallID
				}
			}
		}
	} else {
		w.ParentID = file.Inner("origin").String("parentThreadId")
	}
	s.in.AddWhole(w)
}
