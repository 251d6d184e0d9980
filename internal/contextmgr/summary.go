package contextmgr

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sessiond/internal/session"
)

// past is what summaries said of a path before the next one.
type past struct {
	running string   // the running summary; "": none
	spans   []string // of each span so far, oldest first
	depth   int      // overlays of the chain that say something
	news    bool     // a model's summary of one of the spans came after running was made
}

// How a chain of summaries is merged anew, so that drift does not add up.
const (
	mergeEvery = 4
	mergeInput = 200000 // tokens: beyond that a running summary stands for the oldest spans
)

// pastOf walks the chain of overlays back from the effective one. A model's summary that came
// too late to be activated stands for the digest that was, however many overlays took effect
// meanwhile. An overlay without a summary of its
// span (a caller's own, another program's) is represented by its running summary, with
// everything before it; one that only hides outputs says what the one before it says.
func pastOf(all []session.Compaction, effective *session.Compaction, count func(string) int64) past {
	if effective == nil {
		return past{}
	}
	c := effective
	if i := lateStaged(all, effective); i >= 0 {
		c = &all[i]
	}
	p := past{running: runningSummary(c)}
	var input int64
	for whole := false; c != nil && c.Strategy != session.StrategyClear; c = before(all, c) {
		if c.Strategy == session.StrategyPrune {
			continue
		}
		said := c
		if late := lateOf(all, c); late != nil {
			said, p.news = late, p.news || c != effective && !finished(late).Before(effective.CreatedAt.Time)
		}
		told := joined(said.SpanSummary, said.PrefixSummary)
		if running := runningSummary(c); strings.TrimSpace(running) != "" {
			p.depth++
			if input += count(told); told == "" || input > mergeInput {
				told = running
			}
			if !whole {
				p.spans = append(p.spans, told)
			}
			whole = whole || said.SpanSummary == "" || input > mergeInput
		}
	}
	slices.Reverse(p.spans)
	return p
}

// lateOf gives a model's summary of just the messages that a digest of the chain newly hid, which
// came too late to be in force; nil for none.
func lateOf(all []session.Compaction, digest *session.Compaction) *session.Compaction {
	if byModel(digest) || digest.ThroughID == nil {
		return nil
	}
	for i := range slices.Backward(all) {
		c := &all[i]
		waits := c.Status == session.StatusStaged || c.Status == session.StatusSkipped
		if waits && !c.Undone && byModel(c) && c.SpanSummary != "" && sameRow(c.ThroughID, digest.ThroughID) && sameRow(beginning(all, c), beginning(all, digest)) {
			return c
		}
	}
	return nil
}

// beginning gives the last message before an overlay's span, nil for the root.
func beginning(all []session.Compaction, c *session.Compaction) *int64 {
	if c = before(all, c); c == nil {
		return nil
	}
	return c.ThroughID
}

// finished is when a record's summary was there.
func finished(c *session.Compaction) time.Time {
	return c.CreatedAt.Add(time.Duration(c.DurationMS) * time.Millisecond)
}

// before gives the overlay that hid what came before c's span; nil for none. One that
// replaced another of the same span stands for it.
func before(all []session.Compaction, c *session.Compaction) *session.Compaction {
	for c.PreviousID != nil {
		i := slices.IndexFunc(all, func(p session.Compaction) bool { return p.RowID == *c.PreviousID })
		if i < 0 {
			return nil
		}
		if all[i].ThroughID == nil || c.ThroughID == nil || *all[i].ThroughID != *c.ThroughID {
			return &all[i]
		}
		c = &all[i]
	}
	return nil
}

// toMerge gives the spans that the next running summary is merged anew from; nil where the
// one before is updated. What came late for a span before the last is not in that one.
func (p *past) toMerge() []string {
	if (p.depth+1)%mergeEvery != 0 && !p.news || len(p.spans) < 2 {
		return nil
	}
	return p.spans
}

// runningSummary is all that an overlay's summary says.
func runningSummary(c *session.Compaction) string { return joined(c.Summary, c.PrefixSummary) }

// joined puts what was said of finished turns before what was said of one that goes on.
func joined(summary, prefix string) string {
	switch {
	case prefix == "":
		return summary
	case summary == "":
		return prefix
	}
	return summary + "\n\n---\n\n" + prefix
}

// summarise fills in the summaries of a record, and the index in its details.
func (m *Manager) summarise(ctx context.Context, r *reading, p Plan, in overlayInput, c *session.Compaction, d *session.CompactionDetails) ([]session.Call, error) {
	if in.strategy == session.StrategyClear {
		return nil, nil
	}
	if in.summary != "" && in.strategy == session.StrategySummarize {
		c.Summary = in.summary
		c.SummaryTokens = m.summaryTokens(c)
		return nil, nil
	}
	all, err := m.store.Compactions(ctx, r.sess.ID)
	if err != nil {
		return nil, err
	}
	before := pastOf(all, r.overlay, m.cfg.Counter(m.cfg.Reference).Text)
	if in.strategy == session.StrategyTruncate { // what an earlier summary said is kept
		c.Summary = before.running
		c.SummaryTokens = m.summaryTokens(c)
		return nil, nil
	}
	w := teller{m: m, r: r, in: &in, before: before, record: c, details: d}
	err = w.tell(ctx, p)
	c.SummaryTokens = m.summaryTokens(c)
	return w.calls, err
}

// teller is the summary of one plan in the making.
type teller struct {
	m       *Manager
	r       *reading
	in      *overlayInput
	before  past
	record  *session.Compaction
	details *session.CompactionDetails
	calls   []session.Call
}

