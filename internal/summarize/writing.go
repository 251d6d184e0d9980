package summarize

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/session"
)

// Summarize asks the model for a summary of the span, and for the running one: the one before
// with what the span's says, or all spans' merged anew. Each gets an index that no model
// makes. It tries again where that can help. Where only the update fails, the running one is
// put together without the model, and the note says so: the span was paid for. The error is a
// *Failure unless ctx was cancelled; the Summary then still holds the Calls, and the span's
// summary if that was made.
func (r *Remote) Summarize(ctx context.Context, req session.SummaryRequest) (session.Summary, error) {
	limit := req.MaxTokens
	if limit <= 0 {
		limit = DefaultMaxTokens
	}
	w := writing{r: r, ctx: ctx, req: &req, limit: limit, text: limit - int64(float64(limit)*indexShare)}
	w.out.Provider, w.out.Model = r.Name()
	span, err := w.span()
	if err != nil {
		return w.out, err
	}
	sp := scan(req.Messages, nil)
	if req.First() {
		w.out.Text = w.indexed(sp, span, outline{}, true)
		w.out.Span = w.out.Text
		return w.out, nil
	}
	w.out.Span = w.indexed(sp, span, outline{}, false)
	old := parseOutline(req.Previous)
	running, err := w.join(span)
	if err != nil {
		if running = w.together(err, span); running == "" {
			return w.out, err
		}
	}
	if len(req.Spans) > 0 {
		old = merge(req.Spans)
	}
	w.out.Text = w.indexed(sp, running, old, true)
	return w.out, nil
}

// writing is one request on its way to a summary.
type writing struct {
	r     *Remote
	ctx   context.Context //nolint:containedctx // lives as long as the call it belongs to
	req   *session.SummaryRequest
	limit int64 // of a summary with its index
	text  int64 // of its text
	out   session.Summary
}

// indexed puts the index behind a text, within the limit.
func (w *writing) indexed(sp *span, text string, old outline, running bool) string {
	count := w.r.deps.Count
	var files, index []string
	room := min(w.limit-w.text, w.limit-count(text)-count("\n\n"+indexHeading+"\n- "))
	if running {
		files = fileLines(w.req.ReadFiles, w.req.ModifiedFiles, room/2, count)
		for _, l := range files {
			room -= count(l) + 2
		}
	}
	index = sp.index(old.index, text, files, room, count)
	for {
		section := indexSection(files, index)
		whole := text
		if section != "" {
			whole += "\n\n" + section
		}
		if section == "" || count(whole) <= w.limit {
			if running {
				w.out.Index = index
			}
			return whole
		}
		if len(index) > 0 {
			index = index[:len(index)-1]
		} else {
			files = files[:len(files)-1]
		}
	}
}

// join makes the running summary of the span's and what was told before it.
func (w *writing) join(span string) (string, error) {
	replaced := w.replaced() + w.r.deps.Count(w.req.Previous)
	if len(w.req.Spans) > 0 {
		text, err := w.ask(joinPrompt("", append(w.req.Spans[:len(w.req.Spans):len(w.req.Spans)], span), w.req.Instructions, w.text), answerLimits{replaced, w.text})
		if !tooLong(err) || strings.TrimSpace(w.req.Previous) == "" {
			return text, err
		}
	}
	return w.ask(joinPrompt(w.req.Previous, []string{span}, w.req.Instructions, w.text), answerLimits{replaced, w.text})
}

// together puts the span's summary behind what was told before it, line by line, since the
// model did not; "" where it was the caller who gave up.
func (w *writing) together(err error, span string) string {
	var failure *Failure
	if !errors.As(err, &failure) {
		return ""
	}
	parts := []string{w.req.Previous}
	if len(w.req.Spans) > 0 {
		parts = w.req.Spans
	}
	o := merge(append(slices.Clip(parts), span))
	o.index = nil // it comes behind the text, of what the text lacks
	w.out.Note = "the running summary was put together without the model, which failed: " + failure.Error()
	return o.fit(w.text, w.r.deps.Count)
}

// replaced counts the messages that a summary of the span stands for.
func (w *writing) replaced() int64 {
	n := int64(0)
	for i := range w.req.Messages {
		if t := w.req.Messages[i].Tokens; t > 0 {
			n += t
			continue
		}
		n += w.r.deps.Count(w.req.Messages[i].Text())
	}
	return n
}

// ask gives a checked answer to one prompt: asked again where the server was at fault, and
// once to shorten.
func (w *writing) ask(p prompt, limits answerLimits) (string, error) {
	budget, cancel := context.WithTimeout(w.ctx, w.r.timeout)
	defer cancel()
	text, err := w.r.retry(w.ctx, budget, p, limits.budget, w.req, &w.out.Calls)
	if err != nil {
		return "", err
	}
	text, kind := checkAnswer(text, limits, w.r.deps.Count)
	if kind == FailTooLongOutput {
		text, kind = w.shorten(budget, text, limits)
	}
	if kind != "" {
		return "", &Failure{Kind: kind, Message: "the answer of " + w.r.model + " cannot stand as a summary"}
	}
	return text, nil
}

