package contextmgr

import (
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/session"
)

// Kinds of provenance: what an item of a context is.
const (
	ItemSystem     = "system"
	ItemTools      = "tools"
	ItemInitial    = "initial"
	ItemPinned     = "pinned"
	ItemSummary    = "summary"
	ItemTurnStart  = "turn_start"  // the message that began the turn which the cut splits
	ItemPerson     = "last_person" // the person's newest message, where only programs spoke since
	ItemReplaced   = "replacement" // what an imported overlay keeps as copies, or puts in the place of old calls
	ItemWords      = "words"       // the person's words that preset codex keeps
	ItemMessage    = "message"
	ItemClosedCall = "closed_call"
	ItemRecall     = "recall"
	ItemVolatile   = "volatile"
	ItemLead       = "lead" // a short text before a context that would begin with a reply
)

// Provenance says where an item of a context comes from. Message is the index in the
// context's messages, -1 for what stands beside them.
type Provenance struct {
	Message    int                  `json:"message"`
	Kind       string               `json:"kind"`
	Sources    []session.MessageRef `json:"sources,omitempty"`
	Compaction string               `json:"compaction,omitempty"`
	Tokens     int64                `json:"tokens"`
}

// Material is all that a context is made of. Messages are those of the path from the
// overlay's first kept one on, oldest first.
type Material struct {
	System    string
	Overhead  int64 // tokens of tools and of the provider's framing
	Initial   []session.Part
	Pinned    []session.Message // hidden by the overlay
	Overlay   *session.Compaction
	Person    *session.Message // hidden by the overlay, and no newer one of a person is kept
	TurnStart *session.Message // hidden by the overlay, which splits its turn
	Messages  []session.Message
	Frozen    []session.Frozen // those that count

	Edited     map[int64]bool                 // messages whose content is not the stored one
	Stands     map[int64][]session.MessageRef // of those the texts that an overlay puts in the place of others
	Words      bool                           // the overlay's copies stand before its summary, as Codex has them
	MidTurn    bool                           // and it was made while a turn went on
	Pruned     map[string]bool                // outputs that are replaced by a line
	RecallTool string                         // of the caller: named in that line; "": none
	CloseCalls bool
	Limits     limits
	Before     *limits  // of the context before; nil: none is known
	Sent       int64    // row of the newest message that was in it
	Modalities []string // that the model takes; none: not known, everything is sent
	Dialect    string
	Policy     Policy
	Shrink     Shrink // nil: images over the limits are replaced by a note
	Weigh      Weigh
}

// Weigh sizes what a context is made of, in tokens of the model.
type Weigh interface {
	Message(m *session.Message, changed bool) int64
	Text(s string) int64
}

// Draft is an assembled context with the weight of each item.
type Draft struct {
	Repaired
	System  string
	Fixed   int64 // system, tools, initial blocks, pins
	Total   int64
	Weights []int64 // of the items
	Beside  []Provenance
	Inside  []Provenance // of recalled and volatile text inside the items' messages
	Trimmed int          // parts that were shortened
	Recut   bool         // of what the context before held, something is shortened otherwise than there

	renamed int // calls that are sent under another id
}

// frozenText is the content of frozen text: what was recalled, or volatile.
type frozenText struct {
	Text    string               `json:"text"`
	Sources []session.MessageRef `json:"sources,omitempty"`
	Tokens  int64                `json:"tokens,omitempty"`
}

// frozenCalls is the content of closed calls.
type frozenCalls struct {
	Calls []string `json:"calls"`
}

