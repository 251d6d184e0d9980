package jobs

import (
	"context"
	"errors"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// titleQueue is how many sessions wait for a title; more than that keep what they have.
const titleQueue = 64

// titleMessages is how much of a conversation's beginning a title is made of.
const titleMessages = 6

// TitleStore is what titles need of the store.
type TitleStore interface {
	Session(ctx context.Context, id session.ID) (session.Session, error)
	Messages(ctx context.Context, id session.ID, p store.MessagePage) (msgs []session.Message, more bool, err error)
	AddCall(ctx context.Context, c session.Call) (session.Call, error)
	SetModelTitle(ctx context.Context, id session.ID, title string) error
}

// Titles gives sessions a title by a model, where they have none but the beginning of what a
// person said.
type Titles struct {
	Store TitleStore
	Model interface { // whose Summary is a title
		Summarize(ctx context.Context, in session.SummaryRequest) (session.Summary, error)
	}
}

// Title asks for a session's title and keeps it with what it cost. One that a person gave, or
// gives meanwhile, stays.
func (t *Titles) Title(ctx context.Context, id session.ID) error {
	sess, err := t.Store.Session(ctx, id)
	if err != nil || sess.TitleSource != "first_message" || sess.DeletedAt != nil {
		return err
	}
	msgs, _, err := t.Store.Messages(ctx, id, store.MessagePage{Limit: titleMessages})
	if err != nil {
		return err
	}
	made, failed := t.Model.Summarize(ctx, session.SummaryRequest{Messages: msgs, Purpose: session.PurposeTitle})
	keep := context.WithoutCancel(ctx) // what was spent is told of, also at a stop
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

// Answered tells that a session got a reply and is still without a title of its own. It does
// not block.
func (r *Runner) Answered(id session.ID) {
	if r.cfg.Titles == nil {
		return
	}
	select {
	case r.untitled <- id:
	default:
	}
}

// title gives titles, one after the other.
func (r *Runner) title() {
	for {
		select {
		case <-r.ctx.Done():
			return
		case id := <-r.untitled:
			if err := r.cfg.Titles.Title(r.ctx, id); err != nil && r.ctx.Err() == nil {
				r.cfg.Log.Warn().Err(err).Str("session", string(id)).Msg("no title could be made; the session keeps the beginning of its first message")
			}
		}
	}
}
