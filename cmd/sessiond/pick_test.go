package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/picker"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// shop is a home folder with a database, projects and programs, in which a person uses the picker.
type shop struct {
	*testing.T
	home, db string
}

func newShop(t *testing.T) *shop {
	t.Helper()
	home := testkit.Must(filepath.EvalSymlinks(t.TempDir()))(t)
	h := &shop{t, home, filepath.Join(home, "sessiond", "sessions.db")}
	for _, dir := range []string{"sessiond", "garden", "bank/keys", "bank/.git", "bin"} {
		testkit.Check(t, os.MkdirAll(filepath.Join(home, dir), 0o700))
	}
	storetest.New(t, h.db)
	return h
}

// change works on the database as another process does.
func (h *shop) change(do func(*store.Store)) {
	h.Helper()
	s := testkit.Must(store.Open(h.Context(), h.db, store.Options{Host: "pier"}))(h)
	do(s)
	testkit.Check(h, s.Close())
}

// talk stores a conversation of so long ago.
func (h *shop) talk(in store.NewSession, ago time.Duration, texts ...string) (id session.ID) {
	h.Helper()
	h.change(func(s *store.Store) {
		at := session.At(time.Now().Add(-ago))
		in.CreatedAt = &at
		made := testkit.Must(s.CreateSession(h.Context(), in))(h)
		id = made.ID
		var msgs []session.Message
		for i, text := range texts {
			m := session.Message{
				Kind: session.KindMessage, Role: session.User, Origin: session.Person, InContext: true,
				Display: true, CreatedAt: at, Parts: []session.Part{session.TextPart(text)},
			}
			if i%2 == 1 {
				m.Role, m.Origin = session.Assistant, session.Model
			}
			msgs = append(msgs, m)
		}
		if len(msgs) > 0 {
			testkit.Must(s.Append(h.Context(), store.Append{Session: id, Messages: msgs}))(h)
		}
	})
	return id
}

func (h *shop) environ(more ...string) []string {
	return append(os.Environ(), append([]string{
		"HOME=" + h.home, "XDG_DATA_HOME=" + h.home, "XDG_CONFIG_HOME=" + h.home, "XDG_RUNTIME_DIR=", "NO_COLOR=",
		"SSH_CONNECTION=",
		"DISPLAY=", "WAYLAND_DISPLAY=", "PATH=" + filepath.Join(h.home, "bin") + ":" + os.Getenv("PATH"),
	}, more...)...)
}

