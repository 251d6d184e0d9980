package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// A purge that was killed is finished by the next one, which may name the same session.
func TestPurgeFinishesWhatWasBrokenOff(t *testing.T) {
	t.Parallel()
	path := storetest.New(t, filepath.Join(t.TempDir(), "sessions.db"))
	s := testkit.Must(store.Open(t.Context(), path, store.Options{}))(t)
	sess, err := s.CreateSession(t.Context(), store.NewSession{})
	testkit.Check(t, err)
	said := session.Message{Role: session.User, Parts: []session.Part{session.TextPart("the wombatword")}}
	testkit.Must(s.Append(t.Context(), store.Append{Session: sess.ID, Messages: []session.Message{said}}))(t)
	if _, _, err := s.BeginPurge(t.Context(), store.PurgeRequest{Session: sess.ID}); err != nil {
		t.Fatal(err)
	}
	testkit.Check(t, s.Close())
	var out, complaints bytes.Buffer
	e := &env{
		in: strings.NewReader(""), out: &out, err: &complaints, environ: []string{"HOME=" + t.TempDir()},
		now: time.Now,
	}
	if code := run(t.Context(), []string{"purge", string(sess.ID), "--yes", "--db", path}, e); code != exitDone {
		t.Errorf("exit %d: %s", code, complaints.String())
	}
	if want := string(sess.ID) + " is purged: an interrupted purge was finished."; !strings.Contains(complaints.String(),
		want) {
		t.Errorf("said %q and %q", out.String(), complaints.String())
	}
	s = testkit.Must(store.Open(t.Context(), path, store.Options{}))(t)
	defer s.Close()
	if left, err := s.Purging(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if last, err := s.MessagesAfter(t.Context(), 0, 10); err != nil || len(last) > 0 {
		t.Errorf("messages are left: %v, %v", last, err)
	}
}

// What was exported before a purge stays away afterwards, in each format that an import reads, until --purged names it.
func TestAPurgedSessionComesBackByNameAlone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, format string
		again        []string // the import
	}{
		{"sessiond", "jsonl", []string{"import", "sessiond"}},
		{"a copy", "jsonl", []string{"import", "sessiond", "--as-copy"}},
		{"pi", "pi", []string{"import", "pi"}},
		{"Goose", "goose", []string{"import", "goose"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			home := t.TempDir()
			c := cli{t, home}
			c.run("append", "--new", "user", "the launch code is zanzibarword")
			file := filepath.Join(home, "a."+map[string]string{"jsonl": "jsonl", "pi": "jsonl", "goose": "json"}[test.format])
			c.run("export", "@@", "--format", test.format, "-o", file)
			c.run("purge", "--yes", onlySession(c))
			if said := c.run(append(test.again, file)...); !strings.Contains(said, "purged here") ||
				!strings.Contains(said, "--purged") {
				t.Errorf("the import said %s", said)
			}
			c.run(append(test.again, file)...) // of another file's format it reads nothing again
			if ids := sessionsOf(c); len(ids) != 0 {
				t.Fatalf("%s came back by itself", ids)
			}
			c.run(append(test.again, file, "--purged")...)
			if shown := c.run("show", onlySession(c)); !strings.Contains(shown, "zanzibarword") {
				t.Errorf("--purged brought back %s", shown)
			}
			c.run(append(test.again, file)...)
			c.run("purge", "--yes", onlySession(c))
			c.run(append(test.again, file)...)
			if ids := sessionsOf(c); len(ids) != 0 {
				t.Errorf("purged once more, %s came back by itself", ids)
			}
			c.run("doctor")
		})
	}
}

// Two hosts give the same id to two sessions: a purge of the one keeps the other nowhere away.
func TestAPurgeKeepsNoSessionOfAnotherHostAway(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	c := cli{t, home}
	c.run("append", "--new", "user", "mine")
	id := onlySession(c)
	file := filepath.Join(home, "a.jsonl")
	c.run("export", "-o", file)
	text := testkit.Must(os.ReadFile(file))(t)
	c.run("purge", "--yes", id)
	other := regexp.MustCompile(`"created_at":"\d+`).ReplaceAll(text, []byte(`"created_at":"2025`))
	testkit.Check(t, os.WriteFile(file, other, 0o600))
	c.run("import", "sessiond", file)
	if got := onlySession(c); got != id {
		t.Errorf("%s came in", got)
	}
}

