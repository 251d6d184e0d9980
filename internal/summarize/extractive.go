package summarize

import (
	"context"

	"sessiond/internal/session"
)

// DefaultMaxTokens is the size of a summary when the request names none.
const DefaultMaxTokens = 2000

// Names of the digest in the columns provider and model.
const (
	ExtractiveProvider = "extractive"
	ExtractiveModel    = "digest"
)

// Extractive makes digests: sentences of the conversation, literally, chosen by who said
// them, where they stand, what facts they hold and how rare their words are. It knows no
// words of any language, asks no model and gives the same digest for the same span.
type Extractive struct {
	count func(string) int64
}

// NewExtractive makes one that measures its digests with count.
func NewExtractive(count func(string) int64) *Extractive { return &Extractive{count: count} }

// Name gives what the columns provider and model of a compaction hold.
func (e *Extractive) Name() (provider, model string) { return ExtractiveProvider, ExtractiveModel }

// Summarize makes the digest of a span. It fails only when ctx is done. The text is never
// longer than req.MaxTokens (0: DefaultMaxTokens) and holds no secret that redact knows; its
// last section is the index. Instructions cannot be followed without a model: their words
// count as asked for.
func (e *Extractive) Summarize(ctx context.Context, req session.SummaryRequest) (session.Summary, error) {
	if err := ctx.Err(); err != nil {
		return session.Summary{}, err
	}
	limit := req.MaxTokens
	if limit <= 0 {
		limit = DefaultMaxTokens
	}
	sp := scan(req.Messages)
	sp.want(req.Instructions)
	old := parseOutline(req.Previous)

	indexBudget := int64(float64(limit) * indexShare)
	c := composer{span: sp, count: e.count, budget: limit - indexBudget}
	o := c.compose(&old)
	for _, l := range c.dropped { // what the text had to give up may still stand in the index
		sp.read(0, byProgram, l.text, false)
	}
	room := limit - e.count(o.render()) - e.count("\n"+indexHeading+"\n- ")
	o.index = sp.index(old.index, o.render(), min(indexBudget, room), e.count)
	text := o.fit(limit, e.count)
	return session.Summary{Text: text, Index: o.index, Provider: ExtractiveProvider, Model: ExtractiveModel}, nil
}
