package store

import (
	"context"
	"strings"
	"testing"

	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func TestTokens(t *testing.T) {
	s := openTest(t)
	ctx := t.Context()
	text := testkit.Must(s.AddToken(ctx, Token{
		Name: "laptop", Owner: "ana", Source: session.SourceCodex,
		KeyPrefix: "agent:",
	}))(t)
	scope, ok, err := s.ScopeOfToken(ctx, text)
	if want := (session.Scope{Owner: "ana", Source: session.SourceCodex, Key: "agent:"}); err != nil || !ok ||
		scope != want {
		t.Errorf("the token is for %+v, %v, %v, want %+v", scope, ok, err, want)
	}
	if _, err := s.AddToken(ctx, Token{Name: "laptop", Owner: "eve"}); session.CodeOf(err) != session.Conflict {
		t.Errorf("a second token of one name: %v", err)
	}
	if _, err := s.AddToken(ctx, Token{Name: "x"}); session.CodeOf(err) != session.Invalid {
		t.Errorf("a token of nobody: %v", err)
	}
	if all := testkit.Must(s.Tokens(ctx))(t); len(all) != 1 || all[0].Name != "laptop" {
		t.Errorf("the tokens are %+v", all)
	}
	testkit.Check(t, s.RemoveToken(ctx, "laptop"))
	if _, ok, err := s.ScopeOfToken(ctx, text); ok || err != nil {
		t.Errorf("a removed token is valid: %v, %v", ok, err)
	}
	if err := s.RemoveToken(ctx, "laptop"); session.CodeOf(err) != session.NotFound {
		t.Errorf("a token is removed twice: %v", err)
	}
}

// Row-level security hides and protects the rows of other owners also from statements without a condition.
func TestRowLevelSecurity(t *testing.T) {
	s := openTest(t)
	if !s.IsPostgres() {
		t.Skip("a file of SQLite has no row-level security")
	}
	ctx := t.Context()
	testkit.Must(s.AddToken(ctx, Token{Name: "ana", Owner: "ana"}))(t)
	ana, eve := session.WithScope(ctx, session.Scope{Owner: "ana"}), session.WithScope(ctx, session.Scope{Owner: "eve"})
	hers := testkit.Must(s.CreateSession(ana, NewSession{Title: "hers"}))(t)
	mustAppend(t, s, hers.ID, says(session.User, "a"), says(session.Assistant, "b"))
	other := testkit.Must(s.CreateSession(eve, NewSession{Title: "other"}))(t)
	mustAppend(t, s, other.ID, says(session.User, "c"))
	for _, table := range []string{"sessions", "messages", "parts", "events", "messages_flat"} {
		query := `SELECT COUNT(*) FROM ` + table
		all, a, e := testkit.Must(engine.Get[int64](ctx, s, query))(t), testkit.Must(engine.Get[int64](ana, s, query))(t),
			testkit.Must(engine.Get[int64](eve, s, query))(t)
		if a == 0 || e == 0 || a+e != all {
			t.Errorf("%s has %d rows, ana sees %d, eve %d", table, all, a, e)
		}
	}
	if _, err := engine.Get[string](ana, s, `SELECT name FROM tokens`); err == nil {
		t.Error("a token reads the tokens")
	}
	err := s.write(eve, func(t *tx) error { return t.Exec(`UPDATE sessions SET title = 'changed'`) })
	testkit.Check(t, err)
	err = s.write(eve, func(t *tx) error {
		return t.Exec(`INSERT INTO marks (session_id, message_id, kind, text, created_at) VALUES (?, 1, 'pin', '', ?)`, hers.ID, t.Now)
	})
	if err == nil || !strings.Contains(err.Error(), "row-level security") {
		t.Errorf("a token writes into another owner's session: %v", err)
	}
	// all, afterwards
	testkit.Check(t, s.write(ctx, func(t *tx) error { return t.Exec(`UPDATE sessions SET git_branch = 'main'`) }))
	titles := testkit.Must(engine.List[string](ctx, s, `SELECT title || ' ' || git_branch FROM sessions ORDER BY id`))(t)
	testkit.Equal(t, []string{"hers main", "changed main"}, titles)
}

// Messages and parts are read by their indexes also where a policy guards them: it allows that only for conditions
// that cannot fail. The policies call no function of their own, which would be planned for each row.
func TestPoliciesLeaveTheIndexes(t *testing.T) {
	s := openTest(t)
	if !s.IsPostgres() {
		t.Skip("a file of SQLite has no row-level security")
	}
	ctx := t.Context()
	testkit.Must(s.AddToken(ctx, Token{Name: "ana", Owner: "ana"}))(t)
	testkit.Check(t, s.write(session.WithScope(ctx, session.Scope{Owner: "ana"}), func(t *tx) error {
		if err := t.Exec(`SET LOCAL enable_seqscan = off`); err != nil { // else small tables are read whole
			return err
		}
		for _, c := range []struct {
			query string
			args  []any
			want  string
		}{
			{messagesOfRange.parts, []any{"20260211_001", 1, 9, 0}, "Index Cond: (message_id = m.id)"},
			{messagesByID.messages, []any{"[1,2]"}, "Index Cond: (id = "},
		} {
			plan, err := engine.List[string](t.Ctx, t, `EXPLAIN `+c.query, c.args...)
			if err != nil {
				return err
			}
			if text := strings.Join(plan, "\n"); !strings.Contains(text, c.want) || strings.Contains(text, "visible(") {
				return session.Errorf(session.Invalid, "no %s:\n%s", c.want, text)
			}
		}
		return nil
	}))
}

// The same connection serves scopes in turn, each with a single statement, several at once, and a transaction.
func TestConnectionServesScopesInTurn(t *testing.T) {
	ctx, s := t.Context(), openTest(t)
	testkit.Must(s.AddToken(ctx, Token{Name: "ana", Owner: "ana"}))(t)
	ana, eve := session.WithScope(ctx, session.Scope{Owner: "ana"}), session.WithScope(ctx, session.Scope{Owner: "eve"})
	hers := testkit.Must(s.CreateSession(ana, NewSession{Title: "hers"}))(t)
	mustAppend(t, s, hers.ID, says(session.User, "a"))
	for name, read := range map[string]func(context.Context) error{
		"one":         func(ctx context.Context) error { return errorOf(s.Session(ctx, hers.ID)) },
		"several":     func(ctx context.Context) error { return errorOf(s.Tree(ctx, hers.ID, TreePage{})) },
		"transaction": func(ctx context.Context) error { return s.Save(ctx, hers.ID, func(any) error { return nil }) },
	} {
		for range 2 {
			testkit.Check(t, read(ana))
			testkit.Check(t, read(ctx))
			if err := read(eve); s.IsPostgres() && session.CodeOf(err) != session.NotFound {
				t.Errorf("%s: another owner gets %v", name, err)
			}
			testkit.Check(t, read(ana))
		}
	}
	// A statement that fails takes the scope that came with it back.
	_, err := engine.Get[int64](eve, s, `SELECT 1 / (SELECT CAST('0' AS BIGINT))`)
	if n, again := engine.Get[int64](ana, s, `SELECT COUNT(*) FROM sessions`); s.IsPostgres() &&
		(err == nil || again != nil || n != 1) {
		t.Errorf("%v; then ana has %d sessions: %v", err, n, again)
	}
}

func errorOf[T any](_ T, err error) error { return err }
