package pi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Entries are the lines of a transcript: a session file of pi, or one of OpenClaw, whose transcripts
// are pi's with additions. A reader adds them in their order and decides how they hang together.
type Entries struct {
	In      *history.Intake
	Bytes   func(at, size int64) []byte // reads a stretch of the transcript again
	Header  jsonx.Object                // nil where there is none
	Version int
	Nodes   []Node

	Title     string // of the last session_info
	Named     bool   // a session_info is in the part that is new
	FirstUser string // beginning of the first text of a user that is more than a command

	byID    map[string][]int32 // the entries that have an id, in their order
	repeats history.Repeats    // how often a line without an id occurred
	places  int32              // entries on the tree so far
}

// Node is one entry: a line, or a part of a line that two were glued into.
type Node struct {
	ID, Link     string // its id and its parent's, as the line has them; "" in version 1 and for a broken line
	Key          string // the external id
	Offset, Size int64
	Line         int
	Parent       int32 // index of its parent, -1 for a root
	Place        int32 // among the entries on the tree, from 0; -1 for one beside it
	Kind         Kind
	Old          bool // an earlier reading of the file settled it
	sum          [16]byte

	target string // of pi's leaf line: the id that the leaf moved to
	cut    string // why its parent is not the one that its line names, in a note
	onPath bool   // of pi's leaf

	Made   int64 // in OpenClaw's database, milliseconds since 1970; 0: unknown
	Target int32 // of OpenClaw's leaf line: the new leaf
	Reset  int32 // OpenClaw's newest reset on the path to it, itself included; -1: none
	Stale  bool  // OpenClaw's transcript lacks its parent before it
}

// Kind says what an entry is to the tree.
type Kind uint8

// The kinds of entries.
const (
	Plain Kind = iota
	Broken
	Compaction
	Leaf
	Side    // of pi: beside the tree
	Reset   // of OpenClaw
	Unknown // of OpenClaw: its type is unknown, so that it does not move the leaf
)

// aside reports whether an entry is beside the tree: nothing hangs on it.
func (k Kind) aside() bool { return k == Broken || k == Side }

// Boundary reports whether the context begins anew at an entry.
func (k Kind) Boundary() bool { return k == Compaction || k == Reset }

// NewEntries begins a transcript of which bytes reads a stretch again.
func NewEntries(in *history.Intake, bytes func(at, size int64) []byte) Entries {
	return Entries{In: in, Bytes: bytes, byID: map[string][]int32{}, repeats: history.Repeats{}}
}

// Len returns the number of entries, which is the index of the next one.
func (e *Entries) Len() int32 { return int32(len(e.Nodes)) }

// Node begins the entry of a line, and returns the line without white space around it.
func (e *Entries) Node(l history.FileLine) (n Node, body []byte) {
	body = bytes.TrimSpace(l.Bytes)
	at, size := l.At+int64(bytes.Index(l.Bytes, body)), int64(len(body))
	if l.Lines > 0 { // Raw joins them again
		at, size = l.At, l.End-l.At
	}
	return Node{Offset: at, Size: size, Line: l.Number, Parent: -1, Target: -1, Reset: -1, Old: e.In.Old(at)}, body
}

// Name sets the key of an entry: its id, else its place in version 1, else its content. It is false
// for a line that repeats an earlier one, id and all. Another line with that id is an entry, and gets
// a key of its own.
func (e *Entries) Name(n *Node, raw []byte) bool {
	if n.ID == "" {
		if e.Version == 1 {
			n.Key = v1Key(e.places)
		} else { // pi always writes an id
			n.Key = e.byContent("line:", raw)
		}
		return true
	}
	sum := sha256.Sum256(raw)
	n.Key, n.sum = n.ID, [16]byte(sum[:16])
	same := e.byID[n.ID]
	for _, before := range same {
		if e.Nodes[before].sum == n.sum {
			return false
		}
	}
	if len(same) > 0 {
		n.Key += "#" + strconv.Itoa(len(same)+1)
	}
	return true
}

// byContent names a line that has no id by its hash and how often it came before.
func (e *Entries) byContent(prefix string, raw []byte) string {
	sum := sha256.Sum256(raw)
	return e.repeats.Key(prefix + hex.EncodeToString(sum[:12]))
}

