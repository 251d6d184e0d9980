package contextmgr

import (
	"context"
	"fmt"
	"slices"

	"sessiond/internal/session"
)

// Methods of counting, as tokens.method says.
const (
	MethodEstimate = "estimate" // everything by sessiond's own counter
	MethodAnchor   = "anchor"   // a provider's report, and an estimate of the messages after it
)

// Tokens is the size of a context and its limits.
type Tokens struct {
	Total     int64  `json:"total" doc:"Size of the context, in tokens of the model"`
	Window    int64  `json:"window" doc:"The model's window, in tokens"`
	Threshold int64  `json:"threshold" doc:"Compaction begins above this size"`
	Reserve   int64  `json:"reserve" doc:"Tokens kept free for the reply"`
	Method    string `json:"method" doc:"anchor (a provider's report, plus an estimate of later messages) or estimate"`
	Error     int64  `json:"error" doc:"Two standard errors of total, in tokens"`
	Estimate  int64  `json:"-"` // everything by sessiond's own counter, whatever Method says

	anchor *Anchor // the report that Total starts from; nil: none
	excess float64 // provider's count per own count, of a context that was cut to fit; 0: none
}

// Upper returns Total and its error: compaction goes by it.
func (t *Tokens) Upper() int64 { return t.Total + t.Error }

// providerRatio returns the provider's count per own count, at least 1.
func (t *Tokens) providerRatio() float64 {
	return max(1, float64(t.Total)/float64(max(1, t.Estimate)))
}

// Doubt is two standard errors of an estimate, as a share of it, while nothing is learned of the
// model.
const Doubt = 0.06

// Ways in which the size of system text and tools beside the messages is known.
const (
	OverheadNone    = "none"    // unknown
	OverheadCounted = "counted" // the caller's tools, by sessiond's counter
	OverheadGiven   = "given"   // the caller's own number
	OverheadKept    = "kept"    // that of the last context
	OverheadLearned = "learned" // what providers reported beyond the messages
)

// Counting explains tokens.total: how it was counted, from which report, and its error. Sizes are in
// tokens of the model.
type Counting struct {
	Method    string   `json:"method" doc:"anchor or estimate"`
	Anchor    *Anchor  `json:"anchor" doc:"The provider's report that the count starts from; null: none"`
	Estimated int64    `json:"estimated" doc:"The part of the total that no provider counted, in tokens"`
	Error     int64    `json:"error" doc:"Two standard errors of the total, in tokens"`
	Low       int64    `json:"low" doc:"total − error"`
	High      int64    `json:"high" doc:"total + error: compaction goes by it"`
	Family    string   `json:"family" doc:"Tokenizer family of the model"`
	Scale     float64  `json:"scale" doc:"Factor of the model, learned from reports; 1: nothing is learned"`
	Estimate  int64    `json:"estimate" doc:"sessiond's own count of everything, in tokens"`
	Excess    float64  `json:"excess" doc:"Above 1 if parts were cut to fit: total is estimate times this"`
	Overhead  Overhead `json:"overhead" doc:"Size of tools and framing"`
}

// Anchor is a provider's report that a count starts from.
type Anchor struct {
	Context  string             `json:"context_id,omitempty" doc:"The context of the reported call, like ctx_12"`
	Message  session.MessageRef `json:"message" doc:"The reply of the reported call"`
	Model    string             `json:"model,omitempty"`
	At       session.Time       `json:"at" doc:"Time of the reply"`
	Input    int64              `json:"input_tokens" doc:"Reported input, cached tokens included"`
	Output   int64              `json:"output_tokens" doc:"Reported output"`
	Tokens   int64              `json:"tokens" doc:"Reported input and output together"`
	Since    int64              `json:"tokens_since" doc:"Estimate of later messages, in tokens"`
	Messages int                `json:"messages_since" doc:"Number of later messages"`
}

// Overhead is the size of tool definitions and of the provider's framing.
type Overhead struct {
	Tokens int64  `json:"tokens" doc:"Tokens outside the messages"`
	Method string `json:"method" doc:"none, counted (from tools), given (overhead_tokens), kept (from the turn before) or learned (from reports)"`
}

// report is a provider's count, with sessiond's own count of the same context (0: unknown).
type report struct {
	*session.Call
	estimate int64
}

