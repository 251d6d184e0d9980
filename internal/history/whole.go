package history

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Whole is a session that its reader decodes whole at each reading: of a program that writes the session's file anew,
// or whose rows change where they stand. AddWhole stores what is new in it.
//
// A message is known again by its key. If it says something else than before, or follows another message, it is another
// version of it: a branch beside the older one, with what follows it.
type Whole struct {
	New      NewSession
	Title    string       // that the program keeps; "": the store makes one of the first prompt
	Notes    jsonx.Object // of the session's metadata, under the program's name
	Archived *session.Time
	Records  int    // of the source, that describe the session
	Older    bool   // what is stored of the session is newer: its head, title and fields stay
	Items    []Item // each behind the one that it follows
	After    string // key of the stored message that the first item follows; "": none
	Head     string // key of the item at the end of the conversation; "": the last one that is not aside
	Calls    []Call // of no item, or of the one whose key MessageKey is

	Origins []*session.Session // that it was forked from, the nearest first

	// The session of the program that started this one, and the call in it.
	ParentID, ParentCall string
	StartedIn            func(*session.Message) string // as Conversation.StartedIn, where ParentCall is not known
	Parent               *Conversation                 // of the same found thing, that started it; ParentKey: its message
	ParentKey            string
	// Written is when the program last wrote the session, where the found thing holds others, too.
	Written time.Time

	keys map[string]string // of items: the key of the version that is stored
}

// KeyOf returns the key under which AddWhole stored an item, "" for one that waits or was left out.
func (w *Whole) KeyOf(item string) string { return w.keys[item] }

// Item is what one or some records of a source become: a message, and what belongs to it.
type Item struct {
	Key    string
	Parent string // key of the item that it follows; "": the one before that is not aside
	Root   bool   // it follows none
	Aside  bool   // out of the conversation: the next item does not follow it unless it says so

	Message session.Message
	Extra   jsonx.Object // of the message
	Calls   []Call
	Summary *Compaction // an overlay of the items before it: its places are keys of items

	Records   int   // that it stands for; 0: one
	NoRecords bool  // another item stands for its record
	At        int64 // where its last record begins, in a file of lines
	Line      int   // of its record, for a problem
	Raw       bool  // it was not understood
	Problem   string
	Open      bool // its program may still write on it: it waits, with what follows
}

// Say makes a message of the conversation; who made it follows from the role.
func Say(role session.Role, at session.Time, parts ...session.Part) session.Message {
	m := session.Message{
		Kind: session.KindMessage, Role: role, Origin: role.DefaultOrigin(), InContext: true, Display: true, CreatedAt: at,
		Parts: parts,
	}
	if role == session.System {
		m.InContext, m.Display = false, false
	}
	if role == session.Assistant {
		m.Finish = session.FinishStop
		if len(m.Calls()) > 0 {
			m.Finish = session.FinishToolCalls
		}
	}
	return m
}

// Hint makes a message that the program gives the model without showing it.
func Hint(at session.Time, parts ...session.Part) session.Message {
	m := Say(session.User, at, parts...)
	m.Origin, m.Display = session.Program, false
	return m
}

// Note makes a message out of the context: what the program shows, or what happened.
func Note(at session.Time, text string) session.Message {
	m := session.Message{
		Kind: session.KindMarker, Origin: session.Program, Display: true, CreatedAt: at,
		Parts: []session.Part{session.TextPart(text)},
	}
	return m
}

// RawItem keeps a record that was not understood, out of the conversation's context.
func RawItem(key string, raw []byte, why string, at session.Time) Item {
	return Item{
		Key: key, Message: Verbatim(raw, why), Raw: true,
		Problem: fmt.Sprintf("%s; %d bytes kept raw", why, len(raw)),
	}.dated(at)
}

func (i Item) dated(at session.Time) Item {
	i.Message.CreatedAt = at
	return i
}

// SkipSilent says why nothing of a session is stored.
const SkipSilent = "session in which nobody spoke"

// whole is a Whole on its way into the store.
type whole struct {
	*Whole
	in     *Intake
	talk   *Conversation
	own    *Prints
	tip    string            // key of the item that the next one follows
	at     session.Time      // of the item before
	prints map[string]string // of the items that were added, by key
	// a part of it waits
	waits bool
}

