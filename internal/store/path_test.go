package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// node is a message in the naive model of a forest of sessions.
type node struct {
	id     session.MessageRef
	row    int64
	parent *node
	tokens int64
}

func (n *node) path() (all []*node) {
	for ; n != nil; n = n.parent {
		all = append(all, n)
	}
	slices.Reverse(all)
	return all
}

type forest struct {
	heads map[session.ID]*node
	own   map[session.ID][]*node
	ids   []session.ID
	rows  map[int64]*node
}

// grow makes random sessions, branches and forks, in the store and in the model.
func grow(t *rapid.T, s *Store, steps int) *forest {
	ctx := context.Background()
	f := &forest{heads: map[session.ID]*node{}, own: map[session.ID][]*node{}, rows: map[int64]*node{}}
	for range steps {
		kind := rapid.IntRange(0, 9).Draw(t, "step")
		if len(f.ids) == 0 || kind == 0 {
			in := NewSession{}
			if len(f.ids) > 0 && rapid.Bool().Draw(t, "fork") {
				in.ParentID, in.ParentKind = rapid.SampledFrom(f.ids).Draw(t, "of"), session.ParentFork
			}
			sess := testkit.Must(s.CreateSession(ctx, in))(t)
			f.ids = append(f.ids, sess.ID)
			f.heads[sess.ID] = f.heads[in.ParentID]
			continue
		}
		id := rapid.SampledFrom(f.ids).Draw(t, "session")
		in := Append{Session: id}
		at := f.heads[id]
		if kind >= 7 && at != nil { // branch off, at an own message or one of the path
			at = rapid.SampledFrom(append(at.path(), f.own[id]...)).Draw(t, "parent")
			in.Parent = &at.id
		}
		for range rapid.IntRange(1, 4).Draw(t, "n") {
			m := says(session.User, fmt.Sprint("message ", len(f.rows)))
			m.InContext = rapid.IntRange(0, 4).Draw(t, "in context") > 0
			in.Messages = append(in.Messages, m)
		}
		out := testkit.Must(s.Append(ctx, in))(t)
		for _, m := range out.Messages {
			n := &node{id: m.ID, row: m.RowID, parent: at}
			if m.InContext {
				n.tokens = m.Tokens
			}
			at, f.rows[m.RowID] = n, n
			f.own[id] = append(f.own[id], n)
		}
		f.heads[id] = at
	}
	return f
}

func TestPathsOfRandomTreesAreThoseOfTheNaiveModel(t *testing.T) {
	ctx := context.Background()
	s := openTest(t) // one for all trees: opening takes longer than most of them
	rapid.Check(t, func(rt *rapid.T) {
		f := grow(rt, s, rapid.IntRange(1, 25).Draw(rt, "steps"))
		for _, id := range f.ids {
			sess := testkit.Must(s.Session(ctx, id))(rt)
			head := f.heads[id]
			if head == nil {
				if sess.Head != nil {
					rt.Fatalf("%s has a head", id)
				}
				continue
			}
			path := head.path()
			var sum int64
			for _, n := range path {
				sum += n.tokens
			}
			if *sess.Head != head.id || sess.ContextTokens != sum {
				rt.Fatalf("%s: head %s of %d tokens, not %s of %d", id, sess.Head, sess.ContextTokens, head.id, sum)
			}
			checkPath(rt, s, head, path)
			for row, n := range f.rows {
				on, err := s.OnPath(ctx, head.row, row)
				if err != nil || on != slices.Contains(path, n) {
					rt.Fatalf("OnPath(%s, %s) = %v, %v", head.id, n.id, on, err)
				}
			}
			checkPages(rt, s, id, path, f.own[id])
		}
		if checks, err := s.Doctor(ctx, true); err != nil || slices.ContainsFunc(checks, func(c Check) bool {
			return !c.OK
		}) {
			rt.Fatalf("%+v %v", checks, err)
		}
	})
}

func refs(msgs []session.Message) (all []string) {
	for i := range msgs {
		all = append(all, msgs[i].ID.String())
	}
	return all
}

func names(nodes []*node) (all []string) {
	for _, n := range nodes {
		all = append(all, n.id.String())
	}
	return all
}

func checkPath(t *rapid.T, s *Store, head *node, path []*node) {
	ctx := context.Background()
	whole, err := s.Path(ctx, head.row, 0)
	if err != nil || !slices.Equal(refs(whole), names(path)) {
		t.Fatalf("path %v, not %v (%v)", refs(whole), names(path), err)
	}
	for i, m := range whole {
		if (m.Parent == nil) != (i == 0) || i > 0 && *m.Parent != path[i-1].id || m.Depth != int64(i) || len(m.Parts) != 1 {
			t.Fatalf("%s follows %v at depth %d with %d parts", m.ID, m.Parent, m.Depth, len(m.Parts))
		}
	}
	from := rapid.IntRange(0, len(path)-1).Draw(t, "after")
	rest, err := s.Path(ctx, head.row, path[from].row)
	if err != nil || !slices.Equal(refs(rest), names(path[from+1:])) {
		t.Fatalf("after %s: %v, not %v (%v)", path[from].id, refs(rest), names(path[from+1:]), err)
	}
	stop := rapid.IntRange(1, len(path)).Draw(t, "stop")
	var walked []string
	testkit.Check(t, s.Walk(ctx, head.row, func(m session.Message) bool {
		walked = append(walked, m.ID.String())
		return len(walked) < stop
	}))
	want := names(path[len(path)-stop:])
	slices.Reverse(want)
	if !slices.Equal(walked, want) {
		t.Fatalf("walked %v, not %v", walked, want)
	}
	if _, err := s.Path(ctx, head.row, head.row+1); session.CodeOf(err) != session.NotFound {
		t.Fatalf("after a message that is not on the path: %v", err)
	}
}

