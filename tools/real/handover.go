//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The programs between which conversations are handed over.
var (
	handoverFrom = []string{"claude-code", "codex", "pi", "opencode", "qwen-code", "gemini-cli", "copilot-cli"}
	handoverTo   = []string{"claude-code", "codex", "pi", "opencode", "qwen-code", "gemini-cli", "copilot-cli"}
	fileOnly     = []string{"Goose"} // sessiond exports files that no run has read
)

const (
	nextPrompt   = "And which berth is next? (shell: printf handed)"
	handedOutput = "handed"
)

// handoverResult is what the handover of one program's conversation to another one found.
type handoverResult struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Version string `json:"version"` // of the other one
	Date    string `json:"date"`
	Result  string `json:"result"`
	Note    string `json:"note,omitempty"`
}

// handovers is the trial of all programs in one home.
type handovers struct {
	*trial
	versions map[string]string
	said     map[string]string // by program: the last reply of the conversation that is handed over
	ids      map[string]string // by program: that conversation in sessiond
	results  []handoverResult
}

// pairs are the programs from which and to which conversations are handed over; none: all.
type pairs struct{ from, to []string }

// pairsOf reads names: codex is a program from which, :codex one to which conversations are handed over.
func pairsOf(names []string) (p pairs, err error) {
	for _, name := range names {
		chosen, known := &p.from, handoverFrom
		if to, is := strings.CutPrefix(name, ":"); is {
			name, chosen, known = to, &p.to, handoverTo
		}
		if !slices.Contains(known, name) {
			return p, fmt.Errorf("no handover from or to %q; from: %s; to: :%s", name, strings.Join(handoverFrom, ", "),
				strings.Join(handoverTo, ", :"))
		}
		*chosen = append(*chosen, name)
	}
	if p.from == nil {
		p.from = handoverFrom
	}
	if p.to == nil {
		p.to = handoverTo
	}
	return p, nil
}

// runHandovers hands a conversation of each program over to each other one, or between the named ones. It returns how
// many went wrong.
func runHandovers(ctx context.Context, in *installer, binary, dir, results string,
	names []string,
) (wrong int, err error) {
	chosen, err := pairsOf(names)
	if err != nil {
		return 0, err
	}
	all := &program{name: "to", files: map[string]string{}}
	h := handovers{versions: map[string]string{}, said: map[string]string{}, ids: map[string]string{}}
	var path []string
	for _, p := range programs {
		if !slices.Contains(chosen.from, p.name) && !slices.Contains(chosen.to, p.name) {
			continue
		}
		installed := installation{}
		fmt.Printf("%s: installs %s\n", p.name, p.pack)
		if installed, err = in.install(ctx, p); err != nil {
			return 0, err
		}
		h.versions[p.name] = installed.version
		path = append(path, installed.path...)
		maps.Copy(all.files, p.files)
		all.env = append(all.env, p.env...)
	}
	if h.trial, err = newTrial(all, installation{path: path}, binary, dir); err != nil {
		return 0, err
	}
	defer h.end()
	for _, from := range chosen.from {
		begun := twice(from, func() error { return h.begin(ctx, from) })
		for _, to := range chosen.to {
			if to == from {
				continue
			}
			h.model.Begin()
			err := begun
			if err == nil {
				err = twice(from+" to "+to, func() error { return h.pass(ctx, from, to) })
			}
			r := handoverResult{
				From: from, To: to, Version: h.versions[to], Date: time.Now().UTC().Format(time.DateOnly), Result: rightResult,
			}
			if err != nil {
				r.Result, r.Note = wrongResult, oneLine(err.Error())
				wrong++
			}
			fmt.Printf("  %-12s to %-12s %-6s %s\n", from, to, r.Result, r.Note)
			h.results = append(h.results, r)
		}
	}
	if results == "" {
		return wrong, nil
	}
	return wrong, storeHandovers(results, h.results)
}

// twice tries again what failed, and prints that: opencode ends in no time now and then before its first line of a log,
// on a busy machine. Why is not known: a start that went well connected to nothing but the model.
func twice(what string, try func() error) error {
	err := try()
	if err == nil {
		return nil
	}
	fmt.Printf("  %s is tried again: %s\n", what, oneLine(err.Error()))
	return try()
}

func programNamed(name string) *program {
	return programs[slices.IndexFunc(programs, func(p *program) bool { return p.name == name })]
}

