package cursor

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// The tables that are read. Of the items only those with the keys below are: others are login tokens.
const (
	tableItems   = "ItemTable"
	tableValues  = "cursorDiskKV"
	tableHeaders = "composerHeaders"
	tableBlobs   = "blobs"
	tableMeta    = "meta"
)

// Keys of items that are read.
const (
	itemHeaders = "composer.composerHeaders"
	itemIndex   = "composer.composerData"
	itemChats   = "workbench.panel.aichat.view.aichat.chatdata"
)

// Beginnings of keys of values.
const (
	keyComposer = "composerData:"
	keyBubble   = "bubbleId:"
	keyBlob     = "agentKv:blob:"
)

// reads is the version of this reader. Another one reads every conversation again.
const reads = 1

// editor is one database of the editor in one snapshot: the one of all conversations, or that of a workspace.
type editor struct {
	*history.SQLite
	in  *history.Intake
	has history.Schema

	heads     map[string]jsonx.Object // what indexes say of conversations, by id
	composers []composer
	bubbles   map[string]*extent // bubbles by conversation
	calls     map[string]string  // conversations by the calls that they made
	folders   map[string]string  // of conversations, by their ids, and of workspaces, by theirs; nil: not read yet
	newest    time.Time          // the last change of the conversation that is read
}

// composer is a conversation of the editor, as its row says it.
type composer struct {
	id, parent string
	created    session.Time
	print      string // of the row
}

// extent says how many bubbles a conversation has, and what changes with them.
type extent struct {
	count int
	print [sha256.Size]byte
}

// readDatabase reads a database of the editor or of the CLI agent.
func readDatabase(in *history.Intake, db *history.SQLite) {
	e := &editor{
		SQLite: db, in: in, heads: map[string]jsonx.Object{}, bubbles: map[string]*extent{}, calls: map[string]string{},
	}
	e.has = db.Schema(tableItems, tableValues, tableHeaders, tableBlobs, tableMeta)
	switch {
	case !e.ok():
	case e.has.Has(tableItems, "value"):
		e.read()
	case e.has.Has(tableBlobs, "data") && e.has.Has(tableMeta, "value"):
		readAgent(in, db)
	default:
		in.Fail(session.Errorf(session.Invalid,
			"no database of Cursor: it has neither the editor's table ItemTable nor the tables blobs and meta of its agent"))
	}
}

// ok reports whether the queries until now found what they asked for.
func (e *editor) ok() bool {
	e.in.Fail(e.TakeErr())
	return e.in.Err() == nil
}

// item reads the item of a key, nil if there is none.
func (e *editor) item(key string) jsonx.Object {
	return e.object(`SELECT CAST(value AS BLOB) FROM ItemTable WHERE key = ? AND value IS NOT NULL`, key)
}

// value reads the value of a key.
func (e *editor) value(key string) []byte {
	var found [][]byte
	e.Select(&found, `SELECT CAST(value AS BLOB) FROM cursorDiskKV WHERE key = ? AND value IS NOT NULL`, key)
	if len(found) == 0 {
		return nil
	}
	return found[0]
}

func (e *editor) object(query, key string) jsonx.Object {
	var found [][]byte
	if e.Select(&found, query, key); len(found) == 0 {
		return nil
	}
	o, _ := jsonx.ReadObject(found[0])
	return o
}

func (e *editor) read() {
	e.readHeads()
	e.chats()
	if e.has.Has(tableValues, "value") {
		e.readBubbles()
		e.readComposers()
	} else if e.has.Has(tableValues, "key") {
		e.in.Problem(0, "its table cursorDiskKV has no column value and was left out")
	}
	if !e.ok() {
		return
	}
	e.inlined()
	for _, c := range e.composers {
		e.composer(c)
	}
	e.orphans()
	e.ok()
}

// readHeads reads the indexes of conversations, the newest last.
func (e *editor) readHeads() {
	for _, head := range jsonx.ReadObjects(e.item(itemHeaders).Get("allComposers")) {
		e.heads[head.String("composerId")] = head
	}
	if !e.has.Has(tableHeaders, "composerId") || !e.has.Has(tableHeaders, "value") {
		return
	}
	e.Each(func(rows *sqlx.Rows) error {
		var text []byte
		if err := rows.Scan(&text); err != nil {
			return err
		}
		if head, ok := jsonx.ReadObject(text); ok {
			e.heads[head.String("composerId")] = head
		}
		return nil
	}, `SELECT CAST(value AS BLOB) FROM composerHeaders WHERE value IS NOT NULL`)
}

