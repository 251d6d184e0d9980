//go:build unix

package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	_ "modernc.org/sqlite" // the driver

	"sessiond/tools/real/scripted"
)

const (
	stepTime = 3 * time.Minute // of a program's run, far more than it needs
	ownTime  = time.Minute     // of a command of sessiond
)

// The prompts, with their orders to the model.
const (
	rule        = "Never add a dependency without asking me."
	changed     = "planner.go"
	firstPrompt = "Please plan the berths of the harbour. " + rule + " (shell: printf low-water)"
	writePrompt = "Put the planner into a file. (write: planner)"
	unitPrompt  = "In which unit are the heights? (decide: yes)"
	agentPrompt = "Ask a helper about the water. (agent: How high is the water at the pier?)"
	earlyPrompt = "Which port has the staging database behind pgbouncer? (search: nothing)"
	portPrompt  = "Which port has the staging database behind pgbouncer? (search: staging database pgbouncer)"
	fillPrompt  = "How far is the mole? (fill: %d%s)"
	afterPrompt = "Where were we with the berths? (shell: printf after)"
	laterPrompt = "And which berth is next? (shell: printf later)"

	storedAnswer = "pgbouncer listens" // in a session of sessiond's own, for its tool and its hook to find
	shellOutput  = "low-water"
)

// trial is a program with its home, its model and its database.
type trial struct {
	program *program
	found   *programResult
	model   *scripted.Server
	server  *httptest.Server

	dir, home, project string
	binary             string // sessiond
	env                []string
	steps              int
	id                 string // of the first conversation, in the program
	session            string // and in sessiond
	prompts            []string
	db                 *sql.DB
}

func newTrial(p *program, in installation, binary, dir string) (*trial, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	home := filepath.Join(dir, "home")
	t := &trial{program: p, dir: dir, home: home, project: filepath.Join(home, "proj"), binary: binary}
	for _, folder := range []string{t.project, filepath.Join(dir, "requests"), filepath.Join(dir, "tmp")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
	}
	t.model = &scripted.Server{Record: t.keep, Folder: t.project}
	t.server = httptest.NewServer(t.model)
	path := strings.Join(append(slices.Clone(in.path), filepath.Dir(binary), "/usr/local/bin", "/usr/bin", "/bin"), ":")
	t.env = []string{
		"HOME=" + home, "PATH=" + path, "TERM=dumb", "LANG=C.UTF-8", "USER=me", "SHELL=/bin/bash", "NO_COLOR=1",
		"TMPDIR=" + filepath.Join(dir, "tmp"),
	}
	for _, e := range p.env {
		t.env = append(t.env, strings.ReplaceAll(e, "LOOPBACK", t.server.URL))
	}
	for name, text := range p.files {
		file := filepath.Join(home, name)
		text = strings.ReplaceAll(text, "LOOPBACK", t.server.URL)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.end()
			return nil, err
		}
	}
	return t, nil
}

// keep writes a request and its answer down.
func (t *trial) keep(x scripted.Exchange) {
	name := filepath.Join(t.dir, "requests", fmt.Sprintf("%03d-%s", x.Number, x.Kind))
	answer, _ := json.Marshal(x)
	_ = os.WriteFile(name+".request.json", []byte(x.Body), 0o600)
	_ = os.WriteFile(name+".answer.json", answer, 0o600)
}

func (t *trial) end() {
	t.server.CloseClientConnections()
	t.server.Close()
	if t.db != nil {
		_ = t.db.Close()
	}
	t.awaitImports()
}

