package pages

import (
	"context"
	"net/http"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/transcript"
)

// newestRead is how many messages at the end of a session are read for who acts now, among them rows of its program.
const newestRead = 50

// doing is who acts in a conversation now, in words.
type doing struct {
	Words string
	Hint  string
	Actor session.Actor
	Until session.Time
}

// doingIn returns who acts in a session; nil: that is not known.
func (p *Pages) doingIn(ctx context.Context, sess *session.Session) (*doing, error) {
	now := p.Now()
	if sess.HeadID == nil || sess.EndedAt != nil || sess.ParentKind == session.ParentChild || // its parent waits for it
		now.Sub(sess.ActiveAt.Time) > 25*time.Hour {
		return nil, nil
	}
	byRow := map[int64]*session.Message{}
	head := session.Head{Text: 1, Bytes: 1}
	if err := p.Store.EachHeadInRange(ctx, sess.ID, max(1, sess.LastSeq-newestRead), sess.LastSeq, head,
		func(m *session.Message) error {
			one := *m
			byRow[m.RowID] = &one
			return nil
		}); err != nil {
		return nil, err
	}
	var newest []*session.Message
	for at := sess.HeadID; at != nil && byRow[*at] != nil; at = byRow[*at].ParentID {
		newest = append(newest, byRow[*at])
	}
	return p.doingWords(session.DoingAt(newest, now)), nil
}

func (p *Pages) doingWords(d session.Doing) *doing {
	out := doing{Actor: d.Actor, Until: d.Until}
	switch d.Actor {
	case session.ActsModel:
		out.Words, out.Hint = "the model works", "It was asked then, and its reply is not stored yet"
	case session.ActsTool:
		out.Words = transcript.OneLine(d.Tool, 40) + " runs"
		out.Hint = "It was called then, and has no result yet; its program may also ask a person for permission"
	case session.ActsPerson:
		out.Words, out.Hint = "waits for a person", "The model is done with its turn"
	case session.ActsNobody:
		out.Words, out.Hint = "idle", "The model was done with its turn then"
	default:
		return nil
	}
	since, format := d.Since.In(p.Zone), "15:04:05"
	if since.Format(time.DateOnly) != p.Now().In(p.Zone).Format(time.DateOnly) {
		format = "2 Jan 15:04"
	}
	out.Words += ", since " + since.Format(format)
	return &out
}

// now answers who acts in a session, as a piece of a page.
func (p *Pages) now(w http.ResponseWriter, r *http.Request) error {
	sess, err := p.Store.Session(r.Context(), session.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	d, err := p.doingIn(r.Context(), &sess)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	return p.templates.ExecuteTemplate(w, "doing", d)
}
