//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
)

// The results of a check.
const (
	rightResult = "right"
	wrongResult = "wrong"
	noResult    = "none" // the program or sessiond has nothing to check
)

// checkNames are the checks in the order of the page, with what each compares.
var checkNames = [][2]string{
	{"turns", "three turns and a call of a tool end well"},
	{"sub-agent", "a session of its own, started by the call"},
	{"compaction", "an overlay with the program's summary"},
	{"messages", "each prompt and reply once, and no others"},
	{"calls", "each call once, with its result"},
	{"usage", "each request that the program records, once, with the tokens that the server reported"},
	{"cost", "the sum of these at the price of the model"},
	{"unknown rows", "at most 1 % of the bytes are rows of kinds that sessiond does not know"},
	{"MCP", "the model calls sessiond's `search`, and the next request has what it found"},
	{"prompt hook", "the request has what a hook found for the prompt"},
	{"after compaction", "the next request has a rule, a decision and a changed file, each once"},
	{"resume", "the command of `sessiond resume` sends the first prompt and a tool's result"},
	{"remove", "after `connect` and `connect --remove` each file is as before"},
}

// checkResult is what one check found.
type checkResult struct {
	Check  string `json:"check"`
	Result string `json:"result"`
	Note   string `json:"note,omitempty"`
}

// programResult is what the last run of a program found.
type programResult struct {
	Program string        `json:"program"`
	Title   string        `json:"title"`
	Package string        `json:"package"`
	Version string        `json:"version"`
	Date    string        `json:"date"`
	Checks  []checkResult `json:"checks"`
	Before  string        `json:"before,omitempty"` // what a request has before connect, and after it
	After   string        `json:"after,omitempty"`
}

// add notes a check: right without an error.
func (r *programResult) add(check string, err error) {
	c := checkResult{Check: check, Result: rightResult}
	var note noted
	switch {
	case errors.As(err, &note):
		c.Result, c.Note = note.result, note.text
	case err != nil:
		c.Result, c.Note = wrongResult, oneLine(err.Error())
	}
	r.Checks = append(r.Checks, c)
}

// noted is a result with a note that is no fault.
type noted struct{ result, text string }

func (n noted) Error() string { return n.text }

func (r *programResult) count(result string) (n int) {
	for _, c := range r.Checks {
		if c.Result == result {
			n++
		}
	}
	return n
}

func (r *programResult) print(w io.Writer) {
	fmt.Fprintf(w, "%s %s\n", r.Title, r.Version)
	for _, c := range r.Checks {
		fmt.Fprintf(w, "  %-17s %-6s %s\n", c.Check, c.Result, c.Note)
	}
}

func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 600 {
		text = strings.ToValidUTF8(text[:600], "") + "…"
	}
	return text
}

// store replaces a program's result in a file, and renews the page beside it.
func store(path string, found programResult) error {
	all, err := load(path)
	if err != nil {
		return err
	}
	found.Checks = slices.Clone(found.Checks)
	slices.SortStableFunc(found.Checks, func(a, b checkResult) int { return checkOrder(a.Check) - checkOrder(b.Check) })
	all = slices.DeleteFunc(all, func(r programResult) bool { return r.Program == found.Program })
	all = append(all, found)
	order := func(r programResult) int {
		return slices.IndexFunc(programs, func(p *program) bool { return p.name == r.Program })
	}
	slices.SortStableFunc(all, func(a, b programResult) int { return order(a) - order(b) })
	text, err := json.Marshal(all, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	pairs, err := loadHandovers(path)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(path, append(text, '\n'), 0o644),
		os.WriteFile(pageOf(path), []byte(page(all, pairs)), 0o644))
}

func checkOrder(name string) int {
	return slices.IndexFunc(checkNames, func(c [2]string) bool { return c[0] == name })
}

func load(path string) (all []programResult, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all, json.RejectUnknownMembers(true))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// pageOf returns the name of the page that is made from a file of results.
func pageOf(path string) string { return strings.TrimSuffix(path, filepath.Ext(path)) + ".md" }

// fileOnlyPrograms names the programs that no run has judged.
func fileOnlyPrograms(all []programResult) string {
	var names []string
	for _, p := range session.Programs {
		ran := slices.ContainsFunc(all, func(r programResult) bool { return r.Program == string(p.Name) })
		if !ran && p.Name != session.SourceSessiond && p.Name != session.SourceGeneric {
			names = append(names, p.Title)
		}
	}
	return "\n## Programs whose files were read\n\n" +
		"file only: no run has judged these imports. Their readers are tested with files of the programs, or with files " +
		"that\nfollow a description; [import.md](import.md) says which.\n\n- " + strings.Join(names, "\n- ") + "\n"
}

// page renders the results as Markdown.
func page(all []programResult, pairs []handoverResult) string {
	var b strings.Builder
	b.WriteString("# Programs that were run\n\n" +
		"`scripts/real` installs the newest version of each program from npm and runs it in a home of its own against a\n" +
		"scripted model, imports its history, connects it and runs it again. It makes this page from `programs.json`.\n" +
		"Run it before each release.\n\n" +
		"Results are kept program by program and pair by pair: those of one page may come from\n" +
		"several runs, with builds of sessiond some changes apart.\n\n| check | what is compared |\n|---|---|\n")
	for _, c := range checkNames {
		fmt.Fprintf(&b, "| %s | %s |\n", c[0], c[1])
	}
	b.WriteString("\nyes: as it should be. **no**: a fault, explained below. " +
		"has none: the program or sessiond has no such thing, explained below.\n" +
		"\n|")
	rule := "\n|---"
	for _, r := range all {
		fmt.Fprintf(&b, " | %s", r.Title)
		rule += "|---"
	}
	b.WriteString(" |" + rule + "|\n| version")
	for _, r := range all {
		fmt.Fprintf(&b, " | %s", r.Version)
	}
	b.WriteString(" |\n| run on")
	for _, r := range all {
		fmt.Fprintf(&b, " | %s", r.Date)
	}
	b.WriteString(" |\n")
	for _, c := range checkNames {
		fmt.Fprintf(&b, "| %s", c[0])
		for i := range all {
			fmt.Fprintf(&b, " | %s", all[i].mark(c[0]))
		}
		b.WriteString(" |\n")
	}
	for _, r := range all {
		notes := ""
		for _, c := range r.Checks {
			if c.Note != "" {
				notes += fmt.Sprintf("- %s: %s\n", c.Check, strings.NewReplacer("<", "&lt;", "|", "\\|").Replace(c.Note))
			}
		}
		if notes != "" {
			fmt.Fprintf(&b, "\n## %s %s\n\n%s", r.Title, r.Version, notes)
		}
	}
	b.WriteString(fileOnlyPrograms(all))
	b.WriteString(handoverTable(pairs))
	for _, r := range all {
		if r.Before != "" && r.After != "" {
			fmt.Fprintf(&b, "\n## What %s sends\n\nTwo requests with a question about earlier work: before "+
				"`sessiond connect --for-prompts`, and after it.\nTexts of the program are cut.\n\n"+
				"```text\n%s```\n\n```text\n%s```\n", r.Title, r.Before, r.After)
		}
	}
	return b.String()
}

func (r *programResult) mark(check string) string {
	for _, c := range r.Checks {
		if c.Check == check {
			return map[string]string{rightResult: "yes", wrongResult: "**no**", noResult: "has none"}[c.Result]
		}
	}
	return "not run"
}
