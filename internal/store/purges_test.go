package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/queries"

	"pgregory.net/rapid"
)

// clearing is a wood in which sessions are purged while it grows: several at once, each broken
// off and taken up again anywhere, as by two processes.
type clearing struct {
	wood
	purged  []session.ID
	running []*Purge
	frozen  map[session.ID][]frozenNode // what is to be found in a session's contexts
}

type frozenNode struct {
	at      *node
	content string
}

func (c *clearing) step() {
	switch rapid.IntRange(0, 9).Draw(c.t, "what") {
	case 0, 1:
		c.begin()
	case 2, 3, 4:
		c.advance()
	case 5:
		c.freeze()
	default:
		known := len(c.all)
		c.wood.step()
		for _, b := range c.all[known:] {
			c.inherit(b)
		}
	}
}

func (c *clearing) inherit(b *branching) {
	if len(b.shared) == 0 {
		return
	}
	sess := testkit.Must(c.s.Session(context.Background(), b.id))(c.t)
	for _, f := range c.frozen[sess.ParentID] {
		if slices.Contains(b.shared, f.at) {
			c.frozen[b.id] = append(c.frozen[b.id], f)
		}
	}
}

func (c *clearing) freeze() {
	if len(c.all) == 0 {
		return
	}
	b := rapid.SampledFrom(c.all).Draw(c.t, "freezes")
	if b.head == nil {
		return
	}
	at := rapid.SampledFrom(b.head.path()).Draw(c.t, "frozen at")
	for _, f := range c.frozen[b.id] {
		if f.at == at {
			return
		}
	}
	c.count++
	f := frozenNode{at: at, content: fmt.Sprintf(`"frozen %d"`, c.count)}
	testkit.Must(c.s.SaveContext(context.Background(), session.Context{SessionID: b.id}, nil, []session.Frozen{{
		SessionID: b.id, MessageID: at.row, Kind: "closed_call", Content: session.JSON(f.content),
	}}))(c.t)
	c.frozen[b.id] = append(c.frozen[b.id], f)
}

func (c *clearing) begin() {
	if len(c.all) == 0 {
		return
	}
	i := rapid.IntRange(0, len(c.all)-1).Draw(c.t, "purges")
	id := c.all[i].id
	p, _, err := c.s.BeginPurge(context.Background(), PurgeRequest{Session: id})
	testkit.Check(c.t, err)
	p.size = 1
	c.all = slices.Delete(c.all, i, i+1)
	c.purged, c.running = append(c.purged, id), append(c.running, p)
}

// advance does a step of a purge that runs, or begins it anew.
func (c *clearing) advance() {
	if len(c.running) == 0 {
		return
	}
	i := rapid.IntRange(0, len(c.running)-1).Draw(c.t, "goes on")
	if how := rapid.IntRange(0, 5).Draw(c.t, "how"); how < 2 {
		p := testkit.Must(c.s.ResumePurge(context.Background(), c.running[i].ID))(c.t)
		p.size = 1
		if how == 0 {
			c.running[i] = p
		} else {
			c.running = append(c.running, p)
		}
	}
	c.goOn(i)
}

func (c *clearing) goOn(i int) {
	ctx := context.Background()
	p := c.running[i]
	rows := testkit.Must(p.Doomed(ctx))(c.t)
	if len(rows) > 0 {
		testkit.Check(c.t, p.Delete(ctx, rows))
		return
	}
	shells := testkit.Must(p.Finish(ctx))(c.t)
	c.running = slices.Delete(c.running, i, i+1)
	for _, id := range shells {
		next := testkit.Must(c.s.ResumePurge(ctx, id))(c.t)
		next.size = 1
		c.running = append(c.running, next)
	}
}