func (h *shop) sessiond(args ...string) string {
	h.Helper()
	cmd := exec.Command("sessiond", args...)
	cmd.Env, cmd.Dir = h.environ(), h.home
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.Fatalf("sessiond %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// terminal is a pane of tmux in which `sessiond` runs; then it says the exit code.
type terminal struct {
	*shop
	socket string
}

func (h *shop) terminal(dir string, width, height int, environ ...string) *terminal {
	h.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		h.Skip("tmux is not installed")
	}
	short := testkit.Must(os.MkdirTemp("", "tmux"))(h) // a socket's path must be short
	h.Cleanup(func() { os.RemoveAll(short) })
	p := &terminal{h, filepath.Join(short, "s")}
	testkit.Check(h, os.WriteFile(filepath.Join(short, "conf"),
		[]byte("set -g status off\nset -g set-clipboard on\nset -g default-terminal tmux-256color\n"), 0o600))
	cmd := exec.Command("tmux", "-S", p.socket, "-f", filepath.Join(short, "conf"), "new-session", "-d", "-x",
		fmt.Sprint(width), "-y", fmt.Sprint(height),
		"env "+cmp.Or(strings.Join(environ, " "), "A=")+" sh -c 'echo before; sessiond; echo exit code $?; exec cat'")
	cmd.Dir, cmd.Env = filepath.Join(h.home, dir), h.environ("TERM=xterm-256color", "LC_ALL=C.UTF-8", "TMUX=")
	if out, err := cmd.CombinedOutput(); err != nil {
		h.Fatalf("tmux: %v\n%s", err, out)
	}
	h.Cleanup(func() { p.tmux("kill-server") })
	return p
}

func (p *terminal) tmux(args ...string) string {
	p.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", p.socket}, args...)...).CombinedOutput()
	if err != nil {
		p.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (p *terminal) screen() string { return p.tmux("capture-pane", "-p") }

// sees waits until a text is on the screen, on one line or wrapped.
func (p *terminal) sees(text string) {
	p.Helper()
	p.waits(text, func() bool {
		return strings.Contains(strings.Join(strings.Fields(p.screen()), " "), strings.TrimSpace(text))
	})
}

func (p *terminal) waits(what string, is func() bool) {
	p.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("%q did not come:\n%s", what, p.screen())
		}
	}
}

func (p *terminal) types(text string) { p.Helper(); p.tmux("send-keys", "-l", text) }
func (p *terminal) keys(names ...string) {
	p.Helper()
	p.tmux(append([]string{"send-keys"}, names...)...)
}

// Yesterday's conversation about X, in another project, goes on in its program and folder. The program gets the
// terminal as sessiond found it.
func TestPickerFindsAConversationAndResumesIt(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	bank := filepath.Join(h.home, "bank")
	h.talk(store.NewSession{
		Title: "Beds", Source: session.SourcePi, SourceID: "beds",
		Directory: filepath.Join(h.home, "garden"),
	}, time.Hour, "Which bed is for the beans?", "The sunny one.")
	h.talk(store.NewSession{Title: "Keys", Source: session.SourcePi, SourceID: "019c-keys", Directory: bank}, 26*time.Hour,
		"How do we rotate the zebra keys?", "Every month.")
	testkit.Check(t, os.WriteFile(filepath.Join(h.home, "bin", "pi"),
		[]byte("#!/bin/sh\nstty -a > \"$HOME/stty\"\npwd\necho pi \"$@\"\n"), 0o700))

	p := h.terminal("garden", 80, 24)
	p.sees("❯ Beds")
	p.types("zebra rotat") // rotates what is not finished
	p.sees("1 found")
	p.sees("❯ Keys")
	p.sees("How do we rotate the zebra keys?") // the passage
	p.keys("Enter")
	p.sees("pi --session 019c-keys")
	p.sees("before")
	// the path may be long
	if ran := strings.ReplaceAll(p.screen(), "\n", ""); !strings.Contains(ran, bank+"pi --session") {
		t.Errorf("pi did not run in %s:\n%s", bank, p.screen())
	}
	stty := string(testkit.Must(os.ReadFile(filepath.Join(h.home, "stty")))(t))
	for _, mode := range []string{"-icanon", "-echo ", "-isig"} {
		if strings.Contains(stty, mode) {
			t.Errorf("the program got a terminal with %s: %s", mode, stty)
		}
	}
}

func TestPickerLeavesACleanScreen(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	id := h.talk(store.NewSession{Title: "Beds"}, time.Hour, "Which bed?")
	for _, key := range []string{"Escape", "C-c"} {
		p := h.terminal("garden", 80, 24)
		p.sees("❯ Beds")
		p.types("bed")
		p.sees("1 found")
		p.keys("C-y")
		p.sees("Copied: " + string(id))
		p.waits("the clipboard", func() bool {
			out, _ := exec.Command("tmux", "-S", p.socket, "show-buffer").Output()
			return string(out) == string(id)
		})
		p.keys(key)
		p.sees("exit code 0")
		testkit.Equal(t, "before\nexit code 0", strings.TrimSpace(p.screen()))
	}
}

// Others append, and purge what is selected, while the picker is open; it renames and archives beside them.
func TestPickerWorksBesideOtherProcesses(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	first := h.talk(store.NewSession{Title: "Apples"}, 3*time.Hour, "Red?")
	h.talk(store.NewSession{Title: "Beans"}, 2*time.Hour, "Green?")
	p := h.terminal("garden", 80, 24)
	p.sees("❯ Beans")
	p.keys("Down")
	p.sees("❯ Apples")
	h.sessiond("append", "--new", "--title", "Cherries", "user", "Sweet?")
	p.sees("Cherries")
	p.sees("❯ Apples")
	h.sessiond("purge", string(first), "--yes")
	p.sees(string(first)) // is not in this list any more, or does not exist any more: what is noticed first
	p.sees("any more")
	p.sees("❯ Beans")
	p.keys("C-r", "C-u")
	p.types("Peas")
	p.keys("Enter")
	p.sees("❯ Peas")
	p.keys("C-s")
	p.sees("❯ ★ Peas")
	p.keys("C-d")
	p.sees("Archived: ★ Peas")
	p.sees("❯ Cherries")
	if out := h.sessiond("ls", "--archived"); !strings.Contains(out, "Peas") {
		t.Errorf("not archived: %s", out)
	}
	p.keys("C-x")
	p.sees("Export to")
	p.keys("Enter")
	p.sees("1 session, 1 message")
	files := testkit.Must(filepath.Glob(filepath.Join(h.home, "garden", "*.md")))(t)
	if len(files) != 1 {
		t.Errorf("exported files: %v", files)
	}
	p.keys("C-o")
	p.sees("no daemon answers")
	p.keys("Escape")
	p.sees("exit code 0")
}

func TestPickerIsResizedWhileItDraws(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	for i := range 30 {
		h.talk(store.NewSession{Title: fmt.Sprintf("session 果物 %d", i)}, time.Hour, "Red?")
	}
	p := h.terminal("garden", 80, 24)
	p.sees("session 果物")
	for i, size := range [][2]string{
		{"20", "5"},
		{"400", "100"},
		{"1", "1"},
		{"99", "9"},
		{"140", "40"},
		{"7", "3"},
		{"80", "24"},
	} {
		p.keys("Down", "Down")
		p.tmux("resize-window", "-x", size[0], "-y", size[1])
		p.types(fmt.Sprint(i))
	}
	p.keys("C-u")
	p.sees("Type to search titles and messages")
	p.sees("? help")
	p.keys("Escape")
	p.sees("exit code 0")
}

func TestPickerWithoutSessionsOrColours(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.terminal("garden", 80, 24, "NO_COLOR=1")
	p.sees("Nothing is stored yet. Press Enter to import")
	if coloured := p.tmux("capture-pane", "-p", "-e"); strings.Contains(coloured, "\x1b[35") ||
		strings.Contains(coloured, ";35") {
		t.Errorf("colours despite NO_COLOR: %q", coloured)
	}
	p.keys("Enter")
	p.sees("exit code")
	p.sees("sessiond") // import says what it found
	h.talk(store.NewSession{Title: "Beds"}, time.Hour, "Which bed?")
	h.terminal("garden", 80, 24, "TERM=dumb").sees("1 message in 1 session")
	testkit.Check(t, os.Remove(h.db))
	h.terminal("garden", 80, 24).sees("None is here yet")
}

func TestPickerNeedsATerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		in, out bool
		term    string
		json    bool
		want    bool
	}{
		{"a terminal", true, true, "xterm-256color", false, true},
		{"a pipe", true, false, "xterm", false, false},
		{"no keyboard", false, true, "xterm", false, false},
		{"dumb", true, true, "dumb", false, false},
		{"unknown", true, true, "", false, false},
		{"JSON", true, true, "xterm", true, false},
	} {
		a := &app{env: &env{inTTY: c.in, outTTY: c.out, environ: []string{"TERM=" + c.term}}}
		a.flags.json = c.json
		if got := a.picks(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// data opens what answers the picker in a folder of the shop.
func (h *shop) data(dir string) *pickerData {
	h.Helper()
	a := &app{env: &env{
		out: os.Stdout, err: os.Stderr, environ: h.environ(), now: time.Now,
		dir: filepath.Join(h.home, dir),
	}}
	a.flags.db = h.db
	s := testkit.Must(a.wire(h.Context(), wiring{readOnly: true}))(h)
	h.Cleanup(func() { testkit.Check(h, s.close()) })
	return newPickerData(a, s)
}

func titlesOf(rows []picker.Row) (titles []string) {
	for _, r := range rows {
		titles = append(titles, r.Title)
	}
	slices.Sort(titles)
	return titles
}

func TestPickerScopes(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	in := func(dir string) string { return filepath.Join(h.home, dir) }
	bank := h.talk(store.NewSession{Title: "bank", Source: session.SourcePi, SourceID: "1", Directory: in("bank")},
		time.Hour, "money")
	h.talk(store.NewSession{Title: "keys", Directory: in("bank/keys")}, time.Hour, "money")
	h.talk(store.NewSession{Title: "helper", Directory: in("bank"), ParentID: bank, Kind: "subagent"}, time.Hour, "money")
	h.talk(store.NewSession{Title: "garden", Directory: in("garden")}, time.Hour, "money")
	old := h.talk(store.NewSession{Title: "old", Directory: in("bank")}, time.Hour, "money")
	yes := true
	h.change(func(s *store.Store) {
		testkit.Must(s.PatchSession(t.Context(), old, store.SessionPatch{Archived: &yes}))(t)
		testkit.Must(s.PatchSession(t.Context(), bank, store.SessionPatch{Starred: &yes}))(t)
	})
	d := h.data("bank/keys")
	for _, c := range []struct {
		scope picker.Scope
		want  []string
	}{
		{picker.Scope{}, []string{"bank", "garden", "keys"}},
		{picker.Scope{SubAgents: true}, []string{"bank", "garden", "helper", "keys"}},
		{picker.Scope{Where: picker.InProject}, []string{"bank", "keys"}},
		{picker.Scope{Where: picker.Here}, []string{"keys"}},
		{picker.Scope{Source: session.SourcePi}, []string{"bank"}},
		{picker.Scope{Starred: true}, []string{"bank"}},
		{picker.Scope{Archived: true}, []string{"old"}},
		{picker.Scope{Archived: true, Where: picker.Here}, nil},
	} {
		listed := testkit.Must(d.List(t.Context(), c.scope, "", 10))(t)
		testkit.Equal(t, c.want, titlesOf(listed.Rows))
		found := testkit.Must(d.Search(t.Context(), c.scope, "money"))(t)
		testkit.Equal(t, c.want, titlesOf(found.Rows))
		if listed.Empty {
			t.Errorf("%+v: nothing is stored, it says", c.scope)
		}
	}
	testkit.Equal(t, []session.Source{session.SourceSessiond, session.SourcePi}, testkit.Must(d.Sources(t.Context()))(t))
}

func TestPickerSearchesWithoutAnIndex(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	id := h.talk(store.NewSession{Title: "Keys"}, time.Hour, "How do we rotate the zebra keys?")
	d := h.data("garden")
	found := testkit.Must(d.Search(t.Context(), picker.Scope{}, "zeb"))(t) // of an unfinished word
	testkit.Equal(t, []string{"Keys"}, titlesOf(found.Rows))
	testkit.Equal(t, []string{"searched without the index: it does not exist yet"}, found.Notes)
	named := testkit.Must(d.Search(t.Context(), picker.Scope{Archived: true}, string(id)))(t)
	testkit.Equal(t, []string{"Keys"}, titlesOf(named.Rows))
	wrong := testkit.Must(d.Search(t.Context(), picker.Scope{}, "role:king zebra"))(t)
	if len(wrong.Rows) != 0 || len(wrong.Notes) != 1 || !strings.Contains(wrong.Notes[0], "role is one of") {
		t.Errorf("a wrong search: %+v", wrong)
	}
	h.sessiond("purge", string(id), "--yes")
	for name, err := range map[string]error{
		"preview": last(d.Preview(t.Context(), id)), "resume": last(d.Resume(t.Context(), id)),
		"export": last(d.Export(t.Context(), id, "x.md")),
		"rename": d.Rename(t.Context(), id, "x"), "star": d.Star(t.Context(), id, true),
		"archive": d.Archive(t.Context(), id, true),
	} {
		if !errors.Is(err, picker.ErrGone) {
			t.Errorf("%s of a purged session: %v", name, err)
		}
	}
}

func last[T any](_ T, err error) error { return err }
