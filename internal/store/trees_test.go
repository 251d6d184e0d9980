package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// branching is a session in the naive model: forks copy what they inherit.
type branching struct {
	id       session.ID
	head     *node
	own      []*node
	shared   []*node // of a fork: the path up to where it leaves
	overlays []modelled
	undone   map[int64]bool
	made     int64 // own overlays that count
}

func (b *branching) tree() []*node { return append(slices.Clone(b.shared), b.own...) }

// effective is the overlay in force: the last that took effect, is not undone and ends on the path.
func (b *branching) effective() *modelled {
	if b.head == nil {
		return nil
	}
	path := b.head.path()
	for i := range slices.Backward(b.overlays) {
		if o := &b.overlays[i]; !b.undone[o.row] && slices.Contains(path, o.through) {
			return o
		}
	}
	return nil
}

func (b *branching) contextTokens() int64 {
	if b.head == nil {
		return 0
	}
	var sum int64
	for _, n := range b.head.path() {
		sum += n.tokens
	}
	if o := b.effective(); o != nil {
		sum += o.summary - o.hidden
	}
	return sum
}

// wood is a forest of sessions, forks of forks among them, grown at random in the store and in
// the model.
type wood struct {
	t     *rapid.T
	s     *Store
	all   []*branching
	count int
}

func (w *wood) step() {
	ctx := context.Background()
	kind := rapid.IntRange(0, 11).Draw(w.t, "step")
	if len(w.all) == 0 || kind == 0 && len(w.all) < 6 {
		sess := testkit.Must(w.s.CreateSession(ctx, NewSession{}))(w.t)
		w.all = append(w.all, &branching{id: sess.ID, undone: map[int64]bool{}})
		return
	}
	b := rapid.SampledFrom(w.all).Draw(w.t, "session")
	switch tree := b.tree(); {
	case kind <= 2 && len(tree) > 0:
		w.fork(b, rapid.SampledFrom(tree).Draw(w.t, "at"))
	case kind <= 4 && len(tree) > 0:
		w.moveHead(b, tree)
	case kind == 5 && b.head != nil:
		w.compact(b)
	case kind == 6:
		w.undo(b)
	case kind == 7:
		w.redo(b)
	default:
		w.append(b, tree)
	}
}

func (w *wood) append(b *branching, tree []*node) {
	in, at := Append{Session: b.id}, b.head
	if len(tree) > 0 && rapid.IntRange(0, 2).Draw(w.t, "branch") == 0 {
		at = rapid.SampledFrom(tree).Draw(w.t, "parent")
		in.Parent = &at.id
	}
	for range rapid.IntRange(1, 3).Draw(w.t, "n") {
		w.count++
		m := says(session.User, fmt.Sprint("message ", w.count))
		m.InContext = rapid.IntRange(0, 4).Draw(w.t, "in context") > 0
		in.Messages = append(in.Messages, m)
	}
	out := testkit.Must(w.s.Append(context.Background(), in))(w.t)
	for _, m := range out.Messages {
		n := &node{id: m.ID, row: m.RowID, parent: at}
		if m.InContext {
			n.tokens = m.Tokens
		}
		at = n
		b.own = append(b.own, n)
	}
	b.head = at
}

func (w *wood) fork(b *branching, at *node) {
	made := testkit.Must(w.s.Fork(context.Background(), Fork{Session: b.id, At: &at.id}))(w.t)
	w.all = append(w.all, &branching{
		id: made.ID, head: at, shared: at.path(), overlays: slices.Clone(b.overlays), undone: maps.Clone(b.undone),
	})
}

func (w *wood) moveHead(b *branching, tree []*node) {
	in := HeadMove{Session: b.id}
	var to *node
	if rapid.IntRange(0, 8).Draw(w.t, "to the start") > 0 {
		to = rapid.SampledFrom(tree).Draw(w.t, "to")
		in.To = &to.id
	}
	was := testkit.Must(w.s.Session(context.Background(), b.id))(w.t)
	done := testkit.Must(w.s.MoveHead(context.Background(), in))(w.t)
	if done.Moved != (b.head != to) || done.Moved && done.Session.Epoch != was.Epoch+1 ||
		!done.Moved && done.Session.Revision != was.Revision {
		w.t.Fatalf("%s from %v to %v: %+v", b.id, b.head, to, done)
	}
	b.head = to
}

