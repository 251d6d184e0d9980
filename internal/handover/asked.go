package handover

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"sessiond/internal/session"
)

// Request is what a person asked in a message that a summary hides.
type Request struct {
	Number int64 // of the message
	Text   string
}

// RequestsOf returns the words of people among messages, without what programs put around them.
func RequestsOf(prompts []session.Message) (requests []Request) {
	for i := range prompts {
		m := &prompts[i]
		if session.TalkOf(m) != session.Said || m.Origin != session.Person {
			continue
		}
		var texts []string
		for _, p := range m.Parts {
			if p.Kind == session.PartText {
				text := withoutNotices(session.ReadableText(session.WithoutEcho(p.Content())))
				texts = append(texts, strings.Fields(text)...)
			}
		}
		if text := strings.Join(texts, " "); text != "" {
			requests = append(requests, Request{m.ID.Seq, text})
		}
	}
	return requests
}

// lengths are how long a request may be, in characters: the first one with which all fit is used.
var lengths = []int{4000, 2000, 1000, 500, 250, 120}

// FitRequests shortens requests until all have at most so many tokens together. Where the shortest form of all is still
// too much, the newest stay.
func FitRequests(all []Request, limit int64, count func(string) int64) []Request {
	for _, length := range lengths {
		short, size := make([]Request, len(all)), int64(0)
		for i, r := range all {
			short[i] = Request{r.Number, firstOf(r.Text, length)}
			size += count(short[i].line())
		}
		if size <= limit {
			return short
		}
		all = short
	}
	var size int64
	for i, r := range slices.Backward(all) {
		if size += count(r.line()); size > limit {
			return all[i+1:]
		}
	}
	return all
}

func (r *Request) line() string { return fmt.Sprintf("- #%d %s", r.Number, r.Text) }

// firstOf returns the beginning of a text, and a mark where it is cut.
func firstOf(text string, length int) string {
	if utf8.RuneCountInString(text) <= length {
		return text
	}
	return string([]rune(text)[:length]) + " …"
}

// recognised is how much of a rule tells it from others, in bytes.
const recognised = 60

// CountMissing counts the rules that none of the texts has.
func CountMissing(rules, texts []string) (missing int) {
	plain := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	for i := range texts {
		texts[i] = plain(texts[i])
	}
	for _, rule := range rules {
		rule = plain(rule)
		rule = strings.ToValidUTF8(rule[:min(len(rule), recognised)], "")
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, rule) }) {
			missing++
		}
	}
	return missing
}
