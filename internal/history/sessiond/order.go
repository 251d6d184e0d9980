package sessiond

import (
	"cmp"
	"context"
	"slices"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Order puts sessions such that each comes after the one that it was forked from or started
// by, else by time. What the forks among them were forked from comes too, since their first
// messages lie there, also what a purge left of those for them. No ids mean every session of the
// file.
func Order(ctx context.Context, s *store.Store, ids []session.ID) ([]session.ID, error) {
	all, err := s.AllKin(ctx)
	if err != nil {
		return nil, err
	}
	shells, err := s.Shells(ctx)
	if err != nil {
		return nil, err
	}
	byID := make(map[session.ID]*store.Kin, len(all)+len(shells))
	for _, of := range [][]store.Kin{all, shells} {
		for i := range of {
			byID[of[i].ID] = &of[i]
		}
	}
	chosen := make([]*store.Kin, 0, max(len(ids), len(all)))
	for _, id := range ids {
		kin := byID[id]
		if kin == nil || slices.ContainsFunc(shells, func(s store.Kin) bool { return s.ID == id }) {
			return nil, session.Errorf(session.NotFound, "there is no session %s", id)
		}
		chosen = append(chosen, kin)
	}
	if len(ids) == 0 {
		for i := range all {
			chosen = append(chosen, &all[i])
		}
	}
	slices.SortFunc(chosen, func(a, b *store.Kin) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt.Time), cmp.Compare(a.ID, b.ID))
	})
	wanted := make(map[session.ID]bool, len(chosen))
	for _, kin := range chosen {
		wanted[kin.ID] = true
	}
	ordered := make([]session.ID, 0, len(chosen))
	placed := make(map[session.ID]bool, len(chosen))
	for _, kin := range chosen {
		var line []session.ID // the session and what must come before it, the nearest first
		for at := kin; at != nil && !placed[at.ID]; at = byID[at.ParentID] {
			if at != kin && !wanted[at.ID] && !forksBelow(line, byID) {
				break
			}
			placed[at.ID] = true
			line = append(line, at.ID)
		}
		slices.Reverse(line)
		ordered = append(ordered, line...)
	}
	return ordered, nil
}

// forksBelow reports whether the last session of a line needs the one that it comes from.
func forksBelow(line []session.ID, byID map[session.ID]*store.Kin) bool {
	return byID[line[len(line)-1]].ParentKind == session.ParentFork
}