// AddWhole stores what is new in a session. talk is nil if nobody spoke in it yet: then it is counted alone.
func (in *Intake) AddWhole(w *Whole) (talk *Conversation) {
	if in.Err() != nil {
		return nil
	}
	w.clean()
	if !w.speaks() && in.Session(w.New.SourceID) == nil {
		in.skipWhole(w)
		return nil
	}
	w.keys = map[string]string{}
	a := &whole{Whole: w, in: in, own: NewPrints(nil), prints: map[string]string{}}
	if w.After != "" {
		w.keys[w.After], a.tip = w.After, w.After
	}
	a.begin()
	for i := range w.Items {
		item := &w.Items[i]
		if item.Open && in.ReplyWaitsSince(a.written(), item.says(), len(item.Message.Calls()) > 0 || !item.says()) {
			in.Wait(item.At, w.count(w.Items[i:]))
			a.waits = true
			break
		}
		a.add(item)
	}
	a.end()
	return a.talk
}

// skipWhole counts a session of which nothing is stored. Its records are offered again when there is more of them. What
// could not be read is reported all the same.
func (in *Intake) skipWhole(w *Whole) {
	for i := range w.Items {
		if item := &w.Items[i]; item.Problem != "" {
			in.problem(item.Line, item.Problem)
		}
	}
	in.records.skipImported(SkipSilent)
	in.Skip(SkipSilent, w.Records+w.count(w.Items))
	in.end, in.held = 0, true
}

// clean makes what columns hold storable.
func (w *Whole) clean() {
	for _, text := range []*string{
		&w.Title, &w.New.SourceID, &w.New.Title, &w.New.Directory, &w.New.GitBranch, &w.New.Model, &w.New.Provider,
		&w.New.Kind, &w.ParentID, &w.ParentCall,
	} {
		*text = Plain(*text)
	}
	w.Title = FirstLine(w.Title)
}

func (w *Whole) count(items []Item) (records int) {
	for i := range items {
		records += items[i].records()
	}
	return records
}

func (i *Item) records() int {
	if i.NoRecords {
		return 0
	}
	return max(i.Records, 1)
}

func (i *Item) says() bool {
	m := &i.Message
	return m.Kind == session.KindMessage && m.Role != session.System && m.Origin != session.Program && len(m.Parts) > 0
}

func (w *Whole) speaks() bool {
	return slices.ContainsFunc(w.Items, func(i Item) bool { return i.says() })
}

func (a *whole) written() time.Time {
	if a.Written.IsZero() {
		return a.in.Found.ModifiedAt
	}
	return a.Written
}

// begin begins the conversation, with what the program says of it now.
func (a *whole) begin() {
	new := &a.New
	new.Source = a.in.source
	if new.CreatedAt == nil {
		new.CreatedAt = a.earliest()
	}
	a.at = *new.CreatedAt
	new.Title, new.TitleSource = Titled(a.Title, a.task())
	if len(a.Notes) > 0 {
		new.Metadata = jsonx.Object{{Key: string(new.Source), Value: a.Notes.Value()}}.Column()
	}
	a.talk = a.in.Conversation(*new)
	here := a.talk.Here
	a.link()
	switch {
	case a.in.Continues(): // they were counted
	case here == nil:
		a.in.Import(a.Records)
	default:
		a.in.Skip(SkipKnown, a.Records)
	}
	if here != nil {
		a.own.Load(a.in, here)
	}
	for _, origin := range a.Origins { // copies of its messages are those versions of them
		for s := range a.in.Line(origin) {
			a.own.Load(a.in, s)
		}
	}
	if here == nil {
		if a.Archived != nil {
			a.talk.Change().ArchivedAt = a.Archived
		}
		return
	}
	if a.Older {
		a.talk.KeepHead = true
		return
	}
	change := a.talk.Change()
	change.ArchivedAt = a.Archived // the model is that of the last reply
	change.Directory, change.GitBranch, change.Metadata = new.Directory, new.GitBranch, session.JSON(a.Notes.Column())
	if here.Title != a.Title {
		a.talk.Title = a.Title
	}
}

// task returns a title for a sub-agent: what it was asked. The store makes one of what a person says.
func (a *whole) task() string {
	if a.New.Kind != "subagent" {
		return ""
	}
	for i := range a.Items {
		if m := &a.Items[i].Message; m.Role == session.User && m.Display {
			return session.TitleOf(Plain(m.Text()))
		}
	}
	return ""
}

