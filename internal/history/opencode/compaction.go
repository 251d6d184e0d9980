package opencode

import (
	"sessiond/internal/history"
	"sessiond/internal/session"
)

// overlay gives the overlay of the summary that a message is.
func (r *reader) overlay(i int) error {
	b := *r.records.at(i)
	if b.request {
		r.requests[r.records.texts.Get(b.id)] = i
	}
	if b.within != 0 || !b.summary || b.failed || b.open || i == 0 || b.known {
		return nil
	}
	if err := r.prunings(b.at); err != nil { // it was made of what was left
		return err
	}
	m := r.records.record(i)
	return r.summary(i, &m)
}

// keeps finds the messages from which on a compaction kept what was said.
func (r *reader) keeps() {
	r.requests, r.tails = map[string]int{}, map[string]int{}
	for i := range r.records.n {
		if r.records.at(i).request {
			if tail := r.records.record(i).tail; tail != "" {
				r.tails[tail] = -1
			}
		}
	}
	for i := 0; i < r.records.n && len(r.tails) > 0; i++ {
		id := r.records.texts.Get(r.records.at(i).id)
		if at, wanted := r.tails[id]; wanted && at < 0 {
			r.tails[id] = i
		}
	}
}

// summary makes the compaction of a request and its summary. What it stands for ends before
// the request, or before the tail that is kept.
func (r *reader) summary(i int, m *record) error {
	request, asked := r.requests[m.answers]
	if m.alone {
		request, asked = i, true
	}
	if !asked {
		return nil // a summary that nobody asked for, or whose request is gone
	}
	first := request
	if tail := r.records.record(request).tail; tail != "" {
		if at, there := r.tails[tail]; there && at >= 0 && at < request {
			first = at
		}
	}
	through := int(r.records.at(first).plain)
	if through < 0 {
		return nil
	}
	in, err := r.from.load(r.ctx, r.records, i)
	if err != nil {
		return err
	}
	o, _ := parse(in.data)
	end := r.records.last(through)
	c := history.Compaction{Key: m.key, ThroughKey: end.key, ThroughSession: end.session}
	c.Strategy, c.Trigger, c.Status = session.StrategySummarize, session.TriggerImport, session.StatusDone
	c.CreatedAt, c.MessageCount = m.at, int64(through+1)
	c.Summary, c.Provider, c.Model = clean(textOf(in.parts)), clean(o.String("providerID")), clean(o.String("modelID"))
	if first < request {
		b := *r.records.at(first)
		c.FirstKeptKey, c.FirstKeptSession = r.records.key(&b), r.records.from[b.within]
	}
	if m.alone {
		c.PrefixSummary = clean(o.String("recent"))
	}
	if c.Pruned, err = r.prunedIn(first, request, c.CreatedAt.UnixMilli()); err != nil {
		return err
	}
	times, _ := history.Fields(o.Get("time"))
	if end, ok := history.UnixMilli(times.Get("completed")); ok && end.After(c.CreatedAt.Time) {
		c.DurationMS = end.Sub(c.CreatedAt.Time).Milliseconds()
	}
	r.batch.Compactions = append(r.batch.Compactions, c)
	return nil
}
