// Package chatgpt reads the data export of ChatGPT: the zip, its folder, or a file of conversations.
//
// An export is all that an account held at its time. A later one repeats it, and lacks what was deleted: messages of
// several are a union. There is no usage in it.
package chatgpt

import (
	"cmp"
	"io"
	"net/http"
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
	return history.ExportOf(session.SourceChatGPT, fileName.MatchString, read, now)
}

// fileName matches files of conversations. Claude.ai's have the same: what they hold decides.
var fileName = pattern.New(`^conversations(-\d+)?\.json$`)

const (
	reads     = 1 // the version of this reader
	skipCloud = "task of Codex in the cloud"
)

// read reads an export.
func read(in *history.Intake) {
	a := in.OpenArchive()
	if a == nil {
		return
	}
	claude := false
	found := a.EachConversation(fileName.MatchString, func(o jsonx.Object, raw jsontext.Value) bool {
		switch {
		case o.Has("chat_messages"):
			claude = true
		case jsonx.KindOf(o.Get("mapping")) == '{':
			conversation(in, a, o, raw)
			return true
		default:
			in.Skip("no conversation", 1)
		}
		return false
	})
	a.EachFile(func(name string) bool { return name == "codex.json" }, func(name string, text io.Reader) {
		if name == "codex.json" {
			_ = history.EachObject(text, func(jsontext.Value) { in.Skip(skipCloud, 1) }) // as far as it goes
		}
	})
	switch {
	case in.Err() != nil || found > 0:
	case claude:
		in.Fail(session.Errorf(session.Invalid,
			"an export of Claude.ai, whose files have the same names: `sessiond import claude-ai` reads it"))
	default:
		in.Fail(session.Errorf(session.Invalid,
			"no export of ChatGPT: no file of it holds conversations, which have a `mapping`"))
	}
}

// conversation stores one conversation, unless it is as it was at the reading before.
func conversation(in *history.Intake, a *history.Archive, o jsonx.Object, raw jsontext.Value) {
	id := history.Plain(cmp.Or(o.String("conversation_id"), o.String("id")))
	part, id := in.RecordPart(id, raw, reads)
	if part == nil {
		return
	}
	c := &chat{archive: a, object: o, nodes: map[string]jsonx.Object{}, calls: map[string]string{}}
	c.about(part, id)
	c.read()
	part.AddWhole(&c.whole)
	in.FinishPart(part)
}

// chat is a conversation on its way into the store.
type chat struct {
	archive *history.Archive
	object  jsonx.Object
	nodes   map[string]jsonx.Object
	order   []string
	calls   map[string]string // tools that messages call
	whole   history.Whole
}

func (c *chat) about(in *history.Intake, id string) {
	w, o := &c.whole, c.object
	w.Records, w.New.SourceID, w.Title = 1, id, o.String("title")
	w.New.CreatedAt = history.KnownTime(o.Get("create_time"))
	w.New.Model = o.String("default_model_slug")
	updated, _ := history.Number(o.Get("update_time"))
	w.Notes = jsonx.Object{jsonx.MemberOf("updated", updated), jsonx.MemberOf("usage", "not recorded")}
	if project := o.String("gizmo_id"); project != "" {
		w.Notes = append(w.Notes, jsonx.MemberOf("project", history.Plain(project)))
	}
	if string(o.Get("is_archived")) == "true" {
		w.Archived = new(history.TimeOf(o.Get("update_time")))
	}
	if here := in.Session(id); here != nil {
		before, _ := history.Number(history.Notes(here, string(session.SourceChatGPT)).Get("updated"))
		w.Older = before > updated
	}
}

// read makes the items of all nodes that hold a message. A child of one that holds none follows its parent.
func (c *chat) read() {
	mapping, _ := jsonx.ReadFields(c.object.Get("mapping"))
	for _, m := range mapping {
		node, _ := jsonx.ReadFields(m.Value)
		c.nodes[m.Key], c.order = node, append(c.order, m.Key)
	}
	for _, id := range c.order {
		message := c.nodes[id].Inner("message")
		if message == nil {
			continue
		}
		to, role := message.String("recipient"), message.Inner("author").String("role")
		if role == "assistant" && to != "" && to != "all" {
			c.calls[id] = to
		}
	}
	for _, id := range c.order {
		if message := c.nodes[id].Inner("message"); message != nil {
			item := c.item(id, message)
			item.Key, item.Parent = id, c.above(c.nodes[id].String("parent"))
			c.whole.Items = append(c.whole.Items, item)
		}
	}
	c.whole.Items = history.Ordered(c.whole.Items)
	c.whole.Head = c.head()
}

// above returns the nearest node from one on upwards that holds a message, "" if there is none.
func (c *chat) above(id string) string {
	for range len(c.nodes) + 1 {
		node, ok := c.nodes[id]
		if !ok || node.Inner("message") != nil {
			if !ok {
				return ""
			}
			return id
		}
		id = node.String("parent")
	}
	return ""
}

// head returns the node at the end of what is shown: the current one, else the leaf that the last children lead to.
func (c *chat) head() string {
	if at := c.above(c.object.String("current_node")); at != "" {
		return at
	}
	last := map[string]string{}
	for i := range c.whole.Items {
		last[c.whole.Items[i].Parent] = c.whole.Items[i].Key
	}
	at := last[""]
	for range c.whole.Items {
		if next := last[at]; next != "" && next != at {
			at = next
		}
	}
	return at
}

