package history

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"sessiond/internal/session"
)

// Newest are the found things of a source, of which the newest are imported before all others.
type Newest struct {
	Source Source
	Whose  Whose
	Found  []Found
}

// Early is a Source of which some found things can be read before older ones: those that name what they need of others,
// so that a reading ends before it stores anything where that is missing.
type Early interface {
	CanBeEarly(found Found) bool
}

// errNeedsOrigin ends an early reading of what comes from something that is not in the store yet.
var errNeedsOrigin = session.Errorf(session.Unavailable, "it comes from a conversation that is not imported yet")

// The found things of the first rounds of an early import, in bytes. A larger one waits for its turn.
var earlyRounds = [...]int64{4 << 20, 12 << 20, 48 << 20}

// ImportNewest imports the newest conversations, for at most some time. It leaves out what would become something else
// in its turn: forks and sub-agents whose origin is not in the store, and what no source can read early. Run imports
// the rest, and ends with what it would have ended with alone. An error means that the store failed or ctx ended.
func (im *Importer) ImportNewest(ctx context.Context, sources []Newest, most time.Duration) error {
	type candidate struct {
		Found
		of int // of sources
	}
	var all []candidate
	for i, s := range sources {
		early, ok := s.Source.(Early)
		if !ok {
			continue
		}
		names := map[string]int{}
		for _, f := range s.Found {
			names[filepath.Base(f.Path)]++
		}
		for _, f := range s.Found {
			// Copies of one file have one name, and the order decides between them.
			if early.CanBeEarly(f) && names[filepath.Base(f.Path)] == 1 {
				all = append(all, candidate{f, i})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return b.ModifiedAt.Compare(a.ModifiedAt) })
	end := im.now().Add(most)
	for _, size := range earlyRounds {
		chosen := map[string]bool{}
		for len(all) > 0 && size > 0 {
			if size -= all[0].Size; size >= 0 {
				chosen[all[0].Path] = true
			}
			all = all[1:]
		}
		for _, s := range sources {
			early := *im
			early.Whose = s.Whose
			if err := early.decide(ctx, s.Source, nil); err != nil {
				return err
			}
			for _, f := range s.Found { // in the source's order: a trunk before its sub-agents
				if !chosen[f.Path] {
					continue
				}
				if im.now().After(end) {
					return nil
				}
				f.Alone = true
				r := newReading(&early, s.Source, f)
				if err := r.readEarly(ctx); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// readEarly is read without what only a reading in its turn says: a file that cannot be read is a problem then.
func (r *reading) readEarly(ctx context.Context) error {
	if err := r.decideForeign(ctx); err != nil {
		return err
	}
	_, _ = r.readTries(ctx)
	if r.failed != nil {
		return r.failed
	}
	return ctx.Err()
}