// checkPurged compares what is left of the purged sessions with what the living ones share.
func (c *clearing) checkPurged() {
	ctx := context.Background()
	for _, id := range c.purged {
		var want []int64
		for _, b := range c.all {
			for _, n := range b.shared {
				if n.id.Session == id {
					want = append(want, n.row)
				}
			}
		}
		slices.Sort(want)
		want = slices.Compact(want)
		got := testkit.Must(engine.List[int64](ctx, c.s, `SELECT id FROM messages WHERE session_id = ? ORDER BY id`, id))(c.t)
		if !slices.Equal(got, want) {
			c.t.Fatalf("of %s %v are left, and %v are shared", id, got, want)
		}
		left := testkit.Must(engine.Get[bool](ctx, c.s, `SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?)`, id))(c.t)
		forks := testkit.Must(forksOf(ctx, c.s, id))(c.t)
		living := slices.ContainsFunc(forks, func(fork session.ID) bool {
			return slices.ContainsFunc(c.all, func(b *branching) bool { return b.id == fork })
		})
		if left && !living {
			c.t.Fatalf("a row of %s is left for nobody", id)
		}
	}
	inherited := map[string]bool{}
	for _, b := range c.all {
		for _, f := range c.frozen[b.id] {
			inherited[f.content] = true
		}
	}
	for _, id := range c.purged {
		for _, content := range testkit.Must(engine.List[string](ctx, c.s, `SELECT content FROM frozen WHERE session_id = ?`,
			id))(c.t) {
			if !inherited[content] {
				c.t.Fatalf("%s of %s is left for nobody", content, id)
			}
		}
	}
	for _, b := range c.all {
		sess := testkit.Must(c.s.Session(ctx, b.id))(c.t)
		all := testkit.Must(c.s.Frozen(ctx, sess))(c.t)
		for _, f := range c.frozen[b.id] {
			if !slices.ContainsFunc(all, func(g session.Frozen) bool {
				return g.MessageID == f.at.row && string(g.Content) == f.content
			}) {
				c.t.Fatalf("%s lost what was frozen at %s: %s", b.id, f.at.id, f.content)
			}
		}
	}
}

func TestPurgesOfAnySessionsAtOnceLeaveWhatTheOthersShare(t *testing.T) {
	s := openTest(t)
	rapid.Check(t, func(rt *rapid.T) {
		c := clearing{wood: wood{t: rt, s: s}, frozen: map[session.ID][]frozenNode{}}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			c.step()
		}
		for len(c.running) > 0 {
			c.goOn(rapid.IntRange(0, len(c.running)-1).Draw(rt, "ends"))
		}
		c.check()
		c.checkPurged()
	})
}

// Two processes take up the same purge, and one of them begins when the other has ended it.
func TestPurgeThatHasEndedKeepsWhatForksShare(t *testing.T) {
	ctx, s := t.Context(), openTest(t)
	origin := mustCreate(t, s, NewSession{})
	first := mustAppend(t, s, origin.ID, says(session.User, "shared")).Messages[0].RowID
	testkit.Must(s.SaveContext(ctx, session.Context{SessionID: origin.ID}, nil, []session.Frozen{{
		SessionID: origin.ID, MessageID: first, Kind: session.FrozenRecall, Content: session.JSON(`"recalled"`),
	}}))(t)
	fork := testkit.Must(s.Fork(ctx, Fork{Session: origin.ID}))(t)
	purge(t, s, origin.ID)
	endOfPurge(t, testkit.Must(s.ResumePurge(ctx, origin.ID))(t))
	if all := testkit.Must(s.Frozen(ctx, fork))(t); len(all) != 1 {
		t.Errorf("the fork has %v, not what was frozen before it", all)
	}
}

// purge deletes a session for good.
func purge(t *testing.T, s *Store, id session.ID) {
	t.Helper()
	p, _, err := s.BeginPurge(t.Context(), PurgeRequest{Session: id})
	testkit.Check(t, err)
	endOfPurge(t, p)
}

func endOfPurge(t *testing.T, p *Purge) {
	t.Helper()
	for rows := testkit.Must(p.Doomed(t.Context()))(t); len(rows) > 0; rows = testkit.Must(p.Doomed(t.Context()))(t) {
		testkit.Check(t, p.Delete(t.Context(), rows))
	}
	testkit.Must(p.Finish(t.Context()))(t)
}

