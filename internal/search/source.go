package search

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sessiond/internal/session"
)

// errStoreDamaged is an error of the store's file: the index is whole, and must not be built again for it.
var errStoreDamaged = errors.New("the database is damaged; `sessiond doctor` says what to do")

// apart tells damage of the store's file from damage of the index's.
type apart struct{ src Source }

func tell[T any](v T, err error) (T, error) {
	if isDamage(err) {
		err = fmt.Errorf("%w: %v", errStoreDamaged, err) //nolint:errorlint // its code would be taken for the index's
	}
	return v, err
}

func (a apart) MessagesAfter(ctx context.Context, mark int64, limit int) ([]session.Message, error) {
	return tell(a.src.MessagesAfter(ctx, mark, limit))
}

func (a apart) LastMessageID(ctx context.Context) (int64, error) {
	return tell(a.src.LastMessageID(ctx))
}

func (a apart) MessageByID(ctx context.Context, rowID int64) (session.Message, error) {
	return tell(a.src.MessageByID(ctx, rowID))
}

// MessagesByID leaves out messages that cannot be read.
func (a apart) MessagesByID(ctx context.Context, rowIDs []int64) ([]session.Message, error) {
	all, err := a.src.MessagesByID(ctx, rowIDs)
	if !isDamage(err) {
		return all, err
	}
	all = nil
	for _, id := range slices.Sorted(slices.Values(rowIDs)) {
		some, err := a.src.MessagesByID(ctx, []int64{id})
		if err != nil && !isDamage(err) {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// EachHead leaves out messages that cannot be read.
func (a apart) EachHead(ctx context.Context, rowIDs []int64, head session.Head,
	yield func(*session.Message) error,
) error {
	done := map[int64]bool{}
	each := func(ids []int64) error {
		return a.src.EachHead(ctx, ids, head, func(m *session.Message) error {
			done[m.RowID] = true
			return yield(m)
		})
	}
	err := each(rowIDs)
	if !isDamage(err) {
		return err
	}
	for _, id := range slices.Sorted(slices.Values(rowIDs)) {
		if done[id] {
			continue
		}
		if err := each([]int64{id}); err != nil && !isDamage(err) {
			return err
		}
	}
	return nil
}

func (a apart) MessageHead(ctx context.Context, ref session.MessageRef, head session.Head) (session.Message, error) {
	return tell(a.src.MessageHead(ctx, ref, head))
}

func (a apart) Session(ctx context.Context, id session.ID) (session.Session, error) {
	return tell(a.src.Session(ctx, id))
}

func (a apart) Outlines(ctx context.Context, ids []session.ID) ([]session.Session, error) {
	return tell(a.src.Outlines(ctx, ids))
}

func (a apart) SessionsNamed(ctx context.Context, texts []string) ([]session.Session, error) {
	return tell(a.src.SessionsNamed(ctx, texts))
}

func (a apart) MarksWith(ctx context.Context, texts []string) ([]session.Mark, error) {
	return tell(a.src.MarksWith(ctx, texts))
}

func (a apart) Heir(ctx context.Context, ref session.MessageRef) (session.Session, error) {
	return tell(a.src.Heir(ctx, ref))
}

func (a apart) SharedPath(ctx context.Context, id session.ID) ([][2]session.MessageRef, error) {
	return tell(a.src.SharedPath(ctx, id))
}