// lastReport returns the provider's last count if it is valid for this context, nil for none.
func (m *Manager) lastReport(ctx context.Context, s *snapshot) (*report, error) {
	if s.overlayIsNew {
		return nil, nil
	}
	call := s.basis.Report
	if call == nil || call.Model != "" && call.Model != s.model {
		return nil, nil
	}
	if call.ContextID == nil {
		if stale, err := m.reportIsStale(ctx, s, call); stale || err != nil {
			return nil, err
		}
		last := &report{Call: call}
		if s.last != nil && call.CreatedAt.After(s.last.CreatedAt.Time) {
			last.estimate = s.last.Tokens
		}
		return last, nil
	}
	made, err := m.store.Context(ctx, s.sess.ID, *call.ContextID)
	if err != nil {
		return nil, fmt.Errorf("the context of the last report: %w", err)
	}
	if !sameBlocks(made, s.contextRecord(0)) {
		return nil, nil
	}
	return &report{Call: call, estimate: made.Tokens}, nil
}

func sameBlocks(a, b session.Context) bool {
	return a.SystemHash == b.SystemHash && a.ToolsHash == b.ToolsHash && a.InitialHash == b.InitialHash
}

// reportIsStale reports whether a report without a context is older than a change of the context's
// beginning.
func (m *Manager) reportIsStale(ctx context.Context, s *snapshot, call *session.Call) (bool, error) {
	if s.sess.Epoch == 0 {
		return false, nil
	}
	if s.last != nil && s.last.Epoch != s.sess.Epoch {
		return true, nil
	}
	all, err := m.store.Compactions(ctx, s.sess.ID)
	return slices.ContainsFunc(all, func(c session.Compaction) bool {
		return c.UndoneAt != nil && !call.CreatedAt.After(c.UndoneAt.Time)
	}), err
}

// coversLess reports whether the reported context was much smaller than the items before the
// report's reply now. A change of the learned scale is smaller than that.
func (r *report) coversLess(now int64) bool {
	return r.estimate > 0 && now > r.estimate+r.estimate/4+256
}

// isTooSmall reports whether a provider's count of an input cannot be that of its text. The
// tokenizers of today's models count the same text within a factor of 2 of each other, and a third
// leaves room for the error of sessiond's count.
func isTooSmall(reported, counted int64) bool { return counted > 3*reported+256 }

// isTooLarge reports whether a provider's count of a request and its reply is beyond the window that held
// them, and far beyond sessiond's own count of everything: such a report sums up several requests. The
// window alone says nothing, since a model may have a larger one than is known.
func isTooLarge(reported, counted, window int64) bool {
	return reported > window && reported > 3*counted
}

// textOf returns the tokens of the text before an item that the provider must have counted.
// Providers count media by other rules. Not all are sent reasoning again, and of those that are some count only that of
// a reply with calls.
func (s *snapshot) textOf(d *Draft, before int) int64 {
	var sum int64
	for i := range before {
		m, n := &d.Items[i].Message, d.Weights[i]
		counts := m.Dialect == s.Dialect && s.Dialects.ResendsReasoning(m.Dialect) && len(m.Calls()) > 0
		for k := range m.Parts {
			switch p := &m.Parts[k]; p.Kind {
			case session.PartReasoning:
				if !counts {
					n -= s.scales.scaled(p.Tokens)
				}
			case session.PartImage, session.PartAudio, session.PartFile, session.PartData:
				n -= s.scales.scaled(p.Tokens)
			}
		}
		sum += max(0, n)
	}
	return sum
}

// SizedItem is an item of a context, as counting sees it.
type SizedItem struct {
	Tokens int64
	Report int64 // the provider's count of the context up to and with this item; 0: none
}

// CountFromReport sizes a context by its last report and an estimate of the items after it. last is
// the index of the reporting item, -1 if everything is estimated. Rule: pi, estimateContextTokens.
func CountFromReport(items []SizedItem) (total, reported, trailing int64, last int) {
	for last = len(items) - 1; last >= 0; last-- {
		if items[last].Report > 0 {
			reported = items[last].Report
			break
		}
		trailing += items[last].Tokens
	}
	return reported + trailing, reported, trailing, last
}

