package contextmgr

import (
	"context"
	"strings"
	"time"

	"sessiond/internal/routing"
	"sessiond/internal/session"
)

// Default texts of the flush turn. Both say that the agent may stay silent. <date> becomes the day.
const (
	defaultFlushPrompt = "The context of this conversation is nearly full and will be summarised soon. " +
		"Put anything worth remembering into `memory/<date>.md` now; " +
		"create the folder if it is missing and add to the file if it exists. Nothing to keep? Then answer NO_REPLY."
	defaultFlushSystem = "Housekeeping turn before compaction. Write short, factual notes for your later self. " +
		"Unless the person has to be told something, your answer is NO_REPLY."
	silenceHint = "Answer NO_REPLY when nothing needs to be said to the person."
)

// FlushSettings say whether and how to ask for a memory flush. The zero value asks for none.
type FlushSettings struct {
	Enabled      bool
	Prompt       string         // "": the default text
	SystemPrompt string         // "": the default text
	SoftTokens   *int64         // how far under the threshold; nil or negative: the preset's
	Zone         *time.Location // of <date> in the texts; nil: UTC
}

// Effective returns the settings with their defaults. A custom text that does not say how to stay
// silent gets a line that does.
func (s FlushSettings) Effective() FlushSettings {
	s.Prompt, s.SystemPrompt = withHint(s.Prompt, defaultFlushPrompt), withHint(s.SystemPrompt, defaultFlushSystem)
	if s.SoftTokens != nil && *s.SoftTokens < 0 {
		s.SoftTokens = nil
	}
	if s.Zone == nil {
		s.Zone = time.UTC
	}
	return s
}

func withHint(text, fallback string) string {
	switch {
	case strings.TrimSpace(text) == "":
		return fallback
	case strings.Contains(text, routing.SilentToken):
		return text
	}
	return strings.TrimRight(text, " \n") + "\n\n" + silenceHint
}

// dueFrom returns the size from which a flush is due: SoftTokens under the threshold, with preset
// moltbot under the limit. It is not positive if the window is too small.
func (s FlushSettings) dueFrom(n *Numbers) int64 {
	switch {
	case s.SoftTokens == nil:
		return n.Flush
	case n.Preset == presetMoltbot:
		return moltbotFlush(n.Window, n.Reserve, *s.SoftTokens)
	}
	return n.Threshold - *s.SoftTokens
}

// Workspace is what the agent may do with its files.
type Workspace string

// The kinds of access.
const (
	WorkspaceWrite Workspace = "rw"
	WorkspaceRead  Workspace = "ro"
	WorkspaceNone  Workspace = "none"
)

// FlushCaller is what only the agent knows of its turn.
type FlushCaller struct {
	Workspace  Workspace // "": rw
	Heartbeat  bool      // no person is behind this turn
	CLIBackend bool      // a command-line back end, which keeps its own context
}

// cannotSave reports whether the agent can never write its memory.
func (c FlushCaller) cannotSave() bool {
	return c.CLIBackend || c.Workspace == WorkspaceRead || c.Workspace == WorkspaceNone
}

// FlushSkip says why no flush is due.
type FlushSkip string

// The reasons, in the order in which they are checked.
const (
	FlushDisabled   FlushSkip = "disabled"
	FlushReadOnly   FlushSkip = "read_only"
	FlushHeartbeat  FlushSkip = "heartbeat"
	FlushCLIBackend FlushSkip = "cli_backend"
	FlushTooSmall   FlushSkip = "window_too_small"
	FlushNoCount    FlushSkip = "no_token_count"
	FlushBelow      FlushSkip = "below_threshold"
	FlushDone       FlushSkip = "already_flushed"
)

// FlushState is the input of DecideFlush. Sizes are in tokens.
type FlushState struct {
	Enabled    bool
	Caller     FlushCaller
	Context    int64  // 0: unknown
	From       int64  // the size from which a flush is due, inclusive
	Generation int64  // the effective overlay, or the number of overlays
	Last       *int64 // the generation of the last flush; nil: none
}

// DecideFlush returns why no flush is due, "" if one is. Rule: openclaw.
func DecideFlush(s FlushState) FlushSkip {
	switch {
	case !s.Enabled:
		return FlushDisabled
	case s.Caller.Workspace == WorkspaceRead, s.Caller.Workspace == WorkspaceNone:
		return FlushReadOnly
	case s.Caller.Heartbeat:
		return FlushHeartbeat
	case s.Caller.CLIBackend:
		return FlushCLIBackend
	case s.From <= 0:
		return FlushTooSmall
	case s.Context <= 0:
		return FlushNoCount
	case s.Context < s.From:
		return FlushBelow
	case s.Last != nil && *s.Last == s.Generation:
		return FlushDone
	}
	return ""
}

// askFlush adds the directive of a memory flush if one is due, and records that it was asked for in
// this generation.
func (t *turn) askFlush(ctx context.Context, caller FlushCaller) error {
	settings := t.m.cfg.Flush.Effective()
	from := settings.dueFrom(&t.s.numbers)
	state := FlushState{
		Enabled: settings.Enabled, Caller: caller, Context: t.tokens.Upper(), From: from,
		Generation: t.generation,
	}
	if t.compacted { // it exceeded the threshold, so a flush was due before
		state.Context = max(state.Context, from)
	}
	if DecideFlush(state) != "" { // without reading the last flush
		return nil
	}
	last, err := t.m.store.Flush(ctx, t.s.sess.ID, t.generation)
	if err != nil {
		return err
	}
	if last != nil && last.Outcome == session.FlushOK {
		state.Last = &last.CompactionID
	}
	if DecideFlush(state) != "" {
		return nil
	}
	if last == nil || last.Outcome == session.FlushFailed {
		if err := t.m.store.AskFlush(ctx, t.s.sess.ID, t.generation); err != nil {
			return err
		}
	}
	day := t.m.cfg.Now().In(settings.Zone).Format(time.DateOnly)
	d := Directive{
		Type: "memory_flush", Prompt: strings.ReplaceAll(settings.Prompt, "<date>", day),
		SystemPrompt: strings.ReplaceAll(settings.SystemPrompt, "<date>", day),
	}
	generation := "" // before the first overlay
	if t.generation != 0 {
		generation = session.CompactionName(t.generation)
	}
	d.Generation = &generation
	t.directives = append(t.directives, d)
	return nil
}

// flushWait is how long an idle activation waits for a flush that was asked for.
const flushWait = 5 * time.Minute

// waitForFlush reports whether an idle activation must wait for a memory flush. If none was asked
// for in this generation, it asks, by an event.
func (m *Manager) waitForFlush(ctx context.Context, s *snapshot) (bool, error) {
	settings := m.cfg.Flush.Effective()
	request, _ := m.requests.get(s.sess.ID)
	if !settings.Enabled || request.cannotSave || settings.dueFrom(&s.numbers) <= 0 {
		return false, nil
	}
	var generation int64
	if s.Overlay != nil {
		generation = s.Overlay.RowID
	}
	last, err := m.store.Flush(ctx, s.sess.ID, generation)
	switch {
	case err != nil:
		return false, err
	case last == nil:
		return true, m.store.AskFlush(ctx, s.sess.ID, generation)
	case last.Outcome == session.FlushAsked:
		return m.cfg.Now().Sub(last.At.Time) < flushWait, nil
	}
	return false, nil
}
