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
	ItemPerson     = "last_person" // the person's newest message, if only programs spoke since
	ItemReplaced   = "replacement" // a copy that an imported overlay keeps, or its text for old calls
	ItemWords      = "words"       // a copy of a person's words, kept by preset codex
	ItemMessage    = "message"
	ItemClosedCall = "closed_call"
	ItemRecall     = "recall"
	ItemVolatile   = "volatile"
	ItemLead       = "lead" // a short text before a context that would begin with a reply
)

// Provenance says where an item of a context comes from. Message is the index in the context's
// messages, -1 for system text and tools.
type Provenance struct {
	Message    int                  `json:"message" doc:"Index in the context's messages, from 0; -1: system text or tools"`
	Kind       string               `json:"kind" doc:"system, tools, initial, pinned, summary, turn_start, last_person, replacement, words, message, closed_call, recall, volatile, lead"`
	Sources    []session.MessageRef `json:"sources,omitempty"`
	Compaction string               `json:"compaction,omitempty" doc:"Of a summary: its compaction, like cmp_12"`
	Tokens     int64                `json:"tokens" doc:"Size in tokens of the model"`
}

// Material is all that a context is made of. Messages are those of the path from the overlay's
// first kept one on, oldest first.
type Material struct {
	System    string
	Overhead  int64 // tokens of tools and of the provider's framing
	Initial   []session.Part
	Pinned    []session.Message // hidden by the overlay
	Overlay   *session.Compaction
	Pictures  pictures         // of the overlay's copies
	Person    *session.Message // hidden by the overlay, and no newer one of a person is kept
	TurnStart *session.Message // hidden by the overlay, which splits its turn
	Messages  []session.Message
	Frozen    []session.Frozen

	Edited     map[int64]bool                 // messages whose content is not the stored one
	ReplacedBy map[int64][]session.MessageRef // the messages that an edited message replaces
	Words      bool                           // the overlay's copies stand before its summary, as in Codex
	MidTurn    bool                           // such an overlay was made in the middle of a turn
	Pruned     map[string]bool                // outputs that a line replaces
	RecallTool string                         // named in that line; "": none
	CloseCalls bool
	Limits     limits
	Before     *limits  // of the context before; nil: unknown
	Sent       int64    // row of the head of the context before
	Dialects   Dialects // nil: the messages are not fitted to a provider
	Dialect    string
	Provider   string // "": unknown
	Model      string
	Modalities []string       // that the model accepts; none: unknown, everything is sent
	Shrink     session.Shrink // nil: a note replaces images over the provider's limits
	Weigh      Weigh
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
	Recut   bool         // a part of the context before is shortened differently now
}

// frozenText is the content of recalled or volatile text.
type frozenText struct {
	Text    string               `json:"text"`
	Sources []session.MessageRef `json:"sources,omitempty"`
	Tokens  int64                `json:"tokens,omitempty"`
}

// frozenCalls is the content of closed calls.
type frozenCalls struct {
	Calls []string `json:"calls"`
}