// awaitImports lets the imports that hooks started end, at most for a while.
func (t *trial) awaitImports() {
	for range 300 {
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		if !slices.ContainsFunc(files, func(file string) bool {
			args, _ := os.ReadFile(file)
			env, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
			return bytes.Contains(args, []byte("\x00import\x00")) && bytes.Contains(env, []byte("HOME="+t.home+"\x00"))
		}) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// all runs the checks in the order in which they need each other.
func (t *trial) all(ctx context.Context) {
	if err := t.turns(ctx); err != nil {
		t.found.add("turns", err)
		return
	}
	t.found.add("turns", nil)
	agents := t.talk(ctx, agentPrompt)
	if t.program.shown {
		if err := t.say(ctx, t.program.first, earlyPrompt); err != nil {
			t.found.add("MCP", err)
			return
		}
		before := t.lastTurn()
		t.found.Before = strings.ReplaceAll(scripted.Transcript(&before), t.home, "~")
	}
	remove := t.connectAndRemove(ctx)
	if err := t.connect(ctx); err != nil {
		t.found.add("MCP", err)
		return
	}
	t.found.add("MCP", t.mcp(ctx))
	t.found.add("prompt hook", t.promptHook())
	t.found.add("resume", t.resume(ctx))
	compaction, after := t.compaction(ctx)
	t.found.add("after compaction", after)
	t.found.add("remove", errors.Join(remove, t.removed(ctx)))
	if err := t.readHistory(ctx); err != nil {
		t.found.add("messages", err)
		return
	}
	t.found.add("sub-agent", errors.Join(agents, t.subAgent()))
	t.found.add("compaction", errors.Join(compaction, t.summary()))
	t.found.add("messages", t.messages())
	t.found.add("calls", t.calls())
	t.found.add("usage", t.usage())
	t.found.add("cost", t.cost())
	t.found.add("unknown rows", t.unknown())
}

// turns begins a conversation and continues it by its id, which an import finds.
func (t *trial) turns(ctx context.Context) error {
	if err := t.say(ctx, t.program.first, firstPrompt); err != nil {
		return err
	}
	if err := t.readHistory(ctx); err != nil {
		return err
	}
	var sessions int
	err := t.db.QueryRow(`SELECT COUNT(*), COALESCE(MIN(id), ''), COALESCE(MIN(source_id), '') FROM sessions
		WHERE source = ? AND kind <> 'subagent' AND said_count > 0`, t.program.name).Scan(&sessions, &t.session, &t.id)
	if err != nil || sessions != 1 {
		return errors.Join(err, fmt.Errorf("the import of one conversation has %d sessions", sessions))
	}
	for _, prompt := range []string{writePrompt, unitPrompt} {
		if err := t.talk(ctx, prompt); err != nil {
			return err
		}
	}
	for _, want := range []string{firstPrompt, shellOutput} {
		if !strings.Contains(t.lastTurn().Body, encoded(want)) {
			return fmt.Errorf("the last request lacks %q: the conversation did not go on", want)
		}
	}
	if _, err := os.Stat(filepath.Join(t.project, changed)); err != nil {
		return fmt.Errorf("the call that writes a file wrote none: %w", err)
	}
	return nil
}

// talk continues the first conversation.
func (t *trial) talk(ctx context.Context, prompt string) error {
	return t.say(ctx, replaced(t.program.next, "ID", t.id), prompt)
}

// say runs the program with a prompt, whose reply must be in its output.
func (t *trial) say(ctx context.Context, args []string, prompt string) error {
	before := len(t.model.Log())
	out, err := t.run(ctx, stepTime, t.program.bin, append(slices.Clone(args), prompt)...)
	if err != nil {
		return err
	}
	t.prompts = append(t.prompts, prompt)
	for _, x := range t.model.Log()[before:] {
		if x.Error != "" {
			return errors.New(x.Error)
		}
		if x.Kind == scripted.Turn && x.Text != "" && strings.Contains(out, x.Text) {
			return nil
		}
	}
	return fmt.Errorf("%d requests, and no reply of the model in the output: %s", len(t.model.Log())-before,
		lastLines(out, 5))
}

// run runs a command in the project and keeps what it prints.
func (t *trial) run(ctx context.Context, limit time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t.steps++
	path := name
	if !filepath.IsAbs(name) {
		path = lookPath(t.env, name)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = t.project, t.env
	out, err := outputOf(ctx, cmd)
	note := fmt.Sprintf("%s %q\n%s\n%v\n", name, args, out, err)
	_ = os.WriteFile(filepath.Join(t.dir, fmt.Sprintf("step-%02d.txt", t.steps)), []byte(note), 0o600)
	if err != nil {
		return out, fmt.Errorf("%s %q: %w: %s", filepath.Base(name), args, err, lastLines(out, 5))
	}
	return out, nil
}

func lookPath(env []string, name string) string {
	for _, e := range env {
		if folders, is := strings.CutPrefix(e, "PATH="); is {
			for _, dir := range filepath.SplitList(folders) {
				if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
					return filepath.Join(dir, name)
				}
			}
		}
	}
	return name
}

// readHistory imports what the program wrote so far, as a person would, and opens the database.
func (t *trial) readHistory(ctx context.Context) error {
	t.awaitImports()
	if _, err := t.run(ctx, ownTime, t.binary, "import", t.program.name); err != nil {
		return err
	}
	if t.db != nil {
		return nil
	}
	file := filepath.Join(t.home, ".local", "share", "sessiond", "sessions.db")
	db, err := sql.Open("sqlite", "file:"+file+"?mode=ro")
	t.db = db
	return err
}

// connectAndRemove connects the program and removes everything again, with no run of the program between.
func (t *trial) connectAndRemove(ctx context.Context) error {
	before := t.homeFiles()
	if err := t.connect(ctx); err != nil {
		return err
	}
	if maps.Equal(before, t.homeFiles()) {
		return errors.New("`connect` changed no file")
	}
	if _, err := t.run(ctx, ownTime, t.binary, "connect", t.program.name, "--remove", "--yes"); err != nil {
		return err
	}
	return differences(before, t.homeFiles())
}

func (t *trial) connect(ctx context.Context) error {
	args := []string{"connect", t.program.name, "--yes"}
	if t.program.noPrompts == "" {
		args = append(args, "--for-prompts")
	}
	_, err := t.run(ctx, ownTime, t.binary, args...)
	return err
}

// removed removes the connection after runs of the program, which may have changed the files, too.
func (t *trial) removed(ctx context.Context) error {
	if _, err := t.run(ctx, ownTime, t.binary, "connect", t.program.name, "--remove", "--yes"); err != nil {
		return err
	}
	for name := range t.homeFiles() {
		if strings.Contains(strings.ToLower(filepath.Base(name)), "sessiond") {
			return fmt.Errorf("%s is left", name)
		}
	}
	return nil
}

// homeFiles returns the contents of the home's files and its folders, without sessiond's own and large ones.
func (t *trial) homeFiles() map[string]string {
	found := map[string]string{}
	_ = filepath.WalkDir(t.home, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(t.home, path)
		switch {
		case err != nil:
			return nil
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".cache" || d.Name() == ".git" ||
			name == filepath.Join(".local", "share", "sessiond")):
			return filepath.SkipDir
		case d.IsDir():
			found[name] = "folder"
		case d.Type().IsRegular():
			if info, err := d.Info(); err == nil && info.Size() < 4<<20 {
				text, _ := os.ReadFile(path)
				found[name] = string(text)
			}
		}
		return nil
	})
	return found
}

