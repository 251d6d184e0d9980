package devin

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// reads is the version of this reader. Another one reads every session again.
const reads = 1

// The tables that are read.
const (
	tableSessions = "sessions"
	tableNodes    = "message_nodes"
)

// Reasons to skip that only Devin's sessions have.
const (
	skipCopy  = "copy of a message"
	skipEmpty = "message without words"
	skipUsage = "transcript whose usage the database has"
	skipNone  = "transcript without usage"
	skipAlone = "transcript of a session that is not here"
)

// readDatabase reads the sessions of a database that changed.
func readDatabase(in *history.Intake, db *history.SQLite) {
	has := db.Schema(tableSessions, tableNodes)
	in.Fail(db.TakeErr())
	if in.Err() == nil && !(has.Has(tableSessions, "id") && has.Has(tableNodes, "session_id") &&
		has.Has(tableNodes, "node_id") && has.Has(tableNodes, "chat_message")) {
		in.Fail(session.Errorf(session.Invalid, "no sessions of Devin: it has no tables sessions and message_nodes with "+
			"columns id, session_id, node_id and chat_message"))
	}
	if in.Err() != nil {
		return
	}
	columns := slices.DeleteFunc(slices.Clone(has[tableSessions]), func(name string) bool {
		return !slices.Contains([]string{
			"id", "working_directory", "model", "agent_mode", "backend_type", "created_at", "last_activity_at", "title",
			"main_chain_id", "hidden",
		}, name)
	})
	var rows []history.Row
	db.EachRow(tableSessions, columns, `WHERE id IS NOT NULL ORDER BY `+has.Column(tableSessions, "created_at", "rowid")+`, id`,
		func(r history.Row) { rows = append(rows, r) })
	extents := db.Extents(tableNodes, `MAX(rowid)`, `MIN(rowid)`)
	if in.Fail(db.TakeErr()); in.Err() != nil {
		return
	}
	for _, r := range rows {
		id := r.Get("id")
		part := in.Part(id, fmt.Sprintf("%d %v %q", reads, extents[id], r))
		if part == nil {
			continue
		}
		t := &talk{in: part, nodes: map[string]*node{}, added: map[string]bool{}}
		t.about(r)
		db.EachRow(tableNodes, has[tableNodes], `WHERE session_id = ? ORDER BY rowid`, t.node, id)
		t.end(r.Get("main_chain_id"))
		in.ReadPart(part, id, db, func() { part.AddWhole(&t.whole) })
	}
}

// talk is a session on its way into the store.
type talk struct {
	in     *history.Intake
	whole  history.Whole
	nodes  map[string]*node // by id
	order  []*node
	added  map[string]bool // keys of items
	counts bool            // what it used is counted by its nodes
	used   bool            // a node has it
}

// node is a message in its tree.
type node struct {
	id, parent string
	item       history.Item
	key        string // of its item: the message's name
	known      bool   // it is an item, or a copy of one
	says       bool
}

// The values of the note that says where what a session used is counted.
const (
	byReply      = "of each reply"
	byTranscript = "of its transcript, if there is one"
)

// about says what a session is.
func (t *talk) about(r history.Row) {
	w := &t.whole
	w.Records, w.New.SourceID, w.Title = 1, r.Get("id"), r.Get("title")
	w.New.Directory, w.New.Model = r.Get("working_directory"), r.Get("model")
	w.New.CreatedAt = history.KnownTime(jsontext.Value(r.Get("created_at")))
	changed := history.TimeOf(jsontext.Value(r.Get("last_activity_at")))
	w.Written = changed.Time
	if r.Get("hidden") == "1" && !changed.IsZero() { // the program does not list it any more
		w.Archived = &changed
	}
	t.counts = true
	if here := t.in.Session(w.New.SourceID); here != nil {
		t.in.Calls(here.ID, func(c *session.Call) {
			t.counts = t.counts && !strings.HasPrefix(c.ExternalID, stepName(w.New.SourceID, ""))
		})
	}
}

// node reads a message.
func (t *talk) node(r history.Row) {
	n := &node{id: r.Get("node_id"), parent: r.Get("parent_node_id")}
	at := history.TimeOf(jsontext.Value(r.Get("created_at")))
	n.key = "node " + n.id
	raw := jsontext.Value(r.Get("chat_message"))
	o, ok := jsonx.ReadFields(raw)
	if !ok || jsonx.DeeperThan(raw, history.MaxDepth) {
		n.item, n.says = history.RawItem(n.key, raw, "a message that is no JSON object, or too deep", at), true
	} else {
		if id := o.String("message_id"); id != "" {
			n.key = history.Plain(id)
		}
		if said := history.TimeOf(o.Inner("metadata").Get("created_at")); !said.IsZero() {
			at = said // nodes that are written again have the time of that
		}
		n.says = t.message(&n.item, o, raw, at)
	}
	n.item.Key = n.key
	if _, twice := t.nodes[n.id]; twice {
		t.in.Skip(history.SkipDuplicate, 1)
		return
	}
	t.nodes[n.id] = n
	t.order = append(t.order, n)
}

