package codex

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
)

// wordsCase is a case of codex.keep_recent_user.
type wordsCase struct {
	ID    string
	Given struct {
		Entries []struct {
			ID, Role, Text, Unit string
			Times                int
			Summary, Context     bool
		}
		Settings struct {
			Budget int `json:"user_message_budget"`
		}
	}
	Expect struct {
		Kept []keptWords
	}
}

type keptWords struct {
	ID        string
	Truncated bool
	Tokens    int
	Bytes     int `json:"text_bytes"`
	Marker    string
	Head      string
	Tail      string
}

// TestRecentUserConformance runs the cases of what Codex keeps of the person's words where a
// record of a compaction does not say it. The importer hands over what a person said and
// nothing else; the summary stands in the overlay beside them.
func TestRecentUserConformance(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "contextmgr", "testdata", "compaction.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, one := range all {
		if !strings.Contains(string(one), `"codex.keep_recent_user"`) {
			continue
		}
		var c wordsCase
		if err := json.Unmarshal(one, &c); err != nil {
			t.Fatal(err)
		}
		ran++
		t.Run(c.ID, func(t *testing.T) { c.run(t) })
	}
	if ran == 0 {
		t.Fatal("no case")
	}
}

var cutMark = regexp.MustCompile(`…\d+ tokens truncated…`)

func (c *wordsCase) run(t *testing.T) {
	var said, ids []string
	for _, e := range c.Given.Entries {
		if e.Role == "user" && !e.Summary && !e.Context {
			said, ids = append(said, e.Text+strings.Repeat(e.Unit, e.Times)), append(ids, e.ID)
		}
	}
	words := recentWords(said, c.Given.Settings.Budget)
	got := []keptWords{}
	for i, text := range words {
		k := keptWords{ID: ids[len(ids)-len(words)+i], Tokens: (len(text) + 3) / 4}
		if text != said[len(said)-len(words)+i] {
			u := utf16.Encode([]rune(text)) // the cases count so
			k.Truncated, k.Bytes, k.Marker, k.Head, k.Tail = true, len(text), cutMark.FindString(text), string(utf16.Decode(u[:12])), string(utf16.Decode(u[len(u)-12:]))
		}
		got = append(got, k)
	}
	if diff := cmp.Diff(c.Expect.Kept, got); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

func TestOfTheWordsThatAreKeptTheOldestIsCut(t *testing.T) {
	var w window
	for _, text := range []string{strings.Repeat("a", 50_000), strings.Repeat("b", 50_000), strings.Repeat("c", 50_000)} {
		w.say(text)
	}
	got := string(w.replacement())
	if strings.Contains(got, "aa") || strings.Count(got, "b") < 30_000 || !strings.Contains(got, "tokens truncated") || strings.Count(got, "c") < 50_000 {
		t.Errorf("%d bytes are kept: %.200s", len(got), got)
	}
}
