package generic

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jmoiron/sqlx"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// reader reads one file.
type reader struct {
	in    *history.Intake
	names names
	name  string // of the file, without its ending
	whole map[string]*history.Whole
	order []string
	keys  history.Repeats // of items that are named after their content
	known bool
	tools map[string]string // names of tools, by call
}

func newReader(in *history.Intake) *reader {
	base := filepath.Base(in.Found.Path)
	return &reader{
		in: in, names: namesFor(in), name: strings.TrimSuffix(base, filepath.Ext(base)), whole: map[string]*history.Whole{},
		keys: history.Repeats{}, tools: map[string]string{},
	}
}

// read reads a file of lines, or of one list or object.
func read(in *history.Intake) {
	r := newReader(in)
	if isDocument(in) {
		r.document()
	} else {
		in.EachLine(r.line)
	}
	if !r.known && in.Err() == nil {
		in.Fail(session.Errorf(session.Invalid, "no conversation: no record has a role (user, assistant, system, tool) and "+
			"a content; if they are named otherwise, say how in %s beside the file, "+
			"as {\"role\": \"speaker\", \"content\": \"body\"}", MappingName))
		return
	}
	for _, id := range r.order {
		in.AddWhole(r.whole[id])
	}
}

// isDocument reports whether a file is one list or object, over lines or not, and no file of lines.
func isDocument(in *history.Intake) bool {
	for l := range in.Lines() {
		text := strings.TrimSpace(string(history.Unmarked(l.Bytes)))
		if text == "" && l.Bytes != nil {
			continue
		}
		return strings.HasPrefix(text, "[") || text == "{" || filepath.Ext(in.Found.Path) == ".json"
	}
	return false
}

// document reads a list of messages or of conversations, or one conversation.
func (r *reader) document() {
	if r.in.Found.Size > history.MaxLine {
		r.in.Fail(session.Errorf(session.TooLarge, "the file is over %d MiB; lines may be together", history.MaxLine>>20))
		return
	}
	text := jsontext.Value(history.Unmarked(r.in.Bytes(0, r.in.Found.Size)))
	if !jsonx.Valid(text) || jsonx.DeeperThan(text, history.MaxDepth) {
		if !r.in.Quiet() {
			r.in.LookAgain()
			r.known = true
			return
		}
		r.in.Fail(session.Errorf(session.Invalid, "it is no JSON, or cut off, or nested too deep"))
		return
	}
	values, isList := jsonx.ReadArray(text)
	if !isList {
		values = append(values, text)
	}
	for i, raw := range values {
		r.record(history.FileLine{Number: i + 1, Bytes: raw}, raw, 0)
	}
}

func (r *reader) line(l history.FileLine) {
	line := history.Unmarked(l.Bytes)
	if !jsonx.IsObject(line) || jsonx.DeeperThan(line, history.MaxDepth) {
		r.raw(l, "not a JSON object, or nested too deep")
		return
	}
	r.record(l, line, l.At)
}

func (r *reader) raw(l history.FileLine, why string) {
	item := history.RawItem(r.keys.Key(history.LineKey(l.Bytes)), l.Bytes, why, session.Time{})
	item.At, item.Line, item.Aside = l.At, l.Number, true
	w := r.session(r.newest())
	w.Items = append(w.Items, item)
}

// newest returns the id of the conversation that was read last.
func (r *reader) newest() string {
	if len(r.order) == 0 {
		return ""
	}
	return r.order[len(r.order)-1]
}

// session returns the conversation with an id of the file, which is begun at its first record.
func (r *reader) session(id string) *history.Whole {
	w := r.whole[id]
	if w == nil {
		w = &history.Whole{}
		w.New.SourceID = id
		r.whole[id] = w
		r.order = append(r.order, id)
	}
	return w
}

// record reads a message, or a conversation of several.
func (r *reader) record(l history.FileLine, raw jsontext.Value, at int64) {
	o, _ := jsonx.ReadFields(raw)
	if list := r.names.value(o, "messages"); jsonx.KindOf(list) == '[' {
		r.conversation(l, o, list, at)
		return
	}
	role := roleOf(r.roleWord(o))
	content := r.names.value(o, "content")
	if role == "" || content == nil && !o.Has("tool_calls") {
		r.raw(l, "a record without a role and a content")
		return
	}
	r.known = true
	id := r.names.text(o, "session")
	if id == "" { // the file is one conversation, named after its beginning, wherever it lies
		if id = r.newest(); id == "" {
			id = r.fileID(raw)
		}
	}
	item := r.item(o, id, role, history.LineKey(raw))
	item.At, item.Line = at, l.Number
	w := r.session(id)
	r.describe(w, o)
	w.Items = append(w.Items, item)
}

