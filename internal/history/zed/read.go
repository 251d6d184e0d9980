package zed

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// reads is the version of this reader. Another one reads every thread again.
const reads = 1

const table = "threads"

// Reasons to skip that only threads have.
const (
	skipResume = "request to go on"
	skipEmpty  = "message without words"
)

// row is a thread as the table has it.
type row struct {
	Number  int64  `db:"number"` // which an index that is damaged does not hide
	ID      string `db:"id"`
	Title   string `db:"summary"`
	Updated string `db:"updated_at"`
	Created string `db:"created_at"`
	Coding  string `db:"data_type"`
	Parent  string `db:"parent_id"`
	Folders string `db:"folder_paths"`
	Order   string `db:"folder_paths_order"`
	Size    int64  `db:"size"`
	End     string `db:"tail"` // a save may leave the time and the size
}

// readDatabase reads all threads of a database that changed.
func readDatabase(in *history.Intake, db *history.SQLite) {
	has := db.Schema(table)
	in.Fail(db.TakeErr())
	if in.Err() == nil && !(has.Has(table, "id") && has.Has(table, "data_type") && has.Has(table, "data")) {
		in.Fail(session.Errorf(session.Invalid,
			"no threads of Zed: it has no table threads with columns id, data_type and data"))
	}
	if in.Err() != nil {
		return
	}
	text := func(name string) string {
		return "COALESCE(CAST(" + has.Column(table, name, "NULL") + " AS TEXT), '') AS " + name
	}
	var rows []row
	db.Select(&rows, `SELECT rowid AS number, CAST(id AS TEXT) AS id, `+text("summary")+`, `+text("updated_at")+`, `+text("created_at")+`,
		CAST(data_type AS TEXT) AS data_type, `+text("parent_id")+`, `+text("folder_paths")+`, `+text("folder_paths_order")+`,
		LENGTH(CAST(data AS BLOB)) AS size, HEX(SUBSTR(CAST(data AS BLOB), -8)) AS tail
		FROM threads WHERE id IS NOT NULL AND data IS NOT NULL AND data_type IS NOT NULL`)
	if in.Fail(db.TakeErr()); in.Err() != nil {
		return
	}
	slices.SortStableFunc(rows, func(a, b row) int { // parents come before their agents
		return cmp.Or(strings.Compare(a.Parent, b.Parent), strings.Compare(a.Created, b.Created), strings.Compare(a.ID, b.ID))
	})
	for i := range rows {
		r := &rows[i]
		id := history.Plain(r.ID)
		part := in.Part(id, fmt.Sprint(reads, r.Updated, r.Size, r.End, r.Title, r.Parent))
		if part == nil {
			continue
		}
		var data [][]byte
		db.Select(&data, `SELECT CAST(data AS BLOB) FROM threads WHERE rowid = ?`, r.Number)
		in.ReadPart(part, id, db, func() { r.read(part, slices.Concat(data...)) })
	}
}

// read stores a thread. One whose document is broken is a problem, and is read again when it changes.
func (r *row) read(part *history.Intake, data []byte) {
	text, err := unpacked(r.Coding, data)
	o, ok := jsonx.ReadFields(text)
	if err != nil || !ok || jsonx.DeeperThan(text, history.MaxDepth) {
		part.Problem(0, fmt.Sprintf("thread %s: its document is broken, over 64 MiB or nested too deep; left out",
			history.Plain(r.ID)))
		part.Skip("broken thread", 1)
		return
	}
	t := &thread{in: part, keys: history.Repeats{}, results: map[string]bool{}}
	w := &t.whole
	w.Records = 1
	w.New.SourceID = r.ID
	w.Title = cmp.Or(r.Title, o.String("summary"), o.String("title"))
	w.New.Directory = r.directory()
	updated := history.TimeOf(jsontext.Value(session.JSONOf(r.Updated)))
	w.New.CreatedAt = history.KnownTime(jsontext.Value(session.JSONOf(cmp.Or(r.Created, r.Updated))))
	w.Written = updated.Time
	model := o.Inner("model")
	w.New.Model, w.New.Provider = model.String("model"), model.String("provider")
	context := o.Inner("subagent_context")
	if parent := cmp.Or(r.Parent, context.String("parent_thread_id")); parent != "" && parent != r.ID {
		w.New.Kind, w.ParentID, w.ParentCall = "subagent", parent, context.String("tool_use_id")
		w.StartedIn = t.startedIn
	}
	w.Notes = jsonx.Object{jsonx.MemberOf("version", history.Plain(cmp.Or(o.String("version"), "none")))}
	if string(o.Get("imported")) == "true" {
		w.Notes = append(w.Notes, jsonx.MemberOf("imported", "a thread that somebody shared"))
	}
	values, _ := jsonx.ReadArray(o.Get("messages"))
	for _, raw := range values {
		t.message(raw)
	}
	if n := len(w.Items); n > 0 {
		t.open()
		if last := &w.Items[n-1]; last.Message.CreatedAt.IsZero() && !updated.IsZero() {
			last.Message.CreatedAt = updated
			last.Extra = append(last.Extra, jsonx.MemberOf("time", "of the thread's last change"))
		}
	}
	t.ledger(o, updated)
	part.AddWhole(w)
}

