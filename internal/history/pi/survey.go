package pi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// node is one entry of a file: a line, or a part of a line that two were glued into.
type node struct {
	id, link string // as the file has them; "" in version 1 and for a broken line
	target   string // of a leaf line: where the leaf moved to
	key      string // the external id
	sum      [16]byte
	offset   int64
	size     int64
	line     int
	parent   int32 // index of its parent, -1 for a root
	place    int32 // among the entries on the tree, from 0; -1 for one beside it
	kind     kind
	cut      cut
	old      bool // an earlier reading of this file settled it
	onPath   bool // of the leaf
}

type kind uint8

const (
	entryPlain kind = iota
	entryBroken
	entryCompaction
	entryLeaf
	entrySide // beside the tree
)

// aside reports whether an entry is beside the tree: nothing hangs on it.
func (k kind) aside() bool { return k == entryBroken || k == entrySide }

// cut says why an entry's parent is not the one that its line names.
type cut uint8

const (
	uncut cut = iota
	cutOrphan
	cutSelf
	cutCycle
)

// survey is a file's entries and how they hang together.
type survey struct {
	in      *history.Intake
	header  history.Object
	version int
	nodes   []node
	byID    map[string][]int32 // the entries that have an id, in file order
	repeats map[string]int     // how often a line without an id occurred
	places  int32              // entries on the tree so far
	early   bool               // an entry names one that comes after it

	title     string // of the last session_info
	named     bool   // there was a session_info in the part that is new
	firstUser string
	lane      int32           // in version 4: the leaf of the main lane, -1: none
	tails     []int32         // compactions that carry copies of what they kept
	kept      map[int32]int32 // of these: the entry that the first copy is of
}

// headerScan is how far the header is looked for, as pi does it.
const headerScan = 1 << 20

// look reads a file's lines and links them. Codes: Invalid (no pi session, or a version that is
// not known).
func look(in *history.Intake) (*survey, error) {
	s := &survey{in: in, byID: map[string][]int32{}, repeats: map[string]int{}, lane: -1, kept: map[int32]int32{}}
	if err := in.EachLine(s.read); err != nil {
		return nil, err
	}
	if s.header == nil {
		return nil, session.Errorf(session.Invalid, "no pi session: its first line is no session header")
	}
	s.linkNodes()
	for at := s.leaf(); at >= 0; at = s.nodes[at].parent {
		s.nodes[at].onPath = true
	}
	return s, s.findTails()
}

// next is the number of entries, and the index of the next one.
func (s *survey) next() int32 { return int32(len(s.nodes)) }

// read takes one line.
func (s *survey) read(l history.FileLine) error {
	body := bytes.TrimSpace(l.Bytes)
	at := l.At + int64(bytes.Index(l.Bytes, body))
	if o, ok := parse(body); ok {
		return s.object(o, body, at, l.Number)
	}
	if s.header == nil {
		if at > headerScan {
			return session.Errorf(session.Invalid, "no pi session: its first MiB holds no session header")
		}
	}
	s.broken(body, at, l.Number)
	return nil
}

// parse reads a line that is one JSON object.
func parse(line []byte) (history.Object, bool) {
	o, _, ok := history.ParseLine(line)
	return o, ok
}

func (s *survey) object(o history.Object, raw []byte, at int64, line int) error {
	kindOf := o.String("type")
	switch {
	case s.header == nil:
		return s.begin(o, kindOf, raw)
	case s.version == 4:
		s.harness(o, raw, at, line)
		return nil
	case kindOf == lineSession && o.String("id") == s.header.String("id"):
		s.in.Skip(skipHeader, 1)
		return nil
	}
	n := node{offset: at, size: int64(len(raw)), line: line, kind: kindOfLine(kindOf), target: o.String("targetId")}
	if s.version > 1 {
		n.id, n.link = o.String("id"), o.String("parentId")
		if !s.name(&n, raw) {
			s.in.Skip(history.SkipDuplicate, 1)
			return nil
		}
	}
	s.add(n)
	s.notice(o, kindOf)
	return nil
}

