package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	client "sessiond/clients/go"
	"sessiond/internal/config"
	"sessiond/internal/connect"
	"sessiond/internal/engine"
	"sessiond/internal/history"
	"sessiond/internal/memory"
	"sessiond/internal/session"
	"sessiond/internal/tokens"
	"sessiond/internal/touched"
	"sessiond/internal/web/guard"
)

// Bounds of a hook: an agent waits for it.
const (
	hookTime       = 3 * time.Second
	hookImportTime = time.Second            // of the messages since the last import, after a compaction
	hookDialTime   = 100 * time.Millisecond // until the daemon accepts
	hookAskTime    = time.Second            // until it answered; then the hook reads the database itself
	hookInput      = 8 << 20                // bytes
)

// hookEvent is what a program tells a hook: the form of Claude Code, which Codex and sessiond's plug-ins share.
type hookEvent struct {
	Session    string         `json:"session_id"`
	Transcript string         `json:"transcript_path"`
	Directory  string         `json:"cwd"`
	Event      string         `json:"hook_event_name"`
	Source     string         `json:"source"` // of SessionStart: startup, resume, clear, compact
	Prompt     string         `json:"prompt"`
	ToolName   string         `json:"tool_name"`
	ToolInput  jsontext.Value `json:"tool_input"`
}

// edited returns the first file that the tool is about to change; "" for none.
func (e *hookEvent) edited() string {
	call := session.Message{Parts: []session.Part{{
		Kind: session.PartToolCall, ToolName: e.ToolName,
		Arguments: string(e.ToolInput),
	}}}
	for _, f := range touched.Files(&call, e.Directory) {
		if f.Op != session.OpRead {
			return f.Path
		}
	}
	return ""
}

// hookAnswer is what a hook adds to the context: beside the event's name, for some programs at the top.
type hookAnswer struct {
	Text   string          `json:"additionalContext,omitempty"`
	Output *hookOfOneEvent `json:"hookSpecificOutput,omitempty"`
}

type hookOfOneEvent struct {
	Event string `json:"hookEventName"`
	Text  string `json:"additionalContext"`
}

func (a *app) hookCommand() *cobra.Command {
	var explain bool
	cmd := &cobra.Command{
		Use: "hook PROGRAM", Short: "Answer a hook of an agent program", Args: cobra.ArbitraryArgs,
		Long: "Reads the JSON of a hook on standard input and answers in the program's form. `sessiond connect` enters it\n" +
			"in the configuration of the programs; docs/hooks.md says what it answers to which event. It never fails and\n" +
			"prints nothing on standard error, whatever happens; --explain says what went wrong.",
		Example: "  echo '{}' | sessiond hook codex --explain",
		RunE: func(cmd *cobra.Command, args []string) (_ error) {
			ctx, cancel := context.WithTimeout(cmd.Context(), hookTime)
			defer cancel()
			said := a.err
			if !explain {
				a.err = io.Discard
			}
			err := a.hook(ctx, args)
			if err != nil && explain {
				fmt.Fprintln(said, "sessiond:", err)
			}
			return nil
		},
	}
	cmd.FParseErrWhitelist.UnknownFlags = true // of a sessiond that was newer
	cmd.Flags().BoolVar(&explain, "explain", false, "say on standard error what went wrong")
	return cmd
}

