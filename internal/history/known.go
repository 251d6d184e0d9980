package history

import (
	"context"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// known answers a source's questions from the store, after all is stored that was given
// before them and that the answer may depend on.
type known struct {
	store   Store
	pending *pending
	settle  func() error
	anew    bool // as if nothing had been read yet
}

func (k known) Session(ctx context.Context, source session.Source, sourceID string) (*session.Session, error) {
	if !k.pending.session(sourceID) {
		found, err := k.store.SessionBySource(ctx, source, sourceID)
		if err != nil || !k.pending.id(found.ID) {
			return orNone(found, err)
		}
	}
	if err := k.settle(); err != nil {
		return nil, err
	}
	found, err := k.store.SessionBySource(ctx, source, sourceID)
	return orNone(found, err)
}

func (k known) SessionByID(ctx context.Context, id session.ID) (*session.Session, error) {
	if err := k.settle(); err != nil {
		return nil, err
	}
	found, err := k.store.Session(ctx, id)
	return orNone(found, err)
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
	if k.pending.path(path) {
		if err := k.settle(); err != nil {
			return nil, err
		}
	}
	c, err := k.store.ImportCursor(ctx, source, path)
	if isRefused(c) {
		return nil, err
	}
	return c, err
}

func (k known) Message(ctx context.Context, id session.ID, key string) (*session.MessageRef, error) {
	if err := k.settle(); err != nil {
		return nil, err
	}
	return k.store.MessageByKey(ctx, id, key)
}

func (k known) CallOwner(ctx context.Context, source session.Source, key string) (session.ID, error) {
	if k.pending.call(key) {
		if err := k.settle(); err != nil {
			return "", err
		}
	}
	return k.store.SessionOfCall(ctx, source, key)
}

func (k known) Entries(ctx context.Context, id session.ID, yield func(*session.Message) bool) error {
	if err := k.settle(); err != nil {
		return err
	}
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