// count sizes a draft: by a report, if there is one, and an estimate of the rest. A report of a
// context whose parts were cut to fit does not count for the whole parts.
func (s *snapshot) count(d *Draft, last *report) Tokens {
	n := s.numbers
	t := Tokens{
		Total: d.Total, Estimate: d.Total, Window: n.Window, Threshold: n.Threshold, Reserve: n.Reserve,
		Method: MethodEstimate, Error: s.scales.errorOf(d.Total),
	}
	if last == nil {
		return t
	}
	items := make([]SizedItem, len(d.Items))
	for i := range d.Items {
		items[i].Tokens = d.Weights[i]
		if m := &d.Items[i].Message; d.Items[i].Kind == ItemMessage && m.RowID == *last.MessageID && !m.Finish.Failed() {
			items[i].Report = last.ContextTokens()
		}
	}
	total, reported, trailing, at := CountFromReport(items)
	if at < 0 || last.coversLess(d.Total-trailing-d.Weights[at]) {
		return t
	}
	counted := s.textOf(d, at)
	if last.estimate > 0 {
		counted = min(counted, last.estimate) // of parts that were left out there
	}
	warning := ""
	switch input := inputTokens(last.Call); {
	case isTooSmall(input, counted):
		warning = fmt.Sprintf("the provider reported %d tokens for a request with about %d tokens of text", input, counted)
	case isTooLarge(reported, d.Total, n.Window):
		warning = fmt.Sprintf("the provider reported %d tokens, more than the window of %d, for about %d tokens", reported,
			n.Window, d.Total)
	}
	if warning != "" {
		warning += ": that cannot be right, so this context is estimated; the call still counts as usage"
		if !slices.Contains(s.warnings, warning) {
			s.warnings = append(s.warnings, warning)
		}
		return t
	}
	t.Total, t.Method, t.Error = total, MethodAnchor, s.scales.errorOf(trailing)
	t.anchor = &Anchor{
		Message: d.Items[at].Message.ID, Model: last.Model, At: last.CreatedAt, Input: inputTokens(last.Call),
		Output: last.OutputTokens,
		Tokens: reported, Since: trailing, Messages: len(d.Items) - at - 1,
	}
	if last.ContextID != nil {
		t.anchor.Context = session.ContextName(*last.ContextID)
	}
	return t
}

// explainCount explains the size of the context.
func (s *snapshot) explainCount(t *Tokens) *Counting {
	c := Counting{
		Method: t.Method, Anchor: t.anchor, Estimated: t.Total, Error: t.Error, Low: max(0, t.Total-t.Error), High: t.Upper(),
		Family: s.scales.family, Scale: s.scales.scale, Estimate: t.Estimate, Excess: max(1, t.excess),
		Overhead: Overhead{Tokens: s.Overhead, Method: s.overheadMethod},
	}
	if t.anchor != nil {
		c.Estimated = t.anchor.Since
	}
	return &c
}

// learnOverhead estimates the overhead from this session's reports with the same tools, if the
// caller does not say it: the reported input less sessiond's count of the messages, in the smallest
// context, whose error is the smallest. A difference within the error counts as nothing.
func (m *Manager) learnOverhead(ctx context.Context, s *snapshot) error {
	if s.overheadMethod != OverheadNone {
		return nil
	}
	smallest := int64(-1)
	for i := range s.basis.Reports {
		c := &s.basis.Reports[i]
		if c.Model != "" && c.Model != s.model {
			continue
		}
		made, err := m.store.Context(ctx, s.sess.ID, *c.ContextID)
		if err != nil {
			return fmt.Errorf("the context of a report: %w", err)
		}
		counted := made.Tokens - made.OverheadTokens
		if isTooSmall(inputTokens(c), counted) {
			continue
		}
		if made.ToolsHash != hashOf(s.tools) || smallest >= 0 && counted >= smallest {
			continue
		}
		smallest = counted
		if over := inputTokens(c) - counted; over > s.scales.errorOf(counted) && over < s.numbers.Limit/2 {
			s.Overhead, s.overheadMethod = over, OverheadLearned
		} else {
			s.Overhead, s.overheadMethod = 0, OverheadNone
		}
	}
	return nil
}

// knownOverhead returns the overhead to record: a learned one must not come back as the caller's.
func (s *snapshot) knownOverhead() int64 {
	if s.overheadMethod == OverheadLearned {
		return 0
	}
	return s.Overhead
}

// inputTokens returns the whole input of a call.
func inputTokens(c *session.Call) int64 {
	return c.PromptTokens()
}
