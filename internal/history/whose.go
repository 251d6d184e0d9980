package history

import (
	"context"
	"fmt"
	"slices"
)

// Whose says whose a history is.
type Whose int

const (
	NotAsked Whose = iota // nobody asks: no session is marked
	// what lies in a program's own places is the user's, else what was decided before, else nobody's
	Undecided
	Mine
	Foreign
)

// asked returns a decision as the store keeps it; nil: there is none.
func (w Whose) asked() *int64 {
	if w == NotAsked || w == Undecided {
		return nil
	}
	return mineOf(w == Mine)
}

func mineOf(mine bool) *int64 {
	if mine {
		return new(int64(1))
	}
	return new(int64(0))
}

// InPlaces reports whether a path lies in one of the places in which a source's program keeps its histories.
func InPlaces(source Source, path string) bool {
	return slices.ContainsFunc(source.Places(), func(place string) bool {
		if real, err := realPath(place); err == nil {
			place = real
		}
		return Within(path, place)
	})
}

// isMine reports whether a found thing is the user's own history. What it says of itself proves nothing.
func (im *Importer) isMine(ctx context.Context, source Source, path string) (bool, error) {
	switch {
	case im.Whose != Undecided:
		return im.Whose != Foreign, nil
	case InPlaces(source, path):
		return true, nil
	}
	mine, _, err := im.Store.ImportIsMine(ctx, source.Name(), path)
	if err != nil {
		return false, fmt.Errorf("look up whose %s is: %w", path, err)
	}
	return mine, nil
}

// Decided reports whether it is known whose the histories at given paths are.
func (im *Importer) Decided(ctx context.Context, source Source, roots []string) (bool, error) {
	for _, root := range roots {
		if real, err := realPath(root); err == nil {
			root = real
		}
		if InPlaces(source, root) {
			continue
		}
		if im.Store == nil {
			return false, nil
		}
		_, decided, err := im.Store.ImportIsMine(ctx, source.Name(), root)
		if err != nil || !decided {
			return decided, err
		}
	}
	return true, nil
}

// decide stores the user's word for the histories at given paths, also for those that are imported already.
func (im *Importer) decide(ctx context.Context, source Source, roots []string) error {
	if im.Whose.asked() == nil {
		return nil
	}
	for _, root := range roots {
		if real, err := realPath(root); err == nil {
			root = real
		}
		if err := im.Store.SetMine(ctx, source.Name(), root, im.Whose == Mine); err != nil {
			return err
		}
	}
	return nil
}

// AnyForeign reports whether the histories at one of some given paths are not known to be the user's own.
func (im *Importer) AnyForeign(ctx context.Context, source Source, roots []string) (bool, error) {
	for _, root := range roots {
		if real, err := realPath(root); err == nil {
			root = real
		}
		if mine, err := im.isMine(ctx, source, root); err != nil || !mine {
			return !mine, err
		}
	}
	return false, nil
}