// Add adds an entry.
func (e *Entries) Add(n Node) {
	n.Place = -1
	if !n.Kind.aside() {
		n.Place = e.places
		e.places++
	}
	if n.ID != "" {
		e.byID[n.ID] = append(e.byID[n.ID], e.Len())
	}
	e.Nodes = append(e.Nodes, n)
}

// AddBroken adds a line that is no JSON object.
func (e *Entries) AddBroken(n Node, raw []byte) {
	n.Key, n.Kind = e.byContent("broken:", raw), Broken
	e.Add(n)
}

// Notice remembers the name that an entry gives the session, and the first text of a user.
func (e *Entries) Notice(o jsonx.Object, lineType string, old bool) {
	switch lineType {
	case lineInfo:
		e.Title = strings.TrimSpace(o.String("name"))
		e.Named = e.Named || !old
	case lineMessage:
		if e.FirstUser != "" && !isCommand(e.FirstUser) {
			return
		}
		if message, ok := jsonx.ReadFields(o.Get("message")); ok && message.String("role") == "user" {
			parts, _ := contentOf(message.Get("content"))
			if text := firstText(parts); text != "" {
				e.FirstUser = text
			}
		}
	}
}

// isCommand reports whether a text is nothing but a command of the program, like /model: no title.
func isCommand(text string) bool {
	return strings.HasPrefix(text, "/") && !strings.ContainsAny(text[1:], "/ \n\t")
}

// firstTextBytes is how much of the first message is remembered, with what a gateway puts before it.
const firstTextBytes = 4 << 10

func firstText(parts []session.Part) string {
	for i := range parts {
		if text := strings.TrimSpace(parts[i].Text); parts[i].Kind == session.PartText && text != "" {
			text = text[:min(len(text), firstTextBytes)]
			for !utf8.ValidString(text) {
				text = text[:len(text)-1]
			}
			return strings.Clone(text)
		}
	}
	return ""
}

// Raw reads an entry's bytes again.
func (e *Entries) Raw(i int32) []byte {
	return history.JoinLines(bytes.TrimSpace(e.Bytes(e.Nodes[i].Offset, e.Nodes[i].Size)))
}

// Reread reads an entry again.
func (e *Entries) Reread(i int32) jsonx.Object {
	o, _, _ := history.ParseLine(e.Raw(i))
	return o
}

// Find returns the newest entry that has an id; -1 and false if there is none.
func (e *Entries) Find(id string) (int32, bool) {
	if all := e.byID[id]; len(all) > 0 && id != "" {
		return all[len(all)-1], true
	}
	return -1, false
}

// FindBefore returns the newest entry before i with an id, -1 if there is none.
func (e *Entries) FindBefore(id string, i int32) int32 {
	all := e.byID[id]
	if k, _ := slices.BinarySearch(all, i); k > 0 {
		return all[k-1]
	}
	return -1
}

// KeyOf returns an entry's external id, "" for none.
func (e *Entries) KeyOf(i int32) string {
	if i < 0 {
		return ""
	}
	return e.Nodes[i].Key
}

// modelSearch is how far back from the leaf the model is searched for.
const modelSearch = 1000

// Model returns the newest model on the path of a leaf, "" if there is none. isReply, which may be
// nil, reports whether a model wrote a reply.
func (e *Entries) Model(leaf int32, isReply func(line, message jsonx.Object) bool) (provider, model string) {
	for n := 0; leaf >= 0 && n < modelSearch; n++ {
		o := e.Reread(leaf)
		message := o.Inner("message")
		switch {
		case o.String("type") == lineModel:
			return o.String("provider"), o.String("modelId")
		case message.String("role") == "assistant" && message.String("model") != "" &&
			(isReply == nil || isReply(o, message)):
			return message.String("provider"), message.String("model")
		}
		leaf = e.Nodes[leaf].Parent
	}
	return "", ""
}

// NameModel sets the model of a summary's call, which its entry does not name: the one that was in use.
func (e *Entries) NameModel(i int32, call *session.Call) {
	if call.Model == "" && (call.Purpose == session.PurposeSummary || call.Purpose == session.PurposeBranchSummary) {
		call.Provider, call.Model = e.Model(e.Nodes[i].Parent, nil)
	}
}

