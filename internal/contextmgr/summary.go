package contextmgr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"sessiond/internal/session"
)

// pastSummaries is what earlier overlays of a path say, for the next summary.
type pastSummaries struct {
	running string   // the running summary; "": none
	spans   []string // of each span, oldest first
	depth   int      // overlays of the chain with a summary
	anew    bool     // running lacks something of the spans: it must be merged from them
	dropped []string // running summaries that a merge left out, which running may lack
}

// Every few summaries the running one is merged anew from all spans, so that drift does not add up.
const (
	mergeEvery = 4
	mergeInput = 200000 // tokens; beyond them a running summary replaces the oldest spans
)

// collectPast walks the chain of overlays back from the effective one. A model's summary that came
// too late to be activated replaces the digest of the same span, and the running one is merged anew.
// Overlays that only prune are skipped.
//
// Once the merge ended at an overlay that hid only the beginning of a turn, as if nothing were before it.
// Summaries that such a merge may have made are merged anew, too: from the spans' summaries, which are
// made of the originals alone.
func collectPast(all []session.Compaction, effective *session.Compaction, count func(string) int64) pastSummaries {
	if effective == nil {
		return pastSummaries{}
	}
	c := effective
	if i := lateStaged(all, effective); i >= 0 {
		c = &all[i]
	}
	p := pastSummaries{running: runningSummary(c)}
	var input int64
	updated := 0 // summaries that are newer, without a merge
	complete, merged := false, false
	for ; c != nil && c.Strategy != session.StrategyClear; c = spanBefore(all, c) {
		running := runningSummary(c)
		if c.Strategy == session.StrategyPrune {
			continue
		}
		if strings.TrimSpace(running) == "" { // contexts show nothing of what was before it
			break
		}
		source := c
		if late := lateSummary(all, c); late != nil {
			source, p.anew = late, p.anew || c != effective && !finishedAt(late).Before(effective.CreatedAt.Time)
		}
		p.depth++
		merged = merged || isMerged(c)
		if !merged && updated > 1 && source.SpanSummary == "" && c.PrefixSummary != "" {
			p.anew, p.dropped = true, append(p.dropped, c.Summary)
		}
		updated++
		if complete {
			continue
		}
		span, whole := ownSummary(all, c, source)
		if input += count(span); input > mergeInput {
			span, whole = running, true
		}
		p.spans, complete = append(p.spans, span), whole
	}
	slices.Reverse(p.spans)
	return p
}

// ownSummary returns what an overlay says of the messages that it newly hides. whole reports that it is
// the running summary instead, which covers everything before: the overlay has no summary of its own (the
// caller's, another program's), or the one that it was made from is gone. An overlay that hides only the
// beginning of a turn has carried the running summary over; its own part is that beginning.
func ownSummary(all []session.Compaction, c, source *session.Compaction) (text string, whole bool) {
	switch before := spanBefore(all, c); {
	case before == nil && c.PreviousID != nil && compactionByRow(all, *c.PreviousID) == nil:
	case source.SpanSummary != "":
		return joinSummaries(source.SpanSummary, source.PrefixSummary), false
	case before != nil && c.PrefixSummary != "" && c.Trigger != session.TriggerImport:
		return c.PrefixSummary, false
	}
	return runningSummary(c), true
}

// isMerged reports whether an overlay's running summary was merged from those of all spans.
func isMerged(c *session.Compaction) bool {
	var d session.CompactionDetails
	return decode(c.Details, &d) && d.Spans > 0
}

// lateSummary returns a model's summary of the span of a digest in the chain, which came too late
// to be activated; nil for none.
func lateSummary(all []session.Compaction, digest *session.Compaction) *session.Compaction {
	if byModel(digest) || digest.ThroughID == nil {
		return nil
	}
	for i := range slices.Backward(all) {
		c := &all[i]
		inactive := c.Status == session.StatusStaged || c.Status == session.StatusSkipped
		if inactive && !c.Undone && byModel(c) && c.SpanSummary != "" && sameRow(c.ThroughID, digest.ThroughID) &&
			sameRow(endOfSpanBefore(all, c), endOfSpanBefore(all, digest)) {
			return c
		}
	}
	return nil
}

// spanBefore returns the overlay that hides the span before c's; nil for none. It skips overlays
// that c replaced for the same span.
func spanBefore(all []session.Compaction, c *session.Compaction) *session.Compaction {
	for c.PreviousID != nil {
		previous := compactionByRow(all, *c.PreviousID)
		if previous == nil || previous.ThroughID == nil || c.ThroughID == nil || *previous.ThroughID != *c.ThroughID {
			return previous
		}
		c = previous
	}
	return nil
}

func compactionByRow(all []session.Compaction, rowID int64) *session.Compaction {
	if i := slices.IndexFunc(all, func(c session.Compaction) bool { return c.RowID == rowID }); i >= 0 {
		return &all[i]
	}
	return nil
}

// endOfSpanBefore returns the last message before an overlay's span, nil for the root.
func endOfSpanBefore(all []session.Compaction, c *session.Compaction) *int64 {
	if c = spanBefore(all, c); c == nil {
		return nil
	}
	return c.ThroughID
}

