package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"
)

type listed struct {
	ID       string `json:"id"`
	SourceID string `json:"source_id"`
	Title    string `json:"title"`
	Said     int    `json:"said_count"`
	Messages int    `json:"message_count"`
}

// list runs `ls` and returns its rows.
func (h *hookHost) list(args ...string) []listed {
	h.t.Helper()
	out, _ := h.run("", append([]string{"ls", "--json"}, args...)...)
	var all struct {
		Data []listed `json:"data"`
	}
	testkit.Check(h.t, json.Unmarshal([]byte(out), &all))
	return all.Data
}

// Real transcripts of today's programs: people see prompts, replies and calls, and one line for the rest.
func TestRowsOfTheProgramAreNoTalk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		folder, program, history string
		session                  string // its id in the program
		said, messages           int
		fold                     string
	}{
		{
			"49-claude-code-2.1.332-real", "claude-code", "projects", "cbc5c75e-a6ae-4676-a740-1c7ba0674bac", 10, 114,
			"· +96 rows of the program: --program shows them",
		},
		{
			"50-codex-0.171.0-real", "codex", "sessions", "01a21b18-1d70-7880-af52-03dfc15d6ce2", 6, 17,
			"· +11 rows of the program: --program shows them",
		},
		{
			"55-pi-1.6.0-real", "pi", "sessions", "01a21b1c-4ad6-7000-bd59-e5a31935a161", 5, 9,
			"· +3 rows of the program: --program shows them",
		},
	} {
		t.Run(c.folder, func(t *testing.T) {
			histories := filepath.Join(samples.Case(t, c.folder), c.history)
			h := newHookHost(t)
			h.run("", "import", c.program, histories, "--mine")
			all := h.list("--all")
			at := slices.IndexFunc(all, func(l listed) bool { return l.SourceID == c.session })
			if at < 0 {
				t.Fatalf("no session %s: %+v", c.session, all)
			}
			if got := all[at]; got.Said != c.said || got.Messages != c.messages {
				t.Errorf("%d messages were said, of %d; want %d of %d", got.Said, got.Messages, c.said, c.messages)
			}
			shown, _ := h.run("", "show", all[at].ID)
			for _, no := range []string{
				"unknown", "hidden", "system-reminder", "task-notification", "environment_context",
				"model_change", "You are a coding assistant",
			} {
				if strings.Contains(shown, no) {
					t.Errorf("show has %q:\n%s", no, shown)
				}
			}
			if !strings.Contains(shown, c.fold) || strings.Count(shown, "of the program") != 1 ||
				strings.Count(shown, "● user") == 0 {
				t.Errorf("show has not one line %q:\n%s", c.fold, shown)
			}
			if whole, _ := h.run("", "show", all[at].ID, "--program"); strings.Contains(whole, "of the program") ||
				len(whole) < len(shown)+200 {
				t.Errorf("show --program prints\n%s", whole)
			}
			if last, _ := h.run("", "show", all[at].ID, "-n", "1"); !strings.Contains(last, "● assistant") {
				t.Errorf("the last message is\n%s", last)
			}
		})
	}
}

// A program writes copies of its requests: the tools and the system prompt of each lie in the database once.
func TestCopiesOfRequestsAreStoredOnce(t *testing.T) {
	t.Parallel()
	histories := filepath.Join(samples.Case(t, "49-claude-code-2.1.332-real"), "projects")
	h := newHookHost(t)
	h.run("", "import", "claude-code", histories, "--mine")
	var read int64
	testkit.Check(t, filepath.WalkDir(histories, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			read += int64(len(testkit.Must(os.ReadFile(path))(t)))
		}
		return err
	}))
	if size := testkit.Must(os.Stat(h.db()))(t).Size(); size*10 > read*13 {
		t.Errorf("the database has %d bytes, the transcripts %d", size, read)
	}
	out, _ := h.run("", "query", "--json", `SELECT COUNT(*) || ' in ' || COUNT(DISTINCT p.blob) AS n FROM parts p
		JOIN blobs b ON b.sha256 = p.blob AND JSON_VALID(CAST(b.data AS TEXT)) WHERE p.extra = '{"line":"attachment.tools"}'`)
	if !strings.Contains(out, `"4 in 2"`) { // the sub-agent has tools of its own; the fork inherits its copy
		t.Errorf("the tools of snapshots: %s", out)
	}
}

// A memory plug-in and scripts begin sessions by an SDK: lists have those of people.
func TestSessionsOfSDKsAreAutomated(t *testing.T) {
	t.Parallel()
	h := newHookHost(t)
	h.run("", "import", "claude-code", filepath.Join(samples.Case(t, "58-cc-observer-flood"), "claude"), "--mine")
	if got := h.list(); len(got) != 1 || got[0].Title != "My real question about the cart" {
		t.Errorf("ls: %+v", got)
	}
	if got := h.list("--all", "-n", "100"); len(got) != 62 {
		t.Errorf("ls --all has %d rows", len(got))
	}
	// The newest session, of the plug-in, repeats the question.
	transcript := strings.NewReplacer("Hello memory agent, you are continuing to observe the primary session.",
		"My real question about the cart: cart, question, cart",
		"00005800", "00005999").Replace(string(testkit.Must(os.ReadFile(filepath.Join(samples.Case(t, "58-cc-observer-flood"),
		"claude", "projects",
		"-home-dev1--claude-mem-observer-sessions", "9e000000-0000-4000-8000-000000005800.jsonl")))(t)))
	copied := filepath.Join(h.home, "9e000000-0000-4000-8000-000000005999.jsonl")
	testkit.Check(t, os.WriteFile(copied, []byte(transcript), 0o600))
	h.run("", "import", "claude-code", copied, "--mine")
	out, _ := h.run("", "search", "question", "cart")
	if mine, others := strings.Index(out, "claude-code · shop"), strings.Index(out, "observer-sessions"); mine < 0 ||
		others < mine {
		t.Errorf("search: %s", out)
	}
}

// The list of skills, which stands in each session, is no hit.
func TestListsOfSkillsAreNoHits(t *testing.T) {
	t.Parallel()
	h := newHookHost(t)
	h.run("", "import", "claude-code", filepath.Join(samples.Case(t, "61-cc-skill-listing-in-search"), "claude"), "--mine")
	out, _ := h.run("", "search", "dashboard", "plotting")
	if strings.Count(out, "claude-code") != 1 || !strings.Contains(out, "I drew the dashboard") {
		t.Errorf("search: %s", out)
	}
}
