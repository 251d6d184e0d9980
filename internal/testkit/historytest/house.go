package historytest

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
	"sessiond/internal/touched"
)

// House is a store with an importer in front of it.
type House struct {
	*testing.T
	Store    *store.Store
	Importer history.Importer
	Source   history.Source
}

// New opens an empty store, closed when the test ends, and an importer that never pauses. A
// token is four bytes.
func New(t *testing.T, source history.Source) *House {
	t.Helper()
	opened := testkit.Must(store.Open(t.Context(), storetest.New(t, filepath.Join(t.TempDir(), "here.db")), store.Options{
		Zone: time.UTC, Touched: touched.Files,
		Measure: func(m *session.Message) {
			for i := range m.Parts {
				m.Parts[i].Tokens = (int64(len(m.Parts[i].Content())) + 3) / 4
				m.Tokens += m.Parts[i].Tokens
			}
		},
	}))(t)
	t.Cleanup(func() { testkit.Check(t, opened.Close()) })
	return &House{T: t, Store: opened, Importer: history.Importer{Store: opened}, Source: source}
}

// Later is a clock by which every file has been quiet for long.
func Later() time.Time { return time.Now().Add(24 * time.Hour) }

// NoEnv is the environment of a host on which no program was ever used.
func NoEnv(string) string { return "" }

// NoUser is a user with that environment.
var NoUser = folders.User{Getenv: NoEnv}

// Import imports paths and checks what holds for every import.
func (h *House) Import(paths ...string) history.Accounting {
	h.Helper()
	done := testkit.Must(h.Importer.Run(h.Context(), h.Source, paths))(h)
	if !done.Records.Balanced() {
		h.Errorf("the records do not add up: %+v", done.Records)
	}
	return done
}

// Gave checks what became of something that may be wrong: how many sessions it gave, and what the first problem says;
// "" for none. It examines the store.
func (h *House) Gave(done history.Accounting, sessions int, says string) {
	h.Helper()
	if says == "" && len(done.Errors) > 0 || says != "" && (len(done.Errors) == 0 ||
		!strings.Contains(done.Errors[0].Error, says)) || len(h.Sessions()) != sessions {
		h.Errorf("%d sessions, %+v", len(h.Sessions()), done)
	}
	h.Examine()
}

