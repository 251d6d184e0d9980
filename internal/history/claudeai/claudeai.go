// Package claudeai reads the data export of Claude.ai: its zips, their folder, or a file of conversations.
//
// Every export repeats everything; messages of several are a union. It names no model and has no usage.
package claudeai

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// New makes the source.
func New(now func() time.Time) *history.Program {
	return history.ExportOf(session.SourceClaudeAI, fileName.MatchString, read, now)
}

// fileName matches files of conversations, all in one or one each. ChatGPT's have the same: what they hold decides.
var fileName = pattern.New(`^(conversations(-\d+)?|design_chats?(-\d+)?|[0-9a-f]{8}-[0-9a-f-]{27})\.json$`)

const (
	reads     = 1 // the version of this reader
	skipOther = "project, memory or account"
)

// read reads an export.
func read(in *history.Intake) {
	a := in.OpenArchive()
	if a == nil {
		return
	}
	others, chatGPT := 0, false
	found := a.EachConversation(fileName.MatchString, func(o jsonx.Object, raw jsontext.Value) bool {
		switch {
		case jsonx.KindOf(o.Get("chat_messages")) == '[':
			store(in, o, raw, o.Get("chat_messages"), chatItem)
			return true
		case jsonx.KindOf(o.Get("messages")) == '[' && o.Has("uuid"):
			store(in, o, raw, o.Get("messages"), designItem)
			return true
		case o.Has("mapping"):
			chatGPT = true
		case o.Has("uuid"):
			others++
			in.Skip(skipOther, 1)
		default:
			in.Skip("no conversation", 1)
		}
		return false
	})
	switch {
	case in.Err() != nil || found+others > 0:
	case chatGPT:
		in.Fail(session.Errorf(session.Invalid,
			"an export of ChatGPT, whose files have the same names: `sessiond import chatgpt` reads it"))
	default:
		in.Fail(session.Errorf(session.Invalid,
			"no export of Claude.ai: no file of it holds conversations, which have `chat_messages`"))
	}
}

// store stores one conversation, unless it is as it was at the reading before.
func store(in *history.Intake, o jsonx.Object, raw, messages jsontext.Value, item func(jsonx.Object) history.Item) {
	part, id := in.RecordPart(history.Plain(o.String("uuid")), raw, reads)
	if part == nil {
		return
	}
	w := &history.Whole{Records: 1, Title: cmp.Or(o.String("name"), o.String("title"))}
	w.New.SourceID = id
	w.New.CreatedAt = history.KnownTime(o.Get("created_at"))
	updated := history.Plain(o.String("updated_at"))
	w.Notes = jsonx.Object{jsonx.MemberOf("updated", updated), jsonx.MemberOf("usage", "not recorded")}
	if summary := o.String("summary"); summary != "" {
		w.Notes = append(w.Notes, jsonx.MemberOf("summary", history.Plain(summary)))
	}
	if here := part.Session(id); here != nil {
		before := history.Notes(here, string(session.SourceClaudeAI)).String("updated")
		w.Older = before > updated && len(before) == len(updated)
	}
	fill(w, o, messages, item)
	part.AddWhole(w)
	in.FinishPart(part)
}

// fill adds the messages, which are a tree if they name their parents. The head is the newest leaf.
func fill(w *history.Whole, o jsonx.Object, messages jsontext.Value, item func(jsonx.Object) history.Item) {
	list, _ := jsonx.ReadArray(messages)
	isTree, isParent := false, map[string]bool{}
	for i, raw := range list {
		m, _ := jsonx.ReadFields(raw)
		made := item(m)
		if made.Key = m.String("uuid"); made.Key == "" {
			made.Key = fmt.Sprint("message ", i+1)
		}
		made.Line = i + 1
		if m.Has("parent_message_uuid") {
			isTree = true
		}
		made.Parent = m.String("parent_message_uuid")
		isParent[made.Parent] = true
		w.Items = append(w.Items, made)
	}
	if !isTree {
		return
	}
	newest := session.Time{}
	for i := range w.Items {
		made := &w.Items[i]
		if at := made.Message.CreatedAt; !isParent[made.Key] && !at.Before(newest.Time) {
			w.Head, newest = made.Key, at
		}
	}
	w.Head = cmp.Or(o.String("current_leaf_message_uuid"), w.Head)
	w.Items = history.Ordered(w.Items)
}

// unsupported is what the service puts in the place of a block in `text`.
const unsupported = "This block is not supported on your current device yet."

