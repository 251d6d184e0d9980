package store

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func TestNamesFindWhatAPersonMeans(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2026, 2, 11, 12, 0, 0, 0, time.UTC)
	s := openTest(t, func(o *Options) { o.Now = func() time.Time { return now } })
	a := mustCreate(t, s, NewSession{Source: session.SourcePi, SourceID: "abcdef-1", Directory: "/d"}).ID
	mustAppend(t, s, a, says(session.User, "one"), says(session.Assistant, "two"))
	now = now.Add(time.Hour)
	b := mustCreate(t, s, NewSession{Source: session.SourceCodex, SourceID: "abcdef-2", Directory: "/d"}).ID
	now = now.Add(time.Hour)
	mustCreate(t, s, NewSession{Directory: "/d", Draft: true})
	mustCreate(t, s, NewSession{Directory: "/d", ParentID: a})
	mustCreate(t, s, NewSession{Directory: "/d", Kind: "cron"})
	away := mustCreate(t, s, NewSession{Directory: "/elsewhere", SourceID: "v1.2"}).ID
	compaction := testkit.Must(s.AddCompaction(ctx, overlay(t, s, a, 1, session.StatusDone, 1)))(t)
	purged := mustCreate(t, s, NewSession{}).ID
	p, _, err := s.BeginPurge(ctx, PurgeRequest{Session: purged})
	testkit.Check(t, err)
	testkit.Must(p.Finish(ctx))(t)
	for _, c := range []struct {
		name string
		want session.ID
		seq  int64
		code session.Code
	}{
		{name: string(a), want: a},
		{name: "abcdef-2", want: b},
		{name: "abcdef", code: session.Conflict},
		{name: "20260211", code: session.Conflict},
		{name: "20260211_002", want: b},
		{name: "abcdef-1x", code: session.NotFound},
		{name: "abcde", code: session.NotFound},
		{name: "ab%def", code: session.NotFound},
		{name: "", code: session.NotFound},
		{name: string(a) + ".2", want: a, seq: 2},
		{name: "abcdef-1.2", want: a, seq: 2},
		{name: string(a) + ".0", code: session.NotFound},
		{name: string(a) + ".x", code: session.NotFound},
		{name: "abcdef.2", code: session.Conflict},
		{name: "v1.2", want: away},
		{name: "v1.2.7", want: away, seq: 7},
		{name: session.CompactionName(compaction.RowID), want: a},
		{name: "cmp_99", code: session.NotFound},
		{name: "ctx_99", code: session.NotFound},
		{name: "@", want: b},
		{name: "@2", want: a},
		{name: "@3", code: session.NotFound},
		{name: "@0", code: session.Invalid},
		{name: "@x", code: session.Invalid},
		{name: "@2.1", want: a, seq: 1},
		{name: "@.1", want: b, seq: 1},
		{name: "@@", want: away},
		{name: "@@3", want: a},
		{name: "@@4", code: session.NotFound},
		{name: "@@@", code: session.Invalid},
		{name: string(purged), code: session.NotFound},
	} {
		got, err := s.Named(ctx, c.name, "/d")
		var seq int64
		if got.Message != nil {
			seq = got.Message.Seq
		}
		if got.Session != c.want || seq != c.seq || session.CodeOf(err) != c.code {
			t.Errorf("%q is %v, %v", c.name, got, err)
		}
	}
}

