package pi

import (
	"math"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// compaction turns the record into an overlay. Pi's context after it is the summary, then
// the path from the first kept entry on; so the overlay ends with the entry before that one.
// A first kept entry that is not on the record's path keeps nothing. It is nil when the
// overlay would hide nothing.
func (d *decoder) compaction(i int32, o history.Object) *history.Compaction {
	n := &d.nodes[i]
	c := &history.Compaction{Key: d.keyOf(i)}
	c.Strategy, c.Trigger, c.Status = session.StrategySummarize, session.TriggerImport, session.StatusDone
	c.Summary = o.String("summary")
	c.TokensBefore = count(o, "tokensBefore")
	c.Details = detailsOf(o.Get("details"), o.Get("systemMessage"))

	through := n.parent
	kept := d.firstKept(i, o)
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
	c.Record = history.Place{Key: c.Key}
	if tail := o.Get("retainedTail"); tail != nil && kept < 0 {
		c.Replacement = replacement(c.Summary, tail)
	}
	return c
}

// firstKept finds the first kept entry on the path of the record, -1 if there is none.
func (d *decoder) firstKept(i int32, o history.Object) int32 {
	place := int32(-1)
	if value, ok := number(o.Get("firstKeptEntryIndex")); ok && d.version == 1 && value >= 1 && value < math.MaxInt32 {
		place = int32(value) - 1 // it counts the header
	}
	id := o.String("firstKeptEntryId")
	if place < 0 && id == "" {
		if kept, ok := d.kept[i]; ok {
			return kept
		}
		return -1
	}
	for at := d.nodes[i].parent; at >= 0; at = d.nodes[at].parent {
		if n := &d.nodes[at]; id != "" && n.id == id || place >= 0 && n.place == place {
			return at
		}
	}
	return -1
}

// detailsOf takes the lists of files, and the system text of then where the record has a copy.
func detailsOf(raw, system []byte) session.JSON {
	o, ok := history.Fields(raw)
	message, told := history.Fields(system)
	if !ok && !told {
		return nil
	}
	details := session.CompactionDetails{ReadFiles: textsOf(o.Get("readFiles")), ModifiedFiles: textsOf(o.Get("modifiedFiles"))}
	if told {
		var m session.Message
		system := take(message)
		prompt(&system, &m, &note{})
		if text := m.Text(); text != "" {
			details.System = &session.HiddenSystem{Texts: []string{text}, Whole: true}
		}
	}
	return session.JSONOf(details)
}

// edit notes what the line changes: the target's content, or that it is left out.
func (d *decoder) edit(i int32, o history.Object, remark *note) {
	target, ok := d.find(o.String("targetId"))
	if !ok || target >= i {
		remark.text = "edits an entry that is not in the file before it"
		return
	}
	replacement, _ := history.Fields(o.Get("replacement"))
	parts, _ := contentOf(replacement.Get("content"))
	remark.edit = session.JSONOf(map[string]any{"target": d.keyOf(target), "parts": withoutBytes(parts)})
}

// withoutBytes leaves a note where bytes stood, which no JSON of ours holds.
func withoutBytes(parts []session.Part) []session.Part {
	for i := range parts {
		if parts[i].Blob != nil {
			parts[i] = session.TextPart("[" + string(parts[i].Kind) + "]")
		}
	}
	return parts
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

// findTails finds what harness compactions kept: a copy of the newest messages of the path
// instead of the name of the first one.
func (s *survey) findTails() error {
	for _, i := range s.tails {
		if s.nodes[i].old {
			continue
		}
		o, err := s.reread(i)
		if err != nil {
			return err
		}
		copies, _ := history.Elements(o.Get("retainedTail"))
		says := make([]string, len(copies))
		for k, message := range copies {
			if fields, ok := history.Fields(message); ok {
				says[k] = history.Fingerprint(fields)
			}
		}
		first, err := s.firstCopied(s.nodes[i].parent, says)
		if err != nil {
			return err
		}
		if first >= 0 {
			s.kept[i] = first
		}
	}
	return nil
}

// firstCopied walks back from an entry as long as its messages are the copies, newest last.
// It is -1 when not all of them are found in a row.
func (s *survey) firstCopied(at int32, says []string) (int32, error) {
	for left := len(says); left > 0 && at >= 0; at = s.nodes[at].parent {
		o, err := s.reread(at)
		if err != nil {
			return -1, err
		}
		if o.String("type") != lineMessage {
			continue
		}
		message, _ := history.Fields(o.Get("message"))
		left--
		if history.Fingerprint(message) != says[left] {
			return -1, nil
		}
		if left == 0 {
			return at, nil
		}
	}
	return -1, nil
}

// item is a message of a replacement, in the words of the kernel.
type item struct {
	Kind     session.Kind   `json:"kind"`
	Role     session.Role   `json:"role"`
	Origin   session.Origin `json:"origin"`
	Finish   session.Finish `json:"finish,omitempty"`
	Provider string         `json:"provider,omitempty"`
	Model    string         `json:"model,omitempty"`
	Parts    []session.Part `json:"parts"`
}

// replacement holds the messages that a harness kept as copies after its summary, in
// sessiond's own form, the summary first.
func replacement(summary string, tail []byte) session.JSON {
	items := []item{{
		Kind: session.KindMessage, Role: session.User, Origin: session.Program, Parts: []session.Part{session.TextPart(summary)},
	}}
	messages, _ := history.Elements(tail)
	for _, raw := range messages {
		var e entry
		d := decoder{survey: &survey{}}
		kept := take(history.Object{{Key: "message", Raw: raw}})
		d.talk(&kept, &e, &note{})
		if m := &e.message; !e.raw && m.InContext {
			items = append(items, item{m.Kind, m.Role, m.Origin, m.Finish, m.Provider, m.Model, m.Parts})
		}
	}
	return session.JSONOf(items)
}
