package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
	"sessiond/internal/touched"
)

// hostile acts on a terminal in each way: it sets the title, hides text, moves the cursor, reorders.
const hostile = "evil\x1b]0;owned\a\x1b[8m\x1b[2J\u009b31m\u202e\b\x7f"

// Every command prints what was stored without what acts on a terminal, on a terminal and in a pipe. A new
// command needs a line here.
func TestNoCommandPrintsWhatActsOnATerminal(t *testing.T) {
	t.Parallel()
	commands := map[string][]string{
		"ls": {"ls", "ls --project nothing"}, "show": {
			"show @@", "show @@ --tree", "show @@ --full", "show @@ --prompts",
			"show @@ --grep evil", "show @@.1", "show evil",
		}, "log": {"log -- evil"}, "resume": {"resume @@"}, "to": {"to codex @@ --dry-run"},
		"search": {"search evilword"}, "keys": {"keys", "keys evil"}, "models": {"models", "models evil"},
		"stats": {"stats", "stats --by model"}, "year": {"year --json"},
		"query": {"query transcript --session @@", "query @SQL", "query @SQL --csv"},
		"fork":  {"fork @@"}, "head": {"head @@ 1"}, "label": nil, "tag": {"tag", "tag @@"}, "rules": {"rules @@"},
		"context": {"context @@", "context @@ --explain"}, "compact": {"compact @@"}, "rename": {"rename @@ TITLE"},
		"star": {"star @@"}, "archive": {"archive @@"}, "unarchive": {"unarchive @@"}, "trash": {"trash @@"},
		"untrash": {"untrash @@"},
		"export":  {"export @@ -o OUT --format md"}, "append": {"append @@ user hello"}, "purge": {"purge @@ --dry-run"},
		"doctor": {"doctor"}, "secrets": {"secrets"}, "config": {"config"},
		// These print nothing that is stored in the database, or, mcp, hook and answer-sql, only as JSON on request.
		"demo":  nil,
		"serve": nil, "import": nil, "open": nil, "connect": nil, "mcp": nil, "hook": nil, "backup": nil, "restore": nil,
		"answer-sql": nil, "copy": nil, "token": nil, "service": nil, "uninstall": nil, "version": nil, "completion": nil,
		"help": nil, "healthcheck": nil, "statusline": nil,
	}
	path := storetest.New(t, filepath.Join(t.TempDir(), "sessions.db"))
	s := testkit.Must(store.Open(t.Context(), path, store.Options{Touched: touched.Files}))(t)
	sess := testkit.Must(s.CreateSession(t.Context(), store.NewSession{
		Title: hostile, Key: hostile, Source: "pi", SourceID: hostile, Directory: "/" + hostile, Project: "/" + hostile,
		GitBranch: hostile, Provider: hostile, Model: hostile,
		Metadata: session.JSONOf(map[string]string{"subject": hostile}),
	}))(t)
	said := func(role session.Role, parts ...session.Part) session.Message {
		return session.Message{
			Role: role, InContext: true, Display: true, Author: hostile, Model: hostile, Provider: hostile,
			ExternalID: hostile + string(role), Parts: parts,
		}
	}
	testkit.Must(s.Append(t.Context(), store.Append{Session: sess.ID, Messages: []session.Message{
		said(session.User, session.TextPart("evilword "+hostile)),
		said(session.Assistant, session.TextPart(hostile), session.Part{
			Kind: session.PartToolCall, ToolName: hostile,
			CallID: "c" + hostile, Arguments: string(session.JSONOf(map[string]string{"file_path": hostile})),
		}),
		said(session.Tool, session.Part{
			Kind: session.PartToolResult, ToolName: hostile, CallID: "c" + hostile,
			Text: hostile,
		}),
	}, Call: &session.Call{
		Purpose: session.PurposeChat, Status: session.CallOK, Model: hostile, Provider: hostile,
		InputTokens: 5,
	}}))(t)
	testkit.Check(t, s.Close())

	app := &app{env: &env{}}
	for _, cmd := range app.root().Commands() {
		lines, listed := commands[cmd.Name()]
		if !listed {
			t.Errorf("the command %s is not in the table", cmd.Name())
		}
		for _, line := range lines {
			for _, terminal := range []bool{false, true} {
				words := strings.Fields(line)
				for i, word := range words {
					switch word {
					case "@@", "@@.1":
						words[i] = string(sess.ID) + word[2:]
					case "TITLE":
						words[i] = hostile + "title"
					case "@SQL":
						words[i] = "SELECT title, model, directory FROM sessions"
					case "OUT":
						words[i] = filepath.Join(t.TempDir(), "out.md")
					}
				}
				var out bytes.Buffer
				e := &env{
					in: strings.NewReader(""), out: &out, err: &out, environ: []string{"HOME=" + t.TempDir(), "PAGER=cat"},
					now:    time.Now,
					outTTY: terminal, errTTY: terminal, width: map[bool]int{true: 80}[terminal],
				}
				run(t.Context(), append(words, "--db", path), e)
				printed := out.String()
				if terminal {
					printed = ownColors.ReplaceAllString(printed, "")
				}
				if at := strings.IndexFunc(printed, func(r rune) bool {
					return r < ' ' && r != '\n' && r != '\t' || isC1(r) || r == '\u202e'
				}); at >= 0 {
					t.Errorf("%s, on a terminal %t: %q", line, terminal, printed[max(0, at-60):min(len(printed), at+60)])
				}
				if out.Len() == 0 {
					t.Errorf("%s prints nothing", line)
				}
			}
		}
	}
}
