package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// The cursor of a found thing that could not be read has one of these states: it was never read,
// or it was. No table has the reason, which may quote a message.
const (
	refusedAnew  = store.RefusedState
	refusedAfter = `{"refused":true,"read_before":true}`
)

func isRefused(c *Cursor) bool {
	return c != nil && (string(c.State) == refusedAnew || string(c.State) == refusedAfter)
}

// rememberRefusal stores that a found thing cannot be read as it is now, so that it does not
// count as new for ever. An import tries again all the same: a later sessiond may read it.
func (r *reading) rememberRefusal(ctx context.Context, err error) error {
	if err == nil || !lasts(err) {
		return nil
	}
	before, err := r.cursor(ctx, r.source, r.found)
	if err != nil {
		return err
	}
	if isRefused(before) && unchanged(before, r.found) {
		return nil
	}
	modified := session.At(r.found.ModifiedAt)
	c := &Cursor{
		Source: r.source.Name(), Path: r.found.Path, Size: r.found.Size, ModifiedAt: &modified,
		State: session.JSON(refusedAnew),
	}
	if before != nil && string(before.State) != refusedAnew {
		c.State = session.JSON(refusedAfter)
	}
	if _, err := r.Store.Import(ctx, store.ImportBatch{Cursor: c}); err != nil {
		return fmt.Errorf("remember that %s could not be read: %w", r.found.Path, err)
	}
	return nil
}

// lasts reports whether an error is the found thing's own, so that the next reading meets it again.
func lasts(err error) bool {
	switch session.CodeOf(SQLiteError(err)) {
	case session.Invalid, session.TooLarge, session.Conflict, session.Forbidden:
		return true
	}
	return errors.Is(err, fs.ErrPermission) && !isTemporary(err)
}