// unpacked returns a document.
func unpacked(coding string, data []byte) (jsontext.Value, error) {
	if coding != "zstd" {
		return jsontext.Value(history.Unmarked(data)), nil
	}
	decoder, err := history.Unzstd(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	text, err := io.ReadAll(io.LimitReader(decoder, history.MaxLine+1))
	if err == nil && len(text) > history.MaxLine {
		err = session.Errorf(session.TooLarge, "over %d MiB", history.MaxLine>>20)
	}
	return text, err
}

// directory returns the folder that the user put first.
func (r *row) directory() string {
	all := strings.Split(r.Folders, "\n")
	for i, place := range strings.Split(r.Order, ",") {
		if n, err := strconv.Atoi(strings.TrimSpace(place)); err == nil && n == 0 && i < len(all) {
			return all[i]
		}
	}
	return all[0]
}

// thread is a thread on its way into the store.
type thread struct {
	in      *history.Intake
	whole   history.Whole
	keys    history.Repeats // a save in a newer version gives prompts other ids: what is said names a message
	results map[string]bool // of calls
}

// add adds the messages of one record.
func (t *thread) add(items ...history.Item) {
	for i := range items {
		items[i].NoRecords = i > 0
	}
	t.whole.Items = append(t.whole.Items, items...)
}

// key names a message after what was said in it and the calls that it made.
func (t *thread) key(m *session.Message) string {
	said := string(m.Role)
	for _, p := range m.Parts {
		switch p.Kind {
		case session.PartText:
			said += "\n" + p.Text
		case session.PartToolCall, session.PartToolResult:
			said += "\n" + p.CallID
		}
	}
	return t.keys.Key(history.LineKey([]byte(said)))
}

// message adds a message: one of today's, whose only field names its kind, or an older one with a role.
func (t *thread) message(raw jsontext.Value) {
	if text, isText := jsonx.Text(raw); isText && text == "Resume" {
		t.in.Skip(skipResume, 1)
		return
	}
	o, ok := jsonx.ReadFields(raw)
	switch {
	case ok && o.Has("User"):
		t.prompt(o.Inner("User"))
	case ok && o.Has("Agent"):
		t.reply(o.Inner("Agent"))
	case ok && o.Inner("Compaction").Has("Summary"):
		t.summary(o.Inner("Compaction").String("Summary"))
	case ok && o.Has("role"):
		t.older(o)
	default:
		item := history.RawItem(t.keys.Key(history.LineKey(raw)), raw, "a message of an unknown kind", session.Time{})
		item.Problem = "" // of a newer version
		t.add(item)
	}
}

// prompt adds what a person typed, with what was attached.
func (t *thread) prompt(o jsonx.Object) {
	var parts []session.Part
	values, _ := jsonx.ReadArray(o.Get("content"))
	for _, v := range values {
		block, _ := jsonx.ReadFields(v)
		switch mention := block.Inner("Mention"); {
		case block.Has("Text"):
			parts = append(parts, session.TextPart(block.String("Text")))
		case mention != nil:
			p := session.Part{Kind: session.PartData, Text: mention.String("content")}
			p.Extra = mention.Only("uri").Column()
			parts = append(parts, p)
		default:
			parts = append(parts, imageOr(block, v))
		}
	}
	if len(parts) == 0 {
		t.in.Skip(skipEmpty, 1)
		return
	}
	m := history.Say(session.User, session.Time{}, parts...)
	if t.whole.New.Kind == "subagent" && len(t.whole.Items) == 0 {
		m.Origin = session.Program // its task
	}
	t.add(history.Item{Key: t.key(&m), Message: m})
}

// imageOr returns a picture, which Zed keeps as PNG, else the block as it is.
func imageOr(block jsonx.Object, raw jsontext.Value) session.Part {
	data, err := base64.StdEncoding.DecodeString(block.Inner("Image").String("source"))
	if err != nil || len(data) == 0 {
		return history.RawPart("block", raw)
	}
	return history.BlobPart("image/png", data)
}

// reply adds a reply of the model and the results of its calls, which lie in it.
func (t *thread) reply(o jsonx.Object) {
	var parts []session.Part
	var calls []string
	values, _ := jsonx.ReadArray(o.Get("content"))
	for _, v := range values {
		block, _ := jsonx.ReadFields(v)
		use := block.Inner("ToolUse")
		switch thought := block.Inner("Thinking"); {
		case block.Has("Text"):
			parts = append(parts, session.TextPart(block.String("Text")))
		case thought != nil:
			p := session.Part{Kind: session.PartReasoning, Text: thought.String("text")}
			p.Extra = thought.Only("signature").Column()
			parts = append(parts, p)
		case block.Has("RedactedThinking"):
			p := session.Part{Kind: session.PartReasoning}
			p.Extra = jsonx.Object{{Key: "data", Value: block.Get("RedactedThinking")}}.Column()
			parts = append(parts, p)
		case use != nil:
			calls = append(calls, use.String("id"))
			parts = append(parts, history.CallPart(use.String("id"), use.String("name"), use.First("input", "raw_input")))
		default:
			parts = append(parts, history.RawPart("block", v))
		}
	}
	t.say(parts, calls, func(id string) (jsonx.Object, bool) {
		results := o.Inner("tool_results")
		return results.Inner(id), results.Has(id)
	})
}

// say adds a reply and the results of its calls, in the order of the calls.
func (t *thread) say(parts []session.Part, calls []string, resultOf func(id string) (jsonx.Object, bool)) {
	if len(parts) == 0 {
		t.in.Skip(skipEmpty, 1)
		return
	}
	m := history.Say(session.Assistant, session.Time{}, parts...)
	m.Model, m.Provider = t.whole.New.Model, t.whole.New.Provider
	items := []history.Item{{Key: t.key(&m), Message: m}}
	for _, id := range calls {
		if result, ok := resultOf(id); ok {
			items = append(items, t.result(id, result))
		}
	}
	t.add(items...)
}

func (t *thread) result(id string, o jsonx.Object) history.Item {
	text := resultText(o.Get("content"))
	if text == "" {
		text = history.ResultText(o.Get("output"))
	}
	failed := string(o.Get("is_error")) == "true"
	t.results[id] = true
	m := history.Say(session.Tool, session.Time{}, history.ResultPart(id, o.String("tool_name"), text, &failed))
	return history.Item{Key: t.key(&m), Message: m}
}

// resultText returns what a result says: a text, {"Text": …}, or a list of these and pictures.
func resultText(content jsontext.Value) string {
	switch jsonx.KindOf(content) {
	case '[':
		values, _ := jsonx.ReadArray(content)
		var texts []string
		for _, v := range values {
			texts = append(texts, resultText(v))
		}
		return strings.Join(texts, "\n")
	case '{':
		o, _ := jsonx.ReadFields(content)
		if o.Has("Image") {
			return "[image]"
		}
		if o.Has("Text") {
			return o.String("Text")
		}
	}
	return history.ResultText(content)
}

// summary adds a compaction: the model sees it instead of what stands before it.
func (t *thread) summary(text string) {
	m := history.Note(session.Time{}, text)
	item := history.Item{Key: t.key(&m), Message: m}
	if n := len(t.whole.Items); n > 0 {
		item.Summary = &history.Compaction{
			Key: item.Key, ThroughKey: t.whole.Items[n-1].Key, Record: history.Place{Key: item.Key},
		}
		item.Summary.Summary = text
	}
	t.add(item)
}

// older adds a message of a document before version 0.3. In the oldest, results lie in the message after the reply, as
// a person's, whose text the program made.
func (t *thread) older(o jsonx.Object) {
	var parts []session.Part
	if text := o.String("text"); text != "" {
		parts = append(parts, session.TextPart(text))
	}
	values, _ := jsonx.ReadArray(o.Get("segments"))
	for _, v := range values {
		if s, _ := jsonx.ReadFields(v); s.String("type") == "RedactedThinking" {
			parts = append(parts, session.Part{Kind: session.PartReasoning, Extra: s.Only("data").Column()})
		} else {
			parts = append(parts, history.Blocks(v)...)
		}
	}
	results := jsonx.ReadObjects(o.Get("tool_results"))
	resultOf := func(id string) (jsonx.Object, bool) {
		at := slices.IndexFunc(results, func(r jsonx.Object) bool { return r.String("tool_use_id") == id })
		if at < 0 {
			return nil, false
		}
		return results[at], true
	}
	switch role := o.String("role"); {
	case role == "assistant":
		var calls []string
		for _, use := range jsonx.ReadObjects(o.Get("tool_uses")) {
			calls = append(calls, use.String("id"))
			parts = append(parts, history.CallPart(use.String("id"), use.String("name"), use.Get("input")))
		}
		t.say(parts, calls, resultOf)
	case len(results) > 0:
		var items []history.Item
		for _, r := range results {
			items = append(items, t.result(r.String("tool_use_id"), r))
		}
		t.add(items...)
	case len(parts) == 0:
		t.in.Skip(skipEmpty, 1)
	case role == "system":
		m := history.Say(session.System, session.Time{}, parts...)
		t.add(history.Item{Key: t.key(&m), Message: m})
	default:
		m := history.Say(session.User, session.Time{}, parts...)
		if string(o.Get("is_hidden")) == "true" {
			m = history.Hint(session.Time{}, parts...)
		}
		item := history.Item{Key: t.key(&m), Message: m}
		if attached := o.String("context"); attached != "" {
			item.Extra = jsonx.Object{jsonx.MemberOf("context", history.Plain(attached))}
		}
		t.add(item)
	}
}

// open marks the last reply as one that may still be written.
func (t *thread) open() {
	items := t.whole.Items
	at := len(items) - 1
	for at > 0 && items[at].Message.Role == session.Tool {
		at--
	}
	if items[at].Message.Role == session.Assistant {
		items[at].Open = true
	}
}

// startedIn returns the call of another thread that gave this one its task.
func (t *thread) startedIn(m *session.Message) string {
	if len(t.whole.Items) == 0 {
		return ""
	}
	task := strings.TrimSpace(t.whole.Items[0].Message.Text())
	for _, p := range m.Calls() {
		o, _ := jsonx.ReadObject([]byte(p.Arguments))
		for _, field := range o {
			if text, _ := jsonx.Text(field.Value); task != "" && strings.TrimSpace(text) == task {
				return p.CallID
			}
		}
	}
	return ""
}

// ledger adds one row for the thread, which grows: what it used in all. Where that is missing or has stopped, the sum
// of the last requests of its turns is a lower bound. Older documents repeat their figures in that list.
func (t *thread) ledger(o jsonx.Object, at session.Time) {
	c := usageOf(o.Inner("cumulative_token_usage"))
	lower := history.Call{}
	if o.String("version") >= "0.3" {
		for _, m := range o.Inner("request_token_usage") {
			used, _ := jsonx.ReadFields(m.Value)
			one := usageOf(used)
			lower.InputTokens += one.InputTokens
			lower.OutputTokens += one.OutputTokens
			lower.CacheReadTokens += one.CacheReadTokens
			lower.CacheWriteTokens += one.CacheWriteTokens
		}
	}
	note := map[string]string{"sum": "of the thread"}
	if lower.ContextTokens()+lower.OutputTokens > c.ContextTokens()+c.OutputTokens {
		c, note = lower, map[string]string{"reported": "for the last request of each turn alone: a lower bound"}
	}
	if c.ContextTokens()+c.OutputTokens == 0 || string(o.Get("imported")) == "true" {
		return
	}
	c.ExternalID, c.Sum, c.CreatedAt = "zed:"+t.whole.New.SourceID, true, at
	c.Model, c.Provider, c.Metadata = t.whole.New.Model, t.whole.New.Provider, session.JSONOf(note)
	t.whole.Calls = append(t.whole.Calls, c)
}

// usageOf reads counts, whose input is without caches.
func usageOf(o jsonx.Object) (c history.Call) {
	c.InputTokens, c.OutputTokens = history.Count(o.Get("input_tokens")), history.Count(o.Get("output_tokens"))
	c.CacheReadTokens = history.Count(o.Get("cache_read_input_tokens"))
	c.CacheWriteTokens = history.Count(o.Get("cache_creation_input_tokens"))
	return c
}
