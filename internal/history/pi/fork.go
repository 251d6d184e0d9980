package pi

import (
	"errors"
	"hash/maphash"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// A fork's file begins with copies of entries of its origin, with their ids: those of a path,
// or all of them. What the origin has stays there; the fork's own entries hang on it.

// shared is a run of entries of the file that lie in a session which it was forked from.
type shared struct {
	From    int        `json:"from"` // index of the first entry
	To      int        `json:"to"`   // and of the one after the last
	Session session.ID `json:"session"`
	Places  bool       `json:"places,omitempty"` // they are named by their places there, as of version 1
}

// errForgotten says that what an earlier reading found to be shared is not here any more.
var errForgotten = errors.New("the session that it was forked from is gone")

// hang finds what the session was forked from. One that was here before its origin is linked
// when it is read again, and keeps the copies that it has.
func (r *reader) hang(id string) error {
	if r.existing != nil && r.existing.ParentID != "" {
		r.session.ParentID, r.session.ParentKind = r.existing.ParentID, r.existing.ParentKind
		return nil
	}
	origin, err := r.parent(id)
	if err != nil || origin == "" {
		return err
	}
	if r.existing == nil {
		r.session.ParentID, r.session.ParentKind = origin, session.ParentFork
		return nil
	}
	line, err := r.lineage(origin)
	if err != nil {
		return err
	}
	for _, s := range line {
		if s.ID == r.existing.ID {
			return nil // the files name one another in a circle
		}
	}
	r.linked = origin
	return nil
}

// lineage gives a session and those that it was forked from, the oldest first.
func (r *reader) lineage(id session.ID) ([]*session.Session, error) {
	var line []*session.Session
	seen := map[session.ID]bool{}
	for id != "" && !seen[id] && len(line) < history.MaxForks {
		seen[id] = true
		s, err := r.known.SessionByID(r.ctx, id)
		if err != nil {
			return nil, err
		}
		if s == nil {
			break
		}
		line = append([]*session.Session{s}, line...)
		if s.ParentKind != session.ParentFork {
			break
		}
		id = s.ParentID
	}
	return line, nil
}

// copied is what a fork has of the entries that it shares: labels, which belong to a session
// and not to a message, and overlays that its origin does not have in force.
type copied struct {
	marks       []history.Mark
	compactions []history.Compaction
}

// share finds the entries that the file has in common with the session that it was forked
// from: with the same id and parent, saying the same. They are not stored a second time. What
// is the session's own already, since it came before its origin, stays so. What comes after copies
// alone may be copies still: a fork can be seen while it is being made.
func (r *reader) share(d *decoder, continues bool) (copied, error) {
	var c copied
	if continues && r.existing.LastSeq > 0 || r.older || r.session.ParentID == "" || r.session.ParentKind != session.ParentFork {
		return c, nil
	}
	line, err := r.lineage(r.session.ParentID)
	if err != nil || len(line) == 0 {
		return c, err
	}
	own := map[uint64]bool{} // by the sums of their keys
	if r.existing != nil {
		err = r.known.Entries(r.ctx, r.existing.ID, func(m *session.Message) bool {
			own[r.names.Sum(m.ExternalID)] = true
			return true
		})
		if err != nil {
			return c, err
		}
	}
	theirs := originals{reader: r, seed: maphash.MakeSeed()}
	defer theirs.found.Close()
	if err := theirs.collect(line); err != nil {
		return c, err
	}
	if !r.number(line) {
		return c, nil
	}
	n, inherits := 0, session.Time{}
	var aside []history.Compaction // of branches that the file does not show now
	for i := range r.next() {
		e, ok, err := theirs.isCopy(d, i, own)
		if err != nil {
			return c, err
		}
		if !ok {
			continue
		}
		n++
		if e.compaction != nil {
			e.compaction.Record = history.Place{Key: r.keyOf(i), Session: r.sharedIn(i)}
		}
		switch node := r.nodes.At(i); {
		case e.mark != nil && e.early:
			r.late = append(r.late, e)
		case e.mark != nil:
			c.marks = append(c.marks, *e.mark)
		case e.compaction == nil:
		case !node.onPath:
			aside = append(aside, *e.compaction)
		case theirs.found.At(i).left:
			c.compactions = append(c.compactions, *e.compaction)
		case e.compaction.CreatedAt.After(inherits.Time):
			inherits = e.compaction.CreatedAt
		}
	}
	if n == 0 {
		return c, nil
	}
	for _, a := range aside { // the session may turn to their branches
		if a.CreatedAt.After(inherits.Time) {
			c.compactions = append(c.compactions, a)
		}
	}
	r.records.Skip(skipCopy, n)
	r.session.Inherits = &inherits
	if made, ok := r.made(); ok {
		r.session.CreatedAt = &made
	}
	return c, nil
}

// number counts the sessions of a line among the origins, those that an earlier reading found to
// share entries as well. It is false where one of these is not of the line.
func (r *reader) number(line []*session.Session) bool {
	before, now := r.origins, map[session.ID]int16{}
	r.origins = nil
	for k, s := range line {
		r.origins = append(r.origins, s.ID)
		now[s.ID] = int16(k + 1)
	}
	for _, id := range before {
		if now[id] == 0 {
			r.origins = before
			return false
		}
	}
	for i := range r.next() {
		if n := r.nodes.At(i); n.in > 0 {
			n.in = now[before[n.in-1]]
		}
	}
	return true
}

// original is an entry of an origin that has the name of one of the file's.
type original struct {
	says   uint64
	in     int16 // which origin, from 1; 0: there is none
	above  int16 // which has its parent
	parent int32 // the entry of the file that its parent has the name of; -1: it is a root
	places bool  // it is named by its place
	left   bool  // its session went on elsewhere
}

// spot is an entry of the file, as one of an origin.
type spot struct {
	node int32 // -1: no entry, as the parent of a root
	in   int16
}

// stranger is an entry that the file does not have.
const stranger = -2

// originals collects the entries of the origins that the file may have copies of.
type originals struct {
	*reader
	seed   maphash.Seed
	found  history.Table[original]
	byKey  map[string]int32      // of entries that are not named by their id
	places []int32               // entries by place, where the file has ids and an origin may have none
	spots  map[session.ID][]spot // by seq
}

func (o *originals) collect(line []*session.Session) error {
	o.byKey, o.spots = map[string]int32{}, map[session.ID][]spot{}
	for i := range o.next() {
		n := o.nodes.At(i)
		o.found.Append(original{})
		if !o.plain(i) {
			o.byKey[o.keyOf(i)] = i
		}
		if !n.kind.aside() && o.version > 1 && o.version < 4 {
			o.places = append(o.places, i)
		}
	}
	for k, s := range line {
		if err := o.session(s, int16(k+1)); err != nil {
			return err
		}
	}
	return nil
}

// session collects the entries of one origin.
func (o *originals) session(s *session.Session, in int16) error {
	parents := make([]int64, s.LastSeq+1)
	spots := make([]spot, s.LastSeq+1)
	o.spots[s.ID] = spots
	records := map[int64]int32{} // of compactions, by seq
	err := o.known.Entries(o.ctx, s.ID, func(m *session.Message) bool {
		if m.Seq >= int64(len(spots)) {
			return false // it came after we looked
		}
		above := spot{node: -1}
		if m.Parent != nil {
			above = o.spotOf(*m.Parent)
			if m.Parent.Session == s.ID {
				parents[m.Seq] = m.Parent.Seq
			}
		}
		i, places, ok := o.named(m.ExternalID)
		switch {
		case ok:
			*o.found.At(i) = original{says: history.Says(o.seed, m), in: in, above: above.in, parent: above.node, places: places}
			spots[m.Seq] = spot{i, in}
			if o.nodes.At(i).kind == entryCompaction {
				records[m.Seq] = i
			}
		case isLabel(m): // a fork of a path goes on without it
			spots[m.Seq] = above
		default:
			spots[m.Seq].node = stranger
		}
		return true
	})
	if err != nil || len(records) == 0 {
		return err
	}
	for _, i := range records {
		o.found.At(i).left = true
	}
	if s.Head != nil && s.Head.Session == s.ID {
		for at := s.Head.Seq; at > 0 && at < int64(len(parents)); at = parents[at] {
			if i, ok := records[at]; ok {
				o.found.At(i).left = false
			}
		}
	}
	return nil
}

func (o *originals) spotOf(ref session.MessageRef) spot {
	if spots := o.spots[ref.Session]; ref.Seq > 0 && ref.Seq < int64(len(spots)) {
		return spots[ref.Seq]
	}
	return spot{node: stranger}
}

// named gives the entry of the file that has an external id; places says that it is the one at
// the place that a version 1 entry was named by.
func (o *originals) named(key string) (i int32, places, ok bool) {
	if i, ok = o.byKey[key]; ok {
		return i, false, true
	}
	if i, ok = o.first(key); ok {
		return i, false, true
	}
	if text, of := strings.CutPrefix(key, "v1:"); of {
		if place, err := strconv.Atoi(text); err == nil && place >= 0 && place < len(o.places) {
			return o.places[place], true, true
		}
	}
	return 0, false, false
}

// first gives the first entry that has an id, whose key it is.
func (o *originals) first(id string) (int32, bool) {
	sum := o.names.Sum(id)
	i, ok := o.names.Get(sum)
	if older := o.scanned.older[sum]; len(older) > 0 {
		i = older[0]
	}
	return i, ok && o.plain(i)
}

func isLabel(m *session.Message) bool {
	if m.Kind != session.KindMarker {
		return false
	}
	extra, _ := history.ParseObject(m.Extra)
	line, _ := history.Fields(extra.Get("line"))
	return line.String("type") == lineLabel
}

// isCopy tells whether an entry is one of an origin's, and takes it as that.
func (o *originals) isCopy(d *decoder, i int32, own map[uint64]bool) (entry, bool, error) {
	n, there := *o.nodes.At(i), *o.found.At(i)
	if there.in == 0 || n.known || own[o.keySum(i)] || there.parent != n.parent || n.parent >= 0 && o.nodes.At(n.parent).in != there.above {
		return entry{}, false, nil
	}
	line, err := o.line(&n)
	if err != nil {
		return entry{}, false, err
	}
	e := d.decode(i, line)
	if o.cuts.Says(o.seed, &e.message.Message) != there.says {
		return entry{}, false, nil
	}
	at := o.nodes.At(i)
	at.known, at.in = true, there.in
	if there.places {
		place, _ := slices.BinarySearch(o.places, i)
		o.byPlace(i, place)
	}
	return e, true, nil
}

// place gives the place of an entry among those of version 1.
func (s *scanned) place(i int32) int {
	place := 0
	for k := range i {
		if !s.nodes.At(k).kind.aside() {
			place++
		}
	}
	return place
}

// runs are the shared entries, for the next reading.
func (r *reader) runs() []shared {
	var runs []shared
	for i := range r.next() {
		n := r.nodes.At(i)
		if n.in == 0 {
			continue
		}
		run := shared{From: int(i), To: int(i) + 1, Session: r.origins[n.in-1], Places: n.id != 0 && n.place >= 0}
		if k := len(runs) - 1; k >= 0 && runs[k].To == int(i) && runs[k].Session == run.Session && runs[k].Places == run.Places {
			runs[k].To++
			continue
		}
		runs = append(runs, run)
	}
	return runs
}

// recall takes the entries that an earlier reading found to be shared.
func (r *reader) recall() error {
	number := map[session.ID]int16{}
	for _, run := range r.state.Shared {
		if run.From < 0 || run.From >= run.To || run.To > r.nodes.Len() {
			return errForgotten
		}
		if number[run.Session] == 0 {
			r.origins = append(r.origins, run.Session)
			number[run.Session] = int16(len(r.origins))
		}
		place := r.place(int32(run.From))
		for i := run.From; i < run.To; i++ {
			n := r.nodes.At(int32(i))
			n.in = number[run.Session]
			if run.Places && !n.kind.aside() {
				r.byPlace(int32(i), place)
				place++
			}
		}
		last := r.keyOf(int32(run.To - 1))
		if at, err := r.known.Message(r.ctx, run.Session, last); err != nil {
			return err
		} else if at == nil {
			return errForgotten
		}
	}
	return nil
}

// parent finds the session that this one was forked from: by the path that the header
// names, then by the id in its file name. It is "" when that one was not imported.
func (r *reader) parent(own string) (session.ID, error) {
	if id := r.header.String("parentSessionId"); id != "" && id != own { // version 4
		found, err := r.known.Session(r.ctx, session.SourcePi, id)
		if err != nil || found != nil {
			return idOf(found), err
		}
		r.awaits = id
	}
	path := ""
	for _, key := range []string{"parentSession", "branchedFrom", "legacyParentSessionPath"} {
		if path == "" {
			path = r.header.String(key)
		}
	}
	if path == "" {
		return "", nil
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		cursor, err := r.known.Cursor(r.ctx, session.SourcePi, real)
		if err != nil {
			return "", err
		}
		if cursor != nil && cursor.SessionID != "" {
			r.awaits = ""
			return cursor.SessionID, nil
		}
	}
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	_, id, ok := strings.Cut(strings.TrimSuffix(name, ".jsonl"), "_")
	if !ok || id == own {
		return "", nil
	}
	found, err := r.known.Session(r.ctx, session.SourcePi, id)
	if r.awaits = ""; found == nil {
		r.awaits = id
	}
	return idOf(found), err
}

func idOf(s *session.Session) session.ID {
	if s == nil {
		return ""
	}
	return s.ID
}