// begin has a conversation in a program, and imports it.
func (h *handovers) begin(ctx context.Context, name string) error {
	h.program = programNamed(name)
	if err := h.say(ctx, h.program.first, firstPrompt); err != nil {
		return err
	}
	if err := h.readHistory(ctx); err != nil {
		return err
	}
	var id string
	if err := h.db.QueryRow(`SELECT id, source_id FROM sessions WHERE source = ? AND kind <> 'subagent'
		AND parent_id IS NULL OR source = ? AND parent_id = '' ORDER BY created_at DESC, id DESC LIMIT 1`, name,
		name).Scan(&id, &h.id); err != nil {
		return fmt.Errorf("the import of the conversation: %w", err)
	}
	if err := h.talk(ctx, writePrompt); err != nil {
		return err
	}
	h.ids[name], h.said[name] = id, h.lastReply()
	return nil
}

// lastReply returns the text of the newest turn that ended.
func (h *handovers) lastReply() string {
	for _, x := range slices.Backward(h.model.Log()) {
		if x.Text != "" && len(x.Calls) == 0 {
			return x.Text
		}
	}
	return ""
}

// pass hands the conversation of one program over to another one, continues it there, and imports that.
func (h *handovers) pass(ctx context.Context, from, to string) error {
	h.program = programNamed(to)
	if err := h.undo(ctx, from, to); err != nil {
		return err
	}
	id, err := h.handOver(ctx, from, to)
	if err != nil {
		return err
	}
	if err := h.say(ctx, replaced(h.program.next, "ID", id), nextPrompt); err != nil {
		return err
	}
	body := h.lastTurn().Body
	for _, want := range []string{firstPrompt, rule, h.said[from], shellOutput, handedOutput} {
		if !strings.Contains(body, encoded(want)) {
			return fmt.Errorf("the request lacks %q", want)
		}
	}
	if err := h.readHistory(ctx); err != nil {
		return err
	}
	var fork string
	var own, calls int
	if err := h.db.QueryRow(`SELECT s.id, (SELECT COUNT(*) FROM messages m WHERE m.session_id = s.id AND m.role = 'user'
			AND m.talk = 'said'), (SELECT COUNT(*) FROM calls c WHERE c.session_id = s.id AND c.input_tokens > 0)
		FROM sessions s WHERE s.source = ? AND s.parent_id = ? AND s.parent_kind = 'fork' ORDER BY s.id DESC LIMIT 1`,
		to, h.ids[from]).Scan(&fork, &own, &calls); err != nil {
		return fmt.Errorf("what was said in %s is imported as no fork of %s: %w", to, h.ids[from], err)
	}
	if own != 1 || calls != 2 {
		return fmt.Errorf("the fork %s has %d prompts and %d calls of the model, not 1 and 2", fork, own, calls)
	}
	tree, err := h.run(ctx, ownTime, h.binary, "show", "--tree", h.ids[from])
	if err == nil && !strings.Contains(tree, fork) {
		err = fmt.Errorf("show --tree lacks the fork %s", fork)
	}
	if err != nil {
		return err
	}
	return h.back(ctx, from, fork)
}

// back continues the first conversation in its own program, with what was done in a fork.
func (h *handovers) back(ctx context.Context, from, fork string) error {
	meanwhile, err := h.run(ctx, ownTime, h.binary, "to", "--back", fork, "--text")
	if err != nil {
		return err
	}
	h.program = programNamed(from)
	if err := h.talk(ctx, meanwhile); err != nil {
		return fmt.Errorf("the way back: %w", err)
	}
	body := h.lastTurn().Body
	for _, want := range []string{
		firstPrompt, h.said[from], "Meanwhile this conversation was continued", nextPrompt, handedOutput,
	} {
		if !strings.Contains(body, encoded(want)) {
			return fmt.Errorf("the request on the way back lacks %q", want)
		}
	}
	return nil
}

// handOver runs `sessiond to`, and returns what the program continues.
func (h *handovers) handOver(ctx context.Context, from, to string) (id string, err error) {
	out, err := h.run(ctx, ownTime, h.binary, "to", to, h.ids[from], "--json")
	if err != nil {
		return "", err
	}
	var told struct {
		Command []string `json:"command"`
	}
	if err := json.Unmarshal([]byte(out[max(0, strings.Index(out, "{")):]), &told); err != nil || len(told.Command) == 0 {
		return "", fmt.Errorf("`to --json` printed %s", out)
	}
	return told.Command[len(told.Command)-1], nil
}

