package engine

import (
	"context"
	"slices"

	"sessiond/internal/session"
)

// RowScope limits the rows that PostgreSQL shows, by row-level security: a role, and settings that its policies read.
type RowScope struct {
	Role string // its statements have plans of their own
	Set  string // sets role and settings; its last argument is 1 for a transaction, 0 for a connection
	// Args returns the other arguments of Set for a context, nil for one that sees all rows. A nil func: all do.
	Args    func(ctx context.Context) []string
	All     []string // the arguments that show all rows
	Refused string   // says what to do when the role cannot be used
}

func (r *RowScope) of(ctx context.Context) []string {
	if r.Args == nil {
		return nil
	}
	return r.Args(ctx)
}

// statement returns the statement that sets a scope; args may be nil, of is 1 for a transaction, 0 for a connection.
func (r *RowScope) statement(args []string, of int64) statement {
	if args == nil {
		args = r.All
	}
	s := statement{query: r.Set}
	for _, arg := range args {
		s.args = append(s.args, arg)
	}
	s.args = append(s.args, of)
	return s
}

// limit makes PostgreSQL hide the rows that the context does not allow, until the transaction or its
// savepoint ends; unlimit ends that before.
func (t *Tx) limit() error   { return t.show(t.w.opt.Rows.of(t.Ctx)) }
func (t *Tx) unlimit() error { return t.show(nil) }

func (t *Tx) show(args []string) error {
	if !t.w.postgres || t.w.opt.Rows.of(t.Ctx) == nil {
		return nil
	}
	s := t.w.opt.Rows.statement(args, 1)
	return t.Exec(s.query, s.args...)
}

// Unlimited runs f on all rows.
func (t *Tx) Unlimited(f func() error) error {
	err := t.unlimit()
	if err == nil {
		err = f()
	}
	if err == nil {
		err = t.limit()
	}
	return err
}

// setScope returns the statement that gives a reading connection the scope of a context; none where it has that one.
func (c *pgConn) setScope(ctx context.Context) (set []statement, scope []string) {
	scope = c.opt.Rows.of(ctx)
	// a rollback would take it back
	if !c.reads || slices.Equal(scope, c.scope) || c.Conn.Conn().PgConn().TxStatus() != 'I' {
		return nil, nil
	}
	return []statement{c.opt.Rows.statement(scope, 0)}, scope
}

// use gives a reading connection the scope of a context, before a statement that is not sent with it.
func (c *pgConn) use(ctx context.Context) error {
	if set, _ := c.setScope(ctx); len(set) == 0 {
		return nil
	}
	rows, err := c.query(ctx)
	if err != nil {
		return err
	}
	return rows.Close()
}

// refused explains why the role of Options.Rows cannot be used: it may not, or there is none. Codes: Unavailable.
func (r *RowScope) refused(err error) error {
	if code := PostgresCode(err); code == NoPrivilege || code == invalidValue {
		return session.Errorf(session.Unavailable, "%s: %w", r.Refused, err)
	}
	return postgresError(err)
}
