package jobs

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"

	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// journal is how far the outbox was read for the log. It starts at the end of the outbox.
type journal struct {
	begun bool
	after int64 // the last event that was read
}

// logEvents logs a line for each new session, each change of a session's settings, and each compaction since the
// last call, from the outbox: so it has the writes of other processes, too. Who asks a model logs its failures.
func (w *watcher) logEvents(ctx context.Context) {
	j := &w.journal
	_, _, last, err := w.cfg.Store.EventRange(ctx)
	if err != nil || last == j.after && j.begun {
		return // stopping, or the database is busy: the next call reads on
	}
	if !j.begun || last < j.after { // a backup was restored
		j.begun, j.after = true, last
		return
	}
	events, err := w.cfg.Store.LoggedEvents(ctx, j.after, last)
	if err != nil {
		return
	}
	for i := range events {
		w.logEvent(ctx, &events[i])
	}
	j.after = last
}

func (w *watcher) logEvent(ctx context.Context, e *session.Event) {
	var data struct {
		Changed      []string `json:"changed"`
		Compaction   string   `json:"compaction"`
		Strategy     string   `json:"strategy"`
		Trigger      string   `json:"trigger"`
		Reason       string   `json:"reason"`
		Provider     string   `json:"provider"`
		Model        string   `json:"model"`
		TokensBefore int64    `json:"tokens_before"`
		TokensAfter  int64    `json:"tokens_after"`
		DurationMS   int64    `json:"duration_ms"`
		CostUSD      *float64 `json:"cost_usd"`
	}
	if len(e.Data) > 0 {
		if err := json.Unmarshal([]byte(e.Data), &data); err != nil {
			return
		}
	}
	line := func() *zerolog.Event { return w.cfg.Log.Info().Str("session", string(e.SessionID)) }
	switch e.Type {
	case store.EventSessionCreated:
		s, err := w.cfg.Store.Session(ctx, e.SessionID)
		if err != nil || s.Source != session.SourceSessiond { // an import is logged as one
			return
		}
		line().Str("model", s.Model).Str("key", s.Key).Msg("session created")
	case store.EventSessionChanged:
		if !slices.Contains(data.Changed, "settings") {
			return
		}
		s, err := w.cfg.Store.Session(ctx, e.SessionID)
		if err != nil {
			return
		}
		set, err := contextmgr.StoredSettings(s.Settings)
		if err != nil {
			return
		}
		l := line()
		if set.Preset != nil {
			l.Str("preset", *set.Preset)
		}
		if set.Fraction != nil {
			l.Float64("fraction", *set.Fraction)
		}
		l.Msg("compaction settings changed")
	case store.EventCompactionDone:
		if data.Trigger == string(session.TriggerImport) {
			return
		}
		l := line().Str("compaction", data.Compaction).Str("strategy", data.Strategy).Str("trigger", data.Trigger).
			Int64("tokens_before", data.TokensBefore).Int64("tokens_after", data.TokensAfter).Str("method",
			data.Provider).Str("model", data.Model).
			Float64("seconds", float64(data.DurationMS)/1000)
		if data.CostUSD != nil {
			l.Float64("cost_usd", *data.CostUSD)
		}
		l.Str("reason", data.Reason).Msg("context compacted")
	}
}
