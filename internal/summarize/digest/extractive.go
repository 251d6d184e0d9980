package digest

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

// Extractive makes digests: sentences of the conversation, literally, chosen by speaker, position,
// facts and the rarity of their words. It knows no words of any language, asks no model and makes
// the same digest of the same span.
type Extractive struct{ count func(string) int64 }

// NewExtractive returns an Extractive that counts tokens with count.
func NewExtractive(count func(string) int64) *Extractive { return &Extractive{count} }

// Name returns the provider and the model as compactions store them.
func (e *Extractive) Name() (provider, model string) { return ExtractiveProvider, ExtractiveModel }

// Summarize makes the digest of a span, and the running one: the previous one, or the merged
// spans, with the new span. It fails only when ctx is done. No text is longer than req.MaxTokens
// (0: DefaultMaxTokens) or contains a secret that redact knows; the last section is the index.
// It prefers sentences with a rare word of the instructions, which it cannot follow otherwise.
func (e *Extractive) Summarize(ctx context.Context, req session.SummaryRequest) (session.Summary, error) {
	if err := ctx.Err(); err != nil {
		return session.Summary{}, err
	}
	limit := req.MaxTokens
	if limit <= 0 {
		limit = DefaultMaxTokens
	}
	sp := scanRequest(&req)
	sp.prefer(req.Instructions)
	out := session.Summary{Provider: ExtractiveProvider, Model: ExtractiveModel}
	if !req.First() && len(req.Messages) > 0 {
		first := req
		first.ReadFiles, first.ModifiedFiles = nil, nil
		out.Span, _ = e.digest(sp, &first, outline{}, limit)
	}
	old := parseOutline(req.Previous)
	if len(req.Spans) > 0 {
		old = mergeRunning(req.Spans, req.Previous, limit, e.count)
	}
	out.Text, out.Index = e.digest(sp, &req, old, limit)
	if req.First() {
		out.Span = out.Text
	}
	return out, nil
}

// digest makes one text of a span and the summary before it.
func (e *Extractive) digest(sp *span, req *session.SummaryRequest, old outline,
	limit int64,
) (text string, index []string) {
	indexBudget := int64(float64(limit) * indexShare)
	heading := e.count("\n" + IndexHeading + "\n- ")
	files := fileLines(req.ReadFiles, req.ModifiedFiles, (indexBudget-heading)/2, e.count)
	c := composer{span: sp, count: e.count, limit: limit, budget: limit - indexBudget, room: limit}
	if len(files) > 0 {
		c.room -= heading
	}
	for _, l := range files {
		c.room -= e.count(l) + 2
	}
	o := c.compose(&old)
	for _, l := range c.dropped { // their facts may still enter the index
		sp.addPassage(0, passage{text: l.text, by: byProgram})
	}
	written := o.render()
	o.files = files
	room := min(indexBudget, limit-e.count(written)-heading)
	for _, l := range o.files {
		room -= e.count(l) + 2
	}
	o.index = sp.index(old.index, written, o.files, room, e.count)
	return o.fit(limit, e.count), o.index
}