// eachKey visits the keys with a beginning, which ends with a colon, and the sizes of their values; -1: there is none.
func (e *editor) eachKey(beginning string, visit func(key string, size int64)) {
	end := strings.TrimSuffix(beginning, ":") + ";" // the character behind a colon
	e.Each(func(rows *sqlx.Rows) error {
		var key string
		var size int64
		if err := rows.Scan(&key, &size); err != nil {
			return err
		}
		visit(key, size)
		return nil
	}, `SELECT CAST(key AS TEXT), COALESCE(octet_length(value), -1) FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY key`,
		beginning, end)
}

// readBubbles reads which bubbles there are. The id of a conversation may hold colons.
func (e *editor) readBubbles() {
	e.eachKey(keyBubble, func(key string, size int64) {
		of := key[len(keyBubble):]
		of = of[:max(strings.LastIndexByte(of, ':'), 0)]
		x := e.bubbles[of]
		if x == nil {
			x = &extent{}
			e.bubbles[of] = x
		}
		x.count++
		x.print = sha256.Sum256(fmt.Appendf(x.print[:], "%s %d", key, size))
	})
}

// readComposers lists the conversations, each behind the one that started it, else the oldest first.
func (e *editor) readComposers() {
	var ids []string
	e.eachKey(keyComposer, func(key string, size int64) {
		if size < 0 {
			e.in.Skip(skipNull, 1)
			return
		}
		ids = append(ids, key[len(keyComposer):])
	})
	byID := map[string]*composer{}
	for _, id := range ids {
		raw := e.value(keyComposer + id)
		o, _ := jsonx.ReadObject(raw)
		sum := sha256.Sum256(append(raw, e.heads[id].Value()...))
		c := composer{id: id, created: history.TimeOf(o.Get("createdAt")), print: hex.EncodeToString(sum[:12])}
		c.parent, _ = e.startOf(id, o)
		e.composers = append(e.composers, c)
		byID[id] = &c
	}
	depth := func(c composer) (n int) {
		for at := byID[c.parent]; at != nil && n < history.MaxForks; at = byID[at.parent] {
			n++
		}
		return n
	}
	slices.SortStableFunc(e.composers, func(a, b composer) int {
		return cmp.Or(depth(a)-depth(b), a.created.Compare(b.created.Time), strings.Compare(a.id, b.id))
	})
}

// startOf returns which conversation started another one, and the call in it.
func (e *editor) startOf(id string, o jsonx.Object) (parent, call string) {
	for _, about := range []jsonx.Object{o.Inner("subagentInfo"), e.heads[id].Inner("subagentInfo")} {
		if parent := about.String("parentComposerId"); parent != "" && parent != id {
			return parent, about.String("toolCallId")
		}
	}
	if call, ok := strings.CutPrefix(id, taskPrefix); ok {
		return e.calls[call], call
	}
	return "", ""
}

// taskPrefix begins the ids of sub-agents of older versions, before the id of the call that started them.
const taskPrefix = "task-"

// nameOf returns the id of a conversation on one line.
func nameOf(id string) string { return history.Plain(strings.ReplaceAll(id, "\n", "/")) }

// composer reads one conversation if it changed. One that is damaged is a problem, and the next one is read.
func (e *editor) composer(c composer) {
	name := nameOf(c.id)
	extent := cmp.Or(e.bubbles[c.id], &extent{})
	delete(e.bubbles, c.id)
	part := e.in.Part(name, fmt.Sprint(reads, c.print, extent.count, hex.EncodeToString(extent.print[:12])))
	if part == nil {
		return
	}
	data, ok := jsonx.ReadObject(e.value(keyComposer + c.id))
	w := e.about(c.id, data)
	switch {
	case !ok:
		part.Skip("row that is no JSON object", 1)
		part.Problem(0, "session "+name+": its row composerData is no JSON object")
	case data.Get("conversation") != nil:
		e.inline(w, data)
	default:
		e.listed(part, w, c.id, data)
	}
	e.in.ReadPart(part, name, e.SQLite, func() {
		if ok {
			part.AddWhole(w)
		}
	})
}