// message reads what a message says; it is false for one that says nothing and used nothing.
func (t *talk) message(item *history.Item, o jsonx.Object, raw jsontext.Value, at session.Time) bool {
	meta, content := o.Inner("metadata"), o.Get("content")
	parts := history.Blocks(content)
	switch role := o.String("role"); role {
	case "system":
		item.Message = history.Say(session.System, at, parts...)
	case "user":
		item.Message = history.Say(session.User, at, parts...)
		if meta.Has("is_user_input") && string(meta.Get("is_user_input")) != "true" {
			item.Message = history.Hint(at, parts...) // the program keeps the agent going
		}
	case "assistant", "agent":
		if thought := cmp.Or(o.Inner("thinking").String("thinking"), o.String("thinking")); thought != "" {
			p := session.Part{Kind: session.PartReasoning, Text: thought, Extra: o.Inner("thinking").Only("signature").Column()}
			parts = append([]session.Part{p}, parts...)
		}
		for _, call := range jsonx.ReadObjects(o.Get("tool_calls")) {
			function := call.Inner("function")
			if function == nil {
				function = call
			}
			parts = append(parts, history.CallPart(call.String("id"), function.String("name"), function.Get("arguments")))
		}
		item.Message = history.Say(session.Assistant, at, parts...)
		item.Message.Model = cmp.Or(meta.String("generation_model"), t.whole.New.Model)
		if meta.String("finish_reason") == "length" {
			item.Message.Finish = session.FinishLength
		}
		t.usage(item, meta, at)
	case "tool":
		parts = []session.Part{resultOf(o)}
		for _, image := range jsonx.ReadObjects(o.Get("images")) {
			if bytes, ok := wire.Base64(image.String("base64_data")); ok {
				parts = append(parts, history.BlobPart("image/png", bytes))
			}
		}
		item.Message = history.Say(session.Tool, at, parts...)
	default:
		*item = history.RawItem("", raw, "a message whose role is not known", at)
		return true
	}
	return len(item.Message.Parts) > 0 || len(item.Calls) > 0
}

// exitCode is how a result of a command ends.
var exitCode = pattern.New(`(?i)(?:^|\n)Exit code: (-?\d+)`)

// resultOf reads a result. That it failed is known of commands alone, by their exit code.
func resultOf(o jsonx.Object) session.Part {
	text := history.ResultText(o.Get("content"))
	p := history.ResultPart(o.String("tool_call_id"), o.String("name"), text, nil)
	if codes := exitCode.FindAllStringSubmatch(text, -1); len(codes) > 0 {
		p.IsError = new(codes[len(codes)-1][1] != "0")
	}
	return p
}

// usage adds what a reply used, whose input is without caches.
func (t *talk) usage(item *history.Item, meta jsonx.Object, at session.Time) {
	c, ok := callOf(meta.Inner("metrics"))
	if !ok {
		return
	}
	if t.used = true; !t.counts {
		return
	}
	c.Model, c.CreatedAt = item.Message.Model, at
	c.Metadata = session.JSON(meta.Only("request_id", "committed_acu_cost").Column()) // ACUs are no dollars
	item.Calls = []history.Call{c}
}

// callOf reads counts; false where there are none.
func callOf(metrics jsonx.Object) (c history.Call, ok bool) {
	c.InputTokens = history.Count(metrics.Get("input_tokens"))
	c.OutputTokens = history.Count(metrics.Get("output_tokens"))
	c.CacheReadTokens = history.Count(metrics.Get("cache_read_tokens"))
	c.CacheWriteTokens = history.Count(metrics.Get("cache_creation_tokens"))
	return c, c.ContextTokens()+c.OutputTokens > 0
}

// end makes items of the nodes: first the conversation, then what was abandoned. A message that stands in several nodes
// is one.
func (t *talk) end(head string) {
	w := &t.whole
	chain := t.chain(head)
	for _, n := range chain {
		t.add(n, false)
	}
	for _, n := range t.order {
		t.add(n, true)
	}
	where := byTranscript
	if t.used && t.counts {
		where = byReply
	}
	w.Notes = jsonx.Object{jsonx.MemberOf("usage", where)}
	w.Items = history.Ordered(w.Items)
}

// chain returns the nodes from the root to the one that is the head, else to the newest one.
func (t *talk) chain(head string) (chain []*node) {
	at := t.nodes[head]
	if at == nil && len(t.order) > 0 {
		at = t.order[len(t.order)-1]
	}
	for at != nil && !at.known {
		at.known = true // also ends a circle
		chain = append(chain, at)
		at = t.nodes[at.parent]
	}
	for _, n := range chain {
		n.known = false
	}
	slices.Reverse(chain)
	return chain
}

