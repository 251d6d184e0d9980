package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Keeper removes sessions and events by age, as configured, and logs each removal.
type Keeper struct {
	Rule   store.Retention
	Store  *store.Store
	Purger *Purger
	Log    zerolog.Logger
	Now    func() time.Time
	Doubt  *Doubt // for a daemon, which runs unattended; nil: trust Now
}

// Kept lists the removals of a Keeper.
type Kept struct {
	Trashed []session.ID `json:"trashed"`
	Purged  []session.ID `json:"purged"`
	Events  int64        `json:"events"`
}

// Apply removes everything that is too old now. A session that changes meanwhile stays, because its
// revision differs.
func (k *Keeper) Apply(ctx context.Context) (Kept, error) {
	done := Kept{Trashed: []session.ID{}, Purged: []session.ID{}}
	if k.Doubt != nil {
		if k.Doubt.distrusts(k.Now(), k.Log) {
			return done, nil
		}
		if err := k.Store.ForgetKeys(ctx, k.Now()); err != nil {
			return done, err
		}
	}
	toTrash, toPurge, err := k.Store.Expired(ctx, k.Rule, k.Now())
	if err != nil {
		return done, err
	}
	var errs []error
	for _, s := range toTrash {
		_, err := k.Store.SetTrash(ctx, s.ID, true, &s.Revision, nil)
		if removed(err, &errs) {
			done.Trashed = append(done.Trashed, s.ID)
			k.Log.Info().Str("session", string(s.ID)).Int("idle_days", k.Rule.IdleDays).Msg("moved to the trash by retention")
		}
	}
	for _, s := range toPurge {
		_, err := k.Purger.Purge(ctx, store.PurgeRequest{Session: s.ID, IfRevision: &s.Revision})
		if removed(err, &errs) {
			done.Purged = append(done.Purged, s.ID)
			k.Log.Info().Str("session", string(s.ID)).Int("trash_days", k.Rule.TrashDays).Msg("purged by retention")
		}
	}
	if len(done.Trashed)+len(done.Purged) > 0 {
		k.Log.Info().Int("trashed", len(done.Trashed)).Int("purged", len(done.Purged)).Msg("retention is done")
	}
	if k.Rule.EventsDays > 0 {
		if done.Events, err = k.Store.RemoveEvents(ctx,
			k.Now().Add(-time.Duration(k.Rule.EventsDays)*24*time.Hour)); err != nil {
			errs = append(errs, err)
		}
	}
	return done, errors.Join(errs...)
}

// ForgetKeys forgets old idempotency keys when a daemon starts, unless it doubts the clock.
func (k *Keeper) ForgetKeys(ctx context.Context) error {
	if k.Doubt.distrusts(k.Now(), k.Log) {
		return nil
	}
	return k.Store.ForgetKeys(ctx, k.Now())
}

// removed reports whether a removal succeeded. It adds err to errs, except for sessions that changed or
// were deleted meanwhile.
func removed(err error, errs *[]error) bool {
	switch session.CodeOf(err) {
	case "":
		return true
	case session.PreconditionFailed, session.NotFound:
	default:
		*errs = append(*errs, err)
	}
	return false
}