// about says what a conversation is.
func (e *editor) about(id string, data jsonx.Object) *history.Whole {
	head := e.heads[id]
	w := &history.Whole{Records: 1}
	w.New.SourceID = nameOf(id)
	w.New.CreatedAt = cmp.Or(history.KnownTime(data.Get("createdAt")), history.KnownTime(head.Get("createdAt")))
	w.New.GitBranch = data.String("createdOnBranch")
	w.Title = cmp.Or(head.String("name"), data.String("name"))
	w.New.Directory = e.folderOf(id, head, data)
	w.ParentID, w.ParentCall = e.startOf(id, data)
	w.ParentID = nameOf(w.ParentID)
	if w.ParentID != "" || strings.HasPrefix(id, taskPrefix) || string(head.Get("isSubagent")) == "true" {
		w.New.Kind = "subagent"
	}
	w.New.Model = modelOf(data.Inner("modelConfig").String("modelName"))
	e.newest = time.Time{}
	for _, o := range []jsonx.Object{data, head} {
		if at := history.TimeOf(o.Get("lastUpdatedAt")); at.After(e.newest) {
			e.newest = at.Time
		}
	}
	if string(head.Get("isArchived")) == "true" || string(data.Get("isArchived")) == "true" {
		w.Archived = new(session.At(cmp.Or(e.newest, time.Unix(1, 0))))
	}
	for _, note := range []struct{ name, key string }{
		{"mode", "unifiedMode"},
		{"status", "status"},
		{"context_tokens", "contextTokensUsed"},
		{"context_limit", "contextTokenLimit"},
	} {
		if v := data.Get(note.key); v != nil && len(v) < 100 {
			w.Notes = append(w.Notes, jsonx.Member{Key: note.name, Value: v})
		}
	}
	at := session.At(e.newest)
	if e.newest.IsZero() && w.New.CreatedAt != nil {
		at = *w.New.CreatedAt
	}
	w.Calls = costs(w.New.SourceID, data, at)
	return w
}

// inline reads a conversation of the first versions, whose bubbles lie in its row, and its calls beside them.
func (e *editor) inline(w *history.Whole, data jsonx.Object) {
	tools := map[string]jsonx.Object{}
	for _, capability := range jsonx.ReadObjects(data.Get("capabilities")) {
		text := capability.Inner("data").String("bubbleDataMap")
		if n, _ := history.Number(capability.Get("type")); n != capabilityTool {
			continue
		}
		byBubble, _ := jsonx.ReadObject([]byte(text))
		for _, m := range byBubble {
			tools[m.Key], _ = jsonx.ReadFields(m.Value)
		}
	}
	for i, o := range jsonx.ReadObjects(data.Get("conversation")) {
		b := &bubble{Object: o, id: o.String("bubbleId"), model: w.New.Model, tool: o.Inner("toolFormerData")}
		if b.id == "" {
			b.id = fmt.Sprint("bubble ", i+1)
		}
		if len(b.tool) == 0 {
			b.tool = tools[b.id]
		}
		e.addBubble(w, b, true)
	}
}

// addBubble adds the messages of a bubble.
func (e *editor) addBubble(w *history.Whole, b *bubble, listed bool) {
	items := b.items()
	if len(items) == 0 {
		return
	}
	if id := b.tool.String("toolCallId"); id != "" {
		e.calls[id] = w.New.SourceID
	}
	if at := b.at(); at.After(e.newest) && listed {
		e.newest = at.Time
	}
	for i := range items {
		if items[i].NoRecords = true; !listed {
			items[i].Aside, items[i].Root = true, i == 0
			items[i].Message.InContext = false
		}
		if i > 0 && !listed {
			items[i].Parent = items[0].Key
		}
	}
	items[0].NoRecords = false
	w.Items = append(w.Items, items...)
}

// listed reads a conversation whose bubbles are rows: those that its list names, in that order, then the others,
// which were edited or taken back and have no place any more. One without a list may have an agent's state.
func (e *editor) listed(part *history.Intake, w *history.Whole, id string, data jsonx.Object) {
	w.Written = e.newest
	rows := map[string]*bubble{}
	var order []string
	beginning := keyBubble + id + ":"
	e.Each(func(found *sqlx.Rows) error {
		var key string
		var raw []byte
		if err := found.Scan(&key, &raw); err != nil {
			return err
		}
		name := key[len(beginning):]
		if strings.ContainsRune(name, ':') {
			return nil // of a conversation whose id begins like this one's
		}
		if raw == nil {
			part.Skip(skipNull, 1)
			return nil
		}
		order = append(order, name)
		if o, ok := jsonx.ReadObject(raw); ok {
			rows[name] = &bubble{Object: o, id: name, tool: o.Inner("toolFormerData"), model: w.New.Model}
		} else {
			rows[name] = nil
			w.Items = append(w.Items, broken(name, raw))
		}
		return nil
	}, `SELECT CAST(key AS TEXT), CAST(value AS BLOB) FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY key`, beginning,
		beginning[:len(beginning)-1]+";")
	aside := w.Items
	w.Items = nil
	done := map[string]bool{}
	heads := jsonx.ReadObjects(data.Get("fullConversationHeadersOnly"))
	for _, head := range heads {
		name := head.String("bubbleId")
		if b := rows[name]; b != nil && !done[name] {
			done[name] = true
			e.add(part, w, b, true)
		}
	}
	if n := len(w.Items); n > 0 && data.String("status") == "generating" {
		w.Items[n-1].Open = true
	}
	if len(w.Items) == 0 && len(heads) == 0 {
		e.fromState(part, w, data)
	}
	for _, name := range order {
		if b := rows[name]; b != nil && !done[name] {
			e.add(part, w, b, false)
		}
	}
	w.Items = append(w.Items, aside...)
	w.Written = e.newest
}

