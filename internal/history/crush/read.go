package crush

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// reads is the version of this reader. Another one reads every session again.
const reads = 1

// The tables that are read. files has contents of files before and after edits.
const (
	tableSessions = "sessions"
	tableMessages = "messages"
)

// Reasons to skip that only Crush's sessions have.
const (
	skipTitle = "session that made a title"
	skipEmpty = "message without words"
)

// row is a session as its table has it.
type row struct {
	ID         string  `db:"id"`
	Parent     string  `db:"parent_session_id"`
	Title      string  `db:"title"`
	Prompt     int64   `db:"prompt_tokens"`
	Completion int64   `db:"completion_tokens"`
	Cost       float64 `db:"cost"`
	Created    int64   `db:"created_at"`
	Updated    int64   `db:"updated_at"`
}

// readDatabase reads the sessions of a database that changed.
func (r *reader) readDatabase(in *history.Intake, db *history.SQLite) {
	has := db.Schema(tableSessions, tableMessages)
	in.Fail(db.TakeErr())
	if in.Err() == nil && !(has.Has(tableSessions, "id") && has.Has(tableMessages, "session_id") &&
		has.Has(tableMessages, "parts")) {
		in.Fail(session.Errorf(session.Invalid,
			"no sessions of Crush: it has no tables sessions and messages with columns id, session_id and parts"))
	}
	if in.Err() != nil {
		return
	}
	column := func(name, as, or string) string {
		return "COALESCE(CAST(" + has.Column(tableSessions, name, "NULL") + " AS " + as + "), " + or + ") AS " + name
	}
	var rows []row
	db.Select(&rows, `SELECT CAST(id AS TEXT) AS id, `+column("parent_session_id", "TEXT", "''")+`, `+column("title", "TEXT", "''")+`,
		`+column("prompt_tokens", "INTEGER", "0")+`, `+column("completion_tokens", "INTEGER", "0")+`, `+column("cost", "REAL", "0.0")+`,
		`+column("created_at", "INTEGER", "0")+`, `+column("updated_at", "INTEGER", "0")+` FROM sessions WHERE id IS NOT NULL`)
	changed := has.Column(tableMessages, "updated_at", "rowid")
	extents := db.Extents(tableMessages, `MAX(CAST(`+changed+` AS INTEGER))`, `MIN(rowid)`)
	if in.Fail(db.TakeErr()); in.Err() != nil {
		return
	}
	slices.SortStableFunc(rows, func(a, b row) int { // parents come before their agents
		first := func(r row) int { return min(len(r.Parent), 1) }
		return cmp.Or(first(a)-first(b), cmp.Compare(a.Created, b.Created), strings.Compare(a.ID, b.ID))
	})
	children := map[string]float64{}
	for i := range rows {
		children[rows[i].Parent] += rows[i].Cost
	}
	folder := r.directory(in.Found.Path)
	for i := range rows {
		s := &rows[i]
		id := history.Plain(s.ID)
		if strings.HasPrefix(id, "title-") && extents[s.ID].Count == 0 {
			in.Skip(skipTitle, 1)
			continue
		}
		own := max(0, s.Cost-children[s.ID])
		part := in.Part(id, fmt.Sprint(reads, s.Updated, extents[s.ID], own, s.Title))
		if part == nil {
			continue
		}
		t := &talk{in: part}
		t.about(s, folder)
		db.EachRow(tableMessages, has[tableMessages], `WHERE session_id = ? ORDER BY `+
			has.Column(tableMessages, "created_at", "rowid")+`, rowid`, t.message, s.ID)
		t.end(own, session.Time{Time: history.TimeOf(number(s.Updated)).Time})
		in.ReadPart(part, id, db, func() { part.AddWhole(&t.whole) })
	}
}

func number(n int64) jsontext.Value { return jsontext.Value(strconv.FormatInt(n, 10)) }

// talk is a session on its way into the store.
type talk struct {
	in     *history.Intake
	whole  history.Whole
	models map[string]int
}

// about says what a session is.
func (t *talk) about(s *row, folder string) {
	w := &t.whole
	w.Records = 1
	w.New.SourceID, w.New.Directory = s.ID, folder
	w.New.CreatedAt = history.KnownTime(number(s.Created))
	w.Written = history.TimeOf(number(s.Updated)).Time
	if w.Title = s.Title; slices.Contains([]string{"New Session", "Untitled Session", "New Agent Session"}, w.Title) {
		w.Title = ""
	}
	if s.Parent != "" && s.Parent != s.ID {
		w.New.Kind, w.ParentID = "subagent", s.Parent
		_, w.ParentCall, _ = strings.Cut(s.ID, "$$")
	}
	w.Notes = jsonx.Object{jsonx.MemberOf("usage", "not recorded")}
	if n := s.Prompt + s.Completion; n > 0 {
		w.Notes = append(w.Notes, jsonx.MemberOf("context_tokens", n))
	}
	t.models = map[string]int{}
}