func (w *wood) compact(b *branching) {
	through := rapid.SampledFrom(b.head.path()).Draw(w.t, "through")
	var hidden int64
	for _, n := range through.path() {
		hidden += n.tokens
	}
	c := session.Compaction{
		SessionID: b.id, Strategy: session.StrategySummarize, Trigger: session.TriggerManual, Status: session.StatusDone,
		ThroughID: &through.row, HiddenTokens: hidden, SummaryTokens: rapid.Int64Range(0, 9).Draw(w.t, "summary"),
	}
	if o := b.effective(); o != nil {
		c.PreviousID = &o.row
	}
	c = testkit.Must(w.s.AddCompaction(context.Background(), c))(w.t)
	b.made++
	b.overlays = append(b.overlays, modelled{row: c.RowID, through: through, summary: c.SummaryTokens, hidden: hidden})
}

func (w *wood) undo(b *branching) {
	o := b.effective()
	if o == nil {
		return
	}
	testkit.Must(w.s.UndoCompaction(context.Background(), b.id, o.row))(w.t)
	b.undone[o.row] = true
	b.made -= w.owns(b, o.row)
}

func (w *wood) redo(b *branching) {
	gone := slices.Sorted(maps.Keys(b.undone))
	if len(gone) == 0 {
		return
	}
	row := rapid.SampledFrom(gone).Draw(w.t, "redo")
	_, err := w.s.RedoCompaction(context.Background(), b.id, row)
	if session.CodeOf(err) == session.Conflict { // it would not be in force, or what it was built on is not
		return
	}
	if i := slices.IndexFunc(b.overlays, func(o modelled) bool {
		return o.row == row
	}); session.CodeOf(err) == session.NotFound && !slices.Contains(b.tree(), b.overlays[i].through) {
		return // of a branch that nobody shared, and that was purged
	}
	testkit.Check(w.t, err)
	delete(b.undone, row)
	b.made += w.owns(b, row)
	if o := b.effective(); o == nil || o.row != row {
		w.t.Fatalf("%s: %d was redone and is not in force: %+v", b.id, row, o)
	}
}

func (w *wood) owns(b *branching, row int64) int64 {
	c := testkit.Must(readCompaction(context.Background(), w.s, row))(w.t)
	if c.SessionID == b.id {
		return 1
	}
	return 0
}

func (w *wood) check() {
	ctx := context.Background()
	for _, b := range w.all {
		sess := testkit.Must(w.s.Session(ctx, b.id))(w.t)
		if (sess.Head == nil) != (b.head == nil) || b.head != nil && *sess.Head != b.head.id {
			w.t.Fatalf("%s: head %v, not %v", b.id, sess.Head, b.head)
		}
		var overlay *int64
		if o := b.effective(); o != nil {
			overlay = &o.row
		}
		if !sameID(sess.CompactionID, overlay) || sess.ContextTokens != b.contextTokens() || sess.CompactionCount != b.made ||
			sess.MessageCount != int64(len(b.own)) {
			w.t.Fatalf("%s: %+v; in the model overlay %v, %d tokens, %d compactions", b.id, sess, overlay, b.contextTokens(),
				b.made)
		}
		if b.head != nil {
			checkPath(w.t, w.s, b.head, b.head.path())
			checkPages(w.t, w.s, b.id, b.head.path(), b.own)
			w.checkRefs(b)
		}
		w.checkTree(b)
	}
	checks := testkit.Must(w.s.Doctor(ctx, true))(w.t)
	for _, c := range checks {
		if !c.OK {
			w.t.Fatalf("%s: %s", c.Name, c.Detail)
		}
	}
}