// earliest returns the first time that an item has, else that of the found thing.
func (a *whole) earliest() *session.Time {
	for i := range a.Items {
		if at := a.Items[i].Message.CreatedAt; !at.IsZero() {
			return &at
		}
	}
	return new(session.At(a.written()))
}

// link links the session to the one that it came from.
func (a *whole) link() {
	if len(a.Origins) > 0 {
		a.talk.ForkedFrom(a.Origins...)
		a.talk.LinkTo(a.Origins[0], session.ParentFork, nil)
	}
	if a.Parent != nil {
		a.talk.New.Directory = cmp.Or(a.talk.New.Directory, a.Parent.New.Directory)
		a.talk.StartedByCall(a.Parent, a.ParentKey, a.ParentCall)
		return
	}
	if a.ParentID == "" || a.ParentID == a.New.SourceID {
		return
	}
	parent := a.talk.LinkOrAwait(a.ParentID, session.ParentChild)
	if parent == nil {
		return
	}
	a.talk.New.Directory = cmp.Or(a.talk.New.Directory, parent.Directory)
	if a.StartedIn != nil {
		a.talk.StartedIn(parent.ID, a.StartedIn)
	}
	if a.ParentCall == "" {
		return
	}
	a.talk.StartedIn(parent.ID, func(m *session.Message) string {
		if slices.ContainsFunc(m.Calls(), func(p *session.Part) bool { return p.CallID == a.ParentCall }) {
			return a.ParentCall
		}
		return ""
	})
}

// add adds an item.
func (a *whole) add(item *Item) {
	m := &item.Message
	item.Key, item.Parent = Plain(item.Key), Plain(item.Parent)
	if store.SizeOf(m) > MaxLine {
		a.in.SkipAt(item.At, SkipTooLarge, item.records())
		a.in.problem(item.Line, fmt.Sprintf("message %s of session %s is over %d MiB; left out", Plain(item.Key),
			a.New.SourceID, MaxLine>>20))
		a.keys[item.Key] = a.keys[a.parentOf(item)]
		return
	}
	a.complete(item)
	print := printOf(m)
	item.Extra.SetText("hash", print)
	m.Extra = session.JSON(Plain(item.Extra.Column()))
	parent := a.keys[a.parentOf(item)]
	key, twice := a.version(item.Key, print, parent)
	if twice {
		a.in.SkipAt(item.At, SkipDuplicate, item.records())
		return
	}
	a.keys[item.Key] = key
	a.talk.Add(Entry{
		Key: key, Parent: parent, Records: item.Records, NoRecords: item.NoRecords, At: item.At, Line: item.Line,
		Decode: func() Decoded {
			d := Alone(*m)
			d.Raw, d.Problem = item.Raw, item.Problem
			return d
		},
	})
	for _, c := range item.Calls {
		c.MessageKey = key
		a.call(c)
	}
	if !item.Aside {
		a.tip = item.Key
	}
	if item.Summary != nil {
		a.compact(item.Summary)
	}
}

// parentOf returns the key of the item that an item follows; "": it begins a conversation.
func (a *whole) parentOf(item *Item) string {
	switch {
	case item.Root:
		return ""
	case item.Parent != "":
		return item.Parent
	}
	return a.tip
}

// version returns the key of the version of an item that says what it says now, behind the message that it follows now.
// twice is true for an item that stood in the session before.
func (a *whole) version(key, print, parent string) (version string, twice bool) {
	name := key
	for before, again := a.prints[key]; again; before, again = a.prints[key] {
		if before == print {
			return "", true
		}
		key = name + "#" + print[:12]
	}
	a.prints[key] = print
	behind := sha256.Sum256([]byte(print + "\n" + parent))
	for _, version := range []string{key, key + "~" + print[:12]} {
		here := a.own.Get(version)
		if here == nil || (here.Print == print || here.Print == "") && (a.Older || a.own.follow(here, parent)) {
			return version, false
		}
	}
	return key + "~" + hex.EncodeToString(behind[:6]), false
}

// complete fills in what every message needs. A time that the program did not write is that of the item before, and
// the message says so.
func (a *whole) complete(item *Item) {
	m := &item.Message
	m.Dialect = string(a.in.source)
	if m.CreatedAt.IsZero() {
		m.CreatedAt = a.at
		item.Extra = append(item.Extra, jsonx.MemberOf("time", "not recorded"))
	}
	a.at = m.CreatedAt
	if len(m.Parts) > session.MaxParts {
		m.Parts, item.Problem = m.Parts[:session.MaxParts], "a message of more than 1,024 parts; the rest was left out"
	}
	m.Provider, m.Model, m.Author = Plain(m.Provider), Plain(m.Model), Plain(m.Author)
	for i := range m.Parts {
		p := &m.Parts[i]
		p.Text, p.CallID, p.ToolName, p.Arguments = Plain(p.Text), Plain(p.CallID), Plain(p.ToolName), Plain(p.Arguments)
		p.Extra = session.JSON(Plain(p.Extra))
	}
}