// message adds a message, whose parts are a list of {type, data}.
func (t *talk) message(r history.Row) {
	key, at := r.Get("id"), history.TimeOf(jsontext.Value(r.Get("created_at")))
	raw := jsontext.Value(r.Get("parts"))
	values, isList := jsonx.ReadArray(raw)
	if !isList || jsonx.DeeperThan(raw, history.MaxDepth) {
		t.whole.Items = append(t.whole.Items, history.RawItem(key, raw, "a message whose parts are no list, or too deep", at))
		return
	}
	var parts []session.Part
	var finish jsonx.Object
	for _, v := range values {
		o, _ := jsonx.ReadFields(v)
		if data := o.Inner("data"); o.String("type") == "finish" {
			finish = data
		} else {
			parts = append(parts, partOf(o.String("type"), data, v)...)
		}
	}
	role := r.Get("role")
	if text := strings.TrimSpace(finish.String("message") + "\n" + finish.String("details")); text != "" &&
		finish.String("reason") == "error" && len(parts) == 0 {
		t.whole.Items = append(t.whole.Items, history.Item{Key: key, Message: history.Note(at, "error: "+text)})
		return
	}
	if len(parts) == 0 {
		t.in.Skip(skipEmpty, 1)
		return
	}
	item := history.Item{Key: key}
	switch {
	case role == "assistant" && r.Get("is_summary_message") == "1":
		item.Message = history.Note(at, (&session.Message{Parts: parts}).Text())
		if n := len(t.whole.Items); n > 0 {
			item.Summary = &history.Compaction{
				Key: key, ThroughKey: t.whole.Items[n-1].Key, Record: history.Place{Key: key},
			}
			item.Summary.Summary, item.Summary.CreatedAt = item.Message.Text(), at
		}
	case role == "assistant":
		item.Message = history.Say(session.Assistant, at, parts...)
		item.Message.Model, item.Message.Provider = r.Get("model"), r.Get("provider")
		t.models[item.Message.Model]++
		item.Open = finish == nil
		if end, ok := finishes[finish.String("reason")]; ok {
			item.Message.Finish = end
		}
	case role == "tool":
		item.Message = history.Say(session.Tool, at, parts...)
	case role == "system":
		item.Message = history.Say(session.System, at, parts...)
	default:
		item.Message = history.Say(session.User, at, parts...)
		if t.whole.New.Kind == "subagent" && len(t.whole.Items) == 0 {
			item.Message.Origin = session.Program // its task
		}
	}
	t.whole.Items = append(t.whole.Items, item)
}

// finishes are the ends of a reply that is not simply over.
var finishes = map[string]session.Finish{
	"max_tokens": session.FinishLength, "canceled": session.FinishAborted, "error": session.FinishError,
	"content_filter": session.FinishRefusal,
}

// partOf returns the part of a message; none of a text that is empty, as beside a command of the shell.
func partOf(kind string, o jsonx.Object, raw jsontext.Value) []session.Part {
	switch kind {
	case "text":
		if o.String("text") == "" {
			return nil
		}
		return []session.Part{session.TextPart(o.String("text"))}
	case "reasoning":
		p := session.Part{Kind: session.PartReasoning, Text: o.String("thinking")}
		p.Extra = o.Only("signature", "thought_signature", "responses_data").Column()
		return []session.Part{p}
	case "tool_call":
		return []session.Part{history.CallPart(o.String("id"), o.String("name"), o.Get("input"))}
	case "tool_result":
		failed := string(o.Get("is_error")) == "true"
		p := history.ResultPart(o.String("tool_call_id"), o.String("name"), o.String("content"), &failed)
		p.Extra = o.Only("metadata", "mime_type").Column()
		return []session.Part{p}
	case "shell_command": // typed by the person
		return []session.Part{session.TextPart("$ " + o.String("command") + "\n" + o.String("output"))}
	case "image_url":
		return history.Blocks(jsonx.Encode("type", "image_url", "image_url", o.String("url")))
	case "binary":
		data, err := base64.StdEncoding.DecodeString(o.String("Data"))
		if mime := o.String("MIMEType"); err == nil && strings.HasPrefix(mime, "text/") {
			p := session.Part{Kind: session.PartData, Text: string(data)}
			p.Extra = jsonx.NewObject("path", history.Plain(o.String("Path"))).Column()
			return []session.Part{p}
		} else if err == nil && len(data) > 0 {
			return []session.Part{history.BlobPart(mime, data)}
		}
	}
	return []session.Part{history.RawPart("part", raw)}
}

// end marks what may still be written, and adds the row of what the session cost itself: its tokens are not known.
func (t *talk) end(cost float64, at session.Time) {
	w := &t.whole
	for i := range w.Items {
		w.Items[i].Open = w.Items[i].Open && i == len(w.Items)-1
	}
	nano, ok := history.NanoUSD(jsontext.Value(strconv.FormatFloat(cost, 'f', 9, 64)))
	if !ok || nano <= 0 {
		return
	}
	c := history.Call{Call: session.Call{ExternalID: "crush:" + w.New.SourceID, CreatedAt: at, CostNanoUSD: &nano}}
	c.Sum, c.Metadata = true, session.JSONOf(map[string]string{"sum": "of the session, without its sub-agents"})
	if len(t.models) == 1 {
		for model := range t.models {
			c.Model = model
		}
	}
	w.Calls = append(w.Calls, c)
}