// shorten asks once for fewer words; what is still too long loses its oldest finished work.
func (w *writing) shorten(budget context.Context, text string, limits answerLimits) (string, FailureKind) {
	count := w.r.deps.Count
	target := max(min(limits.budget, limits.replaced-1)*9/10, 1)
	if again, err := w.r.once(w.ctx, budget, shortenPrompt(text, target), limits.budget, w.req, &w.out.Calls); err == nil {
		switch shorter, kind := checkAnswer(again.text, limits, count); kind {
		case "":
			return shorter, ""
		case FailTooLongOutput:
			if count(shorter) < count(text) {
				text = shorter
			}
		}
	}
	if text = trimAnswer(text, limits, count); text == "" {
		return "", FailTooLongOutput
	}
	return text, ""
}

// Chunks of a record that is larger than the model's window.
const (
	aroundRecord = 2500 // tokens of a window that the rules and the answer need at least
	leastRoom    = 500  // tokens of a record below which asking makes no sense
	mostChunks   = 8    // what came before them is dropped
	mostHalvings = 6    // how often a smaller room is tried when the server says that a record is too long
)

// span gives the summary of the messages. A record that the model does not take at once is
// told in chunks, whose summaries are merged; where there are too many of them the oldest
// are dropped, and the note says so.
func (w *writing) span() (string, error) {
	told := serialiseEach(w.req.Messages)
	sizes := make([]int64, len(told))
	whole := int64(0)
	for i := range told {
		sizes[i] = w.r.deps.Count(told[i])
		whole += sizes[i]
	}
	known := w.r.room.Load()
	room := known
	if known > 0 {
		room = max(leastRoom, known-2*w.text)
	}
	for halved := 0; ; halved++ {
		text, err := w.inChunks(told, sizes, room)
		if err == nil && halved > 0 {
			w.r.room.Store(room + 2*w.text) // so that the next one need not find out again
		}
		if !tooLong(err) || halved == mostHalvings {
			return text, err
		}
		if room == 0 || room > whole {
			room = whole
		}
		if room /= 2; room < leastRoom {
			return text, err
		}
	}
}

// tooLong tells whether a record did not fit the model.
func tooLong(err error) bool {
	var f *Failure
	return errors.As(err, &f) && f.Kind == FailTooLongInput
}

// inChunks tells the record in chunks of so many tokens; 0: in one.
func (w *writing) inChunks(told []string, sizes []int64, room int64) (string, error) {
	chunks, dropped := chunk(told, sizes, room, w.r.deps.Count)
	limits := answerLimits{w.replaced(), w.text}
	if len(chunks) == 1 {
		return w.ask(newPrompt(w.req, chunks[0], w.text), limits)
	}
	each := answerLimits{limits.replaced, min(w.text, max(room/int64(len(chunks)+1), leastRoom/2))}
	texts := make([]string, len(chunks))
	for i := range chunks {
		var err error
		if texts[i], err = w.ask(newPrompt(w.req, chunks[i], each.budget), each); err != nil {
			return "", err
		}
	}
	text, err := w.ask(joinPrompt("", texts, w.req.Instructions, w.text), limits)
	if err == nil && dropped > 0 {
		w.out.Note = fmt.Sprintf("the window of %s is too small for the whole span: its oldest %d messages are in the index of the summary at most", w.r.model, dropped)
	}
	return text, err
}

// chunk parts paragraphs into at most mostChunks texts of room tokens each, the newest ones,
// and tells how many messages came before them. A message that is larger alone keeps its
// beginning and its end.
func chunk(told []string, sizes []int64, room int64, count func(string) int64) (chunks []string, dropped int) {
	if room <= 0 {
		return []string{strings.Join(told, "")}, 0
	}
	end, sum := len(told), int64(0)
	for i := len(told) - 1; i >= 0; i-- {
		size := sizes[i]
		if size > room {
			told[i] = ends(told[i], room, count)
			size = count(told[i])
		}
		if sum += size; sum > room && end > i+1 {
			chunks = append(chunks, strings.Join(told[i+1:end], ""))
			if end, sum = i+1, size; len(chunks) == mostChunks {
				break
			}
		}
	}
	if len(chunks) < mostChunks {
		chunks, end = append(chunks, strings.Join(told[:end], "")), 0
	}
	for i, k := 0, len(chunks)-1; i < k; i, k = i+1, k-1 {
		chunks[i], chunks[k] = chunks[k], chunks[i]
	}
	return chunks, end
}

// ends shortens a text to its beginning and its end, within max tokens.
func ends(text string, max int64, count func(string) int64) string {
	head, tail := len(text)/2, len(text)/2
	for head > 0 {
		short := cutRunes(text, head) + "\n…\n" + strings.ToValidUTF8(text[len(text)-tail:], "")
		if count(short) <= max {
			return short
		}
		head, tail = head*3/4, tail*3/4
	}
	return ""
}