func TestAPurgeTakesTheTitlesThatWereCopiedFromIt(t *testing.T) {
	s := openTest(t)
	origin := mustCreate(t, s, NewSession{Title: "Plan"})
	mustAppend(t, s, origin.ID, says(session.User, "shared"))
	given := "Planning the trip"
	numbered := testkit.Must(s.Fork(t.Context(), Fork{Session: origin.ID}))(t)
	own := testkit.Must(s.Fork(t.Context(), Fork{Session: origin.ID, Title: &given}))(t)
	of := testkit.Must(s.Fork(t.Context(), Fork{Session: numbered.ID}))(t)
	purge(t, s, origin.ID)
	for id, want := range map[session.ID]string{numbered.ID: "", own.ID: given, of.ID: ""} {
		if got := testkit.Must(s.Session(t.Context(), id))(t).Title; got != want {
			t.Errorf("%s is called %q, not %q", id, got, want)
		}
	}
}

// The row that a purge leaves for a fork has nothing that a person or a program wrote.
func TestTheRowOfAPurgedSessionIsEmpty(t *testing.T) {
	s := openTest(t)
	const hidden = "quagga"
	origin := mustCreate(t, s, NewSession{
		Title: hidden, Settings: session.JSON(`{"system":"quagga"}`), Key: hidden, Source: "pi", SourceID: hidden,
		Directory: "/" + hidden, Project: "/" + hidden, GitBranch: hidden, ForeignFrom: "/" + hidden,
		Metadata: session.JSON(`{"who":"quagga"}`),
	})
	mustAppend(t, s, origin.ID, says(session.User, "shared"))
	testkit.Must(s.Fork(t.Context(), Fork{Session: origin.ID, Title: new("own")}))(t)
	purge(t, s, origin.ID)
	row := map[string]any{}
	testkit.Check(t, s.Reader().QueryRowx(`SELECT * FROM sessions WHERE id = '`+string(origin.ID)+`'`).MapScan(row))
	for column, value := range row {
		if strings.Contains(fmt.Sprint(value), hidden) {
			t.Errorf("%s is still %v", column, value)
		}
	}
	if len(row) < 40 {
		t.Errorf("%d columns were read", len(row))
	}
}

// What a purge leaves for a fork is in no question's answer, and goes without being told again.
func TestAPurgeIsToldOnceAndWhatItLeavesIsNotShown(t *testing.T) {
	s := openTouched(t)
	origin := mustCreate(t, s, NewSession{Title: "Plan"})
	mustAppend(t, s, origin.ID, says(session.User, "shared words"), says(session.Assistant, "read /p/a.go"))
	fork := testkit.Must(s.Fork(t.Context(), Fork{Session: origin.ID}))(t)
	mustAppend(t, s, fork.ID, says(session.User, "own words"))
	purge(t, s, origin.ID)
	for _, name := range []string{"day", "said", "biggest-messages", "forks", "path", "failed-replies"} {
		text := testkit.Must(queries.Text(name, s.IsPostgres()))(t)
		day := testkit.Must(s.Session(t.Context(), fork.ID))(t).Day
		query := strings.NewReplacer(":text", "'words'", ":day", "'"+day+"'", ":session",
			"'"+string(fork.ID)+"'").Replace(text)
		for _, rest := range []string{":since", ":limit", ":seq"} {
			query = strings.ReplaceAll(query, rest, "NULL")
		}
		rows, err := s.Reader().Queryx(query)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n := 0
		for ; rows.Next(); n++ {
			row := testkit.Must(rows.SliceScan())(t)
			if told := fmt.Sprint(row...); strings.Contains(told, string(origin.ID)) {
				t.Errorf("%s shows %s", name, told)
			}
		}
		if err := rows.Close(); err != nil || n == 0 && name != "failed-replies" {
			t.Errorf("%s: %d rows, %v", name, n, err)
		}
	}
	if _, _, err := s.FileSessions(t.Context(), FileFilter{Paths: []string{"/"}}, Page{}); err != nil {
		t.Error(err)
	}
	purge(t, s, fork.ID)
	for left := testkit.Must(s.Purging(t.Context()))(t); len(left) > 0; left = testkit.Must(s.Purging(t.Context()))(t) {
		endOfPurge(t, testkit.Must(s.ResumePurge(t.Context(), left[0]))(t))
	}
	if left, told := count(t, s, `SELECT COUNT(*) FROM sessions`), count(t, s, `SELECT COUNT(*) * 10 + COUNT(DISTINCT session_id) FROM events WHERE type = 'session.purged'`); left != 0 || told != 22 {
		t.Errorf("%d sessions are left, purges told %d", left, told)
	}
}