// Examine looks over the whole store, which costs more than most tests.
func (h *House) Examine() {
	h.Helper()
	checks, err := h.Store.Doctor(h.Context(), true)
	if err != nil {
		h.Error(err)
	}
	for _, c := range checks {
		if !c.OK {
			h.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
}

// Session returns a session by its id in the source.
func (h *House) Session(sourceID string) session.Session {
	h.Helper()
	return testkit.Must(h.Store.SessionBySource(h.Context(), h.Source.Name(), sourceID))(h)
}

// Sessions returns all sessions in the order of their ids.
func (h *House) Sessions() []session.Session {
	h.Helper()
	var ids []session.ID
	testkit.Check(h, h.Store.Reader().Select(&ids, `SELECT id FROM sessions ORDER BY id`))
	var all []session.Session
	for _, id := range ids {
		s := testkit.Must(h.Store.Session(h.Context(), id))(h)
		all = append(all, s)
	}
	return all
}

// Entries returns all messages of a session in order.
func (h *House) Entries(id session.ID) []session.Message {
	h.Helper()
	var all []session.Message
	page := store.MessagePage{Limit: 1000, All: true}
	for {
		got, more, err := h.Store.Messages(h.Context(), id, page)
		testkit.Check(h, err)
		all = append(all, got...)
		if !more {
			return all
		}
		page.After = all[len(all)-1].Seq
	}
}

// Calls returns all calls of a session.
func (h *House) Calls(id session.ID) []session.Call {
	h.Helper()
	var all []session.Call
	for page := (store.Page{Limit: 500}); ; {
		got, next, err := h.Store.Calls(h.Context(), id, page)
		testkit.Check(h, err)
		if all = append(all, got...); next == "" {
			return all
		}
		page.Cursor = next
	}
}

// Path returns the entries from the root to the head.
func (h *House) Path(s session.Session) []session.Message {
	h.Helper()
	if s.HeadID == nil {
		return nil
	}
	return testkit.Must(h.Store.Path(h.Context(), *s.HeadID, 0))(h)
}

// Keys returns the external ids of the entries from the root to the head.
func (h *House) Keys(s session.Session) []string {
	h.Helper()
	var keys []string
	for _, m := range h.Path(s) {
		keys = append(keys, m.ExternalID)
	}
	return keys
}

// Seen returns what a model would see at the head: the overlay in force, nil if there is none, and
// the entries behind what it hides.
func (h *House) Seen(s session.Session) (effective *session.Compaction, rest []session.Message) {
	h.Helper()
	effective = testkit.Must(h.Store.Effective(h.Context(), s))(h)
	for _, m := range h.Path(s) {
		if !hides(effective, &m) && m.InContext && !m.Finish.Failed() {
			rest = append(rest, m)
		}
	}
	return effective, rest
}

// hides reports whether a message of the path lies in what an overlay hides whole. One that only
// prunes hides what the one before it did: all before the first message that it keeps.
func hides(overlay *session.Compaction, m *session.Message) bool {
	switch {
	case overlay == nil:
		return false
	case overlay.Strategy == session.StrategyPrune && overlay.FirstKeptID != nil:
		return m.RowID < *overlay.FirstKeptID
	}
	return m.RowID <= *overlay.ThroughID
}

// Talk returns role and text of the messages on the path to the head that are in the context.
func (h *House) Talk(s session.Session) string {
	h.Helper()
	var lines []string
	for _, m := range h.Path(s) {
		if m.InContext && m.Kind == session.KindMessage && m.Role != session.System && m.Display {
			text := m.Text()
			for _, c := range m.Calls() {
				text += "(" + c.ToolName + ")"
			}
			lines = append(lines, string(m.Role)+": "+text)
		}
	}
	return strings.Join(lines, "\n")
}

// Rows counts everything that an import may write.
func (h *House) Rows() int {
	h.Helper()
	var n int
	testkit.Check(h, h.Store.Reader().Get(&n, `SELECT (SELECT COUNT(*) FROM messages) + (SELECT COUNT(*) FROM calls) + (SELECT COUNT(*) FROM events)
		+ (SELECT COUNT(*) FROM compactions) + (SELECT COALESCE(SUM(revision), 0) FROM sessions)`))
	return n
}

// Told writes everything that an import stored, in words that do not depend on the order in
// which rows came.
func (h *House) Told() map[string]string {
	h.Helper()
	all := map[string]string{}
	rows, err := h.Store.Reader().Queryx(`
		SELECT s.source_id || ' ' || m.external_id AS name,
		       COALESCE((SELECT p.external_id FROM messages p WHERE p.id = m.parent_id), '') || ' ' || m.kind || ' ' || m.role || ' ' || m.origin
		       || ' ' || m.finish || ' ' || m.model || ' ' || m.in_context || m.display || ' ' || m.created_at || ' ' ||
		       COALESCE((SELECT STRING_AGG(kind || call_id || length(text) || COALESCE(CAST(duration_ms AS TEXT), '') || COALESCE(CAST(is_error AS TEXT), ''), ',' ORDER BY id) FROM parts WHERE message_id = m.id), '') AS said
		FROM messages m JOIN sessions s ON s.id = m.session_id
		UNION ALL
		SELECT 'call ' || external_id, input_tokens || ' ' || cache_read_tokens || ' ' || cache_write_tokens || ' ' || output_tokens || ' ' || model || ' ' ||
		       COALESCE((SELECT external_id FROM messages WHERE id = message_id), '') FROM calls
		UNION ALL
		SELECT 'compaction ' || strategy || (SELECT external_id FROM messages WHERE id = through_id), status || length(summary) || length(COALESCE(CAST(replacement AS TEXT), '')) FROM compactions
		UNION ALL
		SELECT 'session ' || source_id, title || ' ' || parent_kind || ' ' || message_count || ' ' || context_tokens || ' ' || git_branch || ' ' ||
		       COALESCE((SELECT external_id FROM messages WHERE id = head_id), '') || ' ' || (SELECT COUNT(*) FROM messages WHERE session_id = sessions.id) FROM sessions`)
	testkit.Check(h, err)
	defer rows.Close()
	for rows.Next() {
		var name, said string
		testkit.Check(h, rows.Scan(&name, &said))
		if _, twice := all[name]; twice {
			h.Errorf("%s stands twice", name)
		}
		all[name] = said
	}
	testkit.Check(h, rows.Err())
	return all
}