// undo hands over, and removes what was written.
func (h *handovers) undo(ctx context.Context, from, to string) error {
	if to == "opencode" { // its sessions are in its database, which other files tell nothing of
		if _, err := h.handOver(ctx, from, to); err != nil {
			return err
		}
		out, err := h.run(ctx, stepTime, h.binary, "to", to, h.ids[from], "--remove")
		if err == nil && !strings.Contains(out, "Removed ses_") {
			err = fmt.Errorf("--remove printed %s", lastLines(out, 3))
		}
		return err
	}
	before := h.homeFiles()
	if _, err := h.handOver(ctx, from, to); err != nil {
		return err
	}
	after := h.homeFiles()
	if len(after) <= len(before) {
		return errors.New("`to` wrote no file")
	}
	if _, err := h.run(ctx, ownTime, h.binary, "to", to, h.ids[from], "--remove"); err != nil {
		return err
	}
	for name, text := range h.homeFiles() {
		if _, had := before[name]; !had && text != "folder" {
			return fmt.Errorf("--remove leaves %s", name)
		}
	}
	return nil
}

// handoversOf returns the name of the file of handovers beside a file of results.
func handoversOf(results string) string {
	return filepath.Join(filepath.Dir(results), "handovers.json")
}

// storeHandovers replaces the results of pairs, and renews the page.
func storeHandovers(results string, found []handoverResult) error {
	all, err := loadHandovers(results)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(r handoverResult) bool {
		return slices.ContainsFunc(found, func(f handoverResult) bool { return f.From == r.From && f.To == r.To })
	})
	all = append(all, found...)
	slices.SortStableFunc(all, func(a, b handoverResult) int {
		return cmp.Or(slices.Index(handoverFrom, a.From)-slices.Index(handoverFrom, b.From),
			slices.Index(handoverTo, a.To)-slices.Index(handoverTo, b.To))
	})
	text, err := json.Marshal(all, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	if err := os.WriteFile(handoversOf(results), append(text, '\n'), 0o644); err != nil {
		return err
	}
	runs, err := load(results)
	if err != nil {
		return err
	}
	return os.WriteFile(pageOf(results), []byte(page(runs, all)), 0o644)
}

func loadHandovers(results string) (all []handoverResult, err error) {
	text, err := os.ReadFile(handoversOf(results))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}

// handoverTable renders which program's conversations go on in which.
func handoverTable(all []handoverResult) string {
	if len(all) == 0 {
		return ""
	}
	var b, notes strings.Builder
	b.WriteString("\n## Conversations that go on in another program\n\n" +
		"`scripts/real to` hands a conversation of each program over to each other one. The next request there must have\n" +
		"the first prompt, the rule in it, a tool's result and the last reply; what is said there must be imported as a\n" +
		"fork with its usage, once; `--remove` must take away what nobody continued; after `--back` the first program's\n" +
		"next request must have what was done meanwhile. file only: sessiond exports it, and no run has read it.\n" +
		"\n| from")
	rule := "\n|---"
	for _, to := range handoverTo {
		at := slices.IndexFunc(all, func(r handoverResult) bool { return r.To == to })
		version := ""
		if at >= 0 {
			version = " " + all[at].Version
		}
		b.WriteString(" | to " + programNamed(to).title + version)
		rule += "|---"
	}
	for _, title := range fileOnly {
		b.WriteString(" | to " + title)
		rule += "|---"
	}
	b.WriteString(" |" + rule + "|\n")
	for _, from := range handoverFrom {
		b.WriteString("| " + programNamed(from).title)
		for _, to := range handoverTo {
			mark := "not run"
			at := slices.IndexFunc(all, func(r handoverResult) bool { return r.From == from && r.To == to })
			switch {
			case from == to:
				mark = "–"
			case at >= 0 && all[at].Result == rightResult:
				mark = "yes"
			case at >= 0:
				mark = "**no**"
				fmt.Fprintf(&notes, "- %s to %s: %s\n", programNamed(from).title, programNamed(to).title, all[at].Note)
			}
			b.WriteString(" | " + mark)
		}
		b.WriteString(strings.Repeat(" | file only", len(fileOnly)) + " |\n")
	}
	if notes.Len() > 0 {
		b.WriteString("\n" + notes.String())
	}
	return b.String()
}
