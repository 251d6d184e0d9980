package pi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"hash/maphash"
	"io"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// node is one entry of a file: a line, or a part of a line that two were glued into. There may
// be millions of them, so that names are held as sums.
type node struct {
	id     uint64 // as the file has it; 0 in version 1 and for a broken line
	link   uint64 // parentId; of a leaf line targetId, once it is linked
	sum    uint64 // of the line's bytes, within this scan
	offset int64
	size   int64
	parent int32 // index of its parent, -1 for a root
	line   int32
	place  int32 // among the entries, if it is named by it, as in version 1; else -1
	kind   kind
	cut    cut
	known  bool  // stored already, by an earlier reading of this file or as part of another session
	onPath bool  // of the leaf
	in     int16 // which of the origins has it, from 1; 0: it is the session's own
}

type kind uint8

const (
	entryPlain kind = iota
	entryBroken
	entryCompaction
	entryLeaf
	entrySide // beside the tree
)

// aside tells whether an entry is beside the tree: nothing hangs on it.
func (k kind) aside() bool { return k == entryBroken || k == entrySide }

// cut says why an entry's parent is not the one that its line names.
type cut uint8

const (
	uncut cut = iota
	cutOrphan
	cutSelf
	cutCycle
)

// scanned is what the first pass learns of a file.
type scanned struct {
	header  history.Object
	version int
	file    io.ReaderAt
	cuts    *history.Cuts
	nodes   history.Table[node]
	names   *history.Names         // of ids
	older   map[uint64][]int32     // earlier entries of an id that occurs more than once
	twins   map[[2]uint64]struct{} // ids and sums of the lines with such an id
	keys    map[int32]string       // of entries that are named neither by their id nor by their place
	targets map[int32]uint64       // of leaf lines: where the leaf moved to
	content map[string]int         // how often a line without an id occurred
	early   bool                   // an entry names one that comes after it
	failed  error                  // a line could not be read again
	held    history.Held[history.Talk]

	title     string // of the last session_info
	named     bool   // there was a session_info in the part that is new
	firstUser string
	records   history.Records // of the new part: what is no entry
	entries   int             // in version 1: entries so far
	seed      maphash.Seed
	lane      int32           // in version 4: the leaf of the main lane
	tails     []int32         // compactions that carry copies of what they kept
	kept      map[int32]int32 // of these: the entry that the first copy is of
	origins   []session.ID    // the sessions that it was forked from, as far as entries lie in them

	offset int64  // after the last complete line
	hash   string // of the bytes before offset
	torn   bool
	stale  bool // the bytes before the cursor's offset are not those that were read
}

// headerScan is how far the header is looked for, as pi does it.
const headerScan = 1 << 20

type scanner struct {
	*scanned
	ctx   context.Context
	sum   hash.Hash
	known bool // in the part that an earlier reading took
	line  int
}

// scan reads a file from its beginning to size. Codes: Invalid (no pi session, or a version
// that is not known).
func scan(ctx context.Context, file io.ReaderAt, size int64, cursor *history.Cursor, cuts *history.Cuts) (*scanned, error) {
	s := &scanner{scanned: newScanned(file, cuts), ctx: ctx, sum: sha256.New()}
	from := int64(0)
	if cursor != nil && cursor.Offset > 0 {
		if cursor.Offset > size {
			return &scanned{stale: true}, nil
		}
		s.known = true
		if err := s.region(0, cursor.Offset); err != nil {
			return nil, err
		}
		if s.digest() != cursor.Hash {
			return &scanned{stale: true}, nil
		}
		from, s.known = cursor.Offset, false
		s.records, s.named = history.Records{}, false
	}
	if err := s.region(from, size); err != nil {
		return nil, err
	}
	if s.header == nil {
		return nil, session.Errorf(session.Invalid, "no pi session: its first line is no session header")
	}
	s.hash = s.digest()
	s.link()
	for at := s.leaf(); at >= 0; {
		n := s.nodes.At(at)
		n.onPath, at = true, n.parent
	}
	return s.scanned, nil
}

func (s *scanner) digest() string { return hex.EncodeToString(s.sum.Sum(nil)) }

func (s *scanner) region(from, to int64) error {
	lines := history.NewLines(s.file, from, to).Cut(s.cuts)
	s.offset = from
	for n := 0; ; n++ {
		line, at, ended, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n%256 == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		s.line++
		if err := s.take(line, at, ended, lines.Size() == len(line)); err != nil || s.torn {
			return err
		}
		if err := lines.Write(s.sum, line); err != nil {
			return err
		}
		if ended {
			s.sum.Write([]byte{'\n'})
		}
		s.offset = lines.Offset()
	}
}

// take looks at one line. A last line without its line feed that does not parse is still
// being written.
func (s *scanner) take(line []byte, at int64, ended, whole bool) error {
	body := bytes.TrimSpace(line)
	at += int64(bytes.Index(line, body))
	if len(body) == 0 {
		s.records.Skip(history.SkipBlank, 1)
		return nil
	}
	o, ok := s.apart(body, at, whole && !s.known)
	switch {
	case ok:
		return s.object(o, body, at)
	case !ended && !s.known:
		s.torn = true
		s.records.Wait(1)
		return nil
	case s.header == nil:
		if at > headerScan {
			return session.Errorf(session.Invalid, "no pi session: its first MiB holds no session header")
		}
		s.broken(body, at)
		return nil
	}
	pieces := unglue(body)
	if pieces == nil {
		s.broken(body, at)
		return nil
	}
	for _, piece := range pieces {
		o, _ := parse(piece)
		if err := s.object(o, piece, at); err != nil {
			return err
		}
		at += int64(len(piece))
	}
	return nil
}