// An export holds what a fork shares with its origin. Of these the purged ones stay away, with every message of them.
func TestForksOfPurgedSessionsStayAwayWithThem(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		before func(c cli, origin, fork, file string) // exports and purges
		left   int                                    // sessions after the import
		says   string
	}{
		{"both are purged", func(c cli, origin, fork, file string) {
			c.run("export", "-o", file)
			c.run("purge", "--yes", origin, fork)
		}, 0, "purged here"},
		{"the origin was purged before the export", func(c cli, origin, fork, file string) {
			c.run("purge", "--yes", origin)
			c.run("export", "-o", file)
			c.run("purge", "--yes", fork)
		}, 0, "purged here"},
		{"the fork lives", func(c cli, origin, fork, file string) {
			c.run("export", "-o", file)
			c.run("purge", "--yes", origin)
		}, 1, "purged here"},
	} {
		t.Run(test.name, func(t *testing.T) {
			home := t.TempDir()
			c := cli{t, home}
			c.run("append", "--new", "user", "shared zanzibarword")
			origin := onlySession(c)
			fork := strings.Fields(c.run("fork", origin))[0]
			c.run("append", fork, "user", "only in the fork")
			file := filepath.Join(home, "a.jsonl")
			test.before(c, origin, fork, file)
			if said := c.run("import", "sessiond", file); !strings.Contains(said, test.says) {
				t.Errorf("the import said %s", said)
			}
			if ids := sessionsOf(c); len(ids) != test.left {
				t.Errorf("%s are here", ids)
			}
			s := testkit.Must(store.Open(t.Context(), c.db(), store.Options{ReadOnly: true}))(t)
			defer s.Close()
			if rows := testkit.Must(s.MessagesAfter(t.Context(), 0, 10))(t); len(rows) != 2*test.left {
				t.Errorf("%d messages are left", len(rows))
			}
			c.run("doctor")
		})
	}
}

// A copy has the tombstones, and a second run of copy says that nothing was missing.
func TestACopyKeepsPurgedSessionsAway(t *testing.T) {
	t.Parallel()
	storetest.OnFile(t)
	home := t.TempDir()
	c := cli{t, home}
	c.run("append", "--new", "user", "gone")
	file, copied := filepath.Join(home, "a.jsonl"), filepath.Join(home, "copy.db")
	c.run("export", "-o", file)
	c.run("purge", "--yes", onlySession(c))
	c.run("append", "--new", "user", "here")
	from := filepath.Join(home, "sessiond", "sessions.db")
	if said := c.run("copy", from, copied); !strings.Contains(said, "has 1 session and 1 message now") {
		t.Errorf("copy said %s", said)
	}
	if said := c.run("copy", from, copied); !strings.Contains(said,
		"has 1 session and 1 message already: nothing was missing") {
		t.Errorf("the second copy said %s", said)
	}
	if said := c.run("import", "sessiond", file, "--db", copied); !strings.Contains(said, "purged here") {
		t.Errorf("the import said %s", said)
	}
}

func sessionsOf(c cli) []string {
	c.t.Helper()
	var list struct{ Data []struct{ ID string } }
	testkit.Check(c.t, json.Unmarshal([]byte(c.run("ls", "--json")), &list, json.MatchCaseInsensitiveNames(true)))
	var ids []string
	for _, one := range list.Data {
		ids = append(ids, one.ID)
	}
	return ids
}

func onlySession(c cli) string {
	c.t.Helper()
	ids := sessionsOf(c)
	if len(ids) != 1 {
		c.t.Fatalf("the sessions are %s", ids)
	}
	return ids[0]
}