func TestAKeyGoesWithItsLastSession(t *testing.T) {
	s := openTest(t)
	const key = "agent:main:4912345"
	first := mustCreate(t, s, NewSession{Key: key})
	last := mustCreate(t, s, NewSession{Key: key})
	testkit.Check(t, s.SetKeyLabel(t.Context(), key, "somebody"))
	left := func() int { return testkit.Must(engine.Get[int](t.Context(), s, `SELECT COUNT(*) FROM keys`))(t) }
	purge(t, s, last.ID)
	if left() != 1 {
		t.Error("the label went with one of two generations")
	}
	purge(t, s, first.ID)
	if left() != 0 {
		t.Error("the label of a key without sessions stayed")
	}
}

func TestARepeatedRouteOutlivesTheGenerationBefore(t *testing.T) {
	s := openTest(t)
	before := mustCreate(t, s, NewSession{Key: "agent:main:main"})
	in := Route{
		Key: "agent:main:main", Idem: &Idempotency{Key: "again"},
		Decide: func(*Generation) (Turnover, error) {
			return Turnover{New: true, Reason: "command", At: session.At(time.Now())}, nil
		},
	}
	made := testkit.Must(s.Route(t.Context(), in))(t)
	purge(t, s, before.ID)
	again := testkit.Must(s.Route(t.Context(), in))(t)
	if again.Session.ID != made.Session.ID || !again.Created || again.Previous != before.ID {
		t.Errorf("%+v, not %+v", again, made)
	}
}

func TestWhatForksShareOfAPurgedChildIsNoChild(t *testing.T) {
	s := openTest(t)
	mother := mustCreate(t, s, NewSession{})
	child := mustCreate(t, s, NewSession{ParentID: mother.ID})
	mustAppend(t, s, child.ID, says(session.User, "shared"))
	testkit.Must(s.Fork(t.Context(), Fork{Session: child.ID}))(t)
	purge(t, s, child.ID)
	if r := testkit.Must(s.Rollups(t.Context(), []session.ID{mother.ID}))(t)[mother.ID]; r.Children != 0 ||
		r.MessageCount != 0 {
		t.Errorf("%+v", r)
	}
}

func TestNothingIsAskedInAPurgedSession(t *testing.T) {
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	purge(t, s, sess.ID)
	if err := s.AskFlush(t.Context(), sess.ID, 0); session.CodeOf(err) != session.NotFound {
		t.Error(err)
	}
}

func TestAForgottenDraftLeavesNothing(t *testing.T) {
	s := openTest(t)
	mother := mustCreate(t, s, NewSession{})
	draft := mustCreate(t, s, NewSession{ParentID: mother.ID, Draft: true})
	testkit.Must(s.SaveContext(t.Context(), session.Context{SessionID: draft.ID}, nil, nil))(t)
	if n := testkit.Must(s.ForgetDrafts(t.Context(), time.Now().Add(time.Hour)))(t); n != 1 {
		t.Fatal(n, "drafts")
	}
	healthy(t, s)
	contexts, err := engine.Get[int](t.Context(), s, `SELECT COUNT(*) FROM contexts`)
	if err != nil || contexts != 0 {
		t.Error(contexts, "contexts", err)
	}
}

func TestASessionThatIsComingInIsNoForgottenDraft(t *testing.T) {
	s := openTest(t)
	b := RestoreBatch{Into: &Restoring{}, Begin: true, Session: SavedSession{Session: session.Session{
		ID: "20200101_001", Day: "2020-01-01", Source: session.SourceSessiond, Revision: 3,
		CreatedAt: session.At(time.Date(2020, 1, 1, 9, 0, 0, 0, time.UTC)),
	}}}
	testkit.Must(s.Restore(t.Context(), b))(t)
	if n := testkit.Must(s.ForgetDrafts(t.Context(), time.Now().Add(-24*time.Hour)))(t); n != 0 {
		t.Error("its beginning was taken for an old draft")
	}
}