func finishedAt(c *session.Compaction) time.Time {
	return c.CreatedAt.Add(time.Duration(c.DurationMS) * time.Millisecond)
}

// toMerge returns the spans that the next running summary is merged from; nil if the one before is
// updated instead.
func (p *pastSummaries) toMerge() []string {
	if (p.depth+1)%mergeEvery != 0 && !p.anew || len(p.spans) < 2 {
		return nil
	}
	return p.spans
}

// previous returns the summary that the next one updates. One that is merged anew holds the rules that this
// text has: the others were taken back.
func (p *pastSummaries) previous() string {
	return strings.Join(slices.Concat([]string{p.running}, p.dropped), "\n\n")
}

// runningSummary returns the whole text of an overlay's summary.
func runningSummary(c *session.Compaction) string {
	return joinSummaries(c.Summary, c.PrefixSummary)
}

// joinSummaries puts the summary of finished turns before that of a split turn.
func joinSummaries(summary, prefix string) string {
	if prefix == "" || summary == "" {
		return summary + prefix
	}
	return summary + "\n\n---\n\n" + prefix
}

// summaryTokens returns the reference tokens of the message that holds the summary.
func (m *Manager) summaryTokens(c *session.Compaction) int64 {
	item, ok := summaryItem(c)
	if !ok {
		return 0
	}
	m.measure(&item.Message)
	return item.Message.Tokens
}

// clipSummary cuts the end off a summary that exceeds its budget.
func (m *Manager) clipSummary(text string, limit int64) string {
	for range 8 {
		n := m.countText(text)
		if limit <= 0 || n <= limit {
			return text
		}
		runes := []rune(text)
		text = string(runes[:int(int64(len(runes))*limit/n)])
	}
	return text
}

// summarise fills in the summaries of a record, and the index in its details. It returns the calls
// that a model answered.
func (m *Manager) summarise(ctx context.Context, s *snapshot, p *Plan, in overlayInput, c *session.Compaction,
	d *session.CompactionDetails,
) (calls []session.Call, err error) {
	switch {
	case in.strategy == session.StrategyClear:
		return nil, nil
	case in.summary != "" && in.strategy == session.StrategySummarize:
		c.Summary = in.summary
	default:
		all, err := m.store.Compactions(ctx, s.sess.ID)
		if err != nil {
			return nil, err
		}
		past := collectPast(all, s.Overlay, m.countText)
		w := summaryWriter{m: m, s: s, in: &in, past: past, record: c, details: d}
		if in.strategy == session.StrategyTruncate { // an earlier summary stays
			limit := int64(math.MaxInt64)
			if past.anew {
				limit = s.scales.unscaled(s.numbers.SummaryMax)
			}
			err = w.carryOver(ctx, limit)
		} else {
			err = w.write(ctx, p)
		}
		c.SummaryTokens = m.summaryTokens(c)
		return w.calls, err
	}
	c.SummaryTokens = m.summaryTokens(c)
	return nil, nil
}

// summaryWriter writes the summaries of one plan.
type summaryWriter struct {
	m       *Manager
	s       *snapshot
	in      *overlayInput
	past    pastSummaries
	record  *session.Compaction
	details *session.CompactionDetails
	calls   []session.Call
}

// prefixShare is the part of a summary's budget that the beginning of a split turn may take if
// something came before it.
const prefixShare = 8

// write summarises the finished turns, and apart from them the beginning of a split turn. If a
// split turn is all that is new, the running summary is carried over as it is, within the budget.
// Rule: pi, compact.
func (w *summaryWriter) write(ctx context.Context, p *Plan) error {
	limit := w.s.scales.unscaled(w.s.numbers.SummaryMax)
	from, to := p.History()
	history := summarisable(w.s.Messages[from:to])
	if !w.s.Words { // copies of a person's words were summarised with their originals
		history = append(replaced(w.s.Overlay), history...)
	}
	from, to = p.Prefix()
	prefix := summarisable(w.s.Messages[from:to])
	// The message that began the turn is shown again, but not after the next compaction, and the summary of the
	// turn's beginning may be too small for a rule.
	switch {
	case len(prefix) == 1:
		history, prefix = append(history, prefix...), nil
	case len(prefix) > 1 && len(history) > 0:
		history = append(history, prefix[0])
	}
	historyLimit := limit
	if len(prefix) > 0 {
		historyLimit = limit - limit/prefixShare
		if len(history) == 0 { // what the running summary leaves, up to half
			historyLimit = min(historyLimit, max(limit/2, w.m.countText(w.past.running)))
		}
		if len(history) == 0 && w.past.running == "" {
			historyLimit = 0
		}
	}
	var err error
	if len(history) > 0 {
		err = w.writeHistory(ctx, p, history, historyLimit)
	} else {
		err = w.carryOver(ctx, historyLimit)
	}
	if err == nil && len(prefix) > 0 {
		err = w.writePrefix(ctx, p, prefix, limit-historyLimit)
	}
	if err == nil && w.s.truncated {
		w.note("the span is too long to be read at once: its oldest messages are hidden without a summary")
	}
	return err
}

