package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Tree is a piece of a session's tree. Parents stand before what follows them: first the path
// that a fork shares, then the session's own segments in the order in which they began.
type Tree struct {
	Session  session.Session
	Segments []session.Segment
	Next     string // cursor of the next piece; "" at the end
	Total    int    // segments of the whole tree
	Leaves   int    // ends of branches in the whole tree
}

// TreePage says which piece of a tree is read.
type TreePage struct {
	Limit  int                 // segments; 0: all
	Cursor *session.MessageRef // first message of the last segment of the piece before
}

// hangingMost bounds how many forks and children a tree shows.
const hangingMost = 1000

// Tree reads a session's tree. It reads a row per branch, and of each segment on the page its
// two ends. Codes: NotFound, Invalid (cursor).
func (s *Store) Tree(ctx context.Context, id session.ID, p TreePage) (Tree, error) {
	g := treeBuilder{ends: map[session.MessageRef]int{}}
	if err := g.read(ctx, s, id); err != nil {
		return Tree{}, err
	}
	if err := g.makeRuns(ctx, s); err != nil {
		return Tree{}, fmt.Errorf("tree of %s: %w", id, err)
	}
	out := Tree{Session: g.sess, Total: len(g.runs), Leaves: g.leaves()}
	page := g.runs
	if p.Cursor != nil {
		at := slices.IndexFunc(page, func(r treeRun) bool { return r.first() == *p.Cursor })
		if at < 0 {
			return out, session.Errorf(session.Invalid, "cursor is none of this tree's any more: begin without one").
				At("cursor", "not a next_cursor of this tree")
		}
		page = page[at+1:]
	}
	if p.Limit > 0 && len(page) > p.Limit {
		page = page[:p.Limit]
		out.Next = page[p.Limit-1].first().String()
	}
	var err error
	out.Segments, err = g.segments(ctx, s, page)
	return out, session.Wrap(err, "tree of %s", id)
}

// treeRun is a segment while the tree is put together.
type treeRun struct {
	Span
	parent   *session.MessageRef
	children []session.MessageRef
	onPath   bool
	shared   bool
}

func (r treeRun) first() session.MessageRef {
	return session.MessageRef{Session: r.Session, Seq: r.From}
}

func (r treeRun) last() session.MessageRef {
	return session.MessageRef{Session: r.Session, Seq: r.To}
}

// treeBuilder puts a tree together.
type treeBuilder struct {
	sess     session.Session
	jumps    []treeJump // of the session's own messages, by seq
	labels   []session.Label
	overlays []overlayRow // its own
	undone   map[int64]session.Time
	hanging  []session.Link

	runs []treeRun
	ends map[session.MessageRef]int // index of the run that ends there
}

// treeJump is a message that does not follow the one before it.
type treeJump struct {
	Seq    int64               `db:"seq"`
	Parent *session.MessageRef `db:"parent"`
}

// read reads all that a tree is made of but what a fork shares and the segments' ends. Codes: NotFound.
func (g *treeBuilder) read(ctx context.Context, q engine.Queryer, id session.ID) error {
	var sess *session.Session
	g.undone = map[int64]session.Time{}
	err := q.Read(ctx,
		engine.IntoFirst(&sess, sessionByID, id),
		engine.IntoList(&g.jumps, jumpsOfSession, id),
		engine.IntoList(&g.labels, labelsOfTree, id),
		engine.IntoList(&g.overlays, overlaysOfSession, id),
		intoUndos(g.undone, id),
		engine.IntoList(&g.hanging, hangingOn, id, hangingMost))
	if err != nil {
		return fmt.Errorf("tree of %s: %w", id, err)
	}
	g.sess, err = foundSession(sess, id)
	return cmp.Or(err, checkVisible(ctx, &g.sess, id))
}

