//go:build unix

package main

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "make docs/programs.md from docs/programs.json")

const resultsFile = "../../docs/programs.json"

func TestPageIsMadeFromTheResults(t *testing.T) {
	all, err := load(resultsFile)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d results: %v", len(all), err)
	}
	pairs, err := loadHandovers(resultsFile)
	if err != nil {
		t.Fatal(err)
	}
	want := page(all, pairs)
	if *update {
		if err := os.WriteFile(pageOf(resultsFile), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(pageOf(resultsFile))
	if err != nil || string(got) != want {
		t.Errorf("docs/programs.md differs from docs/programs.json (%v); `go test ./tools/real -update` makes it", err)
	}
}

func TestResultOfAProgramReplacesItsOldOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "programs.json")
	found := programResult{Program: "codex", Title: "Codex", Version: "1.0.0", Date: "2026-01-02"}
	found.add("turns", nil)
	found.add("MCP", errors.New("no request offers\nthe tool"))
	found.add("sub-agent", noted{noResult, "it has none"})
	for _, version := range []string{"1.0.0", "1.1.0"} {
		found.Version = version
		if err := store(file, found); err != nil {
			t.Fatal(err)
		}
	}
	all, err := load(file)
	if err != nil || len(all) != 1 || all[0].Version != "1.1.0" || all[0].count(wrongResult) != 1 {
		t.Errorf("stored: %+v %v", all, err)
	}
	text, err := os.ReadFile(pageOf(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| version | 1.1.0 |", "| turns | yes |", "| MCP | **no** |", "| sub-agent | has none |",
		"| resume | not run |", "- MCP: no request offers the tool\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if err := os.WriteFile(file, []byte(`[{"program":"codex","versions":1}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := load(file); err == nil || !strings.Contains(err.Error(), "versions") {
		t.Errorf("a field that nobody knows: %v", err)
	}
}

func TestRequestBehindACompactionIsJudged(t *testing.T) {
	const decision = "I decided to keep the heights in millimetres, because …"
	body := func(own, rest string) string {
		return `{"messages":[{"content":"` + rest + `"},{"content":[{"text":"\u003cfrom_sessiond>` + own + `</from_sessiond> go on"}]}]}`
	}
	tests := []struct{ name, body, want string }{
		{"all from sessiond", body(rule+" "+decision+" planner.go", "Notes"), ""},
		{"one kept by the program", body(decision+" planner.go", rule), ""},
		{"one lost", body(rule+" planner.go", "Notes"), "the decision is missing"},
		{"one twice", body(rule+" "+decision+" planner.go", rule), "the rule is there twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := givenBack(tt.body); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestDifferencesOfFiles(t *testing.T) {
	before := map[string]string{"a": "1", "b": "2"}
	for want, after := range map[string]map[string]string{
		"":                                 {"a": "1", "b": "2"},
		"c is left":                        {"a": "1", "b": "2", "c": "3"},
		"b is gone":                        {"a": "1"},
		"a was changed: 2 bytes, before 1": {"a": "11", "b": "2"},
	} {
		got := ""
		if err := differences(before, after); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A name is a program from which conversations are handed over, one with a colon a program to which they are.
func TestPairsOfNames(t *testing.T) {
	p, err := pairsOf([]string{"codex", ":pi", ":gemini-cli"})
	if err != nil || !slices.Equal(p.from, []string{"codex"}) || !slices.Equal(p.to, []string{"pi", "gemini-cli"}) {
		t.Errorf("%+v %v", p, err)
	}
	if p, err = pairsOf(nil); err != nil || len(p.from) != len(handoverFrom) || len(p.to) != len(handoverTo) {
		t.Errorf("%+v %v", p, err)
	}
	for _, wrong := range []string{"kilo", ":kilo", ":", "codex:pi"} {
		if _, err := pairsOf([]string{wrong}); err == nil || !strings.Contains(err.Error(), ":copilot-cli") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
