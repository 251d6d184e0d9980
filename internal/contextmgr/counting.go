package contextmgr

import (
	"context"
	"fmt"

	"sessiond/internal/session"
)

// Ways in which the size of what stands beside the messages is known.
const (
	OverheadNone    = "none"    // nothing is known of it
	OverheadCounted = "counted" // the caller's tools, by sessiond's counter
	OverheadGiven   = "given"   // the caller's own number
	OverheadKept    = "kept"    // that of the last context
	OverheadLearned = "learned" // what providers reported more than the messages account for
)

// Counting explains tokens.total: how it was counted, from which report, and how far it may be
// off. Sizes are in tokens of the model.
type Counting struct {
	Method    string   `json:"method"`    // anchor or estimate
	Anchor    *Anchor  `json:"anchor"`    // the report that the count starts from; null: none counts for this context
	Estimated int64    `json:"estimated"` // the part of the total that no provider counted
	Error     int64    `json:"error"`     // two standard errors of the total: 6 % of what is estimated, less once the scale was learned
	Low       int64    `json:"low"`       // the total less those
	High      int64    `json:"high"`      // the total and those: compaction goes by it
	Family    string   `json:"family"`    // of tokenizers, whose weights count
	Scale     float64  `json:"scale"`     // of the model, learned from reports; 1: nothing was learned
	Estimate  int64    `json:"estimate"`  // sessiond's own count of all of it, whatever was reported
	Excess    float64  `json:"excess"`    // of a context that was cut to fit: total is estimate times what a provider had counted more; 1: nothing
	Overhead  Overhead `json:"overhead"`
}

// Anchor is a report of a provider that a count starts from.
type Anchor struct {
	Context  string             `json:"context_id,omitempty"` // that the call was made with
	Message  session.MessageRef `json:"message"`              // the reply
	Model    string             `json:"model,omitempty"`
	At       session.Time       `json:"at"`
	Input    int64              `json:"input_tokens"` // cache included
	Output   int64              `json:"output_tokens"`
	Tokens   int64              `json:"tokens"`         // both: the context with the reply
	Since    int64              `json:"tokens_since"`   // estimated, of what came after it
	Messages int                `json:"messages_since"` // that they are of
}

// Overhead is what stands beside the messages: definitions of tools, and the provider's framing.
type Overhead struct {
	Tokens int64  `json:"tokens"`
	Method string `json:"method"` // none, counted, given, kept, learned
}

// overheadReports is how many reports are looked at to learn an overhead.
const overheadReports = 4

// learnOverhead finds what reports of this session and set of tools say of what stands beside
// the messages, where the caller says nothing: what went in less sessiond's count of the
// messages, from the smallest context, where that is off the least. Less than may be off is
// nothing.
func (m *Manager) learnOverhead(ctx context.Context, r *reading) error {
	if r.overheadBy != OverheadNone {
		return nil
	}
	calls, err := m.store.Reports(ctx, r.sess.ID, overheadReports)
	if err != nil {
		return err
	}
	least := int64(-1)
	for i := range calls {
		c := &calls[i]
		if c.Model != "" && c.Model != r.model {
			continue
		}
		made, err := m.store.Context(ctx, r.sess.ID, *c.ContextID)
		if err != nil {
			return fmt.Errorf("the context of a report: %w", err)
		}
		base := made.Tokens - made.OverheadTokens
		if made.ToolsHash != hashOf(r.tools) || least >= 0 && base >= least {
			continue
		}
		least = base
		if over := inputOf(c) - base; over > r.weigh.errorOf(base) && over < r.numbers.Limit/2 {
			r.overhead, r.overheadBy = over, OverheadLearned
		} else {
			r.overhead, r.overheadBy = 0, OverheadNone
		}
	}
	return nil
}

// given is the overhead as it goes into the record of a context: what was learned from such
// records must not come back as something that was said.
func (r *reading) given() int64 {
	if r.overheadBy == OverheadLearned {
		return 0
	}
	return r.overhead
}

// anchorOf tells of the report that a count of a draft starts from. last is the item of its reply.
func (d *Draft) anchorOf(report *anchor, last int, trailing int64) *Anchor {
	a := Anchor{
		Message: d.Items[last].Message.ID, Model: report.Model, At: report.CreatedAt, Input: inputOf(report.Call), Output: report.OutputTokens,
		Tokens: report.ContextTokens(), Since: trailing, Messages: len(d.Items) - last - 1,
	}
	if report.ContextID != nil {
		a.Context = session.ContextName(*report.ContextID)
	}
	return &a
}

// counting explains the size of the context.
func (t *turn) counting() *Counting {
	r, tokens := t.r, &t.tokens
	c := Counting{
		Method: tokens.Method, Anchor: tokens.anchor, Estimated: tokens.Total, Error: tokens.Error,
		Low: max(0, tokens.Total-tokens.Error), High: tokens.Upper(), Family: r.weigh.family, Scale: r.weigh.scale, Estimate: tokens.Estimate,
		Excess: max(1, tokens.excess), Overhead: Overhead{Tokens: r.overhead, Method: r.overheadBy},
	}
	if tokens.anchor != nil {
		c.Estimated = tokens.anchor.Since
	}
	return &c
}