// hook answers one event. Its error is only for a person who asks.
func (a *app) hook(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return usagef("name one program")
	}
	sources := a.sources()
	var known []string
	for _, s := range sources {
		known = append(known, string(s.Name()))
	}
	at := slices.Index(known, args[0])
	if at < 0 {
		return usagef("unknown program %q; known: %s", args[0], strings.Join(known, ", "))
	}
	src := sources[at]
	input, err := a.input(ctx, hookInput)
	if err != nil {
		return err
	}
	var e hookEvent
	if err := unmarshalLoosely(input, &e); err != nil {
		return fmt.Errorf("standard input is no JSON object of a hook: %w", err)
	}
	if !filepath.IsAbs(e.Directory) {
		e.Directory = a.dir
	}
	named := e.Event
	e.Event, e.Prompt = connect.EventOf(args[0], named), session.WithoutEcho(e.Prompt)
	text, err := await(ctx, func() (string, error) { return a.answerHook(ctx, src, &e) })
	if err != nil {
		return err
	}
	a.noteAnswer(args[0])
	if text == "" {
		return nil
	}
	out := hookAnswer{Output: &hookOfOneEvent{named, text}}
	if connect.AnswersAtTop(args[0]) {
		out = hookAnswer{Text: text}
	}
	b, err := json.Marshal(out)
	if err == nil {
		_, err = a.out.Write(append(b, '\n'))
	}
	return err
}

// unmarshalLoosely decodes JSON as programs write it: JSON.stringify writes half a surrogate pair where it cuts a text.
func unmarshalLoosely(input []byte, to any) error {
	return json.Unmarshal(input, to, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// answerHook returns the text that an event adds to the context; "" for none.
func (a *app) answerHook(ctx context.Context, src history.Source, e *hookEvent) (text string, err error) {
	switch e.Event {
	case "PreCompact", "PostCompact":
		return "", a.importInBackground(src, e.Transcript, "--running")
	case "SessionEnd":
		return "", a.importInBackground(src, e.Transcript)
	case "SessionStart":
		switch e.Source {
		case "compact":
			a.importForHook(ctx, src, e.Transcript)
		case "startup", "new", "":
		case "resume":
			if !connect.ForgetsText(string(src.Name())) {
				return "", nil
			}
		default:
			return "", nil
		}
	case "UserPromptSubmit":
		if connect.LacksCompactEvent(string(src.Name())) {
			e.Source = "resume"
			a.importForHook(ctx, src, e.Transcript) // else the compaction is not known yet
		}
	case "PreToolUse":
	default:
		return "", nil
	}
	event := memory.Event{
		Session: e.Session, Directory: e.Directory, Name: e.Event, Source: e.Source, Prompt: e.Prompt, File: e.edited(),
	}
	if text, err = a.askDaemonForHook(ctx, src.Name(), event); err == nil {
		return text, nil
	}
	if !errors.Is(err, fs.ErrNotExist) { // a daemon that does not run is no fault
		fmt.Fprintf(a.err, "sessiond: the daemon does not answer, so the database is read: %v\n", err)
	}
	err = a.with(ctx, wiring{readOnly: true}, func(s *opened) error {
		m := memory.Memory{
			Store: s.store, Index: s.index, Count: tokens.Reference().Text, Now: a.now, Givers: s.givers,
			Scope: memory.NewScope([]string{e.Directory}, a.cfg.ExcludeProjects),
		}
		text, err = m.Answer(ctx, src.Name(), event)
		return err
	})
	return text, err
}

// askDaemonForHook returns the answer of the running daemon, which has everything open.
func (a *app) askDaemonForHook(ctx context.Context, program session.Source, e memory.Event) (string, error) {
	cfg, err := a.load(nil)
	if err != nil {
		return "", err
	}
	place := hookListener(cfg)
	switch {
	case place == (client.Place{}):
		return "", fs.ErrNotExist
	case place.Socket == "":
		if place.Token, err = guard.ReadToken(cfg.TokenFile); err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, hookAskTime)
	defer cancel()
	daemon := clientOf(place, hookDialTime)
	defer daemon.Close()
	said, err := daemon.AnswerHook(ctx, client.HookRequest{
		Program: string(program), Settings: hookSettings(cfg), Session: e.Session, Directory: e.Directory, Event: e.Name,
		Source: e.Source, Prompt: e.Prompt, File: e.File,
	})
	if err != nil {
		return "", err
	}
	if said.Version != version {
		return "", fmt.Errorf("it is of version %q", said.Version)
	}
	return said.Text, nil
}

// hookListener returns where a hook asks the daemon: its socket, or without one, as on Windows, its address on
// loopback, which the token opens. The daemon wrote that down: another program on the configured address learns no
// token.
func hookListener(cfg *config.Config) client.Place {
	if cfg.Socket != config.SocketOff && cfg.Socket != "" {
		return client.Place{Socket: cfg.Socket}
	}
	if d := daemonOf(cfg); d != nil && d.Address != "" {
		return client.Place{URL: "http://" + d.Address}
	}
	return client.Place{}
}

// hookSettings is what the answers of hooks depend on beside the event: a daemon that has another version, database or
// settings than the command answers otherwise.
func hookSettings(cfg *config.Config) string {
	build := buildVersion()
	settings := fmt.Sprintf("%q %q %q %q %q %q %q", build.Version, build.Commit, engine.PrintableName(cfg.DB),
		cfg.Owner, cfg.Zone().String(), cfg.ExcludeProjects, cfg.Rules().Commanders)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(settings)))
}

