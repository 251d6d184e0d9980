package pi

import (
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// survey is a file's entries and how they hang together.
type survey struct {
	Entries
	early bool            // an entry names one that comes after it
	lane  int32           // in version 4: the leaf of the main lane, -1: none
	tails []int32         // compactions that carry copies of what they kept
	kept  map[int32]int32 // of these: the entry that the first copy is of

	slot    jsonx.Object // omp's line before the header
	foreign int32        // of omp: the entries before this one were made of another program's session
	origins []byte       // what omp says of that session
}

// The types of omp's custom entries that say something of the session.
const (
	foreignImport = "foreign_session_import"
	sessionExit   = "session_exit"
)

// headerScan is how far the header is searched for, as pi does it.
const headerScan = 1 << 20

// look reads a file's lines and links them. It fails with Invalid if the file is no pi session, or of a
// version that is not known.
func look(in *history.Intake) *survey {
	s := &survey{Entries: NewEntries(in, in.Bytes), lane: -1, kept: map[int32]int32{}}
	in.EachLine(s.read)
	if s.Header == nil {
		in.Fail(errNoHeader)
	}
	if title := strings.TrimSpace(s.slot.String("title")); title != "" {
		s.Title = title
	}
	s.linkNodes()
	for at := s.leaf(); at >= 0; at = s.Nodes[at].Parent {
		s.Nodes[at].onPath = true
	}
	s.findTails()
	return s
}

var errNoHeader = session.Errorf(session.Invalid, "no pi session: its first line is no session header")

// read reads one line.
func (s *survey) read(l history.FileLine) {
	n, raw := s.Node(l)
	o, _, ok := history.ParseLine(raw)
	lineType := o.String("type")
	switch {
	case !ok && s.Header == nil && n.Offset > headerScan:
		s.In.Fail(session.Errorf(session.Invalid, "no pi session: its first MiB holds no session header"))
	case !ok:
		s.AddBroken(n, raw)
	case s.Header == nil && lineType == lineTitle:
		if s.slot = o; s.In.Source() != session.SourceOmp { // begin counts it
			s.In.Fail(session.Errorf(session.Invalid, "a session of omp: `sessiond import omp` reads it"))
		}
	case s.Header == nil:
		s.In.Fail(s.begin(o))
	case s.Version == 4:
		s.harness(n, o, raw)
	case lineType == lineSession && o.String("id") == s.Header.String("id"):
		s.In.Skip(skipHeader, 1)
	default:
		s.entry(n, o, raw, lineType)
	}
}

// entry reads an entry of versions 1 to 3.
func (s *survey) entry(n Node, o jsonx.Object, raw []byte, lineType string) {
	n.target, n.Kind = o.String("targetId"), kindOfLine(lineType)
	if s.Version > 1 {
		n.ID, n.Link = o.String("id"), o.String("parentId")
	}
	if lineType == lineCustom && s.In.Source() == session.SourceOmp {
		switch o.String("customType") {
		case foreignImport:
			s.foreign, s.origins = s.Len(), o.Get("data")
		case sessionExit:
			n.Kind = Side
		}
	}
	s.add(n, o, raw, lineType)
}

// begin reads the header. Codes: Invalid.
func (s *survey) begin(o jsonx.Object) error {
	harness := o.String("kind") == "header"
	if (o.String("type") != lineSession && !harness) || o.String("id") == "" {
		return errNoHeader
	}
	s.Version = 1
	if v := o.Get("version"); v != nil {
		number, err := strconv.Atoi(string(v))
		if err == nil && number == 4 && !harness {
			return session.Errorf(session.Invalid, "a transcript of OpenClaw: `sessiond import openclaw` reads it")
		}
		if err != nil || number < 1 || number > 4 || harness != (number == 4) {
			return session.Errorf(session.Invalid, "a pi session of version %s; versions 1 to 4 can be imported",
				history.Plain(v))
		}
		s.Version = number
	}
	s.Header = o
	lines := 1
	if s.slot != nil {
		lines = 2
	}
	if s.In.Session(s.Header.String("id")) != nil {
		s.In.Skip(history.SkipKnown, lines)
	} else {
		s.In.Import(lines)
	}
	return nil
}

// Files of version 4, which only the SDK's harness wrote, hold four kinds of lines beside
// the header: entries as in version 3; facts, which are names and labels; lanes, which move
// a named leaf; and records of the harness's own work. Only entries are on the tree. The
// others are kept beside it, as children of the entry before them on which nothing hangs.

const mainLane = "main"

// harness reads a line of version 4.
func (s *survey) harness(n Node, o jsonx.Object, raw []byte) {
	kind := o.String("kind")
	if kind == "header" && o.String("id") == s.Header.String("id") {
		s.In.Skip(skipHeader, 1)
		return
	}
	n.Kind, n.ID, n.target = Side, o.String("id"), o.String("targetId")
	if kind == "entry" {
		n.Kind, n.Link = kindOfLine(o.String("type")), o.String("parentId")
	}
	i := s.Len()
	if !s.add(n, o, raw, typeOf(o, 4)) {
		return
	}
	switch {
	case kind == "entry" && o.String("lane") == mainLane:
		s.lane = i
	case kind == "lane" && o.String("lane") == mainLane:
		s.lane, _ = s.Find(o.String("leafId"))
	}
}

// add adds an entry; false for a line that repeats an earlier one.
func (s *survey) add(n Node, o jsonx.Object, raw []byte, lineType string) bool {
	if n.ID == "" && s.Version == 4 {
		n.Key = "seq:" + strconv.FormatInt(history.Count(o.Get("seq")), 10) + ":" + s.byContent("", raw)
	} else if !s.Name(&n, raw) {
		s.In.Skip(history.SkipDuplicate, 1)
		return false
	}
	s.Add(n)
	if lineType == lineCompaction && o.Get("retainedTail") != nil {
		s.tails = append(s.tails, s.Len()-1)
	}
	s.Notice(o, lineType, n.Old)
	return true
}

func kindOfLine(lineType string) Kind {
	switch lineType {
	case lineCompaction:
		return Compaction
	case lineLeaf:
		return Leaf
	}
	return Plain
}

// leaf returns the entry that the next one would follow: the last one of the file, or the one
// that the last one points at, if it only moves the leaf.
func (s *survey) leaf() int32 {
	if s.Version == 4 && s.lane >= 0 {
		return s.lane
	}
	for i := s.Len() - 1; i >= 0; i-- {
		n := &s.Nodes[i]
		if n.Kind.aside() {
			continue
		}
		if target, ok := s.Find(n.target); ok && n.Kind == Leaf {
			return target
		}
		return i
	}
	return -1
}

// Why an entry's parent is not the one that its line names.
const (
	cutOrphan = "its parent is not in the file before it"
	cutSelf   = "it named itself as its parent"
	cutCycle  = "its parent is one of its own descendants"
)

// linkNodes finds the parent of every entry. A name stands for the newest entry before that has
// it, else for a later one. Cycles are cut at their first entry in file order.
func (s *survey) linkNodes() {
	before := int32(-1)
	for i := range s.Len() {
		n := &s.Nodes[i]
		switch {
		case n.Kind.aside():
			n.Parent = before
			continue // and nothing hangs on it
		case s.Version == 1, n.ID == "" && n.Link == "":
			n.Parent = before // a list
		case n.Link == "":
		case n.Link == n.ID && s.FindBefore(n.Link, i) < 0:
			n.cut = cutSelf
		default:
			if n.Parent = s.resolve(n.Link, i); n.Parent < 0 {
				n.cut = cutOrphan
			} else if n.Old && !s.Nodes[n.Parent].Old {
				n.Parent, n.cut = -1, cutOrphan // it was an orphan when it was imported
			}
			s.early = s.early || n.Parent > i
		}
		before = i
	}
	if s.early {
		s.cutCycles()
	}
}

// resolve is FindBefore that also finds a later entry, but not i itself.
func (s *survey) resolve(id string, i int32) int32 {
	if found := s.FindBefore(id, i); found >= 0 {
		return found
	}
	if newest, ok := s.Find(id); ok && newest != i {
		return newest
	}
	return -1
}

// cutCycles makes roots of the first entries of cycles. Every entry is visited once.
func (s *survey) cutCycles() {
	walk := make([]int32, s.Len()) // 0: not yet; else the walk that came by, from 1
	for i := range s.Len() {
		at, mine := i, i+1
		for at >= 0 && walk[at] == 0 {
			walk[at] = mine
			at = s.Nodes[at].Parent
		}
		if at < 0 || walk[at] != mine {
			continue
		}
		first := at
		for next := s.Nodes[at].Parent; next != at; next = s.Nodes[next].Parent {
			first = min(first, next)
		}
		s.Nodes[first].Parent, s.Nodes[first].cut = -1, cutCycle
	}
}

// order yields the entries such that a parent comes before its children: the order of the file,
// but for a damaged file that names a parent before it comes.
func (s *survey) order(yield func(i int32) bool) {
	listed := make([]bool, s.Len())
	var chain []int32
	for i := range s.Len() {
		chain = chain[:0]
		for at := i; at >= 0 && !listed[at]; at = s.Nodes[at].Parent {
			listed[at] = true
			chain = append(chain, at)
		}
		for _, at := range slices.Backward(chain) {
			if !yield(at) {
				return
			}
		}
	}
}