// begin reads the header. Codes: Invalid.
func (s *survey) begin(o history.Object, kindOf string, raw []byte) error {
	harness := o.String("kind") == "header"
	if (kindOf != lineSession && !harness) || o.String("id") == "" {
		return session.Errorf(session.Invalid, "no pi session: its first line is no session header")
	}
	s.version = 1
	if v := o.Get("version"); v != nil {
		number, err := strconv.Atoi(string(v))
		if err != nil || number < 1 || number > 4 || harness != (number == 4) {
			return session.Errorf(session.Invalid, "a pi session of version %s; versions 1 to 4 can be imported", history.Plain(v))
		}
		s.version = number
	}
	s.header, _ = parse(bytes.Clone(raw))
	here, err := s.in.Session(s.header.String("id"))
	if err != nil {
		return err
	}
	if here != nil {
		s.in.Skip(history.SkipKnown, 1)
	} else {
		s.in.Import(1)
	}
	return nil
}

// name sets the key of an entry. It is false for a line that repeats an earlier one, id and all.
// Another line with that id is an entry, and gets a key of its own.
func (s *survey) name(n *node, raw []byte) bool {
	if n.id == "" { // pi always writes one; known by what it says
		n.key = s.byContent("line:", raw)
		return true
	}
	n.key, n.sum = n.id, sumOf(raw)
	same := s.byID[n.id]
	for _, before := range same {
		if s.nodes[before].sum == n.sum {
			return false
		}
	}
	if len(same) > 0 {
		n.key += "#" + strconv.Itoa(len(same)+1)
	}
	return true
}

func sumOf(raw []byte) [16]byte {
	sum := sha256.Sum256(raw)
	return [16]byte(sum[:16])
}

// byContent names a line that has no id by its hash and how often it came before.
func (s *survey) byContent(prefix string, raw []byte) string {
	sum := sha256.Sum256(raw)
	key := prefix + hex.EncodeToString(sum[:12])
	s.repeats[key]++
	if n := s.repeats[key]; n > 1 {
		key += "#" + strconv.Itoa(n)
	}
	return key
}

// broken keeps a line that is no JSON object beside the path, as a child of the entry before it.
func (s *survey) broken(raw []byte, at int64, line int) {
	s.add(node{key: s.byContent("broken:", raw), offset: at, size: int64(len(raw)), line: line, kind: entryBroken})
}

func (s *survey) add(n node) {
	n.parent, n.place, n.old = -1, -1, s.in.Old(n.offset)
	if !n.kind.aside() {
		n.place = s.places
		s.places++
	}
	if n.key == "" {
		n.key = v1Key(n.place)
	}
	if n.id != "" {
		s.byID[n.id] = append(s.byID[n.id], s.next())
	}
	s.nodes = append(s.nodes, n)
}

// notice remembers what the session as a whole takes from an entry, the newest one.
func (s *survey) notice(o history.Object, kindOf string) {
	switch kindOf {
	case lineCompaction:
		if o.Get("retainedTail") != nil {
			s.tails = append(s.tails, s.next()-1)
		}
	case lineInfo:
		s.title = strings.TrimSpace(o.String("name"))
		s.named = s.named || !s.nodes[s.next()-1].old
	case lineMessage:
		if s.firstUser != "" {
			return
		}
		if message, ok := history.Fields(o.Get("message")); ok && message.String("role") == "user" {
			parts, _ := contentOf(message.Get("content"))
			s.firstUser = firstLine(parts)
		}
	}
}

func kindOfLine(kindOf string) kind {
	switch kindOf {
	case lineCompaction:
		return entryCompaction
	case lineLeaf:
		return entryLeaf
	}
	return entryPlain
}

// raw reads an entry's bytes.
func (s *survey) raw(i int32) ([]byte, error) {
	n := &s.nodes[i]
	return s.in.Bytes(n.offset, n.size)
}

// object reads an entry again.
func (s *survey) reread(i int32) (history.Object, error) {
	line, err := s.raw(i)
	o, _ := parse(line)
	return o, err
}

// find returns the newest entry that has an id.
func (s *survey) find(id string) (int32, bool) {
	if all := s.byID[id]; len(all) > 0 && id != "" {
		return all[len(all)-1], true
	}
	return 0, false
}

// keyOf returns an entry's external id, "" for none.
func (s *survey) keyOf(i int32) string {
	if i < 0 {
		return ""
	}
	return s.nodes[i].key
}

// leaf returns the entry that the next one would follow: the last one of the file, or the one
// that the last one points at, if it only moves the leaf.
func (s *survey) leaf() int32 {
	if s.version == 4 && s.lane >= 0 {
		return s.lane
	}
	for i := s.next() - 1; i >= 0; i-- {
		switch s.nodes[i].kind {
		case entryBroken, entrySide:
		case entryLeaf:
			if target, ok := s.find(s.nodes[i].target); ok && target != i {
				return target
			}
			return i
		default:
			return i
		}
	}
	return -1
}