// checkPages reads a session in pages both ways. The model of a page: the list, what lies
// between After and Before, its first Limit.
func checkPages(t *rapid.T, s *Store, id session.ID, path, own []*node) {
	ctx := context.Background()
	for _, all := range []bool{false, true} {
		list := path
		if all {
			list = own
		}
		p := MessagePage{
			All: all, Limit: rapid.IntRange(1, 6).Draw(t, "limit"),
			Descending: rapid.Bool().Draw(t, "descending"),
		}
		if rapid.Bool().Draw(t, "bounded") {
			p.After, p.Before = rapid.Int64Range(0, 12).Draw(t, "after seq"), rapid.Int64Range(0, 12).Draw(t, "before seq")
		}
		var want []*node
		for _, n := range list {
			mine := n.id.Session == id
			if p.After > 0 && (!mine || n.id.Seq <= p.After) || p.Before > 0 && mine && n.id.Seq >= p.Before {
				continue
			}
			want = append(want, n)
		}
		if p.Descending {
			slices.Reverse(want)
		}
		more := len(want) > p.Limit
		want = want[:min(p.Limit, len(want))]
		got, gotMore, err := s.Messages(ctx, id, p)
		if err != nil || gotMore != more || !slices.Equal(refs(got), names(want)) {
			t.Fatalf("%+v: %v more=%v, not %v more=%v (%v)", p, refs(got), gotMore, names(want), more, err)
		}
	}
}

func TestMessagesAfterAMarkComeInOrderOfArrival(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	a, b := mustCreate(t, s, NewSession{}), mustCreate(t, s, NewSession{})
	for i := range 10 {
		mustAppend(t, s, []session.ID{a.ID, b.ID}[i%2], says(session.User, fmt.Sprint(i)))
	}
	var mark int64
	var got []string
	for {
		msgs := testkit.Must(s.MessagesAfter(ctx, mark, 3))(t)
		if len(msgs) == 0 {
			break
		}
		for _, m := range msgs {
			got, mark = append(got, m.Text()), m.RowID
		}
	}
	if fmt.Sprint(got) != "[0 1 2 3 4 5 6 7 8 9]" || testkit.Must(s.LastMessageID(ctx))(t) != mark {
		t.Errorf("%v, mark %d", got, mark)
	}
	_, err := s.Message(ctx, *ref(a.ID, 99))
	wants(t, err, session.NotFound, "no message")
	_, err = s.MessageByID(ctx, 99)
	wants(t, err, session.NotFound, "")
	_, _, err = s.Messages(ctx, "20200101_001", MessagePage{})
	wants(t, err, session.NotFound, "")
}

// Whoever derives something from all messages holds a few MB of them at once, however long they are.
func TestMessagesAfterAreBoundedByTheirBytes(t *testing.T) {
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	for range 3 {
		some := make([]session.Message, 100)
		for i := range some {
			some[i] = says(session.User, strings.Repeat("x", 50_000))
		}
		mustAppend(t, s, sess.ID, some...)
	}
	count, mark := 0, int64(0)
	for {
		msgs := testkit.Must(s.MessagesAfter(t.Context(), mark, 2000))(t)
		if len(msgs) == 0 {
			break
		}
		size := 0
		for i := range msgs {
			m := &msgs[i]
			count++
			if size += len(m.Text()); m.Seq != int64(count) || len(m.Text()) != 50_000 || (m.Parent == nil) != (count == 1) {
				t.Fatalf("message %d has seq %d, parent %v and %d bytes", count, m.Seq, m.Parent, len(m.Text()))
			}
		}
		if size > bytesAfter+50_000 {
			t.Errorf("%d bytes at once", size)
		}
		mark = msgs[len(msgs)-1].RowID
	}
	if count != 300 {
		t.Errorf("%d messages", count)
	}
}

func TestAWalkDownToARowEndsWhereRowsFallBelowIt(t *testing.T) {
	s := openTest(t)
	parent := mustCreate(t, s, NewSession{})
	long := make([]session.Message, 2*walkBatch)
	for i := range long {
		long[i] = says(session.User, fmt.Sprint(i))
	}
	mustAppend(t, s, parent.ID, long...)
	fork := testkit.Must(s.Fork(t.Context(), Fork{Session: parent.ID}))(t)
	mustAppend(t, s, parent.ID, says(session.User, "beside"))
	head := *mustAppend(t, s, fork.ID, long...).Session.HeadID
	path := testkit.Must(s.Path(t.Context(), head, 0))(t)
	for lowest := int64(1); lowest <= head+1; lowest++ {
		var want, got []int64
		for _, m := range slices.Backward(path) {
			if m.RowID >= lowest {
				want = append(want, m.RowID)
			}
		}
		if err := s.WalkDownTo(t.Context(), head, lowest, func(m session.Message) bool {
			got = append(got, m.RowID)
			return len(m.Parts) == 1
		}); err != nil || !slices.Equal(got, want) {
			t.Fatalf("down to row %d: %v, not %v (%v)", lowest, got, want, err)
		}
	}
}

