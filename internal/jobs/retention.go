package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// RetentionStore is what a retention needs of the store.
type RetentionStore interface {
	Expired(ctx context.Context, r store.Retention, now time.Time) (toTrash, toPurge []session.Session, err error)
	SetTrash(ctx context.Context, id session.ID, trashed bool, ifRevision *int64, idem *session.Idempotency) (session.Session, error)
	RemoveEvents(ctx context.Context, before time.Time) (int64, error)
}

// Keeper removes by age what the configuration says, and nothing else. It tells each removal.
type Keeper struct {
	Rule   store.Retention
	Store  RetentionStore
	Purger *Purger
	Log    zerolog.Logger
	Now    func() time.Time
	Doubt  *Doubt // for a daemon, which nobody looks at; nil: Now is believed
}

// Kept tells what a Keeper removed.
type Kept struct {
	Trashed []session.ID `json:"trashed"`
	Purged  []session.ID `json:"purged"`
	Events  int64        `json:"events"`
}

// Apply removes what is too old now. A session that changed meanwhile stays: its revision is
// the one that was looked at.
func (k *Keeper) Apply(ctx context.Context) (Kept, error) {
	done := Kept{Trashed: []session.ID{}, Purged: []session.ID{}}
	if k.Doubt != nil && k.Doubt.holds(k.Now(), k.Log) {
		return done, nil
	}
	toTrash, toPurge, err := k.Store.Expired(ctx, k.Rule, k.Now())
	if err != nil {
		return done, err
	}
	var errs []error
	for _, s := range toTrash {
		_, err := k.Store.SetTrash(ctx, s.ID, true, &s.Revision, nil)
		switch session.CodeOf(err) {
		case "":
			done.Trashed = append(done.Trashed, s.ID)
			k.Log.Info().Str("session", string(s.ID)).Int("idle_days", k.Rule.IdleDays).Msg("moved to the trash, as retention says")
		case session.PreconditionFailed, session.NotFound:
		default:
			errs = append(errs, err)
		}
	}
	for _, s := range toPurge {
		_, err := k.Purger.Purge(ctx, store.PurgeRequest{Session: s.ID, IfRevision: &s.Revision})
		switch session.CodeOf(err) {
		case "":
			done.Purged = append(done.Purged, s.ID)
			k.Log.Info().Str("session", string(s.ID)).Int("trash_days", k.Rule.TrashDays).Msg("purged, as retention says")
		case session.PreconditionFailed, session.NotFound:
		default:
			errs = append(errs, err)
		}
	}
	if k.Rule.EventsDays > 0 {
		if done.Events, err = k.Store.RemoveEvents(ctx, k.Now().Add(-time.Duration(k.Rule.EventsDays)*24*time.Hour)); err != nil {
			errs = append(errs, err)
		}
	}
	return done, errors.Join(errs...)
}
