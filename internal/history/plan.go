package history

import (
	"context"
	"fmt"
	"time"

	"sessiond/internal/session"
)

// Plan tells what an import of found things would come upon, as far as that can be told
// without reading them. Sessions are counted once, in however many found things they lie.
type Plan struct {
	Sessions int   // all of them
	New      int   // of the sessions: that are new, or have changed
	NewBytes int64 // of the found things that hold these
	Waiting  int   // found things of which all is here but an end that is not finished
	Refused  int   // found things that could not be read, and have not changed since
}

// Plan looks through what a source found. Without a Store everything is new. What cannot be
// opened counts as one.
func (im *Importer) Plan(ctx context.Context, source Source, found []Found) (p Plan, err error) {
	seen, fresh := map[string]bool{}, map[string]bool{}
	for _, f := range found {
		var cursor *Cursor
		if im.Store != nil {
			if cursor, err = im.Store.ImportCursor(ctx, source.Name(), f.Path); err != nil {
				return p, fmt.Errorf("look up how far %s was read: %w", f.Path, err)
			}
		}
		still := im.standsStill(cursor, f)
		if still && isRefused(cursor) {
			p.Refused++
			continue
		}
		ids, known := sessionIDs(ctx, source, f)
		all := len(ids)
		switch {
		case known:
		case still:
			all = sessionsOf(cursor)
		default:
			all = countSessions(ctx, source, f)
		}
		first := all // of them, that no other found thing before held
		stands := false
		for _, id := range ids {
			if seen[id] {
				first--
			}
			seen[id], stands = true, stands || fresh[id]
		}
		p.Sessions += first
		if still {
			if !unchanged(cursor, f) {
				p.Waiting++
			}
			continue
		}
		n := first
		switch {
		case cursor != nil && !isRefused(cursor):
			n = max(min(first, all-sessionsOf(cursor)), 1)
		case first == 0 && known && !stands: // copies of what is here, not looked at yet
			n = 1
		}
		for _, id := range ids {
			fresh[id] = true
		}
		if n > 0 {
			p.New += n
			p.NewBytes += f.Size
		}
	}
	return p, nil
}

// Unread tells whether found holds something that the store has not read yet, and could.
func (im *Importer) Unread(ctx context.Context, source Source, found Found) (bool, error) {
	cursor, err := im.Store.ImportCursor(ctx, source.Name(), found.Path)
	if err != nil {
		return false, fmt.Errorf("look up how far %s was read: %w", found.Path, err)
	}
	return !im.standsStill(cursor, found), nil
}

// standsStill tells whether reading a found thing now would bring nothing: it did not change,
// and what is not finished in it is waited for.
func (im *Importer) standsStill(c *Cursor, f Found) bool {
	return unchanged(c, f) || waits(c, f) && im.now().Sub(f.ModifiedAt).Abs() < QuietTime
}

func (im *Importer) now() time.Time {
	if im.Now == nil {
		return time.Now()
	}
	return im.Now()
}

// waits tells whether a file did not change since all of it was read but an end that was not
// finished: its reader leaves out the size, or the time.
func waits(c *Cursor, f Found) bool {
	switch {
	case c == nil:
		return false
	case c.ModifiedAt == nil:
		return c.Size == f.Size
	}
	return c.Size < 0 && c.ModifiedAt.Equal(session.At(f.ModifiedAt).Time)
}

// sessionIDs names the sessions of a found thing; known is false where its source cannot.
func sessionIDs(ctx context.Context, source Source, found Found) (ids []string, known bool) {
	l, ok := source.(Lister)
	if !ok {
		return nil, false
	}
	ids, err := l.SessionIDs(ctx, found)
	return ids, err == nil
}

// countSessions counts the sessions of a found thing.
func countSessions(ctx context.Context, source Source, found Found) int {
	if c, ok := source.(Counter); ok {
		if n, err := c.CountSessions(ctx, found); err == nil {
			return n
		}
	}
	return 1
}
