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
// words of any language, asks no model and gives the same digest for the same span. It remembers
// what it found in messages lately, so that the next digest of them is a merge.
type Extractive struct {
	count func(string) int64
	known memory
}

// NewExtractive makes one that measures its digests with count.
func NewExtractive(count func(string) int64) *Extractive { return &Extractive{count: count} }

// Forget drops what is remembered of messages, since some may have been purged.
func (e *Extractive) Forget() { e.known.forget() }

// Name gives what the columns provider and model of a compaction hold.
func (e *Extractive) Name() (provider, model string) { return ExtractiveProvider, ExtractiveModel }

// Summarize makes the digest of a span, and the running one of everything so far: the one
// before with the new span, or that of all spans anew. It fails only when ctx is done. No
// text is longer than req.MaxTokens (0: DefaultMaxTokens) or holds a secret that redact
// knows; the last section is the index. Instructions cannot be followed without a model:
// what holds a rare word of theirs is preferred.
func (e *Extractive) Summarize(ctx context.Context, req session.SummaryRequest) (session.Summary, error) {
	if err := ctx.Err(); err != nil {
		return session.Summary{}, err
	}
	limit := req.MaxTokens
	if limit <= 0 {
		limit = DefaultMaxTokens
	}
	sp := scan(req.Messages, &e.known)
	sp.want(req.Instructions)
	out := session.Summary{Provider: ExtractiveProvider, Model: ExtractiveModel}
	if !req.First() && len(req.Messages) > 0 {
		first := req
		first.ReadFiles, first.ModifiedFiles = nil, nil
		out.Span, _ = e.digest(sp, &first, outline{}, limit)
	}
	old := parseOutline(req.Previous)
	if len(req.Spans) > 0 {
		old = merge(req.Spans)
	}
	out.Text, out.Index = e.digest(sp, &req, old, limit)
	if req.First() {
		out.Span = out.Text
	}
	return out, nil
}

// digest makes one text of a span and what was told before it.
func (e *Extractive) digest(sp *span, req *session.SummaryRequest, old outline, limit int64) (text string, index []string) {
	indexBudget := int64(float64(limit) * indexShare)
	c := composer{span: sp, count: e.count, budget: limit - indexBudget}
	o := c.compose(&old)
	for _, l := range c.dropped { // what the text had to give up may still stand in the index
		sp.add(0, sp.reader.read(passage{text: l.text, by: byProgram}))
	}
	written := o.render()
	room := min(indexBudget, limit-e.count(written)-e.count("\n"+indexHeading+"\n- "))
	o.files = fileLines(req.ReadFiles, req.ModifiedFiles, room/2, e.count)
	for _, l := range o.files {
		room -= e.count(l) + 2
	}
	o.index = sp.index(old.index, written, o.files, room, e.count)
	return o.fit(limit, e.count), o.index
}
