package openclaw

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
)

// transcript is the lines of one session, wherever they lie.
type transcript struct {
	path string      // as problems name it
	file io.ReaderAt // the file, or a spool
	rows []row       // of a database; nil for a file of lines
}

// row is a line of a database, in the spool.
type row struct {
	at, size int64
	made     int64 // milliseconds since 1970; 0: not known
}

// node is one entry of a transcript.
type node struct {
	id, link string // as the line has them; "" in version 1 and for a broken line
	key      string // the external id
	sum      [16]byte
	size     int64
	offset   int64
	made     int64 // by the database's clock, milliseconds since 1970; 0: not known
	parent   int32 // -1 for a root
	target   int32 // of a leaf control: the new leaf
	reset    int32 // the newest reset on the path to it, itself included; -1: none
	place    int32 // among the entries that are not broken, from 0; -1: it is broken
	line     int
	kind     kind
	stale    bool // its parent is not in the transcript before it
	old      bool // an earlier reading of this file settled it
}

type kind uint8

const (
	entryPlain kind = iota
	entryBroken
	entryCompaction
	entryReset
	entryLeaf
	entryUnknown // no type that is known: it does not move the leaf
)

// boundary reports whether the context begins anew at an entry.
func (k kind) boundary() bool { return k == entryCompaction || k == entryReset }

// survey is a transcript's entries and how they hang together.
type survey struct {
	in      *history.Intake
	text    *transcript
	whole   bool           // it may have no header
	header  history.Object // nil where there is none
	version int
	nodes   []node
	byID    map[string][]int32 // the entries that have an id, in their order
	repeats map[string]int     // how often a line without an id occurred
	places  int32

	leaf   int32 // the head: where the conversation goes on
	cursor int32 // the entry that was written last
	reset  int32 // the latest reset
	front  int32 // the compaction or reset that a cut transcript begins with; -1: it is whole

	title     string // of the last session_info
	named     bool   // there was a session_info in the part that is new
	firstUser string
}

func newSurvey(in *history.Intake, text *transcript) *survey {
	return &survey{in: in, text: text, byID: map[string][]int32{}, repeats: map[string]int{}, leaf: -1, cursor: -1, reset: -1, front: unseen}
}

// look reads a transcript. headless says that it may lack a header: its older part was cut off.
// Codes: Invalid (no transcript).
func look(in *history.Intake, text *transcript, headless bool) (*survey, error) {
	s := newSurvey(in, text)
	if s.whole = headless; headless {
		s.version = 3
	}
	var err error
	if text.rows != nil {
		err = s.readRows()
	} else {
		err = in.EachLine(func(l history.FileLine) error { return s.read(l, 0) })
	}
	if err != nil {
		return nil, err
	}
	if s.header == nil && !headless && text.rows == nil {
		return nil, session.Errorf(session.Invalid, "no transcript: it holds no session header")
	}
	s.finish()
	return s, nil
}

// readRows reads the rows of a database, of which each is whole.
func (s *survey) readRows() error {
	for i, r := range s.text.rows {
		if i%256 == 0 && s.in.Context().Err() != nil {
			return s.in.Context().Err()
		}
		line, err := history.ReadSpan(s.text.file, r.at, r.size)
		if err != nil {
			return err
		}
		if err := s.read(history.FileLine{Number: i + 1, At: r.at, Bytes: line}, r.made); err != nil {
			return err
		}
	}
	return nil
}

// next is the number of entries, and the index of the next one.
func (s *survey) next() int32 { return int32(len(s.nodes)) }