// chatItem makes the message of a chat.
func chatItem(m jsonx.Object) (item history.Item) {
	at := history.TimeOf(m.Get("created_at"))
	parts, aside := blocks(m.String("uuid"), m.Get("content"))
	if text := m.String("text"); !hasText(parts) && text != "" && !strings.Contains(text, unsupported) {
		parts = append([]session.Part{session.TextPart(text)}, parts...)
	}
	attached, _ := jsonx.ReadArray(m.Get("attachments"))
	for _, raw := range attached {
		o, _ := jsonx.ReadFields(raw)
		p := session.TextPart(o.String("extracted_content")) // the text of the file is here and nowhere else
		p.Extra = jsonx.Object{jsonx.MemberOf("attachment", history.Plain(cmp.Or(o.String("file_name"), "pasted")))}.Column()
		parts = append(parts, p)
	}
	item.Extra = m.Only("files", "files_v2")
	if len(aside) > 0 {
		item.Extra = append(item.Extra, jsonx.Member{Key: "blocks", Value: jsonx.Array(aside)})
	}
	if m.String("sender") == "assistant" {
		item.Message = history.Say(session.Assistant, at, parts...)
		item.Message.Provider = "anthropic"
		return item
	}
	if item.Message = history.Say(session.User, at, parts...); m.String("sender") != "human" {
		item.Message.Origin = session.Program
	}
	return item
}

func hasText(parts []session.Part) bool {
	for _, p := range parts {
		if p.Kind == session.PartText {
			return true
		}
	}
	return false
}

// blocks reads the blocks of a message, in their order: a result stands behind its call, in the same message. Those
// that say nothing are kept aside.
func blocks(id string, content jsontext.Value) (parts []session.Part, aside []jsontext.Value) {
	list, _ := jsonx.ReadArray(content)
	open := map[string]string{} // calls without an id, by tool
	for i, raw := range list {
		o, _ := jsonx.ReadFields(raw)
		switch o.String("type") {
		case "text", "voice_note":
			if text := o.String("text"); text != "" {
				parts = append(parts, session.TextPart(text))
			}
		case "thinking":
			thought := o.String("thinking")
			if summaries, _ := jsonx.ReadArray(o.Get("summaries")); thought == "" && len(summaries) > 0 {
				first, _ := jsonx.ReadFields(summaries[len(summaries)-1])
				thought = first.String("summary")
			}
			parts = append(parts, session.Part{Kind: session.PartReasoning, Text: thought, Extra: o.Only("signature").Column()})
		case "tool_use":
			call, name := o.String("id"), o.String("name")
			if call == "" {
				call = fmt.Sprint(id, "/", i)
				open[name] = call
			}
			parts = append(parts, history.CallPart(call, name, o.Get("input")))
		case "tool_result":
			call := cmp.Or(o.String("tool_use_id"), open[o.String("name")])
			failed := string(o.Get("is_error")) == "true"
			parts = append(parts, history.ResultPart(call, o.String("name"), resultText(o.Get("content")), &failed))
		default:
			aside = append(aside, raw)
		}
	}
	return parts, aside
}

// resultText returns what a result says: texts, and what was found with its title and address.
func resultText(content jsontext.Value) string {
	list, isList := jsonx.ReadArray(content)
	if !isList {
		return history.ResultText(content)
	}
	var texts []string
	for _, raw := range list {
		o, _ := jsonx.ReadFields(raw)
		for _, text := range []string{o.String("title"), o.String("url"), o.String("text")} {
			if text != "" {
				texts = append(texts, text)
			}
		}
	}
	return strings.Join(texts, "\n")
}

// designItem makes the message of a design chat.
func designItem(m jsonx.Object) (item history.Item) {
	at, content := history.TimeOf(m.Get("created_at")), m.Inner("content")
	var parts []session.Part
	list, _ := jsonx.ReadArray(content.Get("contentBlocks"))
	for i, raw := range list {
		o, _ := jsonx.ReadFields(raw)
		switch o.String("type") {
		case "thinking":
			parts = append(parts, session.Part{Kind: session.PartReasoning, Text: o.String("text")})
		case "tool_call":
			call, id := o.Inner("toolCall"), fmt.Sprint(m.String("uuid"), "/", i)
			parts = append(parts, history.CallPart(id, call.String("name"), call.Get("input")))
			if call.Has("output") {
				parts = append(parts, history.ResultPart(id, call.String("name"), history.ResultText(call.Get("output")), nil))
			}
		default:
			if text := o.String("text"); text != "" {
				parts = append(parts, session.TextPart(text))
			}
		}
	}
	if text := content.String("content"); len(list) == 0 && text != "" {
		parts = append(parts, session.TextPart(text))
	}
	attached, _ := jsonx.ReadArray(content.Get("attachments"))
	for _, raw := range attached {
		o, _ := jsonx.ReadFields(raw)
		p := session.TextPart(o.String("content"))
		p.Extra = jsonx.Object{jsonx.MemberOf("attachment", history.Plain(o.String("name")))}.Column()
		parts = append(parts, p)
	}
	item.Message = history.Say(session.User, at, parts...)
	if cmp.Or(m.String("role"), content.String("role")) == "assistant" {
		item.Message = history.Say(session.Assistant, at, parts...)
		item.Message.Provider = "anthropic"
	}
	return item
}