// Assemble puts a context together: initial blocks, pins, the summary, then the messages; in
// preset codex in the order that Codex has.
func Assemble(in Material) Draft {
	closed, texts := sortFrozen(in.Frozen)
	msgs := inContext(in.Messages)
	if before := replaced(in.Overlay); len(before) > 0 {
		msgs = append(before, msgs...)
	}
	out := Draft{Repaired: Repair(msgs, closed, in.CloseCalls), System: in.System}
	copies := 0 // what no log holds and no reply of the log called for
	for copies < len(out.Items) && out.Items[copies].Message.RowID == 0 {
		copies++
	}
	out.Items = slices.Concat(in.front(in.markCopies(out.Items[:copies])), out.Items[copies:])
	out.clean(in.Policy, in.Dialect)
	out.Weights = make([]int64, 0, len(out.Items))

	if in.System != "" {
		out.beside(ItemSystem, in.Weigh.Text(in.System))
	}
	if in.Overhead > 0 {
		out.beside(ItemTools, in.Overhead)
	}
	for i := range out.Items {
		item := &out.Items[i]
		item.Changed = item.Changed || in.Edited[item.Message.RowID]
		hidePruned(item, in.Pruned, in.RecallTool)
		for _, kind := range withhold(item, in.Modalities) {
			out.Losses = append(out.Losses, fmt.Sprintf("%s: the model takes no %s, replaced by a note", item.Message.ID, kind))
		}
		out.limitImages(item, in.Shrink)
		if in.Before != nil && item.Message.RowID <= in.Sent {
			out.Recut = out.Recut || in.Limits.changed(in.Before, item)
		}
		if item.shownAgain() {
			out.Trimmed += trimWhole(item, in.Limits.Shown)
		}
		most, calls := in.Limits.of(&item.Message)
		out.Trimmed += trim(item, most, calls)
		switch item.Kind {
		case ItemMessage, ItemTurnStart, ItemPerson:
			out.putFrozen(i, texts[item.Message.RowID], in.Weigh)
		}
		if refs := in.Stands[item.Message.RowID]; refs != nil && item.Kind == ItemMessage && in.Overlay != nil {
			item.Kind, item.Sources, item.Compaction = ItemReplaced, refs, overlayName(in.Overlay.RowID)
		}
		w := in.Weigh.Message(&item.Message, item.Changed)
		out.Weights = append(out.Weights, w)
		out.Total += w
		if item.Kind == ItemInitial || item.Kind == ItemPinned {
			out.Fixed += w
		}
	}
	if out.Trimmed > 0 {
		out.Losses = append(out.Losses, fmt.Sprintf("%d parts are over the limit for one part: sent as head, marker and tail", out.Trimmed))
	}
	return out
}

// markCopies says of the overlay's copies what they are. Words that are pinned stand there already.
func (in *Material) markCopies(copies []Item) []Item {
	kept := copies[:0]
	for _, item := range copies {
		if item.Kind == ItemMessage {
			item.Kind, item.Changed, item.Sources, item.Compaction = ItemReplaced, true, nil, overlayName(in.Overlay.RowID)
			if ref := item.Message.ID; ref != (session.MessageRef{}) {
				if slices.ContainsFunc(in.Pinned, func(m session.Message) bool { return m.ID == ref }) {
					continue
				}
				item.Kind, item.Sources = ItemWords, []session.MessageRef{ref}
			}
		}
		kept = append(kept, item)
	}
	return kept
}

// front puts what stands before the conversation in order.
func (in *Material) front(copies []Item) []Item {
	var initial, pins, summary, shown []Item
	if len(in.Initial) > 0 {
		initial = []Item{made(ItemInitial, in.Initial...)}
	}
	for i := range in.Pinned {
		pins = append(pins, pinned(&in.Pinned[i]))
	}
	if item, ok := summaryItem(in.Overlay); ok {
		summary = []Item{item}
	}
	for _, again := range []struct {
		kind string
		m    *session.Message
	}{{ItemPerson, in.Person}, {ItemTurnStart, in.TurnStart}} {
		if again.m != nil {
			item := stored(again.m)
			item.Kind = again.kind
			shown = append(shown, item)
		}
	}
	if in.Words {
		history, next := reinject(slices.Concat(copies, shown, summary), initial, in.MidTurn)
		return slices.Concat(pins, history, next)
	}
	return slices.Concat(initial, pins, summary, shown, copies)
}

// inContext gives the messages that are in the context, without copying where all are.
func inContext(msgs []session.Message) []session.Message {
	out := 0
	for i := range msgs {
		if !msgs[i].InContext {
			out++
		}
	}
	if out == 0 {
		return msgs
	}
	kept := make([]session.Message, 0, len(msgs)-out)
	for i := range msgs {
		if msgs[i].InContext {
			kept = append(kept, msgs[i])
		}
	}
	return kept
}

func (d *Draft) beside(kind string, tokens int64) {
	d.Beside = append(d.Beside, Provenance{Message: -1, Kind: kind, Tokens: tokens})
	d.Fixed += tokens
	d.Total += tokens
}

// putFrozen adds what was frozen with a message to its copy in the context.
func (d *Draft) putFrozen(i int, frozen []session.Frozen, weigh Weigh) {
	item := &d.Items[i]
	for _, f := range frozen {
		var content frozenText
		if !decode(f.Content, &content) || content.Text == "" {
			continue
		}
		item.Message.Parts = append(item.Message.Parts[:len(item.Message.Parts):len(item.Message.Parts)], session.TextPart(content.Text))
		item.Changed = true
		p := Provenance{Message: i, Kind: f.Kind, Sources: content.Sources, Tokens: weigh.Text(content.Text)}
		if f.CompactionID != nil {
			p.Compaction = overlayName(*f.CompactionID)
		}
		d.Inside = append(d.Inside, p)
	}
}

