package pi

import (
	"sessiond/internal/history"
	"sessiond/internal/session"
)

// compaction turns the record into an overlay. Pi's context after it is the summary, then
// the path from the first kept entry on; so the overlay ends with the entry before that one.
// A first kept entry that is not on the record's path keeps nothing. It is nil when the
// overlay would hide nothing.
func (d *decoder) compaction(n *node, o history.Object) *history.Compaction {
	c := &history.Compaction{Key: n.key}
	c.Strategy, c.Trigger, c.Status = session.StrategySummarize, session.TriggerImport, session.StatusDone
	c.Summary = o.String("summary")
	c.TokensBefore = count(o, "tokensBefore")
	c.Details = detailsOf(o.Get("details"))

	through := n.parent
	kept := d.firstKept(n, o)
	if kept >= 0 {
		through = d.nodes[kept].parent
		c.FirstKeptKey = d.keyOf(kept)
	}
	if through < 0 {
		return nil
	}
	c.ThroughKey = d.keyOf(through)
	for at := through; at >= 0 && d.nodes[at].kind != entryCompaction; at = d.nodes[at].parent {
		c.MessageCount++
	}
	if tail := o.Get("retainedTail"); tail != nil && kept < 0 {
		c.Replacement = replacement(c.Summary, tail)
	}
	return c
}

// firstKept finds the first kept entry on the path of the record, -1 if there is none.
func (d *decoder) firstKept(n *node, o history.Object) int32 {
	key := ""
	if value, ok := number(o.Get("firstKeptEntryIndex")); ok && d.version == 1 {
		key = v1Key(int(value) - 1) // it counts the header
	}
	id := o.String("firstKeptEntryId")
	if key == "" && id == "" {
		return -1
	}
	for at := n.parent; at >= 0; at = d.nodes[at].parent {
		if entry := &d.nodes[at]; (id != "" && entry.id == id) || (key != "" && entry.key == key) {
			return at
		}
	}
	return -1
}

func detailsOf(raw []byte) session.JSON {
	o, ok := history.Fields(raw)
	if !ok {
		return nil
	}
	return session.JSONOf(session.CompactionDetails{
		ReadFiles: textsOf(o.Get("readFiles")), ModifiedFiles: textsOf(o.Get("modifiedFiles")),
	})
}

func textsOf(raw []byte) []string {
	texts := []string{}
	elements, _ := history.Elements(raw)
	for _, element := range elements {
		if text, _ := history.Text(element); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// replacement holds the messages that a harness kept as copies after its summary, in
// sessiond's own form, the summary first.
func replacement(summary string, tail []byte) session.JSON {
	items := []session.Message{{
		Kind: session.KindMessage, Role: session.User, Origin: session.Program, InContext: true, Display: true,
		Parts: []session.Part{session.TextPart(summary)},
	}}
	messages, _ := history.Elements(tail)
	for _, raw := range messages {
		var e entry
		d := decoder{scanned: &scanned{}}
		d.talk(&taker{Object: history.Object{{Key: "message", Raw: raw}}}, &e, &note{})
		if !e.raw {
			items = append(items, e.message.Message)
		}
	}
	return session.JSONOf(items)
}