// importForHook imports what a program wrote since the last import, as far as the time allows. What fails here fails
// later where it is told.
func (a *app) importForHook(ctx context.Context, src history.Source, transcript string) {
	ctx, cancel := context.WithTimeout(ctx, hookImportTime)
	defer cancel()
	_, _ = await(ctx, func() (any, error) {
		return nil, a.with(ctx, wiring{}, func(s *opened) error {
			im := history.Importer{Store: s.store, Price: s.catalogue.PriceImported, Whose: whoseOf(transcript)}
			_, err := im.Run(ctx, src, transcripts(transcript))
			return err
		})
	})
}

// whoseOf returns whose a transcript is that a program names for its own session: the user's.
func whoseOf(transcript string) history.Whose {
	if transcript == "" {
		return history.Undecided
	}
	return history.Mine
}

func transcripts(path string) []string {
	if path == "" {
		return nil
	}
	return []string{path}
}

// importInBackground starts an import that goes on after this process, with more flags.
func (a *app) importInBackground(src history.Source, transcript string, flags ...string) error {
	self, err := a.self()
	if err != nil {
		return err
	}
	args := append(append([]string{"import", string(src.Name())}, transcripts(transcript)...), flags...)
	if transcript != "" {
		args = append(args, "--mine")
	}
	cfg, err := a.load(nil)
	if err != nil {
		return err
	}
	return a.startApart(self, cfg, nil, args)
}

// startApart starts a command of sessiond that goes on after this process, with the same database and configuration.
// said takes what it says on standard error; nil: nothing does.
func (a *app) startApart(self string, cfg *config.Config, said *os.File, args []string) error {
	if a.flags.config != "" {
		args = append(args, "--config", a.absolute(a.flags.config))
	}
	cmd := exec.Command(self, args...)
	// In the environment, not in the arguments, which everybody reads: a server's address may have a password.
	cmd.Dir, cmd.Env = a.dir, append(slices.Clone(a.environ), "SESSIOND_DB="+cfg.DB)
	cmd.SysProcAttr = apart() // the program may end its children
	if said != nil {
		cmd.Stderr = said
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// noteAnswer notes that a program was answered, by a hook or a tool, for doctor.
func (a *app) noteAnswer(program string) {
	if cfg, err := a.load(nil); err == nil {
		_ = os.WriteFile(answeredFile(cfg, program), nil, 0o600)
	}
}

// noteClient is noteAnswer for the client of an MCP server, by the name that it gives: codex-mcp-client,
// gemini-cli-mcp-client.
func (a *app) noteClient(client string) {
	if p, known := a.host().ProgramOf(client); known {
		a.noteAnswer(p.Name)
	}
}

// lastAnswer tells when a program was answered last. The database is open.
func (a *app) lastAnswer(program string) (at time.Time, answered bool) {
	info, err := os.Stat(answeredFile(a.cfg, program))
	if err != nil {
		return at, false
	}
	return info.ModTime(), true
}

// answeredFile is the file whose time says when a program was answered last.
func answeredFile(cfg *config.Config, program string) string {
	return filepath.Join(cfg.DataDir(), ".answered-"+program)
}