// Provenance tells of every item where it comes from.
func (d *Draft) Provenance() []Provenance {
	all := append([]Provenance(nil), d.Beside...)
	inside := d.Inside
	for i := range d.Items {
		p := Provenance{Message: i, Kind: d.Items[i].Kind, Sources: d.Items[i].Sources, Compaction: d.Items[i].Compaction, Tokens: d.Weights[i]}
		own := len(all)
		all = append(all, p)
		for len(inside) > 0 && inside[0].Message == i {
			all[own].Tokens -= inside[0].Tokens
			all = append(all, inside[0])
			inside = inside[1:]
		}
	}
	return all
}

// Messages gives the messages as they are to be sent.
func (d *Draft) Messages() []session.Message {
	msgs := make([]session.Message, len(d.Items))
	for i := range d.Items {
		msgs[i] = d.Items[i].Message
	}
	return msgs
}

// made is a message in the user's role that no log holds.
func made(kind string, parts ...session.Part) Item {
	return Item{Kind: kind, Changed: true, Message: session.Message{
		Kind: session.KindMessage, Role: session.User, Origin: session.Program, InContext: true, Parts: parts,
	}}
}

// pinned shows a hidden message again: a user's as it is, another quoted, since its calls
// and results are hidden.
func pinned(m *session.Message) Item {
	if m.Role == session.User {
		item := stored(m)
		item.Kind = ItemPinned
		return item
	}
	item := made(ItemPinned, session.TextPart(fmt.Sprintf("<pinned_message role=%q>\n%s\n</pinned_message>", m.Role, escape(m.Text()))))
	item.Sources = []session.MessageRef{m.ID}
	return item
}

const (
	summaryOpen  = "<conversation_summary>\nThe conversation before this point, summarised. The originals are in the session's log.\n\n"
	summaryClose = "\n</conversation_summary>"
)

// summaryItem is the message that holds an overlay's summary. It is in the user's role and
// never system text: what it says was said by others.
func summaryItem(c *session.Compaction) (Item, bool) {
	if c == nil {
		return Item{}, false
	}
	var texts []string
	for _, s := range []string{c.Summary, c.PrefixSummary} {
		if strings.TrimSpace(s) != "" {
			texts = append(texts, escape(s))
		}
	}
	if len(texts) == 0 {
		return Item{}, false
	}
	item := made(ItemSummary, session.TextPart(summaryOpen+strings.Join(texts, "\n\n---\n\n")+summaryClose))
	item.Compaction = overlayName(c.RowID)
	return item, true
}

// replaced gives the messages that an overlay made elsewhere keeps as copies: they stand
// behind its summary. A first one that is the summary again is left out.
func replaced(c *session.Compaction) []session.Message {
	kept := replacementOf(c)
	if len(kept) > 0 && c.Summary != "" && kept[0].Text() == c.Summary {
		kept = kept[1:]
	}
	for i := range kept {
		kept[i].RowID, kept[i].InContext = 0, true
	}
	return kept
}

// replacementOf reads an overlay's copies. Those of words name the message that they are of.
func replacementOf(c *session.Compaction) []session.Message {
	var kept []session.Message
	if c == nil || len(c.Replacement) == 0 || !decode(c.Replacement, &kept) {
		return nil
	}
	return kept
}

// overlayName names an overlay; one that was made in memory only has no number.
func overlayName(rowID int64) string {
	if rowID == 0 {
		return StatusEphemeral
	}
	return session.CompactionName(rowID)
}

// escape keeps text from closing the block that it is quoted in, or from opening one, however
// the tag is written.
func escape(s string) string {
	var b strings.Builder
	done := 0
	for i := range len(s) {
		if s[i] != '<' {
			continue
		}
		rest := strings.TrimLeft(s[i+1:min(len(s), i+60)], " \t\r\n/")
		for _, tag := range [...]string{"conversation_summary", "pinned_message", "recalled_messages", "branch_summary"} {
			if len(rest) >= len(tag) && strings.EqualFold(rest[:len(tag)], tag) {
				b.WriteString(s[done:i] + "&lt;")
				done = i + 1
				break
			}
		}
	}
	return b.String() + s[done:]
}

// sortFrozen parts frozen rows into calls that were closed and text, by message. Volatile
// text stands before what was recalled, whichever was frozen first.
func sortFrozen(rows []session.Frozen) (closed map[int64][]string, texts map[int64][]session.Frozen) {
	closed, texts = map[int64][]string{}, map[int64][]session.Frozen{}
	for _, f := range rows {
		switch f.Kind {
		case session.FrozenClosedCall:
			var calls frozenCalls
			if decode(f.Content, &calls) {
				closed[f.MessageID] = append(closed[f.MessageID], calls.Calls...)
			}
		case session.FrozenVolatile:
			texts[f.MessageID] = append([]session.Frozen{f}, texts[f.MessageID]...)
		case session.FrozenRecall:
			texts[f.MessageID] = append(texts[f.MessageID], f)
		}
	}
	return closed, texts
}