func (r *reader) fileID(first []byte) string {
	sum := sha256.Sum256(first)
	return r.name + "-" + hex.EncodeToString(sum[:4])
}

// roleWord returns who speaks: a word, or an object that has one.
func (r *reader) roleWord(o jsonx.Object) string {
	v := r.names.value(o, "role")
	if text, isText := jsonx.Text(v); isText {
		return text
	}
	inner, _ := jsonx.ReadFields(v)
	return inner.String("role")
}

// conversation reads a record that is a whole conversation.
func (r *reader) conversation(l history.FileLine, o jsonx.Object, list jsontext.Value, at int64) {
	id := cmp.Or(r.names.text(o, "session"), o.String("custom_id"), r.names.text(o, "id"))
	if id == "" {
		id = r.fileID(l.Bytes)
	}
	w := r.session(id)
	r.describe(w, o)
	w.Title = r.names.text(o, "title")
	values, _ := jsonx.ReadArray(list)
	if system := o.Get("system"); system != nil { // Anthropic's
		values = append([]jsontext.Value{jsonx.Encode("role", "system", "content", system)}, values...)
	}
	for i, raw := range values {
		m, _ := jsonx.ReadFields(raw)
		role := roleOf(r.roleWord(m))
		if role == "" {
			r.in.Skip("a message without a role", 1)
			continue
		}
		r.known = true
		item := r.item(m, id, role, history.LineKey(fmt.Appendf(nil, "%s %d %s", id, i, raw)))
		item.At, item.Line, item.NoRecords = at, l.Number, len(w.Items) > 0 && i > 0
		w.Items = append(w.Items, item)
	}
}

func (r *reader) describe(w *history.Whole, o jsonx.Object) {
	w.New.Directory = cmp.Or(w.New.Directory, r.names.text(o, "directory"))
	w.New.CreatedAt = cmp.Or(w.New.CreatedAt, history.KnownTime(r.names.value(o, "timestamp")))
}

// item makes the message of a record. Names of messages may repeat in other conversations: a call has that of its
// conversation, too.
func (r *reader) item(o jsonx.Object, conversation string, role session.Role, key string) history.Item {
	if id := r.names.text(o, "id"); id != "" {
		key = id
	} else {
		key = r.keys.Key(key)
	}
	at, content := history.TimeOf(r.names.value(o, "timestamp")), jsontext.Value(r.names.value(o, "content"))
	parts := history.Blocks(content)
	item := history.Item{Key: key}
	switch role {
	case session.Tool:
		call := o.String("tool_call_id")
		item.Message = history.Say(role, at, history.ResultPart(call, cmp.Or(o.String("name"), r.tools[call]),
			history.ResultText(content), nil))
	case session.Assistant:
		item.Message = history.Say(role, at, append(thoughts(o), append(parts, r.calls(o)...)...)...)
		item.Message.Model = r.names.text(o, "model")
		item.Calls = usage(conversation+":"+key, o.Inner("usage"), item.Message.Model, at)
	case session.User:
		if results, rest := split(parts); len(results) > 0 && len(rest) == 0 { // Anthropic's
			item.Message = history.Say(session.Tool, at, results...)
			break
		}
		item.Message = history.Say(role, at, parts...)
	default:
		item.Message = history.Say(role, at, parts...)
	}
	return item
}

func thoughts(o jsonx.Object) (parts []session.Part) {
	if text := cmp.Or(o.String("reasoning_content"), o.String("reasoning")); text != "" {
		parts = append(parts, session.Part{Kind: session.PartReasoning, Text: text})
	}
	return parts
}

func split(parts []session.Part) (results, rest []session.Part) {
	for _, p := range parts {
		if p.Kind == session.PartToolResult {
			results = append(results, p)
		} else {
			rest = append(rest, p)
		}
	}
	return results, rest
}

// calls reads the calls of a reply in OpenAI's words.
func (r *reader) calls(o jsonx.Object) (parts []session.Part) {
	list := o.Get("tool_calls")
	if text, isText := jsonx.Text(list); isText { // a column of a database
		list = jsontext.Value(text)
	}
	values, _ := jsonx.ReadArray(list)
	for i, raw := range values {
		call, _ := jsonx.ReadFields(raw)
		function := call.Inner("function")
		id, name := call.String("id"), cmp.Or(function.String("name"), call.String("name"))
		if id == "" {
			id = fmt.Sprint("call ", len(r.tools), "/", i)
		}
		r.tools[id] = name
		arguments := function.Get("arguments")
		if arguments == nil {
			arguments = call.First("arguments", "input")
		}
		parts = append(parts, history.CallPart(id, name, arguments))
	}
	return parts
}

