package history

import (
	"context"
	"fmt"
	"time"

	"sessiond/internal/session"
)

// Plan estimates what an import of found things would bring, without reading them. A session
// counts once, in however many found things it lies.
type Plan struct {
	Sessions int   // all of them
	New      int   // sessions that are new or have changed
	NewBytes int64 // of the found things that hold these
	Refused  int   // found things that could not be read and have not changed since
}

// Plan estimates an import of what a source found. Without a Store everything is new. What
// cannot be opened counts as one session.
func (im *Importer) Plan(ctx context.Context, source Source, found []Found) (p Plan, err error) {
	seen, fresh := map[string]bool{}, map[string]bool{} // by source id: counted, counted as new
	cursors, err := im.cursors(ctx, source, found)
	if err != nil {
		return p, err
	}
	for _, f := range found {
		cursor := cursors[f.Path]
		current := im.isCurrent(cursor, f)
		if current && isRefused(cursor) {
			p.Refused++
			continue
		}
		var ids []string
		named := false // the source can name the sessions
		if l, ok := source.(Lister); ok {
			ids, named = l.SessionIDs(ctx, f)
		}
		all := len(ids)
		switch {
		case !named && current:
			all = sessionsOf(cursor)
		case !named:
			all = 1
		}
		first, withFresh := all, false // first: sessions that no found thing before held
		for _, id := range ids {
			if seen[id] {
				first--
			}
			seen[id], withFresh = true, withFresh || fresh[id]
		}
		p.Sessions += first
		if current {
			continue
		}
		n := first
		switch {
		case cursorOf(cursor) != nil: // at least one has changed
			n = max(min(first, all-sessionsOf(cursor)), 1)
		case first == 0 && named && !withFresh: // only copies, which no import has compared yet
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

// Unread counts the found things that hold something that an import would read.
func (im *Importer) Unread(ctx context.Context, source Source, found []Found) (n int, err error) {
	cursors, err := im.cursors(ctx, source, found)
	for _, f := range found {
		if !im.isCurrent(cursors[f.Path], f) {
			n++
		}
	}
	return n, err
}

// cursor returns what the store remembers of a found thing, nil without a Store.
func (im *Importer) cursor(ctx context.Context, source Source, found Found) (*Cursor, error) {
	if im.Store == nil {
		return nil, nil
	}
	cursor, err := im.Store.ImportCursor(ctx, source.Name(), found.Path)
	if err != nil {
		return nil, fmt.Errorf("look up how far %s was read: %w", found.Path, err)
	}
	return cursor, nil
}

// cursors returns what the store remembers of found things, by path. It asks once, since a question for each of
// thousands takes longer than all else that is done about those that did not change.
func (im *Importer) cursors(ctx context.Context, source Source, found []Found) (map[string]*Cursor, error) {
	if im.Store == nil || len(found) == 0 {
		return nil, nil
	}
	asked := make(map[string]bool, len(found))
	first, last := found[0].Path, found[0].Path
	for _, f := range found {
		asked[f.Path], first, last = true, min(first, f.Path), max(last, f.Path)
	}
	all := make(map[string]*Cursor, len(found))
	err := im.Store.EachImportCursor(ctx, source.Name(), first, last, func(c *Cursor) {
		if asked[c.Path] {
			all[c.Path] = new(*c)
		}
	})
	return all, session.Wrap(err, "look up how far files were read")
}

// isCurrent reports whether reading a found thing now would bring nothing: it did not change, or
// only its unfinished end is missing and may still be written.
func (im *Importer) isCurrent(c *Cursor, f Found) bool {
	return unchanged(c, f) || !im.Once && endIsMissing(c, f) && im.now().Sub(f.ModifiedAt).Abs() < QuietTime
}

func (im *Importer) now() time.Time {
	if im.Now == nil {
		return time.Now()
	}
	return im.Now()
}

// endIsMissing reports whether a found thing did not change since all of it but an unfinished end
// was read: the cursor that its reader made has no size.
func endIsMissing(c *Cursor, f Found) bool {
	return c != nil && c.Size < 0 && c.ModifiedAt != nil && c.ModifiedAt.Equal(session.At(f.ModifiedAt).Time)
}