func differences(before, after map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		text, had := before[name]
		switch {
		case !had:
			return fmt.Errorf("%s is left", name)
		case text != after[name]:
			return fmt.Errorf("%s was changed: %d bytes, before %d", name, len(after[name]), len(text))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, has := after[name]; !has {
			return fmt.Errorf("%s is gone", name)
		}
	}
	return nil
}

// mcp begins a conversation in which the model calls sessiond's search.
func (t *trial) mcp(ctx context.Context) error {
	if _, err := t.run(ctx, ownTime, t.binary, "append", "--new", "user",
		"On the staging database "+storedAnswer+" on port 6432."); err != nil {
		return err
	}
	if err := t.say(ctx, t.program.first, portPrompt); err != nil {
		return err
	}
	if t.program.noMCP != "" {
		return noted{noResult, t.program.noMCP}
	}
	for _, x := range t.model.Log() {
		if x.Kind == scripted.Turn && strings.Contains(x.Prompt, portPrompt) &&
			strings.Contains(x.Body, "in this project (") && strings.Contains(x.Body, storedAnswer) {
			if t.program.shown {
				t.found.After = strings.ReplaceAll(scripted.Transcript(&x), t.home, "~")
			}
			return nil
		}
	}
	offered := "no request offers the tool"
	for _, x := range t.model.Log() {
		for _, c := range x.Calls {
			if strings.HasSuffix(c.Name, "search") {
				offered = "the tool was called as " + c.Name + ", and no request has its answer"
			}
		}
	}
	return errors.New(offered)
}

func (t *trial) promptHook() error {
	if t.program.noPrompts != "" {
		return noted{noResult, t.program.noPrompts}
	}
	for _, x := range t.model.Log() {
		if x.Kind == scripted.Aside && strings.Contains(x.Body, "found for this prompt") {
			return errors.New("a request that is no turn has the hook's text: " + x.Path)
		}
	}
	for _, x := range t.model.Log() {
		if x.Kind == scripted.Turn && strings.Contains(x.Body, "found for this prompt") {
			return nil
		}
	}
	return errors.New("no request has the hook's text")
}