// usage returns the row of the ledger of a reply that says what it used, in OpenAI's or Anthropic's words. A size in
// tokens that a program estimated is none.
func usage(name string, u jsonx.Object, model string, at session.Time) []history.Call {
	count := func(o jsonx.Object, keys ...string) int64 {
		for _, key := range keys {
			if n := history.Count(o.Get(key)); n > 0 {
				return n
			}
		}
		return 0
	}
	c := history.Call{Call: session.Call{ExternalID: "generic:" + name, Model: model, CreatedAt: at}}
	c.OutputTokens = count(u, "completion_tokens", "output_tokens", "completionTokens", "outputTokens")
	if u.Has("input_tokens") || u.Has("inputTokens") { // without caches
		c.InputTokens, c.CacheReadTokens = count(u, "input_tokens", "inputTokens"), count(u, "cache_read_input_tokens")
		c.CacheWriteTokens = count(u, "cache_creation_input_tokens")
	} else {
		c.CacheReadTokens = count(u.Inner("prompt_tokens_details"), "cached_tokens")
		c.InputTokens = max(0, count(u, "prompt_tokens", "promptTokens")-c.CacheReadTokens)
	}
	if c.ContextTokens() == 0 {
		return nil
	}
	return []history.Call{c}
}

// The tables of a database: sessions, and their messages.
const (
	tableSessions = "sessions"
	tableMessages = "messages"
)

// readDatabase reads a database with a table of sessions and one of messages.
func readDatabase(in *history.Intake, db *history.SQLite) {
	has := db.Schema(tableSessions, tableMessages)
	in.Fail(db.TakeErr())
	for _, column := range []string{"session_id", "role", "content"} {
		if !has.Has(tableMessages, column) && in.Err() == nil {
			in.Fail(session.Errorf(session.Invalid,
				"no conversations: it has no table messages with columns session_id, role and content"))
		}
	}
	if in.Err() != nil {
		return
	}
	r := newReader(in)
	about := map[string]jsonx.Object{}
	if has.Has(tableSessions, "id") {
		db.EachRow(tableSessions, has[tableSessions], "", func(row history.Row) {
			var o jsonx.Object
			for _, c := range row {
				o.SetText(c.Name, c.Text)
			}
			about[row.Get("id")] = o
		})
	}
	order := has.Column(tableMessages, "id", "rowid")
	extents := db.Extents(tableMessages, `MAX(`+order+`)`, `MIN(rowid)`)
	if in.Fail(db.TakeErr()); in.Err() != nil {
		return
	}
	var ids []struct {
		ID string `db:"id"`
	}
	db.Select(&ids, `SELECT CAST(session_id AS TEXT) AS id FROM messages WHERE session_id IS NOT NULL GROUP BY session_id
		ORDER BY MIN(rowid)`)
	for _, of := range ids {
		mark := sha256.Sum256(about[of.ID].Value())
		part := in.Part(history.Plain(of.ID), fmt.Sprint(extents[of.ID], hex.EncodeToString(mark[:8])))
		if part == nil {
			continue
		}
		w := &history.Whole{Records: 1}
		w.New.SourceID, w.Title = of.ID, r.names.text(about[of.ID], "title")
		r.describe(w, about[of.ID])
		r.rows(db, has[tableMessages], order, of.ID, w)
		in.ReadPart(part, of.ID, db, func() { part.AddWhole(w) })
	}
}

// rows reads the messages of a session.
func (r *reader) rows(db *history.SQLite, columns []string, order, id string, w *history.Whole) {
	db.Each(func(rows *sqlx.Rows) error {
		values, err := rows.SliceScan()
		if err != nil {
			return err
		}
		var o jsonx.Object
		for i, value := range values {
			if text, ok := value.(string); ok {
				o.SetText(columns[i], history.Plain(text))
			}
		}
		role := roleOf(r.roleWord(o))
		if role == "" {
			role = session.System
		}
		item := r.item(o, id, role, history.LineKey(o.Value()))
		w.Items = append(w.Items, item)
		return nil
	}, `SELECT `+selected(columns)+` FROM messages WHERE session_id = ? ORDER BY `+order, id)
}

func selected(columns []string) string {
	all := make([]string, len(columns))
	for i, name := range columns {
		all[i] = `CAST("` + strings.ReplaceAll(name, `"`, `""`) + `" AS TEXT)`
	}
	return strings.Join(all, ", ")
}