// checkRefs reads a path between any two of its messages, which may be shared ones.
func (w *wood) checkRefs(b *branching) {
	path := b.head.path()
	lo := rapid.IntRange(0, len(path)-1).Draw(w.t, "after ref")
	hi := rapid.IntRange(0, len(path)-1).Draw(w.t, "before ref")
	p := MessagePage{
		Limit: 1000, AfterRef: &path[lo].id, BeforeRef: &path[hi].id,
		Descending: rapid.Bool().Draw(w.t, "down"),
	}
	if lo >= hi {
		p.BeforeRef, hi = nil, len(path)
	}
	want := slices.Clone(path[lo+1 : hi])
	if p.Descending {
		slices.Reverse(want)
	}
	got, more, err := w.s.Messages(context.Background(), b.id, p)
	if err != nil || more || !slices.Equal(refs(got), names(want)) {
		w.t.Fatalf("%s between %s and %v: %v, not %v (%v)", b.id, p.AfterRef, p.BeforeRef, refs(got), names(want), err)
	}
}

// checkTree puts the segments together again: they must hold each message of the tree once,
// under its parent, and nothing else.
func (w *wood) checkTree(b *branching) {
	ctx := context.Background()
	limit := rapid.IntRange(1, 5).Draw(w.t, "segments")
	var segments []session.Segment
	var page TreePage
	for page.Limit = limit; ; {
		tree := testkit.Must(w.s.Tree(ctx, b.id, page))(w.t)
		segments = append(segments, tree.Segments...)
		if len(tree.Segments) > limit || tree.Next == "" && tree.Total != len(segments) {
			w.t.Fatalf("%s: %d of %d segments, %d at once", b.id, len(segments), tree.Total, len(tree.Segments))
		}
		if tree.Next == "" {
			break
		}
		ref := testkit.Must(session.ParseRef(tree.Next))(w.t)
		page.Cursor = &ref
	}
	got := map[string]string{}
	begins := map[session.MessageRef]bool{}
	for _, s := range segments {
		before := ""
		if s.Parent != nil {
			before = s.Parent.String()
		}
		if before != "" && got[before] == "" && s.Parent.Seq > 0 {
			if _, ok := got[before]; !ok {
				w.t.Fatalf("%s: %s stands before its parent %s", b.id, s.First.ID, before)
			}
		}
		for seq := s.First.ID.Seq; seq <= s.Last.ID.Seq; seq++ {
			ref := session.MessageRef{Session: s.First.ID.Session, Seq: seq}.String()
			if _, ok := got[ref]; ok {
				w.t.Fatalf("%s: %s is there twice", b.id, ref)
			}
			got[ref], before = before, ref
		}
		begins[s.First.ID] = true
		if s.Head != (b.head != nil && s.Last.ID == b.head.id) || s.Count != s.Last.ID.Seq-s.First.ID.Seq+1 {
			w.t.Fatalf("%s: segment %+v", b.id, s)
		}
	}
	want := map[string]string{}
	children := map[session.MessageRef]int{}
	for _, n := range b.tree() {
		want[n.id.String()] = ""
		if n.parent != nil {
			want[n.id.String()] = n.parent.id.String()
			children[n.parent.id]++
		}
	}
	if !maps.Equal(got, want) {
		w.t.Fatalf("%s: tree %v, not %v", b.id, got, want)
	}
	var path []*node
	if b.head != nil {
		path = b.head.path()
	}
	for _, s := range segments {
		if len(s.Children) != children[s.Last.ID] {
			w.t.Fatalf("%s: %s has children %v, not %d", b.id, s.Last.ID, s.Children, children[s.Last.ID])
		}
		if on := slices.ContainsFunc(path, func(n *node) bool { return n.id == s.First.ID }); on != s.OnPath {
			w.t.Fatalf("%s: %s on the path: %v", b.id, s.First.ID, s.OnPath)
		}
	}
}

func TestForksHeadsAndUndosOnRandomTreesAreThoseOfTheNaiveModel(t *testing.T) {
	s := openTest(t) // one for all: opening takes longer than most of them
	rapid.Check(t, func(rt *rapid.T) {
		w := wood{t: rt, s: s}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			w.step()
		}
		w.check()
	})
}