func TestASharedPurgedSessionIsNotRestoredOver(t *testing.T) {
	s := openTest(t)
	origin := mustCreate(t, s, NewSession{})
	mustAppend(t, s, origin.ID, says(session.User, "shared"))
	testkit.Must(s.Fork(t.Context(), Fork{Session: origin.ID}))(t)
	origin = testkit.Must(s.Session(t.Context(), origin.ID))(t)
	purge(t, s, origin.ID)
	in := RestoreBatch{Into: &Restoring{}, Begin: true, Session: SavedSession{Session: origin}}
	if res := testkit.Must(s.Restore(t.Context(), in))(t); !res.Purged {
		t.Error("it came in")
	}
	in.Into = &Restoring{Purged: true}
	if _, err := s.Restore(t.Context(), in); session.CodeOf(err) != session.Conflict {
		t.Error(err)
	}
	healthy(t, s)
}

func TestAnImportKeepsNothingOfWhatIsPurged(t *testing.T) {
	s := openTest(t)
	said := func(key string) ImportMessage {
		m := says(session.User, "said")
		m.ExternalID = key
		return ImportMessage{Message: m}
	}
	batch := ImportBatch{
		Session: NewSession{Source: session.SourcePi, SourceID: "a"}, Messages: []ImportMessage{said("1"), said("2")},
		Cursor: &ImportCursor{Source: session.SourcePi, Path: "/a", State: session.JSON(`{"queue": "what was typed"}`)},
	}
	batch.Messages[1].ParentKey = "1"
	origin := testkit.Must(s.Import(t.Context(), batch))(t).Session
	p, _, err := s.BeginPurge(t.Context(), PurgeRequest{Session: origin.ID})
	testkit.Check(t, err)
	fork := ImportBatch{Session: NewSession{Source: session.SourcePi, SourceID: "b"}, Messages: []ImportMessage{said("3")}}
	fork.Messages[0].ParentKey, fork.Messages[0].ParentSession = "1", origin.ID
	if _, err := s.Import(t.Context(), fork); session.CodeOf(err) != session.Conflict {
		t.Errorf("a message that is about to go has a new reply: %v", err)
	}
	endOfPurge(t, p)
	if again := testkit.Must(s.Import(t.Context(), batch))(t); !again.Purged {
		t.Errorf("%+v", again)
	}
	state, err := engine.Get[string](t.Context(), s, `SELECT COALESCE(CAST(state AS TEXT), '') FROM imports`)
	if err != nil || state != "" {
		t.Errorf("the cursor remembers %s %v", state, err)
	}
	healthy(t, s)
}

// An import whose session is purged between two of its batches goes on with the next session.
func TestAnImportOutlivesThePurgeOfItsSession(t *testing.T) {
	s := openTest(t)
	said := func(key, parent string) ImportMessage {
		m := says(session.User, "said")
		m.ExternalID = key
		return ImportMessage{Message: m, ParentKey: parent}
	}
	batch := ImportBatch{
		Session:  NewSession{Source: session.SourcePi, SourceID: "a"},
		Messages: []ImportMessage{said("1", "")},
	}
	batch.ID = testkit.Must(s.Import(t.Context(), batch))(t).Session.ID
	batch.Messages = []ImportMessage{said("2", "1")}
	batch.Cursor = &ImportCursor{Source: session.SourcePi, Path: "/a", State: session.JSON(`{"queue": "what was typed"}`)}
	p, _, err := s.BeginPurge(t.Context(), PurgeRequest{Session: batch.ID})
	testkit.Check(t, err)
	for _, when := range []string{"while it is being purged", "afterwards"} {
		for _, brought := range []bool{false, true} {
			batch.Purged = brought
			if done := testkit.Must(s.Import(t.Context(), batch))(t); !done.Purged || done.Messages > 0 {
				t.Errorf("%s: %+v", when, done)
			}
		}
		if when != "afterwards" {
			endOfPurge(t, p)
		}
	}
	batch.Session.SourceID = "another"
	if _, err := s.Import(t.Context(), batch); session.CodeOf(err) != session.NotFound {
		t.Errorf("a session that was never here: %v", err)
	}
	healthy(t, s)
}

