package openclaw

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"hash/maphash"
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
	path string // as problems name it
	file io.ReaderAt
	size int64
	cuts *history.Cuts
	rows *history.Table[row] // of a database; nil for a file of lines
}

// row is a line of a database, in the spool.
type row struct {
	at, size int64
	made     int64 // milliseconds since 1970; 0: not known
}

// node is one entry of a transcript. There may be millions of them, so that names are held as
// sums.
type node struct {
	id     uint64 // as the line has it; 0 in version 1 and for a broken line
	link   uint64 // parentId
	sum    uint64 // of the line's bytes, within this scan
	size   int64
	offset int64
	made   int64 // by the database's clock, milliseconds since 1970; 0: not known
	parent int32 // -1 for a root
	target int32 // of a leaf control: the new leaf
	reset  int32 // the newest reset on the path to it, itself included; -1: none
	line   int32
	place  int32 // among the entries, if it is named by it, as in version 1; else -1
	kind   kind
	stale  bool // its parent is not in the transcript before it
	known  bool // imported by an earlier reading
	onPath bool // of the head
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

// boundary tells whether the context begins anew at an entry.
func (k kind) boundary() bool { return k == entryCompaction || k == entryReset }

// scanned is what the first pass learns of a transcript.
type scanned struct {
	header  history.Object // nil where there is none
	version int
	nodes   history.Table[node]
	names   *history.Names         // of ids
	earlier map[uint64][]int32     // entries of an id that occurs more than once, but for the newest
	twins   map[[2]uint64]struct{} // ids and sums of the lines with such an id
	keys    map[int32]string       // of entries that are named neither by their id nor by their place
	failed  error                  // a line could not be read again
	content map[string]int         // how often a line without an id occurred
	entries int                    // in version 1: entries so far

	leaf   int32 // the head: where the conversation goes on
	cursor int32 // the entry that was written last
	reset  int32 // the latest reset
	front  int32 // the compaction or reset that a cut transcript begins with; -1: it is whole

	title     string // of the last session_info
	named     bool   // there was a session_info in the part that is new
	firstUser string
	records   history.Records // of the new part: what is no entry
	problems  []history.Problem

	offset int64  // after the last complete line
	hash   string // of the bytes before offset
	torn   bool
	stale  bool // the bytes before the cursor's offset are not those that were read
}

type scanner struct {
	*scanned
	ctx   context.Context
	text  *transcript
	whole bool // it may have no header
	sum   hash.Hash
	seed  maphash.Seed
	known bool // in the part that an earlier reading took
	line  int
	made  int64
}

// scan reads a transcript from its beginning. headless says that it may lack a header: its
// older part was cut off. Codes: Invalid (no transcript).
func scan(ctx context.Context, text *transcript, cursor *history.Cursor, headless bool) (*scanned, error) {
	s := &scanner{
		scanned: newScanned(),
		ctx:     ctx, text: text, whole: headless, sum: sha256.New(), seed: maphash.MakeSeed(),
	}
	if headless {
		s.version = 3
	}
	if text.rows != nil {
		return s.scanned, s.database()
	}
	from := int64(0)
	if cursor != nil && cursor.Offset > 0 {
		if cursor.Offset > text.size {
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
	if err := s.region(from, text.size); err != nil {
		return nil, err
	}
	if s.header == nil && !headless {
		return nil, session.Errorf(session.Invalid, "no transcript: it holds no session header")
	}
	s.hash = s.digest()
	s.finish()
	return s.scanned, nil
}

func (s *scanner) digest() string { return hex.EncodeToString(s.sum.Sum(nil)) }

func (s *scanner) region(from, to int64) error {
	lines := history.NewLines(s.text.file, from, to).Cut(s.text.cuts)
	s.offset = from
	for n := 0; ; n++ {
		line, at, ended, err := lines.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if n%256 == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		s.line++
		if lines.TooLarge() {
			s.records.Skip(history.SkipTooLarge, 1)
			s.problems = append(s.problems, history.Problem{Path: s.text.path, Line: s.line, Error: "the line is over 64 MiB; left out"})
			s.offset = lines.Offset()
			continue
		}
		if err := s.take(line, at, ended); err != nil || s.torn {
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

// database takes the rows of a database, of which each is whole.
func (s *scanner) database() error {
	var buffer []byte
	for i := range int32(s.text.rows.Len()) {
		r := *s.text.rows.At(i)
		if i%256 == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		line, err := s.text.cuts.ReadAgain(s.text.file, buffer, r.at, r.size)
		if err != nil {
			return err
		}
		buffer = line
		s.line++
		s.made = r.made
		if err := s.take(line, r.at, true); err != nil {
			return err
		}
	}
	s.finish()
	return nil
}

// take looks at one line. A last line without its line feed that does not parse is still
// being written.
func (s *scanner) take(line []byte, at int64, ended bool) error {
	body := bytes.TrimSpace(line)
	at += int64(bytes.Index(line, body))
	if len(body) == 0 {
		s.records.Skip(history.SkipBlank, 1)
		return nil
	}
	o, ok := pi.Parse(body)
	switch {
	case ok && s.header == nil && s.next() == 0 && o.String("type") == lineSession:
		return s.begin(o, body)
	case s.header == nil && !s.whole && s.text.rows == nil:
		why := ""
		if bytes.ContainsFunc(body, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' || r == utf8.RuneError }) {
			why = " (compressed or encrypted by something else?)"
		}
		return session.Errorf(session.Invalid, "no transcript: its first line is no session header%s", why)
	case ok:
		s.object(o, body, at)
		return nil
	case !ended && !s.known:
		s.torn = true
		s.records.Wait(1)
		return nil
	}
	s.keys[s.next()] = s.byContent("broken:", body)
	s.nodes.Append(node{
		offset: at, size: int64(len(body)), line: int32(s.line), made: s.made,
		parent: s.leaf, target: -1, reset: -1, place: -1, known: s.known, kind: entryBroken,
	})
	return nil
}

// begin takes the header. Codes: Invalid.
func (s *scanner) begin(o history.Object, raw []byte) error {
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
		s.problems = append(s.problems, history.Problem{
			Path: s.text.path, Line: s.line,
			Error: "version " + strconv.Itoa(s.version) + " is newer than what is known: read as version 4",
		})
	}
	s.header, _ = pi.Parse(bytes.Clone(raw))
	s.records.Import(1)
	return nil
}

// object takes an entry.
func (s *scanner) object(o history.Object, raw []byte, at int64) {
	kindOf := o.String("type")
	if kindOf == lineSession && s.header != nil && o.String("id") == s.header.String("id") {
		s.records.Skip(history.SkipDuplicate, 1)
		return
	}
	n := node{
		offset: at, size: int64(s.text.cuts.Size(raw)), line: int32(s.line), made: s.made,
		parent: -1, target: -1, reset: -1, place: -1, known: s.known, kind: entryUnknown,
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
	n.id = s.names.Sum(o.String("id"))
	switch {
	case n.id == 0 && s.version == 1:
		n.place = int32(s.entries)
		s.entries++
	case n.id == 0:
		s.keys[s.next()] = s.byContent("line:", raw)
	case !s.name(&n, o, raw):
		s.records.Skip(history.SkipDuplicate, 1)
		return
	}
	s.hang(&n, o, kindOf)
	s.notice(o, kindOf)
}

// name gives an entry its key and tells whether it is one: an equal line with an equal id
// came before is none. Another line with that id is, and gets a key of its own.
func (s *scanner) name(n *node, o history.Object, raw []byte) bool {
	n.sum = maphash.Bytes(s.seed, raw)
	newest, again := s.names.Get(n.id)
	if !again {
		return true
	}
	earlier := len(s.earlier[n.id])
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
	s.text.cuts.Write(sum, raw)
	key := prefix + hex.EncodeToString(sum.Sum(nil)[:12])
	s.content[key]++
	if n := s.content[key]; n > 1 {
		key += "#" + strconv.Itoa(n)
	}
	return key
}

// notice remembers what the session as a whole takes from an entry.
func (s *scanner) notice(o history.Object, kindOf string) {
	switch kindOf {
	case lineInfo:
		s.title, s.named = strings.TrimSpace(o.String("name")), true
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

func v1Key(place int) string { return "v1:" + strconv.Itoa(place) }
