package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jmoiron/sqlx"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Token is a named token of one owner. The token itself is shown once, when it is made; its hash is stored.
type Token struct {
	Name      string         `db:"name" json:"name"`
	Owner     string         `db:"owner" json:"owner"`
	Source    session.Source `db:"source" json:"source,omitempty"`
	KeyPrefix string         `db:"key_prefix" json:"key_prefix,omitempty"`
	CreatedAt session.Time   `db:"created_at" json:"created_at"`
}

// AddToken makes a token and returns its text. Codes: Conflict (the name is taken), Invalid, Forbidden (PostgreSQL
// does not let the daemon's user make the role of tokens).
func (s *Store) AddToken(ctx context.Context, t Token) (text string, err error) {
	if t.Name == "" || t.Owner == "" {
		return "", session.Errorf(session.Invalid, "a token needs a name and an owner")
	}
	if err := checkStorable([]field{{"name", t.Name}, {"owner", t.Owner}, {"key", t.KeyPrefix}}); err != nil {
		return "", err
	}
	text = session.NewToken()
	return text, s.write(ctx, func(tx *tx) error {
		_, err := tx.Changed(`INSERT INTO tokens (name, hash, owner, source, key_prefix, created_at) VALUES (?, ?, ?, ?, ?, ?)`,
			t.Name, hash([]byte(text)), t.Owner, t.Source, t.KeyPrefix, tx.Now)
		if engine.IsTaken(err) {
			return session.Errorf(session.Conflict, "a token is named %q already: `sessiond token rm %s` removes it", t.Name,
				t.Name)
		}
		if err != nil || !s.IsPostgres() {
			return err
		}
		return tx.makeTokenRole()
	})
}

// RemoveToken makes a token invalid at once. Codes: NotFound.
func (s *Store) RemoveToken(ctx context.Context, name string) error {
	return s.write(ctx, func(t *tx) error {
		if ok, err := t.Exists(`SELECT 1 FROM tokens WHERE name = ?`, name); err != nil {
			return err
		} else if !ok {
			return session.Errorf(session.NotFound, "no token is named %q: `sessiond token ls` lists them", name)
		}
		return t.Exec(`DELETE FROM tokens WHERE name = ?`, name)
	})
}

// Tokens lists the tokens by name.
func (s *Store) Tokens(ctx context.Context) ([]Token, error) {
	return engine.List[Token](ctx, s, `SELECT name, owner, source, key_prefix, created_at FROM tokens ORDER BY name`)
}

// ScopeOfToken returns what a token may see and write; false: there is no such token.
func (s *Store) ScopeOfToken(ctx context.Context, text string) (scope session.Scope, ok bool, err error) {
	err = s.Read(ctx, engine.NewReading(`SELECT owner, source, key_prefix FROM tokens WHERE hash = ?`, []any{hash([]byte(text))}, func(row *sqlx.Rows) error {
		ok = true
		return row.Scan(&scope.Owner, &scope.Source, &scope.Key)
	}))
	return scope, ok, err
}

// makeTokenRole makes the role of PostgreSQL that requests with named tokens run as, unless it is there, and lets it
// use the tables. Codes: Forbidden.
func (t *tx) makeTokenRole() error {
	_, err := t.Changed(`DO $do$
		BEGIN
			IF to_regrole('sessiond_token') IS NULL THEN
				BEGIN
					CREATE ROLE sessiond_token NOLOGIN;
				EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; -- another daemon just did
				END;
			END IF;
			IF NOT pg_has_role(current_user, 'sessiond_token', 'MEMBER') THEN EXECUTE format('GRANT sessiond_token TO %I', current_user); END IF;
			EXECUTE format('GRANT USAGE ON SCHEMA %I TO sessiond_token', current_schema());
			EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %I TO sessiond_token', current_schema());
			EXECUTE format('GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA %I TO sessiond_token', current_schema());
			EXECUTE format('REVOKE ALL ON tokens FROM sessiond_token');
		END
		$do$`)
	if engine.PostgresCode(err) == engine.NoPrivilege {
		config, err := pgx.ParseConfig(t.File())
		if err != nil {
			return err
		}
		return session.Errorf(session.Forbidden,
			"sessiond's user may not make the role sessiond_token, as which requests with named tokens run: "+
				"let the database's administrator run `CREATE ROLE sessiond_token NOLOGIN; GRANT sessiond_token TO %s` once",
			config.User)
	}
	return err
}