// read takes one line.
func (s *survey) read(l history.FileLine, made int64) error {
	body := bytes.TrimSpace(l.Bytes)
	if len(body) == 0 {
		s.in.Skip(history.SkipBlank, 1)
		return nil
	}
	n := node{
		offset: l.At + int64(bytes.Index(l.Bytes, body)), size: int64(len(body)), line: l.Number, made: made,
		parent: -1, target: -1, reset: -1, place: -1, kind: entryUnknown, old: s.in.Old(l.At),
	}
	o, ok := pi.Parse(body)
	switch {
	case ok && s.header == nil && s.next() == 0 && o.String("type") == lineSession:
		return s.begin(o, body, l.Number)
	case s.header == nil && !s.whole && s.text.rows == nil:
		why := ""
		if bytes.ContainsFunc(body, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' || r == utf8.RuneError }) {
			why = " (compressed or encrypted by something else?)"
		}
		return session.Errorf(session.Invalid, "no transcript: its first line is no session header%s", why)
	case ok:
		s.object(o, body, n)
		return nil
	}
	n.key, n.parent, n.kind = s.byContent("broken:", body), s.leaf, entryBroken
	s.nodes = append(s.nodes, n)
	return nil
}

// begin reads the header. Codes: Invalid.
func (s *survey) begin(o history.Object, raw []byte, line int) error {
	if o.String("id") == "" {
		return session.Errorf(session.Invalid, "no transcript: its header names no session")
	}
	s.version = 1
	if v := o.Get("version"); v != nil {
		number, err := strconv.Atoi(string(v))
		if err != nil || number < 1 {
			return session.Errorf(session.Invalid, "a transcript of version %s; versions 1 to 4 are known", history.Plain(v))
		}
		s.version = number
	}
	if s.version > 4 {
		s.in.Problem(line, "version "+strconv.Itoa(s.version)+" is newer than what is known: read as version 4")
	}
	s.header, _ = pi.Parse(bytes.Clone(raw))
	return nil
}

// object reads an entry.
func (s *survey) object(o history.Object, raw []byte, n node) {
	kindOf := o.String("type")
	if kindOf == lineSession && s.header != nil && o.String("id") == s.header.String("id") {
		s.in.Skip(history.SkipDuplicate, 1)
		return
	}
	if canonical(kindOf) {
		n.kind = entryPlain
	}
	switch kindOf {
	case lineCompaction:
		n.kind = entryCompaction
	case lineReset:
		n.kind = entryReset
	}
	n.id, n.link = o.String("id"), o.String("parentId")
	switch {
	case n.id == "" && s.version == 1:
		n.key = v1Key(s.places)
	case n.id == "":
		n.key = s.byContent("line:", raw)
	case !s.name(&n, raw):
		s.in.Skip(history.SkipDuplicate, 1)
		return
	}
	n.place = s.places
	s.places++
	s.hang(n, o, kindOf)
	s.notice(o, kindOf, n.old)
}

// name sets the key of an entry. It is false for a line that repeats an earlier one, id and all.
// Another line with that id is an entry, and gets a key of its own.
func (s *survey) name(n *node, raw []byte) bool {
	sum := sha256.Sum256(raw)
	n.key, n.sum = n.id, [16]byte(sum[:16])
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

// notice remembers what the session as a whole takes from an entry.
func (s *survey) notice(o history.Object, kindOf string, old bool) {
	switch kindOf {
	case lineInfo:
		s.title = strings.TrimSpace(o.String("name"))
		s.named = s.named || !old
	case lineMessage:
		if s.firstUser != "" {
			return
		}
		if message, ok := history.Fields(o.Get("message")); ok && message.String("role") == "user" {
			s.firstUser = firstText(pi.Content(message.Get("content")))
		}
	}
}

// firstTextBytes is how much of the first message is remembered, envelopes included.
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

func v1Key(place int32) string { return "v1:" + strconv.Itoa(int(place)) }

// keyOf returns an entry's external id, "" for none.
func (s *survey) keyOf(i int32) string {
	if i < 0 {
		return ""
	}
	return s.nodes[i].key
}

// raw reads an entry's bytes again.
func (s *survey) raw(i int32) ([]byte, error) {
	return history.ReadSpan(s.text.file, s.nodes[i].offset, s.nodes[i].size)
}

// reread reads an entry again.
func (s *survey) reread(i int32) (history.Object, error) {
	line, err := s.raw(i)
	o, _ := pi.Parse(line)
	return o, err
}

// fresh counts the entries that no earlier reading took.
func (s *survey) fresh() (n int) {
	for i := range s.nodes {
		if !s.nodes[i].old {
			n++
		}
	}
	return n
}