// summarisable returns the messages that a summary may mention.
func summarisable(path []session.Message) []session.Message {
	var out []session.Message
	for i := range path {
		if path[i].InContext && path[i].Role != session.System {
			out = append(out, path[i])
		}
	}
	return out
}

// note adds to the record's reason.
func (w *summaryWriter) note(text string) { w.record.Reason = joinReasons(w.record.Reason, text) }

func joinReasons(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// ask calls the summarizer. ok is false if it is the digest and has nothing to say: a plain note
// serves then.
func (w *summaryWriter) ask(ctx context.Context, p *Plan,
	req session.SummaryRequest,
) (s session.Summary, ok bool, err error) {
	req.Instructions, req.Purpose = w.in.instructions, session.PurposeSummary
	w.m.addGivers(ctx, &w.s.sess, &req)
	s, err = w.in.summarizer.Summarize(ctx, req)
	w.calls = append(w.calls, s.Calls...)
	empty := err == nil && strings.TrimSpace(s.Text) == ""
	if empty && !w.in.mustSucceed {
		err = errors.New("the summary is empty")
	}
	switch {
	case err != nil && !w.in.mustSucceed:
		return s, false, fmt.Errorf("summarise %d messages: %w", p.Hidden, err)
	case err != nil:
		w.note("the digest failed: " + err.Error())
		return s, false, nil
	case empty:
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

// addGivers adds who gives rules in a session, and how the messages of its earlier rules are read.
func (m *Manager) addGivers(ctx context.Context, sess *session.Session, req *session.SummaryRequest) {
	if m.cfg.Givers != nil {
		req.Givers = m.cfg.Givers(sess.Key)
	}
	req.Read = func(ref session.MessageRef) (session.Message, error) {
		ref.Session = cmp.Or(ref.Session, sess.ID)
		return m.store.Message(ctx, ref)
	}
}

// writeHistory summarises finished turns.
func (w *summaryWriter) writeHistory(ctx context.Context, p *Plan, history []session.Message, limit int64) error {
	c := w.record
	s, ok, err := w.ask(ctx, p, session.SummaryRequest{
		Messages: history, Previous: w.past.previous(), Spans: w.past.toMerge(), MaxTokens: limit,
		ReadFiles: w.details.ReadFiles, ModifiedFiles: w.details.ModifiedFiles,
	})
	if err != nil {
		c.SpanSummary = w.m.clipSummary(s.Span, limit) // a finished span is not lost
		return err
	}
	if !ok {
		c.Summary = fmt.Sprintf("%d earlier messages are hidden; nothing in them could be summarised.", p.Hidden)
		if w.past.running != "" {
			c.Summary = w.past.running + "\n\n" + c.Summary
		}
		return nil
	}
	c.Summary, c.SpanSummary = w.m.clipSummary(s.Text, limit), w.m.clipSummary(s.Span, limit)
	w.details.Index = append(w.details.Index, s.Index...)
	w.details.Spans = len(w.past.toMerge())
	return nil
}

// carryOver keeps the running summary. If it exceeds its budget or lacks something, the digest makes it
// anew.
func (w *summaryWriter) carryOver(ctx context.Context, limit int64) error {
	w.record.Summary = w.past.running
	req := session.SummaryRequest{Previous: w.past.previous(), MaxTokens: limit, Purpose: session.PurposeSummary}
	if w.past.anew {
		req.Spans = w.past.toMerge()
	}
	if len(req.Spans) == 0 && w.m.countText(w.past.running) <= limit {
		return nil
	}
	w.m.addGivers(ctx, &w.s.sess, &req)
	s, err := w.m.cfg.Digest.Summarize(ctx, req)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("make the previous summary anew: %w", ctx.Err())
	case err == nil && strings.TrimSpace(s.Text) != "":
		w.record.Summary, w.details.Spans = s.Text, len(req.Spans)
	}
	w.record.Summary = w.m.clipSummary(w.record.Summary, limit)
	return nil
}

// writePrefix summarises the beginning of a split turn.
func (w *summaryWriter) writePrefix(ctx context.Context, p *Plan, msgs []session.Message, limit int64) error {
	req := session.SummaryRequest{Messages: msgs, MaxTokens: limit, TurnPrefix: true}
	if w.record.SpanSummary == "" { // else its index names them
		req.ReadFiles, req.ModifiedFiles = w.details.ReadFiles, w.details.ModifiedFiles
	}
	s, ok, err := w.ask(ctx, p, req)
	if err != nil {
		return err
	}
	if !ok {
		w.record.PrefixSummary = fmt.Sprintf("%d messages at the beginning of this turn are hidden; "+
			"nothing in them could be summarised.", len(msgs))
		return nil
	}
	w.record.PrefixSummary = w.m.clipSummary(s.Text, limit)
	w.details.Index = append(w.details.Index, s.Index...)
	return nil
}