// add adds the item of a node. What one that says nothing is followed by follows the one before it.
func (t *talk) add(n *node, aside bool) {
	if n.known {
		return
	}
	n.known = true
	w := &t.whole
	parent := t.nodes[n.parent]
	above := ""
	for hops := 0; parent != nil && hops < len(t.order); hops++ {
		if parent.says {
			above = parent.key
			break
		}
		parent = t.nodes[parent.parent]
	}
	switch {
	case !n.says:
		t.in.Skip(skipEmpty, 1)
		return
	case t.added[n.key]:
		t.in.Skip(skipCopy, 1)
		return
	}
	t.added[n.key] = true
	item := n.item
	item.Aside, item.Parent, item.Root = aside, above, above == ""
	for i := range item.Calls {
		item.Calls[i].ExternalID = "devin:" + w.New.SourceID + ":" + n.key
	}
	w.Items = append(w.Items, item)
	if !aside {
		w.Head = item.Key
	}
}

// stepName names the usage of a step of a transcript.
func stepName(id, step string) string { return "devin:" + id + ":step " + step }

// readTranscript counts what a transcript says that a session used, where the database does not say it. Its messages
// are those of the database.
func readTranscript(in *history.Intake) {
	text := in.Bytes(0, in.Found.Size)
	o, ok := jsonx.ReadFields(history.Unmarked(text))
	steps, isList := jsonx.ReadArray(o.Get("steps"))
	id := history.Plain(cmp.Or(o.String("session_id"), strings.TrimSuffix(filepath.Base(in.Found.Path), ".json")))
	switch {
	case in.Err() != nil:
		return
	case !ok && !in.Quiet():
		in.LookAgain() // it is being written
		return
	case !ok || !isList || jsonx.DeeperThan(text, history.MaxDepth):
		in.Fail(session.Errorf(session.Invalid, "no transcript of Devin, or cut off: it has no list `steps`"))
		return
	}
	here := in.Session(id)
	if here == nil {
		in.Await(id)
		in.Skip(skipAlone, 1)
		return
	}
	calls := callsOf(o, steps, id, here)
	switch {
	case history.Notes(here, string(session.SourceDevin)).String("usage") == byReply:
		in.Skip(skipUsage, 1)
	case len(calls) == 0:
		in.Skip(skipNone, 1)
	default:
		talk := in.Conversation(history.NewSession{Source: session.SourceDevin, SourceID: id})
		if last := calls[len(calls)-1].ExternalID; in.CallOwner(last) == nil {
			in.Import(1)
		} else {
			in.Skip(history.SkipKnown, 1)
		}
		for _, c := range calls {
			talk.Call(c)
		}
	}
}

// callsOf returns what the steps of a transcript used. Its public format counts what was read from a cache in the
// prompt; an older place of the numbers does not.
func callsOf(o jsonx.Object, steps []jsontext.Value, id string, here *session.Session) (calls []history.Call) {
	for i, raw := range steps {
		step, _ := jsonx.ReadFields(raw)
		meta, extra := step.Inner("metadata"), step.Inner("extra")
		c, ok := callOf(meta.Inner("metrics"))
		note := map[string]any{}
		if metrics := step.Inner("metrics"); metrics != nil {
			prompt, cached := history.Count(metrics.Get("prompt_tokens")), history.Count(metrics.Get("cached_tokens"))
			c = history.Call{Call: session.Call{InputTokens: prompt, CacheReadTokens: cached}}
			if cached <= prompt {
				c.InputTokens = prompt - cached
			}
			c.OutputTokens = history.Count(metrics.Get("completion_tokens"))
			c.CacheWriteTokens = history.Count(metrics.Inner("extra").Get("cache_creation_input_tokens"))
			ok = c.ContextTokens()+c.OutputTokens > 0
			if note["input"] = "prompt_tokens as written"; cached > 0 && cached <= prompt {
				note["input"] = "prompt_tokens without cached_tokens"
			}
		}
		if !ok {
			continue
		}
		name := cmp.Or(step.String("step_id"), string(step.Get("step_id")), strconv.Itoa(i+1))
		c.ExternalID, c.Directory = stepName(id, history.Plain(name)), here.Directory
		c.Model = history.Plain(cmp.Or(meta.String("generation_model"), extra.String("generation_model"),
			step.String("model_name"), o.Inner("agent").String("model_name"), here.Model))
		for _, at := range []jsontext.Value{meta.Get("created_at"), step.Get("timestamp"), step.Get("created_at")} {
			if c.CreatedAt.IsZero() {
				c.CreatedAt = history.TimeOf(at)
			}
		}
		if c.CreatedAt.IsZero() {
			c.CreatedAt = here.CreatedAt
		}
		for _, acu := range []jsontext.Value{meta.Get("committed_acu_cost"), extra.Get("committed_acu_cost")} {
			if n, isNumber := history.Number(acu); isNumber {
				note["committed_acu_cost"] = n
			}
		}
		if len(note) > 0 {
			c.Metadata = session.JSONOf(note)
		}
		calls = append(calls, c)
	}
	return calls
}