func healthy(t *testing.T, s *Store) {
	t.Helper()
	for _, c := range testkit.Must(s.Doctor(t.Context(), true))(t) {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
}

// locksOn counts the locks that this process has on a file.
func locksOn(t *testing.T, path string) int {
	t.Helper()
	info := testkit.Must(os.Stat(path))(t)
	all, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Skip("no list of locks on this system:", err)
	}
	file := fmt.Sprintf(":%d ", testkit.Inode(info))
	n := 0
	for line := range strings.Lines(string(all)) {
		if strings.Contains(line, file) && strings.Contains(line, fmt.Sprintf(" %d ", os.Getpid())) {
			n++
		}
	}
	return n
}

func TestLookingForCopiesGivesUpNoLock(t *testing.T) {
	onFile(t)
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	index := s.File() + "-shm"
	before := locksOn(t, index)
	if before == 0 {
		t.Skip("locks of this process are not listed here")
	}
	copied := filepath.Join(filepath.Dir(s.File()), "copy.db")
	testkit.Must(s.Backup(t.Context(), copied))(t)
	found := testkit.Must(s.CopiesHolding(t.Context(), sess.ID, filepath.Dir(s.File())))(t)
	if len(found) != 1 || found[0] != copied {
		t.Errorf("copies: %v", found)
	}
	if after := locksOn(t, index); after != before {
		t.Errorf("%d locks on the index of the log, and %d before: another process may write at the same time", after, before)
	}
	if found := testkit.Must(s.CopiesHolding(t.Context(), session.ID("20000101_001"),
		filepath.Dir(s.File())))(t); len(found) != 0 {
		t.Errorf("copies of a session that never was: %v", found)
	}
}

// heirs is a family of forks in which some are purged: origin with five messages, a fork of it
// at its last one, and a fork of that at the second.
type heirs struct {
	t                  *testing.T
	s                  *Store
	origin, mid, child session.ID
	rows               []int64 // of origin
}

func (h *heirs) fork(of session.ID, seq int64) session.ID {
	return testkit.Must(h.s.Fork(h.t.Context(), Fork{Session: of, At: ref(h.origin, seq)}))(h.t).ID
}

func (h *heirs) freeze(id session.ID, seq int64, text string) {
	testkit.Must(h.s.SaveContext(h.t.Context(), session.Context{SessionID: id}, nil, []session.Frozen{{
		SessionID: id, MessageID: h.rows[seq-1], Kind: session.FrozenVolatile, Content: session.JSONOf(text),
	}}))(h.t)
}

// purge deletes sessions and what that leaves for nobody.
func (h *heirs) purge(ids ...session.ID) {
	for _, id := range ids {
		purge(h.t, h.s, id)
		purging := func() []session.ID { return testkit.Must(h.s.Purging(h.t.Context()))(h.t) }
		for left := purging(); len(left) > 0; left = purging() {
			endOfPurge(h.t, testkit.Must(h.s.ResumePurge(h.t.Context(), left[0]))(h.t))
		}
	}
}

