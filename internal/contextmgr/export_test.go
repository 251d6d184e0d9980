package contextmgr

import (
	"context"

	"sessiond/internal/session"
)

// Stage does what the daemon's jobs do above the soft threshold: it stages a digest, then a model's
// summary if one is due.
func (m *Manager) Stage(ctx context.Context, id session.ID) error {
	due, err := m.StageDigest(ctx, id)
	if err != nil || !due {
		return err
	}
	return m.StageModel(ctx, id)
}