// Assemble builds a context: initial blocks, pins, the summary, then the messages; with copies of a
// person's words in Codex's order.
func Assemble(in Material) Draft {
	closed, texts := groupFrozen(in.Frozen)
	msgs := in.Messages
	copied := replaced(in.Overlay)
	missing := in.attachPictures(copied)
	if len(copied) > 0 {
		msgs = append(copied, msgs...)
	}
	out := Draft{Repaired: Repair(msgs, closed, in.CloseCalls), System: in.System}
	out.Losses = append(out.Losses, missing...)
	copies := 0 // the overlay's copies have no row
	for copies < len(out.Items) && out.Items[copies].Message.RowID == 0 {
		copies++
	}
	out.Items = slices.Replace(out.Items, 0, copies, in.front(in.labelCopies(out.Items[:copies]))...)
	for i := range out.Items {
		item := &out.Items[i]
		item.Changed = item.Changed || in.Edited[item.Message.RowID]
		replacePruned(item, in.Pruned, in.RecallTool)
	}
	out.fit(&in)
	out.Weights = make([]int64, 0, len(out.Items))
	trimmed := 0 // outputs of tools
	if in.System != "" {
		out.addBeside(ItemSystem, in.Weigh.Text(in.System))
	}
	if in.Overhead > 0 {
		out.addBeside(ItemTools, in.Overhead)
	}
	for i := range out.Items {
		item := &out.Items[i]
		if in.Before != nil && item.Message.RowID <= in.Sent {
			out.Recut = out.Recut || in.Limits.cutsDifferently(in.Before, item)
		}
		var shortened int
		if item.isShownAgain() {
			shortened = trimTogether(item, in.Limits.Shown)
		}
		outputs, said := trimParts(item, in.Limits.partLimits(&item.Message))
		if trimmed += outputs; shortened+said > 0 {
			out.Losses = append(out.Losses,
				item.name()+": the context does not fit otherwise, so only the head and the tail of this message are sent")
		}
		if item.Kind == ItemMessage || item.isShownAgain() {
			out.addFrozen(i, texts[item.Message.RowID], in.Weigh)
		}
		if refs := in.ReplacedBy[item.Message.RowID]; refs != nil && item.Kind == ItemMessage && in.Overlay != nil {
			item.Kind, item.Sources, item.Compaction = ItemReplaced, refs, overlayName(in.Overlay.RowID)
		}
		w := in.Weigh.Message(&item.Message, item.Changed)
		out.Weights = append(out.Weights, w)
		out.Total += w
		if item.Kind == ItemInitial || item.Kind == ItemPinned {
			out.Fixed += w
		}
	}
	if trimmed > 0 {
		out.Losses = append(out.Losses,
			fmt.Sprintf("%d outputs of tools exceed the limit of one part: only their head and tail are sent", trimmed))
	}
	return out
}

