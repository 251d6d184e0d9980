package jobs

import (
	"context"
	"errors"
	"slices"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// titleMessages is the number of messages that a title is made of.
const titleMessages = 6

// Titles asks a model for titles of sessions whose title is the beginning of their first message.
type Titles struct {
	Store *store.Store
	Model interface { // its Summary is a title
		Summarize(ctx context.Context, in session.SummaryRequest) (session.Summary, error)
	}
}

// Title asks for a session's title and stores it with its cost. A person's title stays, also one set
// meanwhile.
func (t *Titles) Title(ctx context.Context, id session.ID) error {
	sess, err := t.Store.Session(ctx, id)
	if err != nil || sess.TitleSource != "first_message" || sess.DeletedAt != nil {
		return err
	}
	msgs, _, err := t.Store.Messages(ctx, id, store.MessagePage{Limit: titleMessages})
	if err != nil {
		return err
	}
	msgs = slices.DeleteFunc(msgs, func(m session.Message) bool { return m.Talk == session.OfProgram })
	made, failed := t.Model.Summarize(ctx, session.SummaryRequest{Messages: msgs, Purpose: session.PurposeTitle})
	keep := context.WithoutCancel(ctx) // costs are stored also at a stop
	for _, call := range made.Calls {
		call.SessionID = id
		if _, err := t.Store.AddCall(keep, call); err != nil {
			return errors.Join(failed, err)
		}
	}
	if failed != nil {
		return failed
	}
	return t.Store.SetModelTitle(keep, id, made.Text)
}

func (r *Runner) makeTitle(id session.ID) {
	if err := r.cfg.Titles.Title(r.ctx, id); err != nil && r.ctx.Err() == nil && !session.IsRepeated(err) {
		r.cfg.Log.Warn().Err(err).Str("session",
			string(id)).Msg("cannot make a title; the session keeps the beginning of its first message")
	}
}