// makeRuns makes the runs: the shared path and the session's own lines, cut after every message
// that something else follows as well, and after the head.
func (g *treeBuilder) makeRuns(ctx context.Context, q engine.Queryer) error {
	lines, err := g.shared(ctx, q)
	if err != nil {
		return err
	}
	cuts := map[session.ID][]int64{}
	if g.sess.Head != nil {
		cuts[g.sess.Head.Session] = append(cuts[g.sess.Head.Session], g.sess.Head.Seq)
	}
	own := g.own()
	for _, l := range own {
		if l.parent != nil {
			cuts[l.parent.Session] = append(cuts[l.parent.Session], l.parent.Seq)
		}
	}
	for id := range cuts {
		slices.Sort(cuts[id])
	}
	for _, l := range append(lines, own...) {
		g.cut(l, cuts[l.Session])
	}
	for _, r := range g.runs {
		if r.parent != nil {
			if at, ok := g.ends[*r.parent]; ok {
				g.runs[at].children = append(g.runs[at].children, r.first())
			}
		}
	}
	for at := g.sess.Head; at != nil; {
		i, ok := g.ends[*at]
		if !ok { // an imported fork that leaves its origin in more than one place
			break
		}
		g.runs[i].onPath = true
		at = g.runs[i].parent
	}
	return nil
}

// shared returns the path that a fork shares, oldest first.
func (g *treeBuilder) shared(ctx context.Context, q engine.Queryer) ([]treeRun, error) {
	if g.sess.ParentKind != session.ParentFork {
		return nil, nil
	}
	l, err := readLink(ctx, q, g.sess.ID)
	if err != nil || l.MessageID == nil {
		return nil, err
	}
	spans, err := pathSpans(ctx, q, l.MessageID)
	if err != nil {
		return nil, err
	}
	lines := make([]treeRun, 0, len(spans))
	var before *session.MessageRef
	for _, sp := range slices.Backward(spans) {
		lines = append(lines, treeRun{Span: sp, parent: before, shared: true})
		last := lines[len(lines)-1].last()
		before = &last
	}
	return lines, nil
}

// own returns the session's own lines: each begins with a jump or with its first message.
func (g *treeBuilder) own() (lines []treeRun) {
	if g.sess.LastSeq == 0 {
		return nil
	}
	begin := func(seq int64, parent *session.MessageRef) {
		if n := len(lines); n > 0 {
			lines[n-1].To = seq - 1
		}
		lines = append(lines, treeRun{Span: Span{Session: g.sess.ID, From: seq, To: g.sess.LastSeq}, parent: parent})
	}
	if len(g.jumps) == 0 || g.jumps[0].Seq > 1 {
		begin(1, nil)
	}
	for _, j := range g.jumps {
		if j.Seq <= g.sess.LastSeq { // what came between two statements is not shown yet
			begin(j.Seq, j.Parent)
		}
	}
	return lines
}

const jumpsOfSession = `
	SELECT m.seq, p.session_id || '.' || p.seq AS parent FROM messages m LEFT JOIN messages p ON p.id = m.parent_id
	WHERE m.session_id = ? AND m.jump = 1 ORDER BY m.seq`

// cut parts a line after those of its messages that are among cuts, which are in order.
func (g *treeBuilder) cut(l treeRun, cuts []int64) {
	add := func(r treeRun) {
		g.ends[r.last()] = len(g.runs)
		g.runs = append(g.runs, r)
	}
	from, _ := slices.BinarySearch(cuts, l.From)
	for _, at := range cuts[from:] {
		if at >= l.To {
			break
		}
		if at < l.From { // cut there already, for another branch
			continue
		}
		piece := l
		piece.To = at
		add(piece)
		last := piece.last()
		l.From, l.parent = at+1, &last
	}
	add(l)
}

func (g *treeBuilder) leaves() int {
	n := 0
	for _, r := range g.runs {
		if len(r.children) == 0 {
			n++
		}
	}
	return n
}

// segmentsAtOnce is of how many segments the ends are read together.
const segmentsAtOnce = 64

// segments reads what is shown of some runs.
func (g *treeBuilder) segments(ctx context.Context, s *Store, runs []treeRun) ([]session.Segment, error) {
	out := make([]session.Segment, 0, len(runs))
	for some := range slices.Chunk(runs, segmentsAtOnce) {
		ends := make([][2]*treeRow, len(some))
		var readings []engine.Reading
		for i, r := range some {
			readings = append(readings, engine.IntoFirst(&ends[i][0], treeMessage, r.Session, r.From))
			if r.To > r.From {
				readings = append(readings, engine.IntoFirst(&ends[i][1], treeMessage, r.Session, r.To))
			}
		}
		if err := s.Read(ctx, readings...); err != nil {
			return nil, err
		}
		for i, r := range some {
			if r.To == r.From {
				ends[i][1] = ends[i][0]
			}
			for n, ref := range []session.MessageRef{r.first(), r.last()} {
				if ends[i][n] == nil {
					return nil, session.Errorf(session.NotFound, "there is no message %s", ref)
				}
			}
			out = append(out, g.segment(r, ends[i][0], ends[i][1]))
		}
	}
	return out, g.addDetails(ctx, s, runs, out)
}