func TestAPurgeLeavesWhatForksInheritAndNoMore(t *testing.T) {
	type family = func(h *heirs)
	forks := func(h *heirs) { h.mid = h.fork(h.origin, 5); h.child = h.fork(h.mid, 2) }
	for name, c := range map[string]struct {
		grow, purge family
		frozen      []string // of the child
		kept        int64    // frozen rows
		messages    int64
		sessions    int64
	}{
		"frozen by the fork between, whose row would be empty": {
			grow: func(h *heirs) {
				h.mid = h.fork(h.origin, 2)
				h.freeze(h.mid, 2, "mid")
				h.child = h.fork(h.mid, 2)
			},
			purge:  func(h *heirs) { h.purge(h.mid) },
			frozen: []string{`"mid"`}, kept: 1, messages: 5, sessions: 3,
		},
		"the origin goes first": {
			grow: func(h *heirs) {
				h.mid = h.fork(h.origin, 2)
				h.freeze(h.mid, 2, "mid")
				h.child = h.fork(h.mid, 2)
			},
			purge:  func(h *heirs) { h.purge(h.origin, h.mid) },
			frozen: []string{`"mid"`}, kept: 1, messages: 2, sessions: 3,
		},
		"the fork between shared more": {
			grow: func(h *heirs) {
				h.mid = h.fork(h.origin, 5)
				h.freeze(h.mid, 2, "mid")
				h.child = h.fork(h.mid, 2)
			},
			purge:  func(h *heirs) { h.purge(h.mid, h.origin) },
			frozen: []string{`"mid"`}, kept: 1, messages: 2, sessions: 3,
		},
		"a compaction of the fork between, where nobody follows": {
			grow: func(h *heirs) {
				h.mid = h.fork(h.origin, 5)
				testkit.Must(h.s.AddCompaction(h.t.Context(), session.Compaction{
					SessionID: h.mid, Strategy: session.StrategySummarize, Trigger: session.TriggerManual, Status: session.StatusDone,
					ThroughID: &h.rows[4],
				}))(h.t)
				h.child = h.fork(h.mid, 2)
			},
			purge:    func(h *heirs) { h.purge(h.mid, h.origin) },
			messages: 2, sessions: 2,
		},
		"a compaction of the fork between, which shared more": {
			grow: func(h *heirs) {
				h.mid = h.fork(h.origin, 5)
				testkit.Must(h.s.AddCompaction(h.t.Context(), session.Compaction{
					SessionID: h.mid, Strategy: session.StrategySummarize, Trigger: session.TriggerManual, Status: session.StatusDone,
					ThroughID: &h.rows[0],
				}))(h.t)
				h.child = h.fork(h.mid, 2)
			},
			purge:    func(h *heirs) { h.purge(h.mid, h.origin) },
			messages: 2, sessions: 3,
		},
		"frozen after the fork was made": {
			grow:     func(h *heirs) { forks(h); h.freeze(h.mid, 2, "mid"); h.freeze(h.origin, 1, "origin") },
			purge:    func(h *heirs) { h.purge(h.mid, h.origin) },
			messages: 2, sessions: 2,
		},
		"frozen where the fork does not go": {
			grow: func(h *heirs) {
				h.mid = h.fork(h.origin, 5)
				h.freeze(h.mid, 4, "mid")
				h.child = h.fork(h.mid, 2)
			},
			purge:    func(h *heirs) { h.purge(h.mid) },
			messages: 5, sessions: 2,
		},
		"everything goes": {
			grow: func(h *heirs) {
				h.mid = h.fork(h.origin, 2)
				h.freeze(h.mid, 2, "mid")
				h.child = h.fork(h.mid, 2)
			},
			purge: func(h *heirs) { h.purge(h.mid, h.origin, h.child); h.child = "" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t)
			h := &heirs{t: t, s: s, origin: mustCreate(t, s, NewSession{}).ID}
			for range 5 {
				h.rows = append(h.rows, mustAppend(t, s, h.origin, says(session.User, "said")).Messages[0].RowID)
			}
			c.grow(h)
			c.purge(h)
			if h.child != "" {
				var frozen []string
				for _, f := range testkit.Must(s.Frozen(t.Context(), testkit.Must(s.Session(t.Context(), h.child))(t)))(t) {
					frozen = append(frozen, string(f.Content))
				}
				if !slices.Equal(frozen, c.frozen) {
					t.Errorf("the fork has %v frozen, not %v", frozen, c.frozen)
				}
			}
			got := [3]int64{
				count(t, s, `SELECT COUNT(*) FROM frozen`), count(t, s, `SELECT COUNT(*) FROM messages`),
				count(t, s, `SELECT COUNT(*) FROM sessions`),
			}
			if want := [3]int64{c.kept, c.messages, c.sessions}; got != want {
				t.Errorf("%v frozen rows, messages, sessions are left, not %v", got, want)
			}
			healthy(t, s)
		})
	}
}
