package main

import (
	"context"
	"fmt"
	"strings"

	"sessiond/internal/connect"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

// resolve finds the session that the user named; of a message, its session.
func (a *app) resolve(ctx context.Context, s *store.Store, name string) (session.Session, error) {
	sess, _, err := a.named(ctx, s, name)
	return sess, err
}

// named finds the session, and perhaps the message of it, that the user named, as store.Named does. A name that is no
// id may be words of a title. Codes: NotFound, Invalid, Conflict (ambiguous).
func (a *app) named(ctx context.Context, s *store.Store, name string) (session.Session, *session.MessageRef, error) {
	found, err := s.Named(ctx, name, a.dir)
	if session.CodeOf(err) == session.NotFound && !strings.HasPrefix(name, "@") {
		if id, titled := a.titled(ctx, s, name); titled != nil || id != "" {
			found.Session, err = id, titled
		}
	}
	if err != nil {
		return session.Session{}, nil, err
	}
	sess, err := s.Session(ctx, found.Session)
	return sess, found.Message, err
}

// mostCandidates limits the sessions that an error names.
const mostCandidates = 8

// titled finds the one session whose title has the words; "" if none has.
func (a *app) titled(ctx context.Context, s *store.Store, words string) (session.ID, error) {
	found, err := s.Titled(ctx, words)
	switch {
	case err != nil || len(found) == 0:
		return "", err
	case len(found) == 1:
		return found[0].ID, nil
	}
	var lines strings.Builder
	for _, t := range found[:min(len(found), mostCandidates)] {
		fmt.Fprintf(&lines, "\n  %s  %s  %s", t.ID, transcript.Ago(t.ActiveAt.Time, a.now().In(s.Zone())),
			transcript.OneLine(t.Title, 60))
	}
	if len(found) > mostCandidates {
		fmt.Fprintf(&lines, "\n  … and more: `sessiond ls %s` lists them", connect.QuoteShell(words))
	}
	return "", session.Errorf(session.Conflict, "%q is in the titles of several sessions; name one by its id:%s", words,
		lines.String())
}

// namedMessage returns the message of a flag or argument: SEQ of this session, or any name of a message. none is the
// one that was named with the session, if the flag is empty.
func (a *app) namedMessage(ctx context.Context, s *store.Store, flag, value string, own session.ID,
	none *session.MessageRef,
) (*session.MessageRef, error) {
	if value == "" {
		return none, nil
	}
	for _, written := range []string{value, string(own) + "." + value} {
		if ref, err := session.ParseRef(written); err == nil {
			return &ref, nil
		}
	}
	if found, err := s.Named(ctx, value, a.dir); err == nil && found.Message != nil {
		return found.Message, nil
	}
	return nil,
		usagef("%s %q names no message: write a seq of the session (42) or a message of its tree (20260211_001.42)", flag,
			value)
}