// labelCopies sets the kinds of the overlay's copies. It drops copies of pinned messages.
func (in *Material) labelCopies(copies []Item) []Item {
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

// front returns everything before the conversation, in order.
func (in *Material) front(copies []Item) []Item {
	var initial, pins, summary, shown []Item
	if len(in.Initial) > 0 {
		initial = []Item{newUserItem(ItemInitial, in.Initial...)}
	}
	for i := range in.Pinned {
		pins = append(pins, pinnedItem(&in.Pinned[i]))
	}
	if item, ok := summaryItem(in.Overlay); ok {
		summary = []Item{item}
	}
	if in.Person != nil {
		shown = append(shown, storedItem(in.Person, ItemPerson))
	}
	if in.TurnStart != nil {
		shown = append(shown, storedItem(in.TurnStart, ItemTurnStart))
	}
	if in.Words {
		history, next := insertInitial(slices.Concat(copies, shown, summary), initial, in.MidTurn)
		return slices.Concat(pins, history, next)
	}
	return slices.Concat(initial, pins, summary, shown, copies)
}

// insertInitial inserts the caller's initial blocks into compacted history. In the middle of a turn
// they stand before the last of a user's own messages, else before the last summary, else before
// the last compaction item of a provider, else at the end. Between turns they follow as a whole.
// Rule: codex, insert_initial_context_before_last_real_user_or_summary.
func insertInitial(history, initial []Item, midTurn bool) (placed, next []Item) {
	if !midTurn {
		return history, initial
	}
	for _, matches := range []func(*Item) bool{isOwnWords, isSummary, isCompactionItem} {
		for at := range slices.Backward(history) {
			if matches(&history[at]) {
				return slices.Insert(slices.Clone(history), at, initial...), nil
			}
		}
	}
	return slices.Concat(history, initial), nil
}

// isOwnWords reports whether a user wrote the item: no summary, and nothing that a program inserted.
func isOwnWords(item *Item) bool {
	return (item.Kind == ItemWords || item.isShownAgain()) && item.Message.Role == session.User
}

func isSummary(item *Item) bool { return item.Kind == ItemSummary }

// isCompactionItem reports whether the item is a provider's own form of a compacted conversation.
func isCompactionItem(item *Item) bool {
	return slices.ContainsFunc(item.Message.Parts, func(p session.Part) bool {
		return p.Kind == session.PartData && strings.Contains(string(p.Extra), `"compaction"`)
	})
}

func (d *Draft) addBeside(kind string, tokens int64) {
	d.Beside = append(d.Beside, Provenance{Message: -1, Kind: kind, Tokens: tokens})
	d.Fixed += tokens
	d.Total += tokens
}

// addFrozen appends frozen text to the item's copy of its message.
func (d *Draft) addFrozen(i int, frozen []session.Frozen, weigh Weigh) {
	item := &d.Items[i]
	for _, f := range frozen {
		var content frozenText
		if !decode(f.Content, &content) || content.Text == "" {
			continue
		}
		item.Message.Parts = append(slices.Clip(item.Message.Parts), session.TextPart(content.Text))
		item.Changed = true
		p := Provenance{Message: i, Kind: f.Kind, Sources: content.Sources, Tokens: weigh.Text(content.Text)}
		if f.CompactionID != nil {
			p.Compaction = overlayName(*f.CompactionID)
		}
		d.Inside = append(d.Inside, p)
	}
}

// Provenance says of every item where it comes from.
func (d *Draft) Provenance() []Provenance {
	all := append([]Provenance(nil), d.Beside...)
	inside := d.Inside
	for i := range d.Items {
		p := Provenance{
			Message: i, Kind: d.Items[i].Kind, Sources: d.Items[i].Sources, Compaction: d.Items[i].Compaction,
			Tokens: d.Weights[i],
		}
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

// Messages returns the messages to send.
func (d *Draft) Messages() []session.Message {
	msgs := make([]session.Message, len(d.Items))
	for i := range d.Items {
		msgs[i] = d.Items[i].Message
	}
	return msgs
}

// newUserItem returns an item in the user's role that is not stored.
func newUserItem(kind string, parts ...session.Part) Item {
	return Item{Kind: kind, Changed: true, Message: session.Message{
		Kind: session.KindMessage, Role: session.User, Origin: session.Program, InContext: true, Parts: parts,
	}}
}

// pinnedItem shows a hidden message again. A message that is not a user's is quoted, since its
// calls and results stay hidden.
func pinnedItem(m *session.Message) Item {
	if m.Role == session.User {
		return storedItem(m, ItemPinned)
	}
	item := newUserItem(ItemPinned, session.TextPart(fmt.Sprintf("<pinned_message role=%q>\n%s\n</pinned_message>", m.Role,
		escapeTags(m.Text()))))
	item.Sources = []session.MessageRef{m.ID}
	return item
}

const (
	summaryOpen = "<conversation_summary>\n" +
		"The conversation before this point, summarised. The originals are in the session's log.\n\n"
	summaryClose = "\n</conversation_summary>"
)

// summaryItem returns the message with an overlay's summary. It has the user's role and is never
// system text, since it repeats what others said.
func summaryItem(c *session.Compaction) (Item, bool) {
	if c == nil {
		return Item{}, false
	}
	var texts []string
	for _, s := range []string{c.Summary, c.PrefixSummary} {
		if strings.TrimSpace(s) != "" {
			texts = append(texts, escapeTags(s))
		}
	}
	if len(texts) == 0 {
		return Item{}, false
	}
	item := newUserItem(ItemSummary, session.TextPart(summaryOpen+strings.Join(texts, "\n\n---\n\n")+summaryClose))
	item.Compaction = overlayName(c.RowID)
	return item, true
}

// replaced returns the copies of an overlay that stand behind its summary. A first copy that
// repeats the summary is left out.
func replaced(c *session.Compaction) []session.Message {
	kept := ReplacementOf(c)
	if len(kept) > 0 && c.Summary != "" && kept[0].Text() == c.Summary {
		kept = kept[1:]
	}
	for i := range kept {
		kept[i].RowID, kept[i].InContext = 0, true
	}
	return kept
}

// ReplacementOf decodes an overlay's copies. Copies of words carry the id of their message.
func ReplacementOf(c *session.Compaction) []session.Message {
	var kept []session.Message
	if c == nil || len(c.Replacement) == 0 || !decode(c.Replacement, &kept) {
		return nil
	}
	return kept
}

// overlayName returns an overlay's name. One that is only in memory has no number.
func overlayName(rowID int64) string {
	if rowID == 0 {
		return StatusEphemeral
	}
	return session.CompactionName(rowID)
}

// escapeTags escapes the tags of the blocks that a context quotes text in.
func escapeTags(s string) string { return session.EscapeBlocks(s) }

// groupFrozen groups frozen rows by message, closed calls apart from texts. Volatile text stands
// before recalled text.
func groupFrozen(rows []session.Frozen) (closed map[int64][]string, texts map[int64][]session.Frozen) {
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