func (a *whole) call(c Call) {
	c.Model, c.Provider, c.ExternalID = Plain(c.Model), Plain(c.Provider), Plain(c.ExternalID)
	c.Directory = cmp.Or(c.Directory, a.New.Directory)
	if c.CreatedAt.IsZero() {
		c.CreatedAt = a.at
	}
	a.talk.Call(c)
}

// compact adds an overlay whose places are items. One whose place is not here counts nowhere.
func (a *whole) compact(o *Compaction) {
	through, ok := a.keys[o.ThroughKey]
	if !ok {
		return
	}
	if o.Key != "" { // of the same version
		o.Key += strings.TrimPrefix(a.keys[o.Record.Key], o.Record.Key)
	}
	o.ThroughKey, o.FirstKeptKey, o.Record.Key = through, a.keys[o.FirstKeptKey], a.keys[o.Record.Key]
	if o.CreatedAt.IsZero() {
		o.CreatedAt = a.at
	}
	for _, piece := range o.Replaced {
		for i := range piece.Messages {
			piece.Messages[i].Key = a.keys[piece.Messages[i].Key]
		}
	}
	o.Summary = Plain(o.Summary)
	a.talk.Compact(*o)
}

// end sets the head, and adds the calls of no message.
func (a *whole) end() {
	for _, c := range a.Calls {
		c.MessageKey = a.keys[c.MessageKey]
		a.call(c)
	}
	if a.talk.KeepHead {
		return
	}
	head := a.keys[a.Head]
	if head == "" || a.waits {
		head = a.keys[a.tip]
	}
	if head != "" {
		a.talk.Head = head
		a.talk.keepHead()
	}
}

// keepHead remembers the head, so that one that its program moves back moves here, too.
func (c *Conversation) keepHead() {
	piece := "head of " + c.New.SourceID
	before := c.in.saidBefore[piece]
	c.moved = !c.in.Repeats(piece, c.Head) && before != ""
}

// printOf returns a fingerprint of what a message says.
func printOf(m *session.Message) string {
	sum := sha256.New()
	write := func(texts ...string) {
		for _, text := range texts {
			fmt.Fprintf(sum, "%d:%s;", len(text), text)
		}
	}
	write(string(m.Kind), string(m.Role))
	if m.Finish == session.FinishAborted { // another version of it may have ended well
		write(string(m.Finish))
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		arguments := p.Arguments
		if o, ok := jsonx.ReadObject([]byte(arguments)); ok {
			arguments = jsonx.Fingerprint(o) // another copy may be written otherwise
		}
		write(string(p.Kind), p.CallID, p.ToolName, arguments, p.Text)
		if p.Blob != nil {
			write(string(p.Blob.Data))
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Ordered returns items of a tree so that each stands behind the one that it follows, else in their order. One whose
// parent is not there, or follows it, begins a conversation.
func Ordered(items []Item) (ordered []Item) {
	children, known := map[string][]int{}, map[string]bool{}
	for i := range items {
		known[items[i].Key] = true
	}
	var next []int // the last one comes first
	for i := len(items) - 1; i >= 0; i-- {
		if item := &items[i]; item.Parent == "" || item.Root || !known[item.Parent] || item.Parent == item.Key {
			item.Root, item.Parent = true, ""
			next = append(next, i)
		} else {
			children[item.Parent] = append(children[item.Parent], i)
		}
	}
	done := make([]bool, len(items))
	for left := 0; ; left++ {
		for len(next) > 0 {
			i := next[len(next)-1]
			if next = next[:len(next)-1]; done[i] {
				continue
			}
			done[i], ordered = true, append(ordered, items[i])
			next = append(next, children[items[i].Key]...)
			delete(children, items[i].Key)
		}
		for left < len(items) && done[left] {
			left++
		}
		if left >= len(items) {
			return ordered
		}
		items[left].Root, items[left].Parent = true, "" // a circle is cut
		next = append(next, left)
	}
}
