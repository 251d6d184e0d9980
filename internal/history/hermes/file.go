package hermes

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// readFile reads a session that an older build wrote: one object, or a line for each message. Neither names messages,
// and their times are those of the host's clock.
func readFile(in *history.Intake) {
	name := filepath.Base(in.Found.Path)
	t := &talk{in: in, keys: history.Repeats{}}
	w := &t.whole
	w.Notes = jsonx.Object{jsonx.MemberOf("record", inFile), jsonx.MemberOf("usage", "not recorded")}
	if id, isLines := strings.CutSuffix(name, ".jsonl"); isLines {
		w.New.SourceID = history.Plain(id)
		in.EachLine(t.line)
	} else {
		w.New.SourceID = history.Plain(strings.TrimSuffix(strings.TrimPrefix(name, fileStart), ".json"))
		t.object()
	}
	if in.Err() != nil {
		return
	}
	if len(t.entries)+len(w.Items) == 0 && w.Records == 0 {
		in.Fail(session.Errorf(session.Invalid, "no session of Hermes: it has no messages with roles that it knows"))
		return
	}
	if here := in.Session(w.New.SourceID); here != nil &&
		history.Notes(here, string(session.SourceHermes)).String("record") == inDatabase {
		in.SkipAll(skipBoth, w.Records+len(t.entries)+len(w.Items))
		return
	}
	t.end()
	in.AddWhole(w)
}

// object reads a file that is one object, which the program wrote anew after each turn.
func (t *talk) object() {
	text := t.in.Bytes(0, t.in.Found.Size)
	o, ok := jsonx.ReadFields(history.Unmarked(text))
	switch messages, isList := jsonx.ReadArray(o.Get("messages")); {
	case t.in.Err() != nil:
	case !ok && !t.in.Quiet():
		t.in.LookAgain() // it is being written
	case !ok || jsonx.DeeperThan(text, history.MaxDepth):
		t.in.Fail(session.Errorf(session.Invalid, "no session of Hermes, cut off, or nested too deep"))
	case !isList:
		t.in.Fail(session.Errorf(session.Invalid, "no session of Hermes: it has no list `messages`"))
	default:
		w := &t.whole
		w.Records = 1
		w.New.Model = history.Plain(o.String("model"))
		if at := localTime(o.Get("session_start")); !at.IsZero() {
			w.New.CreatedAt = &at
		}
		t.channel(o)
		for _, raw := range messages {
			m, _ := jsonx.ReadFields(raw)
			t.message(m, 0, 0, raw)
		}
	}
}

func (t *talk) channel(o jsonx.Object) {
	if platform := o.String("platform"); platform != "" {
		t.whole.Notes = append(t.whole.Notes, jsonx.MemberOf("channel", history.Plain(platform)))
	}
}

// line reads a line of a file of messages.
func (t *talk) line(l history.FileLine) {
	o, _, ok := history.ParseLine(l.Bytes)
	switch {
	case !ok || jsonx.DeeperThan(l.Bytes, history.MaxDepth):
		key := t.keys.Key(history.LineKey(l.Bytes))
		item := history.RawItem(key, l.Bytes, "no JSON object, or nested too deep", session.Time{})
		item.At, item.Line = l.At, l.Number
		t.entries = append(t.entries, entry{item: item, active: true})
	case o.String("role") == "session_meta":
		t.whole.Records++
		if model := o.String("model"); model != "" {
			t.whole.New.Model = history.Plain(model)
		}
		t.channel(o)
	default:
		t.message(o, l.At, l.Number, l.Bytes)
	}
}

// message adds a message of a file as if it were a row.
func (t *talk) message(o jsonx.Object, at int64, line int, raw []byte) {
	var row history.Row
	for _, m := range o {
		text, isText := jsonx.Text(m.Value)
		switch {
		case jsonx.IsNull(m.Value) || m.Key == "timestamp":
		case m.Key == "content" && jsonx.KindOf(m.Value) == '[':
			row = append(row, history.Column{Name: m.Key, Text: jsonMark + string(m.Value)})
		case isText:
			row = append(row, history.Column{Name: m.Key, Text: history.Plain(text)})
		default:
			row = append(row, history.Column{Name: m.Key, Text: history.Plain(string(m.Value))})
		}
	}
	e, ok := entry{}, false
	switch role := row.Get("role"); role {
	case "user", "assistant", "tool", "system":
		e, ok = t.entryOf(row)
	default:
		key := t.keys.Key(history.LineKey(raw))
		e.item, ok = history.RawItem(key, raw, "a message whose role is not known", session.Time{}), true
	}
	if !ok {
		return
	}
	e.active, e.item.At, e.item.Line = true, at, line
	if when := localTime(o.Get("timestamp")); !when.IsZero() {
		e.item.Message.CreatedAt = when
	}
	t.entries = append(t.entries, e)
}

// localTime reads a time that may lack its zone: then it is the host's.
func localTime(raw jsontext.Value) session.Time {
	text, isText := jsonx.Text(raw)
	for _, layout := range []string{"2006-01-02T15:04:05", time.DateTime} {
		if at, err := time.ParseInLocation(layout, text, time.Local); isText && err == nil && at.Year() >= 2000 {
			return session.At(at)
		}
	}
	return timeOf(string(raw))
}
