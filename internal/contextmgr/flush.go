package contextmgr

import (
	"context"
	"strings"
	"time"

	"sessiond/internal/routing"
	"sessiond/internal/session"
)

// Texts of the flush turn, where the configuration has none of its own. Both say that the
// agent may stay silent. <date> becomes the day.
const (
	defaultFlushPrompt = "The context of this conversation is nearly full and will be summarised soon. Put anything worth remembering into `memory/<date>.md` now; create the folder if it is missing and add to the file if it exists. Nothing to keep? Then answer NO_REPLY."
	defaultFlushSystem = "Housekeeping turn before compaction. Write short, factual notes for your later self. Unless the person has to be told something, your answer is NO_REPLY."
	silenceHint        = "Answer NO_REPLY when nothing needs to be said to the person."
)

// FlushSettings say whether and how a memory flush is asked for. The zero value asks for none.
type FlushSettings struct {
	Enabled      bool
	Prompt       string         // "": the default text
	SystemPrompt string         // "": the default text
	SoftTokens   *int64         // how far under the threshold; nil or negative: the preset's
	Zone         *time.Location // of <date> in the texts; nil: UTC
}

// Effective fills in the defaults. A text of one's own that does not say how to stay silent
// gets a line that does.
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

// from gives the size from which a flush is asked for: so many tokens under the threshold,
// with preset moltbot under the limit. It is not positive where the window is too small.
func (s FlushSettings) from(n *Numbers) int64 {
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

// FlushCaller is what only the agent knows of the turn that it asks a context for.
type FlushCaller struct {
	Workspace  Workspace // "": rw
	Heartbeat  bool      // no person is behind this turn
	CLIBackend bool      // a command-line back end, which keeps a context of its own
}

// barred tells whether the session's agent can never make a flush.
func (c FlushCaller) barred() bool {
	return c.CLIBackend || c.Workspace == WorkspaceRead || c.Workspace == WorkspaceNone
}

// FlushSkip says why no flush is asked for.
type FlushSkip string

// The reasons, in the order in which they are looked at.
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

// FlushState is what the decision on a memory flush goes by. Sizes are in tokens.
type FlushState struct {
	Enabled    bool
	Caller     FlushCaller
	Context    int64  // 0: not known
	From       int64  // the size from which it is due, inclusive
	Generation int64  // counts, or names, the overlays
	Last       *int64 // the generation of the last flush that was made; nil: none ever was
}

// DecideFlush tells why no flush is due; "" when one is. Rule: openclaw.
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

// askFlush adds the directive of a memory flush where one is due, and notes that it was asked
// for: of a repeated answer, and of a compaction in between, the generation is known by that.
func (t *turn) askFlush(ctx context.Context, caller FlushCaller) error {
	settings := t.m.cfg.Flush.Effective()
	from := settings.from(&t.r.numbers)
	state := FlushState{Enabled: settings.Enabled, Caller: caller, Context: t.tokens.Upper(), From: from, Generation: t.generation}
	if t.made { // it passed the threshold, so it passed where the flush is due
		state.Context = max(state.Context, from)
	}
	if DecideFlush(state) != "" { // before anything is read
		return nil
	}
	last, err := t.m.store.Flush(ctx, t.r.sess.ID, t.generation)
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
		if err := t.m.store.AskFlush(ctx, t.r.sess.ID, t.generation); err != nil {
			return err
		}
	}
	day := t.m.cfg.Now().In(settings.Zone).Format(time.DateOnly)
	d := Directive{
		Type: "memory_flush", Prompt: strings.ReplaceAll(settings.Prompt, "<date>", day),
		SystemPrompt: strings.ReplaceAll(settings.SystemPrompt, "<date>", day),
	}
	if t.generation != 0 {
		d.Generation = session.CompactionName(t.generation)
	}
	t.directives = append(t.directives, d)
	return nil
}

// flushWait is how long an idle activation waits for a flush that was asked for.
const flushWait = 5 * time.Minute

// flushFirst tells whether a flush has to be waited for before an overlay may take effect in
// an idle moment. Where none was asked for yet, it is: by an event, for nobody takes a turn.
func (m *Manager) flushFirst(ctx context.Context, r *reading) (bool, error) {
	settings := m.cfg.Flush.Effective()
	if !settings.Enabled || m.asked.barred(r.sess.ID) || settings.from(&r.numbers) <= 0 {
		return false, nil
	}
	var generation int64
	if r.overlay != nil {
		generation = r.overlay.RowID
	}
	last, err := m.store.Flush(ctx, r.sess.ID, generation)
	switch {
	case err != nil:
		return false, err
	case last == nil:
		return true, m.store.AskFlush(ctx, r.sess.ID, generation)
	case last.Outcome == session.FlushAsked:
		return m.cfg.Now().Sub(last.At.Time) < flushWait, nil
	}
	return false, nil
}