func (e *editor) add(part *history.Intake, w *history.Whole, b *bubble, listed bool) {
	before := len(w.Items)
	if e.addBubble(w, b, listed); len(w.Items) == before {
		part.Skip(skipEmpty, 1)
	}
}

func broken(name string, raw []byte) history.Item {
	item := history.RawItem(name, raw, "a bubble that is no JSON object", session.Time{})
	item.Aside = true
	return item
}

// fromState reads the messages of a conversation that has no bubbles, only the state of an agent.
func (e *editor) fromState(part *history.Intake, w *history.Whole, data jsonx.Object) {
	encoded, ok := strings.CutPrefix(data.String("conversationState"), "~")
	root, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(root) == 0 {
		return
	}
	s, ok := newState(root, func(id string) []byte { return e.value(keyBlob + id) }, w.New.Model)
	if !ok {
		return
	}
	if s.into(w); s.lost > 0 {
		part.Problem(0, "session "+w.New.SourceID+": "+s.lostText())
	}
}

// orphans reads bubbles whose conversation has no row any more, in the order of their times.
func (e *editor) orphans() {
	ids := make([]string, 0, len(e.bubbles))
	for id := range e.bubbles {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		extent := e.bubbles[id]
		part := e.in.Part(nameOf(id), fmt.Sprint(reads, extent.count, hex.EncodeToString(extent.print[:12])))
		if part == nil {
			continue
		}
		w := e.about(id, nil)
		w.Records = 0
		w.Notes = append(w.Notes, jsonx.MemberOf("recovered", "its row is gone"))
		e.listed(part, w, id, nil)
		slices.SortStableFunc(w.Items, func(a, b history.Item) int {
			return a.Message.CreatedAt.Compare(b.Message.CreatedAt.Time)
		})
		for i := range w.Items {
			if item := &w.Items[i]; !item.Raw {
				item.Aside, item.Root, item.Parent, item.Message.InContext = false, false, "", true
			}
		}
		e.in.ReadPart(part, nameOf(id), e.SQLite, func() { part.AddWhole(w) })
	}
}

// inlined reads the conversations of the oldest versions, which lie whole in the index of a workspace.
func (e *editor) inlined() {
	for _, data := range jsonx.ReadObjects(e.item(itemIndex).Get("allComposers")) {
		id := data.String("composerId")
		if id == "" || data.Get("conversation") == nil {
			continue
		}
		if part, _ := e.in.RecordPart(nameOf(id), data.Value(), reads); part != nil {
			w := e.about(id, data)
			w.New.Directory = cmp.Or(w.New.Directory, workspaceFolder(filepath.Dir(e.in.Found.Path)))
			e.inline(w, data)
			e.in.ReadPart(part, id, e.SQLite, func() { part.AddWhole(w) })
		}
	}
}

// chats reads the chats of 2023 and 2024, which lie in the database of their workspace.
func (e *editor) chats() {
	for _, tab := range jsonx.ReadObjects(e.item(itemChats).Get("tabs")) {
		id := tab.String("tabId")
		if id == "" {
			continue
		}
		part, _ := e.in.RecordPart(nameOf(id), tab.Value(), reads)
		if part == nil {
			continue
		}
		w := &history.Whole{Records: 1, Title: tab.String("chatTitle")}
		w.New.SourceID, w.New.CreatedAt = nameOf(id), history.KnownTime(tab.Get("lastSendTime"))
		w.New.Directory = workspaceFolder(filepath.Dir(e.in.Found.Path))
		for i, o := range jsonx.ReadObjects(tab.Get("bubbles")) {
			text := cmp.Or(o.String("rawText"), o.String("text"))
			item := history.Item{Key: cmp.Or(o.String("id"), fmt.Sprint("bubble ", i+1))}
			if o.String("type") == "user" {
				item.Message = history.Say(session.User, session.Time{}, session.TextPart(text))
			} else {
				item.Message = history.Say(session.Assistant, session.Time{}, session.TextPart(text))
				item.Message.Model = modelOf(o.String("modelType"))
			}
			w.Items = append(w.Items, item)
		}
		e.in.ReadPart(part, id, e.SQLite, func() { part.AddWhole(w) })
	}
}