// callOf returns the call whose result a message of a tool is: the nearest one above it that went to that tool.
func (c *chat) callOf(id, tool string) string {
	at := c.nodes[id].String("parent")
	for range len(c.nodes) {
		if c.calls[at] != "" && (c.calls[at] == tool || tool == "") {
			return at
		}
		node, ok := c.nodes[at]
		if !ok || node.Inner("message").Inner("author").String("role") == "user" {
			return ""
		}
		at = node.String("parent")
	}
	return ""
}

// item makes the message of a node.
func (c *chat) item(id string, m jsonx.Object) (item history.Item) {
	at, author := history.TimeOf(m.Get("create_time")), m.Inner("author")
	content, metadata := m.Inner("content"), m.Inner("metadata")
	parts := c.parts(content)
	kind := content.String("content_type")
	switch role := author.String("role"); {
	case role == "assistant" && kind == "reasoning_recap":
		item.Message = history.Note(at, content.String("content"))
		item.Message.Display = false
	case role == "assistant":
		if tool := c.calls[id]; tool != "" {
			parts = []session.Part{history.CallPart(id, tool, jsonx.Quote(textOf(parts)))}
		}
		item.Message = history.Say(session.Assistant, at, parts...)
		item.Message.Provider = "openai"
		item.Message.Model = cmp.Or(metadata.String("model_slug"), c.object.String("default_model_slug"))
	case role == "tool":
		call := c.callOf(id, author.String("name"))
		if call == "" { // of no call: beside the talk
			item.Message = history.Note(at, textOf(parts))
			item.Message.Display = false
			break
		}
		failed := kind == "system_error"
		result := history.ResultPart(call, author.String("name"), textOf(parts), &failed)
		item.Message = history.Say(session.Tool, at, append([]session.Part{result}, files(parts)...)...)
	case role == "user":
		item.Message = history.Say(session.User, at, parts...)
	default:
		item.Message = history.Say(session.System, at, parts...)
	}
	weight, isWeighed := history.Number(m.Get("weight"))
	hidden := string(metadata.Get("is_visually_hidden_from_conversation")) == "true" || isWeighed && weight == 0 ||
		strings.HasSuffix(kind, "_editable_context")
	if hidden {
		item.Message.Display, item.Message.Origin = false, session.Program
		item.Message.InContext = item.Message.InContext && !(isWeighed && weight == 0)
	}
	item.Extra = append(metadata.Only("attachments", "citations", "content_references", "finished_duration_sec"),
		m.Only("status", "channel")...)
	return item
}

func textOf(parts []session.Part) string {
	m := session.Message{Parts: parts}
	return m.Text()
}

// files returns the parts that are no text.
func files(parts []session.Part) (some []session.Part) {
	for _, p := range parts {
		if p.Kind != session.PartText {
			some = append(some, p)
		}
	}
	return some
}

// parts reads a content. The text of each kind stands in a field of its own.
func (c *chat) parts(content jsonx.Object) (parts []session.Part) {
	add := func(texts ...string) {
		var said []string
		for _, text := range texts {
			if text != "" {
				said = append(said, text)
			}
		}
		if len(said) > 0 {
			parts = append(parts, session.TextPart(strings.Join(said, "\n")))
		}
	}
	switch content.String("content_type") {
	case "thoughts":
		list, _ := jsonx.ReadArray(content.Get("thoughts"))
		for _, raw := range list {
			thought, _ := jsonx.ReadFields(raw)
			text := strings.TrimSpace(thought.String("summary") + "\n" + thought.String("content"))
			parts = append(parts, session.Part{Kind: session.PartReasoning, Text: text})
		}
	case "user_editable_context":
		add(content.String("user_profile"), content.String("user_instructions"))
	case "model_editable_context":
		add(content.String("model_set_context"))
	case "tether_quote":
		add(content.String("title"), content.String("url"), content.String("text"))
	case "tether_browsing_display":
		add(content.String("result"), content.String("summary"))
	default:
		add(content.String("text"), content.String("result"))
		list, _ := jsonx.ReadArray(content.Get("parts"))
		for _, raw := range list {
			if text, isText := jsonx.Text(raw); isText {
				add(text)
			} else {
				parts = append(parts, c.asset(raw))
			}
		}
		if len(parts) == 0 && len(content.Without("content_type", "parts", "text")) > 0 {
			parts = append(parts, history.RawPart("content", content.Value()))
		}
	}
	return parts
}

// asset reads a part that is no text: a picture or a sound, whose bytes may be in the export, or words that were
// spoken.
func (c *chat) asset(raw jsontext.Value) session.Part {
	o, _ := jsonx.ReadFields(raw)
	if text := o.String("text"); text != "" {
		return session.TextPart(text)
	}
	sound := o.Inner("audio_asset_pointer")
	pointer := cmp.Or(o.String("asset_pointer"), o.String("audio_asset_pointer"), sound.String("asset_pointer"))
	_, id, _ := strings.Cut(pointer, "://")
	id, _, _ = strings.Cut(id, "?")
	data := c.archive.Asset(id)
	if len(data) == 0 {
		return history.RawPart("part", raw)
	}
	p := history.BlobPart(http.DetectContentType(data), data)
	p.Extra = o.Only("asset_pointer", "metadata").Column()
	return p
}