// compaction lets the program compact the first conversation, and looks at the request behind it.
func (t *trial) compaction(ctx context.Context) (made, after error) {
	before := len(t.model.Log())
	switch {
	case t.program.compact != nil:
		if _, err := t.run(ctx, stepTime, t.program.bin, replaced(t.program.compact, "ID", t.id)...); err != nil {
			return err, noted{noResult, "no compaction"}
		}
	case t.program.fill > 0:
		inRun := ""
		if t.program.fillsInRun {
			inRun = ", printf mole"
		}
		if err := t.talk(ctx, fmt.Sprintf(fillPrompt, t.program.fill, inRun)); err != nil {
			return err, noted{noResult, "no compaction"}
		}
	}
	t.awaitImports() // a person reads first
	if err := t.talk(ctx, afterPrompt); err != nil {
		return err, noted{noResult, "no compaction"}
	}
	log := t.model.Log()[before:]
	at := slices.IndexFunc(log, func(x scripted.Exchange) bool { return x.Kind == scripted.Summary })
	if at < 0 {
		return errors.New("the program asked for no summary"), noted{noResult, "no compaction"}
	}
	if t.program.noLost != "" {
		return nil, noted{noResult, t.program.noLost}
	}
	for _, x := range log[at:] {
		if x.Kind == scripted.Turn && x.Prompt == afterPrompt {
			return nil, givenBack(x.Body)
		}
	}
	return nil, errors.New("no request follows the compaction")
}

// givenBack reports what a request behind a compaction lacks, and what it has twice: from sessiond, and kept by the
// program.
func givenBack(body string) error {
	own, rest := splitRequest(body)
	var faults []string
	for _, fact := range [][2]string{{"the rule", rule}, {"the decision", scripted.Decision[:49]}, {"the file", changed}} {
		told, kept := strings.Contains(own, fact[1]), strings.Contains(rest, fact[1])
		switch {
		case !told && !kept:
			faults = append(faults, fact[0]+" is missing")
		case told && kept:
			faults = append(faults, fact[0]+" is there twice")
		}
	}
	if faults != nil {
		return errors.New(strings.Join(faults, ", "))
	}
	return nil
}

// splitRequest returns the texts of a request that are between sessiond's tags, and the others.
func splitRequest(body string) (own, rest string) {
	var fields any
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		return "", body
	}
	var all strings.Builder
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			all.WriteString(v + "\n")
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				walk(v[name])
			}
		}
	}
	walk(fields)
	text := all.String()
	for {
		before, after, has := strings.Cut(text, "<from_sessiond>")
		rest += before
		if !has {
			return own, rest
		}
		inside, behind, _ := strings.Cut(after, "</from_sessiond>")
		own += inside
		text = behind
	}
}

// resume continues the first conversation as `sessiond resume` says.
func (t *trial) resume(ctx context.Context) error {
	out, err := t.run(ctx, ownTime, t.binary, "resume", t.session, "--json")
	if err != nil {
		return err
	}
	var told struct {
		Command []string `json:"command"`
	}
	if err := json.Unmarshal([]byte(out), &told); err != nil || len(told.Command) < 3 {
		return fmt.Errorf("`resume --json` printed %s", out)
	}
	words, args := strings.Join(told.Command[1:], " "), replaced(t.program.next, "ID", t.id)
	if told.Command[0] != t.program.bin || !strings.Contains(strings.Join(args, " "), words) {
		return fmt.Errorf("it prints %q, and the program continues by %q", told.Command, args)
	}
	if err := t.say(ctx, args, laterPrompt); err != nil {
		return err
	}
	body := t.lastTurn().Body
	for _, want := range []string{rule, shellOutput} {
		if !strings.Contains(body, encoded(want)) {
			return fmt.Errorf("the request lacks %q", want)
		}
	}
	return nil
}

// lastTurn returns the last step of a conversation.
func (t *trial) lastTurn() scripted.Exchange {
	for _, x := range slices.Backward(t.model.Log()) {
		if x.Kind == scripted.Turn {
			return x
		}
	}
	return scripted.Exchange{}
}

// encoded returns a text as a JSON string has it, without its quotes.
func encoded(text string) string {
	b, _ := json.Marshal(text)
	return string(b[1 : len(b)-1])
}

func replaced(args []string, from, to string) []string {
	out := slices.Clone(args)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], from, to)
	}
	return out
}