func (g *treeBuilder) segment(r treeRun, first, last *treeRow) session.Segment {
	seg := session.Segment{
		First: first.shown(), Last: last.shown(), Tokens: last.PathTokens - first.Before, Count: r.To - r.From + 1,
		Parent: r.parent, Children: r.children, OnPath: r.onPath, Shared: r.shared,
		Head: g.sess.Head != nil && *g.sess.Head == r.last(),
	}
	if seg.Children == nil {
		seg.Children = []session.MessageRef{}
	}
	return seg
}

// treeRow is a message as a tree shows it.
type treeRow struct {
	session.TreeMessage
	PathTokens int64   `db:"path_tokens"` // up to it
	Before     int64   `db:"before"`      // up to the one before
	Text       *string `db:"text"`        // the beginning
}

// previewRunes is how much of a text is given; a few times as many bytes are read for it.
const previewRunes = 160

func (r *treeRow) shown() session.TreeMessage {
	m := r.TreeMessage
	switch {
	case r.Text == nil:
	case m.Kind == session.KindBranchSummary:
		m.Preview = preview(session.UnframeBranch(*r.Text))
	default:
		m.Preview = preview(*r.Text)
	}
	return m
}

const treeMessage = `
	SELECT m.session_id || '.' || m.seq AS id, m.kind, m.role, m.origin, m.finish, m.created_at, m.path_tokens,
	       m.path_tokens - m.tokens * m.in_context AS before,
	       (SELECT CASE WHEN p.blob IS NULL THEN substr(p.text, 1, 600)
	                    ELSE (SELECT CAST(substr(b.data, 1, 600) AS TEXT) FROM blobs b WHERE b.sha256 = p.blob) END
	        FROM parts p WHERE p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023 AND p.kind IN ('text', 'refusal', 'tool_result')
	        ORDER BY p.id LIMIT 1) AS text,
	       COALESCE((SELECT p.tool_name FROM parts p WHERE p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023 AND p.kind = 'tool_call'
	        ORDER BY p.id LIMIT 1), '') AS tool_name
	FROM messages m WHERE m.session_id = ? AND m.seq = ?`

// preview returns the beginning of a text as one line.
func preview(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if runes := []rune(text); len(runes) > previewRunes {
		return strings.TrimSpace(string(runes[:previewRunes-1])) + "…"
	}
	return text
}

// addDetails hangs labels, compactions, forks and children where they belong.
func (g *treeBuilder) addDetails(ctx context.Context, q engine.Queryer, runs []treeRun, out []session.Segment) error {
	find := func(ref session.MessageRef) int {
		return slices.IndexFunc(runs, func(r treeRun) bool { return r.holds(ref) })
	}
	for _, l := range g.labels {
		if i := find(l.Message); i >= 0 {
			out[i].Labels = append(out[i].Labels, l)
		}
	}
	overlays, err := inheritOverlays(ctx, q, g.sess, g.overlays)
	if err != nil {
		return err
	}
	for _, o := range slices.Backward(overlays) {
		if o.Through == nil {
			continue
		}
		if i := find(*o.Through); i >= 0 {
			_, gone := g.undone[o.ID]
			out[i].Overlays = append(out[i].Overlays, session.TreeCut{
				ID: session.CompactionName(o.ID), Strategy: o.Strategy, Through: *o.Through, Undone: gone,
				InForce: sameID(g.sess.CompactionID, &o.ID),
			})
		}
	}
	for _, l := range g.hanging {
		if l.Message == nil {
			continue
		}
		if i := find(*l.Message); i >= 0 {
			out[i].Hanging = append(out[i].Hanging, l)
		}
	}
	return nil
}

// SQLite would drop a constant kind from the order, which then is not that of the primary key, and sort; so the kind is
// an expression.
const labelsOfTree = `
	SELECT m.session_id || '.' || m.seq AS message, k.text FROM marks k JOIN messages m ON m.id = k.message_id
	WHERE k.session_id = ? AND k.kind || '' = 'tag' ORDER BY k.message_id, k.kind, k.place`
