package history

import (
	"context"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// known answers a source's questions from the store.
type known struct {
	store Store
	anew  bool // answer as if no path was ever read
}

func (k known) Session(ctx context.Context, source session.Source, sourceID string) (*session.Session, error) {
	return orNone(k.store.SessionBySource(ctx, source, sourceID))
}

func (k known) SessionByID(ctx context.Context, id session.ID) (*session.Session, error) {
	return orNone(k.store.Session(ctx, id))
}

func orNone(found session.Session, err error) (*session.Session, error) {
	if session.CodeOf(err) == session.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &found, nil
}

func (k known) Cursor(ctx context.Context, source session.Source, path string) (*Cursor, error) {
	if k.anew {
		return nil, nil
	}
	c, err := k.store.ImportCursor(ctx, source, path)
	return cursorOf(c), err
}

// Message looks a record up without the context's end: the driver starts a goroutine for each query
// that can be interrupted, and a reader asks this for each record of a fork.
func (k known) Message(ctx context.Context, id session.ID, key string) (*session.MessageRef, error) {
	return k.store.MessageByKey(context.WithoutCancel(ctx), id, key)
}

func (k known) CallOwner(ctx context.Context, source session.Source, key string) (session.ID, error) {
	return k.store.SessionOfCall(context.WithoutCancel(ctx), source, key)
}

func (k known) Entries(ctx context.Context, id session.ID, yield func(*session.Message) bool) error {
	page := store.MessagePage{Limit: 200, All: true}
	for {
		messages, more, err := k.store.Messages(ctx, id, page)
		if err != nil {
			return err
		}
		for i := range messages {
			if !yield(&messages[i]) {
				return nil
			}
			page.After = messages[i].Seq
		}
		if !more || len(messages) == 0 {
			return nil
		}
	}
}

func (k known) Keys(ctx context.Context, id session.ID, yield func(key string)) error {
	return k.store.ExternalIDs(ctx, id, yield)
}

func (k known) Load(ctx context.Context, ref session.MessageRef) (*session.Message, error) {
	m, err := k.store.Message(ctx, ref)
	return &m, err
}
