package models

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/session"
	"sessiond/internal/summarize/digest"
)

// Summarize asks the model for a summary of the span and for the running summary: the previous one
// updated with the span's, or all spans' merged. Both get an index without the model. It retries
// temporary failures. If only the update fails, it merges the running summary without the model
// and says so in the note, because the span's summary is paid for. The error is a *Failure unless
// ctx was cancelled; the Summary then still has the Calls, and the span's summary if there is one.
func (r *Remote) Summarize(ctx context.Context, req session.SummaryRequest) (session.Summary, error) {
	limit := req.MaxTokens
	if limit <= 0 {
		limit = digest.DefaultMaxTokens
	}
	frame := digest.NewFrame(&req, limit, r.deps.Count)
	w := writing{r: r, ctx: ctx, req: &req, text: frame.Room()}
	w.out.Provider, w.out.Model = r.Name()
	span, err := w.span()
	if err != nil {
		return w.out, err
	}
	span = w.marked(span)
	if req.First() {
		w.out.Text, w.out.Index = frame.Around(span)
		w.out.Span = w.out.Text
		return w.out, nil
	}
	w.out.Span = frame.AroundSpan(span)
	running, err := w.join(span)
	if err != nil {
		if running = w.mergeWithoutModel(err, span); running == "" {
			return w.out, err
		}
	}
	w.out.Text, w.out.Index = frame.Around(w.marked(running))
	return w.out, nil
}

// marked marks what nobody said in a model's text, within its budget.
func (w *writing) marked(text string) string {
	text = digest.MarkUnsaid(text, w.req)
	if w.r.deps.Count(text) > w.text {
		text = digest.Fit(text, w.text, w.r.deps.Count)
	}
	return text
}

// writing is the state of one request for a summary.
type writing struct {
	r    *Remote
	ctx  context.Context //nolint:containedctx // lives as long as its call
	req  *session.SummaryRequest
	text int64 // tokens of the model's text
	out  session.Summary
}

// join asks for the running summary: the earlier ones joined with the span's.
func (w *writing) join(span string) (string, error) {
	replaced := w.replaced() + w.r.deps.Count(w.req.Previous)
	if len(w.req.Spans) > 0 {
		spans := slices.Concat(w.req.Spans, []string{span})
		text, err := w.ask(joinPrompt("", spans, w.req.Instructions, w.text), answerLimits{replaced, w.text})
		if !isTooLong(err) || strings.TrimSpace(w.req.Previous) == "" {
			return text, err
		}
	}
	return w.ask(joinPrompt(w.req.Previous, []string{span}, w.req.Instructions, w.text), answerLimits{replaced, w.text})
}

// mergeWithoutModel merges the earlier summaries with the span's after the model failed with err;
// "" if the caller cancelled.
func (w *writing) mergeWithoutModel(err error, span string) string {
	var failure *Failure
	if !errors.As(err, &failure) {
		return ""
	}
	parts := []string{w.req.Previous}
	if len(w.req.Spans) > 0 {
		parts = w.req.Spans
	}
	w.out.Note = "the running summary was merged without the model, which failed: " + failure.Error()
	return digest.Merge(append(slices.Clip(parts), span), w.text, w.r.deps.Count)
}

// replaced returns the tokens of the messages that the summary replaces.
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

// ask returns a checked answer to one prompt. It retries failures of the server, and asks once for
// a shorter answer.
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
		return "", &Failure{Kind: kind, Message: "the answer of " + w.r.model + " is not a valid summary"}
	}
	return text, nil
}

// shorten asks once for a shorter answer. One that is still too long loses its oldest done work.
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

// Limits for a record that is larger than the model's window.
const (
	aroundRecord = 2500 // tokens of a window that the rules and the answer need at least
	leastRoom    = 500  // tokens of a record; smaller ones are not worth a request
	mostChunks   = 8    // older ones are dropped
	mostHalvings = 6    // attempts with a smaller room after the server rejects a record as too long
)

// span asks for the summary of the messages. It splits a record that does not fit the model into
// chunks and merges their summaries. It drops the oldest chunks if there are too many, and says so
// in the note.
func (w *writing) span() (string, error) {
	paragraphs := serialiseEach(w.req.Messages, w.req.Givers.Group || digest.IsGroup(w.req.Messages))
	sizes := make([]int64, len(paragraphs))
	whole := int64(0)
	for i := range paragraphs {
		sizes[i] = w.r.deps.Count(paragraphs[i])
		whole += sizes[i]
	}
	known := w.r.room.Load()
	room := known
	if known > 0 {
		room = max(leastRoom, known-2*w.text)
	}
	for halved := 0; ; halved++ {
		text, err := w.inChunks(paragraphs, sizes, room)
		if err == nil && halved > 0 {
			w.r.room.Store(room + 2*w.text) // for the next request
		}
		if !isTooLong(err) || halved == mostHalvings {
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

// isTooLong reports whether the input did not fit the model.
func isTooLong(err error) bool {
	var f *Failure
	return errors.As(err, &f) && f.Kind == FailTooLongInput
}

// inChunks asks for a summary of the paragraphs in chunks of room tokens; 0: in one.
func (w *writing) inChunks(paragraphs []string, sizes []int64, room int64) (string, error) {
	chunks, dropped := splitChunks(paragraphs, sizes, room, w.r.deps.Count)
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
		w.out.Note = fmt.Sprintf("the window of %s is too small for the whole span: "+
			"the summary covers its oldest %d messages only in the index", w.r.model, dropped)
	}
	return text, err
}

// splitChunks joins paragraphs to at most mostChunks chunks of room tokens each, the newest ones, and
// returns the number of messages before them. A message that is larger than room keeps its
// beginning and its end.
func splitChunks(paragraphs []string, sizes []int64, room int64,
	count func(string) int64,
) (chunks []string, dropped int) {
	if room <= 0 {
		return []string{strings.Join(paragraphs, "")}, 0
	}
	end, sum := len(paragraphs), int64(0)
	for i := len(paragraphs) - 1; i >= 0; i-- {
		size := sizes[i]
		if size > room {
			paragraphs[i] = cutMiddle(paragraphs[i], room, count)
			size = count(paragraphs[i])
		}
		if sum += size; sum > room && end > i+1 {
			chunks = append(chunks, strings.Join(paragraphs[i+1:end], ""))
			if end, sum = i+1, size; len(chunks) == mostChunks {
				break
			}
		}
	}
	if len(chunks) < mostChunks {
		chunks, end = append(chunks, strings.Join(paragraphs[:end], "")), 0
	}
	slices.Reverse(chunks)
	return chunks, end
}

// cutMiddle shortens a text to its beginning and its end, within limit tokens.
func cutMiddle(text string, limit int64, count func(string) int64) string {
	for half := len(text) / 2; half > 0; half = half * 3 / 4 {
		short := digest.CutText(text, half) + "\n…\n" + strings.ToValidUTF8(text[len(text)-half:], "")
		if count(short) <= limit {
			return short
		}
	}
	return ""
}