// prefixShare is the part of a summary's budget that the beginning of a split turn may take
// where something came before it.
const prefixShare = 3

// tell makes the summary of the finished turns, and beside it that of a split turn's
// beginning. Where a split turn is all that is new, the summary before is carried over word
// for word, as far as the budget allows (pi, compact).
func (w *teller) tell(ctx context.Context, p Plan) error {
	limit := w.r.weigh.unscaled(w.r.numbers.SummaryMax)
	from, to := p.History()
	history := said(w.r.path[from:to])
	if !w.r.words { // the copies of a person's words were summarised where they were said
		history = append(replaced(w.r.overlay), history...)
	}
	from, to = p.Prefix()
	prefix := said(w.r.path[from:to])
	if len(prefix) == 1 { // what began the turn is shown again anyway
		prefix = nil
	}
	rest := limit
	if len(prefix) > 0 {
		if rest = limit - limit/prefixShare; len(history) == 0 && w.before.running == "" {
			rest = 0
		}
	}
	switch {
	case len(history) > 0:
		if err := w.main(ctx, p, history, rest); err != nil {
			return err
		}
	default:
		if err := w.carry(ctx, rest); err != nil {
			return err
		}
	}
	if len(prefix) > 0 {
		if err := w.prefix(ctx, p, prefix, limit-rest); err != nil {
			return err
		}
	}
	if w.r.cutOff {
		w.note("the span is larger than what is read at once: its oldest messages are hidden without being summarised")
	}
	return nil
}

// said gives the messages that a summary may speak of.
func said(path []session.Message) []session.Message {
	var out []session.Message
	for i := range path {
		if path[i].InContext && path[i].Role != session.System {
			out = append(out, path[i])
		}
	}
	return out
}

// note adds to what the record's reason says of its summary.
func (w *teller) note(text string) {
	if w.record.Reason != "" {
		w.record.Reason += "; "
	}
	w.record.Reason += text
}

// ask asks the summariser. Where even the digest fails, a plain note serves; false then.
func (w *teller) ask(ctx context.Context, p Plan, req session.SummaryRequest) (session.Summary, bool, error) {
	req.Instructions, req.Purpose = w.in.instructions, session.PurposeSummary
	s, err := w.in.summarizer.Summarize(ctx, req)
	w.calls = append(w.calls, s.Calls...)
	if err != nil && !w.in.serve {
		return s, false, fmt.Errorf("summarise %d messages: %w", p.Hidden, err)
	}
	if err != nil {
		w.note("the digest failed: " + err.Error())
		return s, false, nil
	}
	if strings.TrimSpace(s.Text) == "" {
		if !w.in.serve {
			return s, false, fmt.Errorf("summarise %d messages: the summary is empty", p.Hidden)
		}
		return s, false, nil
	}
	if s.Note != "" {
		w.note(s.Note)
	}
	if w.record.Provider == "" {
		w.record.Provider, w.record.Model = s.Provider, s.Model
	}
	return s, true, nil
}

// main tells of finished turns.
func (w *teller) main(ctx context.Context, p Plan, history []session.Message, limit int64) error {
	c := w.record
	s, ok, err := w.ask(ctx, p, session.SummaryRequest{
		Messages: history, Previous: w.before.running, Spans: w.before.toMerge(), MaxTokens: limit,
		ReadFiles: w.details.ReadFiles, ModifiedFiles: w.details.ModifiedFiles,
	})
	if err != nil {
		c.SpanSummary = w.m.clipSummary(s.Span, limit) // what was made of the span is not lost
		return err
	}
	if !ok {
		note := fmt.Sprintf("%d earlier messages are hidden; nothing in them could be summarised.", p.Hidden)
		if c.Summary = note; w.before.running != "" {
			c.Summary = w.before.running + "\n\n" + note
		}
		return nil
	}
	c.Summary, c.SpanSummary = w.m.clipSummary(s.Text, limit), w.m.clipSummary(s.Span, limit)
	w.details.Index = append(w.details.Index, s.Index...)
	return nil
}

// carry keeps the running summary, if there is one, where no turn was finished since. One that is over its
// share of the budget gives up its oldest finished work.
func (w *teller) carry(ctx context.Context, limit int64) error {
	w.record.Summary = w.before.running
	if w.m.cfg.Counter(w.m.cfg.Reference).Text(w.before.running) <= limit {
		return nil
	}
	s, err := w.m.cfg.Digest.Summarize(ctx, session.SummaryRequest{Previous: w.before.running, MaxTokens: limit, Purpose: session.PurposeSummary})
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("shorten the summary before: %w", ctx.Err())
	case err == nil && strings.TrimSpace(s.Text) != "":
		w.record.Summary = s.Text
	}
	w.record.Summary = w.m.clipSummary(w.record.Summary, limit)
	return nil
}

// prefix tells of the beginning of a turn whose end is kept.
func (w *teller) prefix(ctx context.Context, p Plan, msgs []session.Message, limit int64) error {
	req := session.SummaryRequest{Messages: msgs, MaxTokens: limit, TurnPrefix: true}
	if w.record.SpanSummary == "" { // else the index there names them
		req.ReadFiles, req.ModifiedFiles = w.details.ReadFiles, w.details.ModifiedFiles
	}
	s, ok, err := w.ask(ctx, p, req)
	if err != nil {
		return err
	}
	if !ok {
		w.record.PrefixSummary = fmt.Sprintf("%d messages at the beginning of this turn are hidden; nothing in them could be summarised.", len(msgs))
		return nil
	}
	w.record.PrefixSummary = w.m.clipSummary(s.Text, limit)
	w.details.Index = append(w.details.Index, s.Index...)
	return nil
}