// apart is parse of a line, which is kept for the second pass where that is asked.
func (s *scanner) apart(line []byte, at int64, keep bool) (history.Object, bool) {
	if keep {
		if own, ok := s.held.Own(line); ok {
			t, exact, ok := history.ParseTalk(own)
			if ok && exact {
				s.held.Keep(at, own, t)
			}
			return t.Object, ok
		}
	}
	return parse(line)
}

// parse reads a line that is one JSON object.
func parse(line []byte) (history.Object, bool) {
	o, _, ok := history.ParseLine(line)
	return o, ok
}

// unglue splits a line that holds several objects, since an old pi wrote on after a line
// without its end. It gives nil unless every piece is good.
func unglue(line []byte) [][]byte {
	var pieces [][]byte
	for from := 0; ; {
		at := bytes.Index(line[from:], []byte(`}{"type":`))
		if at < 0 {
			pieces = append(pieces, line[from:])
			break
		}
		pieces = append(pieces, line[from:from+at+1])
		from += at + 1
	}
	if len(pieces) < 2 {
		return nil
	}
	for _, piece := range pieces {
		if _, ok := parse(piece); !ok {
			return nil
		}
	}
	return pieces
}

func (s *scanner) object(o history.Object, raw []byte, at int64) error {
	kindOf := o.String("type")
	switch {
	case s.header == nil:
		return s.begin(o, kindOf, raw)
	case s.version == 4:
		s.harness(o, raw, at)
		return nil
	case kindOf == lineSession && o.String("id") == s.header.String("id"):
		s.records.Skip(skipHeader, 1)
		return nil
	}
	n := node{
		offset: at, size: int64(s.cuts.Size(raw)), line: int32(s.line), parent: -1, place: -1, known: s.known, kind: kindOfLine(kindOf),
		sum: maphash.Bytes(s.seed, raw),
	}
	if s.version == 1 {
		n.place = int32(s.entries)
		s.entries++
	} else {
		n.id, n.link = s.names.Sum(o.String("id")), s.names.Sum(o.String("parentId"))
		if !s.name(&n, o, raw) {
			s.records.Skip(history.SkipDuplicate, 1)
			return nil
		}
	}
	if n.kind == entryLeaf {
		s.targets[s.next()] = s.names.Sum(o.String("targetId"))
	}
	s.add(n)
	s.notice(o, kindOf)
	return nil
}

// begin takes the header. Codes: Invalid.
func (s *scanner) begin(o history.Object, kindOf string, raw []byte) error {
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
	s.records.Import(1)
	return nil
}

// name gives an entry its key and tells whether it is one: an equal line with an equal id
// came before is none. Another line with that id is, and gets a key of its own.
func (s *scanner) name(n *node, o history.Object, raw []byte) bool {
	if n.id == 0 { // pi always writes one; known by what it says
		s.keys[s.next()] = s.byContent("line:", raw)
		return true
	}
	newest, again := s.names.Get(n.id)
	if !again {
		return true
	}
	earlier := len(s.older[n.id])
	if earlier == 0 {
		s.twins[[2]uint64{n.id, s.nodes.At(newest).sum}] = struct{}{}
	}
	twin := [2]uint64{n.id, n.sum}
	if _, ok := s.twins[twin]; ok {
		return false
	}
	s.twins[twin] = struct{}{}
	s.keys[s.next()] = o.String("id") + "#" + strconv.Itoa(earlier+2)
	return true
}

// byContent names a line that has no id by its hash and how often it came before.
func (s *scanner) byContent(prefix string, raw []byte) string {
	sum := sha256.New()
	s.cuts.Write(sum, raw)
	key := prefix + hex.EncodeToString(sum.Sum(nil)[:12])
	s.content[key]++
	if n := s.content[key]; n > 1 {
		key += "#" + strconv.Itoa(n)
	}
	return key
}

// broken keeps a line that is no JSON object beside the path, as a child of what came before.
func (s *scanner) broken(raw []byte, at int64) {
	s.keys[s.next()] = s.byContent("broken:", raw)
	s.nodes.Append(node{
		offset: at, size: int64(len(raw)), line: int32(s.line), parent: -1, place: -1, known: s.known, kind: entryBroken,
	})
}

func (s *scanner) add(n node) {
	i := s.next()
	s.nodes.Append(n)
	if n.id == 0 {
		return
	}
	if before, ok := s.names.Get(n.id); ok {
		s.older[n.id] = append(s.older[n.id], before)
	}
	s.names.Set(n.id, i)
}

// notice remembers what the session as a whole takes from an entry, the newest one.
func (s *scanner) notice(o history.Object, kindOf string) {
	switch kindOf {
	case lineCompaction:
		if o.Get("retainedTail") != nil {
			s.tails = append(s.tails, s.next()-1)
		}
	case lineInfo:
		s.title, s.named = strings.TrimSpace(o.String("name")), true
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
