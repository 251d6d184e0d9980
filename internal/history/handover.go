package history

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Handover says which conversation a file repeats that sessiond wrote for another program. It stands under HandoverKey
// in the file's first record. The records that repeat the conversation have the same key, with a text; the records
// that the program adds have none.
type Handover struct {
	Session  session.ID         `json:"session"`
	Source   session.Source     `json:"source"`
	SourceID string             `json:"source_id,omitempty"`
	Message  session.MessageRef `json:"message"`       // the last one that was handed over
	Key      string             `json:"key,omitempty"` // its external id
	At       session.Time       `json:"at"`            // and its time
	Created  session.Time       `json:"created"`       // of the session: after a purge its name
}

// HandoverKey is the field of records that sessiond wrote.
const HandoverKey = "sessiond"

// SkipHandedOver says why a record is skipped that sessiond wrote.
const SkipHandedOver = "handed over by sessiond: the session that it was forked from has it"

// skipUnused says why nothing of a session is stored that was handed over and not continued.
const skipUnused = "handed over by sessiond, and not continued yet"

// handoverBase is the key of the message that a continuation follows.
const handoverBase = "\x00handover"

// maxFirstRecord limits the first record of a file that sessiond wrote.
const maxFirstRecord = 16 << 10

// ParseHandover returns what the first record of a file says of its origin; nil: sessiond did not write it.
func ParseHandover(record []byte) *Handover {
	if !bytes.Contains(record, []byte(`"`+HandoverKey+`":{`)) {
		return nil
	}
	o, _ := jsonx.ReadObject(record)
	value := o.Get(HandoverKey)
	if value == nil {
		value = o.Inner("payload").Get(HandoverKey)
	}
	return handoverOf(value)
}

func handoverOf(value []byte) *Handover {
	var h Handover
	if value == nil || jsonx.Unmarshal(value, &h) != nil || h.Message.Seq == 0 || h.At.IsZero() {
		return nil
	}
	return &h
}

// MarkIn returns what an object says under HandoverKey, for a program that keeps objects there: whether it repeats a
// conversation that was handed over, and in the first one of a session which.
func MarkIn(o jsonx.Object) (repeats bool, of *Handover) {
	value := o.Get(HandoverKey)
	mark, is := jsonx.ReadFields(value)
	if !is {
		return false, nil
	}
	of = handoverOf(value)
	return of != nil || mark.String("message") != "", of
}

// ReadHandover returns the handover of a file; nil: sessiond did not write it.
func ReadHandover(file io.ReaderAt) *Handover {
	head := make([]byte, maxFirstRecord)
	n, _ := file.ReadAt(head, 0) // what could be read
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	return ParseHandover(line)
}

// IsContinued reports whether somebody spoke in a file behind what sessiond wrote.
func IsContinued(file io.Reader) (bool, error) {
	lines := bufio.NewReader(file)
	for first := true; ; first = false {
		line, err := lines.ReadBytes('\n')
		if !first && speaks(line) && !isMarked(line) {
			return true, nil
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// speaks reports whether a line is a message, in the file of any program.
func speaks(line []byte) bool {
	if bytes.Contains(line, []byte(`"role":`)) {
		return true
	}
	o, _ := jsonx.ReadFields(line)
	kind := o.String("type")
	return kind == "user" || kind == "user.message" // of Gemini CLI, of Copilot CLI
}

// isMarked reports whether a line repeats a conversation that sessiond wrote.
func isMarked(line []byte) bool {
	if !bytes.Contains(line, []byte(`"`+HandoverKey+`":"`)) {
		return false
	}
	o, _ := jsonx.ReadObject(line)
	_, is := jsonx.Text(o.Get(HandoverKey))
	return is
}

// origin is the message that a continuation follows.
type origin struct {
	session *session.Session
	place   Place
}

// findOrigin finds the conversation that a handover repeats, nil if it is not here. Ids of sessiond's may name another
// session in another database, so the time of the message must be the same.
func (in *Intake) findOrigin(h *Handover) *origin {
	ask := func() (*session.Session, error) { return orNone(in.Known.Session(in.ctx, h.Session)) }
	if h.SourceID != "" {
		ask = func() (*session.Session, error) {
			return orNone(in.Known.SessionBySource(in.ctx, h.Source, h.SourceID))
		}
	}
	s := lookUp(in, ask)
	if s == nil {
		return nil
	}
	ref := &session.MessageRef{Session: s.ID, Seq: h.Message.Seq}
	if h.Key != "" {
		ref = in.Message(s.ID, h.Key)
	}
	if ref == nil {
		return nil
	}
	m := lookUp(in, func() (*session.Message, error) {
		m, err := in.Known.Message(context.WithoutCancel(in.ctx), *ref)
		if session.CodeOf(err) == session.NotFound {
			return nil, nil
		}
		return &m, err
	})
	if m == nil || !m.CreatedAt.Equal(h.At.Time) {
		return nil
	}
	key := m.ExternalID
	if key == "" {
		key = session.SeqKey(m.Seq)
	}
	return &origin{s, Place{Key: key, Session: s.ID}}
}

// WrittenOf says what sessiond wrote the thing of: after a purge of that it stays away, too.
func (in *Intake) WrittenOf(h *Handover) {
	in.writtenOf = &store.WrittenOf{ID: h.Session, Source: h.Source, SourceID: h.SourceID, CreatedAt: h.Created}
}

// HandOver says what a session repeats that sessiond wrote for its program, before its Conversation begins, and reports
// whether that is here. A reader of lines need not: the intake finds it in the first one.
func (in *Intake) HandOver(h *Handover) bool {
	in.WrittenOf(h)
	if in.origin = in.findOrigin(h); in.origin == nil {
		in.NeedsOrigin()
	}
	return in.origin != nil
}

// repeats reports whether a line repeats the conversation that was handed over.
func (in *Intake) repeats(line []byte) bool { return in.origin != nil && isMarked(line) }

// Base returns the key of the message that the first entry of a continuation follows; "": the conversation continues
// none.
func (c *Conversation) Base() string {
	if _, continues := c.places[handoverBase]; continues {
		return handoverBase
	}
	return ""
}

// continueFrom makes a new session a fork of the one that was handed over, from its last message on.
func (c *Conversation) continueFrom(from *origin) {
	if c.Here != nil && c.Here.ParentID != from.session.ID || c.Here != nil && c.Here.ID == from.session.ID {
		return // it was imported as a whole
	}
	c.New.ParentID, c.New.ParentKind = from.session.ID, session.ParentFork
	c.places[handoverBase] = from.place
	if c.Here == nil {
		c.unused = true
	}
}
