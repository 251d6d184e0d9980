package store

import (
	"context"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// The scope of a request is in its context. What lists, finds or reads a session by its id asks it here. On
// PostgreSQL, row-level security hides the rows of other sessions as well: see migration 00110.

// visible reports whether the scope of a context allows a session.
func visible(ctx context.Context, sess *session.Session) bool {
	scope, limited := session.ScopeOf(ctx)
	return !limited || scope.Allows(sess)
}

// checkSeen answers a message of a session that the scope of a context does not allow as one that does not exist.
// Codes: NotFound.
func checkSeen(ctx context.Context, q engine.Queryer, ref session.MessageRef) error {
	if _, limited := session.ScopeOf(ctx); !limited {
		return nil
	}
	_, err := readSession(ctx, q, ref.Session)
	if session.CodeOf(err) == session.NotFound {
		err = session.Errorf(session.NotFound, "there is no message %s", ref)
	}
	return err
}

// scopeOf returns Scope.Allows as a condition on sessions s that begins with AND, "" without a scope.
func scopeOf(ctx context.Context) (condition string, args []any) {
	scope, limited := session.ScopeOf(ctx)
	if !limited {
		return "", nil
	}
	condition, args = ` AND s.owner = ? AND s.owner <> ''`, []any{scope.Owner}
	if scope.Source != "" {
		condition, args = condition+` AND s.source = ?`, append(args, scope.Source)
	}
	if scope.Key != "" {
		condition, args = condition+` AND SUBSTR(s.key, 1, LENGTH(?)) = ?`, append(args, scope.Key, scope.Key)
	}
	return condition, args
}

// within adds the scope of a context.
func (c conditions) within(ctx context.Context) conditions {
	if condition, args := scopeOf(ctx); condition != "" {
		c.add("1 = 1"+condition, args...)
	}
	return c
}

// owner returns whose a new session without a parent is.
func (t *tx) owner() string {
	if scope, limited := session.ScopeOf(t.Ctx); limited {
		return scope.Owner
	}
	return t.opt.Owner
}

// mayCreate rejects a session that its own maker could not see, and the first one of a routing key unless the token is
// for such keys: else a token could take the key of another owner's conversation before it begins. Codes: Forbidden.
func (t *tx) mayCreate(sess *session.Session) error {
	scope, limited := session.ScopeOf(t.Ctx)
	switch {
	case !limited:
		return nil
	case scope.Source != "" && scope.Source != sess.Source:
		return session.Errorf(session.Forbidden,
			"this token creates no sessions: it is limited to those that are imported from %s", scope.Source)
	case !scope.Allows(sess):
		return session.Errorf(session.Forbidden,
			"this token only creates sessions whose routing key begins with %s: send such a key", scope.Key)
	case sess.Key != "" && sess.Generation <= 1 && scope.Key == "":
		return session.Errorf(session.Forbidden,
			"this token begins no routing key: make one with `sessiond token add NAME --owner %s --key PREFIX`", scope.Owner)
	}
	return nil
}

// tokenRole is the role of PostgreSQL to which the policies of migration 00110 apply.
const tokenRole = "sessiond_token"

// setScope sets the role and the scope of a transaction (1), or of a connection (0).
const setScope = `SELECT set_config('sessiond.owner', ?1, ?5 = 1), set_config('sessiond.source', ?2, ?5 = 1), set_config('sessiond.key', ?3, ?5 = 1), set_config('role', ?4, ?5 = 1)`

// rowsOfOwner makes PostgreSQL hide the rows that the scope of a context does not allow.
var rowsOfOwner = engine.RowScope{
	Role: tokenRole,
	Set:  setScope,
	Args: func(ctx context.Context) []string {
		scope, limited := session.ScopeOf(ctx)
		if !limited {
			return nil
		}
		return []string{scope.Owner, string(scope.Source), scope.Key, tokenRole}
	},
	All: []string{"", "", "", "none"},
	Refused: "requests with named tokens run as PostgreSQL's role " + tokenRole +
		", which sessiond's user cannot use: `sessiond token add` says how to make it",
}