func TestNewestHereIsThatOfTheProject(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2026, 2, 11, 12, 0, 0, 0, time.UTC)
	s := openTest(t, func(o *Options) { o.Now = func() time.Time { return now } })
	top := testkit.Must(filepath.EvalSymlinks(t.TempDir()))(t)
	repo, tree, notes, link := filepath.Join(top, "repo"), filepath.Join(top, "tree"), filepath.Join(top, "notes"),
		filepath.Join(top, "link")
	testkit.Check(t, os.MkdirAll(filepath.Join(repo, "sub"), 0o755))
	testkit.Check(t, os.MkdirAll(filepath.Join(notes, "a", "b"), 0o755))
	testkit.Check(t, os.Symlink(repo, link))
	// The files that `git worktree add` makes.
	of := filepath.Join(repo, ".git", "worktrees", "tree")
	testkit.Check(t, os.MkdirAll(of, 0o755))
	testkit.Check(t, os.MkdirAll(filepath.Join(tree, "deep"), 0o755))
	testkit.Check(t, os.WriteFile(filepath.Join(of, "commondir"), []byte("../..\n"), 0o600))
	testkit.Check(t, os.WriteFile(filepath.Join(of, "gitdir"), []byte(filepath.Join(tree, ".git")+"\n"), 0o600))
	testkit.Check(t, os.WriteFile(filepath.Join(tree, ".git"), []byte("gitdir: "+of+"\n"), 0o600))
	testkit.Check(t, os.WriteFile(filepath.Join(of, "HEAD"), []byte("ref: refs/heads/tree\n"), 0o600))
	if git, err := exec.LookPath("git"); err == nil { // they are as git reads them
		out, err := exec.Command(git, "init", repo).CombinedOutput()
		if err != nil {
			t.Fatalf("git init: %v: %s", err, out)
		}
		if got := testkit.Must(exec.Command(git, "-C", tree, "rev-parse",
			"--show-toplevel").Output())(t); string(got) != tree+"\n" {
			t.Errorf("git says %q", got)
		}
	}
	sessions := map[string]session.ID{}
	for _, dir := range []string{notes, repo, filepath.Join(tree, "deep"), filepath.Join(repo, "sub"), top} {
		now = now.Add(time.Minute)
		sessions[dir] = mustCreate(t, s, NewSession{Directory: dir}).ID
	}
	for _, c := range []struct {
		here, name, want string
	}{
		{repo, "@", filepath.Join(repo, "sub")},
		{repo, "@2", filepath.Join(tree, "deep")},
		{repo, "@3", repo},
		{tree, "@", filepath.Join(repo, "sub")},
		{filepath.Join(tree, "deep"), "@3", repo},
		{link, "@", filepath.Join(repo, "sub")},
		{notes, "@", notes},
		{filepath.Join(notes, "a", "b"), "@", notes},
		{top, "@", top},
	} {
		if got, err := s.Resolve(ctx, c.name, c.here); err != nil || got != sessions[c.want] {
			t.Errorf("%s in %s is %q, %v; want that of %s", c.name, c.here, got, err, c.want)
		}
	}
	if _, err := s.Resolve(ctx, "@4", repo); session.CodeOf(err) != session.NotFound {
		t.Errorf("@4: %v", err)
	}
}

func TestWordsOfATitleNameItsSession(t *testing.T) {
	s := openTest(t)
	parser := mustCreate(t, s, NewSession{Title: "Fix the Parser"}).ID
	again := mustCreate(t, s, NewSession{Title: "Fix the parser  again"}).ID
	helper := mustCreate(t, s, NewSession{Title: "100% of the lexer", ParentID: parser}).ID
	trashed := mustCreate(t, s, NewSession{Title: "Gone lexer"}).ID
	testkit.Must(s.SetTrash(t.Context(), trashed, true, nil, nil))(t)
	for _, c := range []struct {
		words string
		want  []session.ID
	}{
		{"fix THE parser", []session.ID{parser}},
		{"parser fix again", []session.ID{again}},
		{"parser", []session.ID{parser, again}},
		{"lexer 100%", []session.ID{helper}},
		{"lexer gone", nil},
		{"fi", nil},
		{"", nil},
		{"fix_the", nil},
	} {
		found, err := s.Titled(t.Context(), c.words)
		var got []session.ID
		for _, f := range found {
			got = append(got, f.ID)
		}
		slices.Sort(got)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, %v, want %v", c.words, got, err, c.want)
		}
	}
}
