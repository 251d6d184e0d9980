package pi

import (
	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// compaction turns the record into an overlay, nil when that would hide nothing. Pi's context after
// it is the summary, then the path from the first kept entry on. A first kept entry that is not on
// the record's path keeps nothing.
func (r *reader) compaction(i int32, l *Line) *history.Compaction {
	o := l.Fields
	kept := r.FirstKept(i, o)
	if first, ok := r.kept[i]; ok && o.String("firstKeptEntryId") == "" {
		kept = first
	}
	if kept < 0 && r.Nodes[i].Parent < 0 {
		return nil
	}
	c := r.Overlay(i, kept, l.Message.CreatedAt)
	if c == nil {
		return nil
	}
	c.Strategy, c.Summary, c.TokensBefore = session.StrategySummarize, o.String("summary"),
		history.Count(o.Get("tokensBefore"))
	c.Details = Details(o)
	if tail := o.Get("retainedTail"); tail != nil && kept < 0 {
		c.Replacement = replacement(c.Summary, tail)
	}
	return c
}

// Details returns which files a compaction's record says were read and modified, and the system text
// of then where the record has a copy; nil when it says neither.
func Details(record jsonx.Object) session.JSON {
	files, ok := jsonx.ReadFields(record.Get("details"))
	system, has := jsonx.ReadFields(record.Get("systemMessage"))
	if !ok && !has {
		return nil
	}
	details := session.CompactionDetails{
		ReadFiles:     Texts(files.Get("readFiles")),
		ModifiedFiles: Texts(files.Get("modifiedFiles")),
	}
	var l Line
	l.prompt(&history.Taker{Object: system})
	if text := l.Message.Text(); text != "" {
		details.System = &session.HiddenSystem{Texts: []string{text}, Whole: true}
	}
	return session.JSONOf(details)
}

// editOf notes what a context edit changes: the content of the entry with a key, or that it is left out.
func (l *Line) editOf(target string) {
	parts, _ := contentOf(l.Fields.Inner("replacement").Get("content"))
	l.edit = session.JSONOf(map[string]any{"target": target, "parts": withoutBytes(parts)})
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

// findTails finds what harness compactions kept: a copy of the newest messages of the path
// instead of the name of the first one.
func (s *survey) findTails() {
	for _, i := range s.tails {
		if s.Nodes[i].Old {
			continue
		}
		o := s.Reread(i)
		copies, _ := jsonx.ReadArray(o.Get("retainedTail"))
		says := make([]string, len(copies))
		for k, message := range copies {
			if fields, ok := jsonx.ReadFields(message); ok {
				says[k] = jsonx.Fingerprint(fields)
			}
		}
		if first := s.firstCopied(s.Nodes[i].Parent, says); first >= 0 {
			s.kept[i] = first
		}
	}
}

// firstCopied walks back from an entry as long as its messages are the copies, newest last.
// It is -1 when not all of them are found in a row.
func (s *survey) firstCopied(at int32, says []string) int32 {
	for left := len(says); left > 0 && at >= 0; at = s.Nodes[at].Parent {
		o := s.Reread(at)
		if o.String("type") != lineMessage {
			continue
		}
		left--
		if jsonx.Fingerprint(o.Inner("message")) != says[left] {
			return -1
		}
		if left == 0 {
			return at
		}
	}
	return -1
}

// replacement holds the messages that a harness kept as copies after its summary, in
// sessiond's own form, the summary first.
func replacement(summary string, tail []byte) session.JSON {
	kept := []session.Message{{
		Kind: session.KindMessage, Role: session.User, Origin: session.Program,
		Parts: []session.Part{session.TextPart(summary)},
	}}
	messages, _ := jsonx.ReadArray(tail)
	for _, raw := range messages {
		inner, _ := jsonx.ReadFields(raw)
		l := Line{Inner: inner, Rest: history.Taker{Object: jsonx.Object{{Key: "message", Value: raw}}}}
		if l.talk(); !l.Raw && l.Message.InContext {
			kept = append(kept, l.Message)
		}
	}
	return history.Replacement(kept)
}
