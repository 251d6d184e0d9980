package search

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// fakeStore is a Source in memory. Its row ids are 1, 2, 3 …
type fakeStore struct {
	mu       sync.Mutex
	messages []session.Message
	sessions map[session.ID]session.Session
	heads    map[session.ID]int64
	shared   map[session.ID][][2]session.MessageRef
	outlines []session.ID // that were read
}

func newFakeStore() *fakeStore {
	return &fakeStore{sessions: map[session.ID]session.Session{}, heads: map[session.ID]int64{}}
}

var began = time.Date(2026, 2, 11, 10, 0, 0, 0, time.UTC)

// add appends a message of one text part, a second after the one before.
func (f *fakeStore) add(id session.ID, role session.Role, text string) session.Message {
	return f.addParts(id, role, began.Add(time.Duration(len(f.messages))*time.Second), session.TextPart(text))
}

func (f *fakeStore) addParts(id session.ID, role session.Role, at time.Time, parts ...session.Part) session.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.sessions[id]
	if !ok {
		s = session.Session{ID: id, Source: session.SourceSessiond}
	}
	s.LastSeq++
	f.sessions[id] = s
	row := int64(len(f.messages) + 1)
	m := session.Message{
		RowID: row, SessionID: id, Seq: s.LastSeq, ID: session.MessageRef{Session: id, Seq: s.LastSeq},
		Kind: session.KindMessage, Role: role, InContext: true, Display: true, CreatedAt: session.At(at), Parts: parts,
	}
	if head := f.heads[id]; head != 0 {
		m.ParentID = &head
	}
	f.heads[id] = row
	f.messages = append(f.messages, m)
	return m
}

func (f *fakeStore) change(id session.ID, change func(*session.Session)) {
	s := f.sessions[id]
	s.ID = id
	change(&s)
	f.sessions[id] = s
}

func (f *fakeStore) MessagesAfter(_ context.Context, mark int64, limit int) ([]session.Message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from := min(int(mark), len(f.messages))
	return f.messages[from:min(from+limit, len(f.messages))], nil
}

func (f *fakeStore) LastMessageID(context.Context) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.messages)), nil
}

func (f *fakeStore) MessageByID(_ context.Context, id int64) (session.Message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id < 1 || int(id) > len(f.messages) {
		return session.Message{}, session.Errorf(session.NotFound, "message %d", id)
	}
	return f.messages[id-1], nil
}

func (f *fakeStore) Message(_ context.Context, ref session.MessageRef) (session.Message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.messages {
		if m.ID == ref {
			return m, nil
		}
	}
	return session.Message{}, session.Errorf(session.NotFound, "message %s", ref)
}

func (f *fakeStore) MessagesByID(ctx context.Context, ids []int64) ([]session.Message, error) {
	var found []session.Message
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if m, err := f.MessageByID(ctx, id); err == nil {
			found = append(found, m)
		}
	}
	return found, nil
}

func (f *fakeStore) EachHead(ctx context.Context, ids []int64, head session.Head,
	yield func(*session.Message) error,
) error {
	found, err := f.MessagesByID(ctx, ids)
	for i := range found {
		if err == nil {
			shorten(&found[i], head)
			err = yield(&found[i])
		}
	}
	return err
}

func (f *fakeStore) MessageHead(ctx context.Context, ref session.MessageRef,
	head session.Head,
) (session.Message, error) {
	m, err := f.Message(ctx, ref)
	shorten(&m, head)
	return m, err
}

func shorten(m *session.Message, head session.Head) {
	m.Parts = slices.Clone(m.Parts)
	for i := range m.Parts {
		m.Parts[i].Shorten(head)
	}
}

func (f *fakeStore) Outlines(_ context.Context, ids []session.ID) (found []session.Session, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		if s, there := f.sessions[id]; there {
			f.outlines = append(f.outlines, id)
			found = append(found, s)
		}
	}
	return found, nil
}

func (f *fakeStore) MarksWith(context.Context, []string) ([]session.Mark, error) { return nil, nil }

func (f *fakeStore) SessionsNamed(_ context.Context, texts []string) (found []session.Session, err error) {
	for _, s := range f.sessions {
		name := strings.ToLower(s.Title + " " + s.Project + " " + s.GitBranch)
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(name, text) }) {
			found = append(found, s)
		}
	}
	return found, nil
}

func (f *fakeStore) Heir(_ context.Context, ref session.MessageRef) (session.Session, error) {
	return session.Session{}, session.Errorf(session.NotFound, "no fork shares %s", ref)
}

func (f *fakeStore) Session(_ context.Context, id session.ID) (session.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.sessions[id]
	if !ok {
		return s, session.Errorf(session.NotFound, "session %s", id)
	}
	return s, nil
}

func openIndex(t testing.TB, src Source) *Index {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "search.db"), src)
}

func openAt(t testing.TB, path string, src Source) *Index {
	t.Helper()
	ix := testkit.Must(Open(t.Context(), path, src))(t)
	t.Cleanup(func() {
		if err := ix.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return ix
}

func catchUp(t testing.TB, ix *Index) int {
	t.Helper()
	return testkit.Must(ix.CatchUp(t.Context()))(t)
}

func search(t testing.TB, ix *Index, q Query) Result {
	t.Helper()
	return testkit.Must(ix.Search(t.Context(), q))(t)
}

// seqs returns the hits as session.seq without the day: 1.2 is 20260211_001.2.
func names(r Result) []string {
	found := []string{}
	for _, h := range r.Hits {
		found = append(found, fmt.Sprint(h.Seq))
	}
	return found
}

const first, second = session.ID("20260211_001"), session.ID("20260211_002")

// SharedPath returns what share was told.
func (f *fakeStore) SharedPath(_ context.Context, id session.ID) ([][2]session.MessageRef, error) {
	return f.shared[id], nil
}
