package contextmgr

import (
	"fmt"
	"slices"

	"sessiond/internal/session"
)

// trimPart shortens a text that weighs more than most to its head, a marker and its tail.
// The cut is by runes, in proportion to the weight, so the same part is always cut alike.
func trimPart(p session.Part, most int64) session.Part {
	if p.Kind == session.PartToolCall {
		return trimCall(p, most)
	}
	p.Text = headAndTail(p.Content(), p.Tokens, most)
	p.Blob, p.BlobSHA = nil, nil
	p.Tokens = most
	return p
}

// trimCall shortens the arguments of a call. They stay JSON, since providers parse them.
func trimCall(p session.Part, most int64) session.Part {
	p.Arguments = string(session.JSONOf(map[string]string{"arguments_left_out": headAndTail(p.Arguments, p.Tokens, most)}))
	p.Tokens = most
	return p
}

func headAndTail(s string, tokens, most int64) string {
	text := []rune(s)
	keep := int(float64(len(text)) * float64(most) / float64(tokens) * 0.9)
	head := keep * 2 / 3
	tail := keep - head
	marker := fmt.Sprintf("\n[… %d characters left out; the whole text is in the session's log …]\n", len(text)-keep)
	return string(text[:head]) + marker + string(text[len(text)-tail:])
}

// trimmable tells whether a part may be shortened: what a model signed is not, and arguments
// of calls only where nothing else helps.
func trimmable(p *session.Part, calls bool) bool {
	switch p.Kind {
	case session.PartToolCall:
		return calls
	case session.PartText, session.PartToolResult, session.PartRefusal:
		return true
	}
	return false
}

// trim shortens the parts of an item that weigh more than most, by the reference counter. It
// tells how many it shortened.
func trim(item *Item, most int64, calls bool) int {
	n := 0
	for i := range item.Message.Parts {
		if p := &item.Message.Parts[i]; most > 0 && p.Tokens > most && trimmable(p, calls) {
			item.own()
			item.Changed = true
			item.Message.Parts[i] = trimPart(item.Message.Parts[i], most)
			n++
		}
	}
	return n
}

// trimWhole shortens the parts of an item so that together they weigh no more than most, by the
// reference counter: the largest ones, to the same size. It tells how many it shortened.
func trimWhole(item *Item, most int64) int {
	var sizes []int64
	rest, sum := most, int64(0)
	for i := range item.Message.Parts {
		p := &item.Message.Parts[i]
		if sum += p.Tokens; trimmable(p, false) {
			sizes = append(sizes, p.Tokens)
		} else {
			rest -= p.Tokens
		}
	}
	if most <= 0 || sum <= most {
		return 0
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		if share := rest / int64(len(sizes)-i); size > share {
			return trim(item, max(leastPart, share), false)
		}
		rest -= size
	}
	return 0
}

// withhold replaces parts of a kind that the model does not take by a note, and gives their
// kinds. modalities are what it takes; none: not known.
func withhold(item *Item, modalities []string) []session.PartKind {
	var kinds []session.PartKind
	for i := range item.Message.Parts {
		kind := item.Message.Parts[i].Kind
		switch kind {
		case session.PartImage, session.PartAudio, session.PartFile:
		default:
			continue
		}
		if len(modalities) == 0 || slices.Contains(modalities, string(kind)) {
			continue
		}
		item.own()
		item.Changed = true
		item.Message.Parts[i] = session.TextPart(fmt.Sprintf("[%s left out: this model does not take any]", kind))
		kinds = append(kinds, kind)
	}
	return kinds
}
