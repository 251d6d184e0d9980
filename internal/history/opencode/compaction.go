package opencode

import (
	"fmt"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// overlay gives the overlays that a message makes: that of the summary that it is, and the
// record of the outputs that were taken out of the model's sight.
func (r *reader) overlay(i int) error {
	m := &r.records[i]
	if m.within != "" {
		return nil
	}
	if m.summary && !m.failed && !m.open && i > 0 && !m.known {
		if err := r.summary(i); err != nil {
			return err
		}
	}
	if len(m.pruned) > 0 {
		r.pruned(m)
	}
	return nil
}

// summary makes the compaction of a request and its summary. What it stands for ends before
// the request, or before the tail that is kept.
func (r *reader) summary(i int) error {
	request := i - 1
	if r.records[i].alone {
		request = i
	}
	for request >= 0 && request < i && !(r.records[request].request && r.records[request].id == r.records[i].answers) {
		request--
	}
	if request < 0 {
		return nil // a summary that nobody asked for, or whose request is gone
	}
	first := request
	if tail := r.records[request].tail; tail != "" {
		for k := range r.records[:request] {
			if r.records[k].id == tail {
				first = k
				break
			}
		}
	}
	through := first - 1
	for through >= 0 && r.records[through].why != "" {
		through--
	}
	if through < 0 {
		return nil
	}
	in, err := r.from.load(r.ctx, r.records[i:])
	if err != nil {
		return err
	}
	o, _ := parse(in.data)
	c := history.Compaction{Key: r.records[i].key, ThroughKey: r.records[through].last, ThroughSession: r.records[through].within}
	c.Strategy, c.Trigger, c.Status = session.StrategySummarize, session.TriggerImport, session.StatusDone
	c.CreatedAt, c.MessageCount = r.records[i].at, int64(through+1)
	c.Summary, c.Provider, c.Model = clean(textOf(in.parts)), clean(o.String("providerID")), clean(o.String("modelID"))
	if first < request {
		c.FirstKeptKey, c.FirstKeptSession = r.records[first].key, r.records[first].within
	}
	times, _ := history.Fields(o.Get("time"))
	if end, ok := history.UnixMilli(times.Get("completed")); ok && end.After(c.CreatedAt.Time) {
		c.DurationMS = end.Sub(c.CreatedAt.Time).Milliseconds()
	}
	r.batch.Compactions = append(r.batch.Compactions, c)
	return nil
}

// pruned records which outputs opencode no longer gives to its model. They are all here, and
// a context of sessiond decides for itself: so the record has no effect.
func (r *reader) pruned(m *record) {
	at, ok := history.UnixMilli([]byte(fmt.Sprint(m.prunedAt)))
	if !ok {
		return
	}
	c := history.Compaction{Key: m.key + "#pruned", ThroughKey: m.last}
	c.Strategy, c.Trigger, c.Status = session.StrategyPrune, session.TriggerImport, session.StatusSkipped
	c.Reason = fmt.Sprintf("opencode took %d outputs out of its model's sight: %s", len(m.pruned), clean(strings.Join(m.pruned, ", ")))
	c.CreatedAt = at
	c.Details = session.JSONOf(session.CompactionDetails{ReadFiles: []string{}, ModifiedFiles: []string{}, Index: m.pruned})
	r.batch.Compactions = append(r.batch.Compactions, c)
}
