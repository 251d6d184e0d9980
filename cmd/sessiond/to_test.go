package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sessiond/internal/export"
	"sessiond/internal/history"
	"sessiond/internal/history/codex"
	"sessiond/internal/history/copilotcli"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// Of two handovers into one file one writes it whole, and the other one says that it is there.
func TestHandoverOverwritesNoFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "2026", "rollout.jsonl")
	handOver := func(text string) error {
		h := handedOver{target: codex.NewTarget(os.Getenv), draft: history.Draft{
			ID: "a", CreatedAt: session.At(time.Now()), Handover: &history.Handover{Session: "20260501_001"},
			Each: func(yield func(*session.Message) error) error {
				for range 1000 {
					m := session.Message{Role: session.Assistant, Parts: []session.Part{session.TextPart(text)}}
					if err := yield(&m); err != nil {
						return err
					}
				}
				return nil
			},
		}}
		return writeSession(path, &h)
	}
	var both sync.WaitGroup
	var failed [2]error
	for i, text := range []string{"first", "second"} {
		both.Go(func() { failed[i] = handOver(text) })
	}
	both.Wait()
	if (failed[0] == nil) == (failed[1] == nil) || session.CodeOf(errors.Join(failed[:]...)) != session.Conflict {
		t.Fatalf("%v", failed)
	}
	text := string(testkit.Must(os.ReadFile(path))(t))
	if a, b := strings.Count(text, `"first"`), strings.Count(text, `"second"`); a+b != 2000 || a > 0 && b > 0 {
		t.Errorf("%d lines of the one, %d of the other", a, b)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("%d files are left: %v", len(left), err)
	}
}

// A write that fails leaves nothing.
func TestHandoverThatFailsLeavesNoFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rollout.jsonl")
	h := handedOver{target: codex.NewTarget(os.Getenv), draft: history.Draft{
		ID: "a", CreatedAt: session.At(time.Now()), Handover: &history.Handover{Session: "20260501_001"},
		Each: func(func(*session.Message) error) error { return errors.New("purged") },
	}}
	if err := writeSession(path, &h); err == nil || !strings.Contains(err.Error(), "purged") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
		t.Errorf("%d files are left: %v", len(left), err)
	}
}

// Without a home no program's session is written, and with one it lies in it.
func TestHandoverNeedsAHome(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, target := range export.Targets(func(string) string { return "" }) {
		if target.Path == nil {
			continue
		}
		d := history.Draft{ID: history.UUID("seed"), Directory: home, CreatedAt: session.At(time.Now())}
		h := handedOver{target: target, draft: d}
		if err := writeSession(target.Path(&d), &h); err == nil || !strings.Contains(err.Error(), "HOME is not set") {
			t.Errorf("%s: %v", target.Source, err)
		}
	}
	for _, target := range export.Targets(func(name string) string { return map[string]string{"HOME": home}[name] }) {
		d := history.Draft{ID: history.UUID("seed"), Directory: home, CreatedAt: session.At(time.Now())}
		if target.Path != nil && !strings.HasPrefix(target.Path(&d), home+string(filepath.Separator)) {
			t.Errorf("%s: %s", target.Source, target.Path(&d))
		}
	}
}

// A session of Copilot CLI that is there keeps its events and its name, and a write that fails leaves neither.
func TestHandoverKeepsASessionWithItsName(t *testing.T) {
	t.Parallel()
	copilot := copilotcli.NewTarget(os.Getenv)
	draft := history.Draft{
		ID: "a", Title: "A plan", CreatedAt: session.At(time.Now()), Handover: &history.Handover{Session: "20260501_001"},
		Each: func(func(*session.Message) error) error { return errors.New("purged") },
	}
	failed := filepath.Join(t.TempDir(), "a", "events.jsonl")
	if err := writeSession(failed, &handedOver{target: copilot, draft: draft}); err == nil {
		t.Error("a write that fails is reported as done")
	}
	if _, err := os.Lstat(filepath.Dir(failed)); !os.IsNotExist(err) {
		t.Errorf("its folder is left: %v", err)
	}
	draft.Each = func(func(*session.Message) error) error { return nil }
	path := filepath.Join(t.TempDir(), "a", "events.jsonl")
	testkit.Check(t, writeSession(path, &handedOver{target: copilot, draft: draft}))
	draft.Title = "Another one"
	if err := writeSession(path, &handedOver{target: copilot, draft: draft}); session.CodeOf(err) != session.Conflict {
		t.Errorf("%v", err)
	}
	name := testkit.Must(os.ReadFile(filepath.Join(filepath.Dir(path), "workspace.yaml")))(t)
	if _, err := os.Lstat(path); err != nil || !strings.Contains(string(name), "A plan") {
		t.Errorf("%v, %s", err, name)
	}
}

// The kernel's list of programs says which of them sessiond writes.
func TestTargetsAreMarkedInTheListOfPrograms(t *testing.T) {
	t.Parallel()
	var marked []string
	for _, p := range session.Programs {
		if p.Target {
			marked = append(marked, string(p.Name))
		}
	}
	written := (&app{env: &env{}}).targetNames()
	slices.Sort(marked)
	slices.Sort(written)
	if !slices.Equal(marked, written) {
		t.Errorf("marked %v, written %v", marked, written)
	}
}