func TestMessagesOfRowsComeAtOnceWithoutThoseThatAreGone(t *testing.T) {
	s := openTest(t)
	a, b := mustCreate(t, s, NewSession{}), mustCreate(t, s, NewSession{})
	long := strings.Repeat("long ", session.BlobThreshold)
	var rows []int64
	for _, m := range []struct {
		in   session.ID
		text string
	}{{a.ID, "one"}, {b.ID, long}, {a.ID, "two"}} {
		rows = append(rows, mustAppend(t, s, m.in, says(session.User, m.text)).Messages[0].RowID)
	}
	got := testkit.Must(s.MessagesByID(t.Context(), []int64{rows[2], 999, rows[1], rows[0]}))(t)
	for i, want := range rows {
		if i >= len(got) || !cmp.Equal(got[i], testkit.Must(s.MessageByID(t.Context(), want))(t)) {
			t.Fatalf("%d messages, of which %d is not row %d as it is read alone", len(got), i, want)
		}
	}
	if len(got) != len(rows) || got[1].Text() != long || got[2].Text() != "two" {
		t.Errorf("%d messages: %.80v", len(got), got)
	}
	if none := testkit.Must(s.MessagesByID(t.Context(), nil))(t); len(none) != 0 {
		t.Errorf("of no rows: %v", none)
	}
}

func TestAPathOfTwoThousandBranches(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	mustAppend(t, s, sess.ID, says(session.User, "root"))
	const jumps = 2000
	// Every second message is left again: the path holds the odd ones.
	var msgs []ImportMessage
	for i := range jumps {
		kept, left := says(session.User, "kept"), says(session.User, "left")
		kept.ExternalID, left.ExternalID = fmt.Sprint("kept", i), fmt.Sprint("left", i)
		parent := ""
		if i > 0 {
			parent = fmt.Sprint("kept", i-1)
		}
		msgs = append(msgs, ImportMessage{Message: kept, ParentKey: parent},
			ImportMessage{Message: left, ParentKey: kept.ExternalID})
	}
	for len(msgs) > 0 {
		n := min(1000, len(msgs))
		testkit.Must(s.Import(ctx, ImportBatch{ID: sess.ID, Messages: msgs[:n]}))(t)
		msgs = msgs[n:]
	}
	got := testkit.Must(s.Session(ctx, sess.ID))(t)
	spans := testkit.Must(s.Spans(ctx, *got.HeadID))(t)
	if len(spans) != jumps || spans[0].To != 2*jumps+1 || spans[0].From != 2*jumps {
		t.Errorf("%d spans, the newest %+v", len(spans), spans[0])
	}
	last, _, err := s.Messages(ctx, sess.ID, MessagePage{Limit: 3, Descending: true})
	if err != nil || len(last) != 3 || last[2].Text() != "kept" {
		t.Errorf("%v %v", refs(last), err)
	}
}

func TestAPurgeDuringAReadingIsReported(t *testing.T) {
	ways := map[string]func(s *Store, sess session.Session, yield func(*session.Message) error) error{
		"a path": func(s *Store, sess session.Session, yield func(*session.Message) error) error {
			return s.EachOnPath(t.Context(), *sess.HeadID, yield)
		},
		"a session's own": func(s *Store, sess session.Session, yield func(*session.Message) error) error {
			return s.EachInRange(t.Context(), sess.ID, 1, sess.LastSeq, yield)
		},
		"a copy": func(s *Store, sess session.Session, yield func(*session.Message) error) error {
			return s.Save(t.Context(), sess.ID, func(line any) error {
				if _, ok := line.(*SavedMessage); ok {
					return yield(nil)
				}
				return nil
			})
		},
	}
	for name, read := range ways {
		for _, at := range []int64{0, 1, batchRows, batchRows + 1} { // 0: never
			t.Run(fmt.Sprintf("%s, at %d", name, at), func(t *testing.T) {
				s := openTest(t)
				sess := mustCreate(t, s, NewSession{})
				for i := range batchRows + 8 {
					mustAppend(t, s, sess.ID, says(session.User, fmt.Sprint(i)))
				}
				sess = testkit.Must(s.Session(t.Context(), sess.ID))(t)
				n := int64(0)
				err := read(s, sess, func(*session.Message) error {
					if n++; n == at {
						purge(t, s, sess.ID)
					}
					return nil
				})
				if at > 0 {
					wants(t, err, session.Busy, "purged meanwhile")
				} else if err != nil || n != sess.LastSeq {
					t.Errorf("%d read, %v", n, err)
				}
			})
		}
	}
}
