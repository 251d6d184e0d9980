package session

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"strings"
)

// Scope is what a named token may see and write: the sessions of one owner. Its zero value is no scope of a
// token.
type Scope struct {
	Owner  string // of the sessions
	Source Source // their program; "": any
	Key    string // what their routing keys begin with; "": any, or none
}

// Allows reports whether a session is within the scope.
func (s Scope) Allows(sess *Session) bool {
	return sess.Owner == s.Owner && (s.Source == "" || sess.Source == s.Source) && strings.HasPrefix(sess.Key, s.Key)
}

type scopeKey struct{}

// WithScope returns a context whose reads and writes are limited to a scope.
func WithScope(ctx context.Context, s Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// WithoutScope returns a context without the limits of a scope, for work that was allowed before.
func WithoutScope(ctx context.Context) context.Context {
	if _, limited := ScopeOf(ctx); !limited {
		return ctx
	}
	return context.WithValue(ctx, scopeKey{}, nil)
}

// ScopeOf returns the scope of a context; false: everything is allowed.
func ScopeOf(ctx context.Context) (s Scope, limited bool) {
	s, limited = ctx.Value(scopeKey{}).(Scope)
	return s, limited
}

// NewToken returns a new secret token: 256 random bits, in characters of URLs.
func NewToken() string {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(random[:])
}