// FirstKept returns the first entry that a compaction names as kept, on its path; -1 if there is none.
func (e *Entries) FirstKept(i int32, o jsonx.Object) int32 {
	id, place := o.String("firstKeptEntryId"), int32(-1)
	if index, ok := Whole(o.Get("firstKeptEntryIndex")); ok && e.Version == 1 && index >= 1 && index <= int64(e.Len()) {
		place = int32(index) - 1 // it counts the header
	}
	if id == "" && place < 0 {
		return -1
	}
	for at := e.Nodes[i].Parent; at >= 0; at = e.Nodes[at].Parent {
		if n := &e.Nodes[at]; id != "" && n.ID == id || place >= 0 && n.Place == place {
			return at
		}
	}
	return -1
}

// Overlay makes the overlay of a compaction or reset that keeps the path from an entry on, or nothing
// of it (-1): it ends with the entry before that one. Where nothing stands before the record, which
// keeps nothing, it hides itself. It is nil when nothing stands before what it keeps.
func (e *Entries) Overlay(i, kept int32, at session.Time) *history.Compaction {
	c := &history.Compaction{Key: e.KeyOf(i)}
	c.CreatedAt = at
	through := e.Nodes[i].Parent
	if kept >= 0 {
		through = e.Nodes[kept].Parent
		c.FirstKeptKey = e.KeyOf(kept)
	}
	switch {
	case through < 0 && kept >= 0:
		return nil
	case through < 0:
		through = i
	}
	c.ThroughKey = e.KeyOf(through)
	for at := through; at >= 0 && at != i && !e.Nodes[at].Kind.Boundary(); at = e.Nodes[at].Parent {
		c.MessageCount++
	}
	c.Record = history.Place{Key: c.Key}
	return c
}

// OmitPlace drops the id and the parent from a line's rest where the stored message has the same.
func (e *Entries) OmitPlace(i int32, l *Line) {
	n := &e.Nodes[i]
	if n.ID != "" && n.Key == n.ID {
		l.Rest.Take("id")
	}
	link := l.Rest.String("parentId")
	if n.Place >= 0 && e.KeyOf(n.Parent) == link && (link != "" || string(l.Rest.Get("parentId")) == "null") {
		l.Rest.Take("parentId")
	}
}

// Entries of version 1 have no ids: they are named by their places, and known again by what
// they say. pi gives them random ids when it opens the file with a later version, and they must
// not double by that, here or in a fork.

func v1Key(place int32) string { return "v1:" + strconv.Itoa(int(place)) }

// IsOlder reports whether a file of version 1 is an older copy of its session, which is stored under
// the ids that a later version gave the entries.
func (e *Entries) IsOlder(talk *history.Conversation) bool {
	named := func(n Node) bool { return n.ID == "" && n.Place >= 0 } // by its place
	return e.Version == 1 && talk.Here.LastSeq > 0 && slices.ContainsFunc(e.Nodes, named) && !talk.Has(v1Key(0))
}

// Adopt renames entries to the names under which a session has them by their places: those of an
// upgraded file, as long as they say the same. An entry of version 1 whose place another one
// took gets a name of its own: the file was changed, and both are history.
func (e *Entries) Adopt(id session.ID) {
	if e.In.Message(id, v1Key(0)) == nil {
		return
	}
	hashes := map[string]string{} // by external id
	e.In.Entries(id, func(m *session.Message) bool {
		var extra struct {
			Hash string `json:"hash"`
		}
		if strings.HasPrefix(m.ExternalID, "v1:") && json.Unmarshal(m.Extra, &extra) == nil {
			hashes[m.ExternalID] = extra.Hash
		}
		return true
	})
	for i := range e.Len() {
		n := &e.Nodes[i]
		key := v1Key(n.Place)
		before, ok := hashes[key]
		if !ok {
			continue
		}
		o := e.Reread(i)
		switch says := fingerprint(o, e.Version); {
		case before == says:
			n.Key = key
		case e.Version == 1:
			n.Key = key + "#" + says[:12]
		}
	}
}
