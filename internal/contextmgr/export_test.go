package contextmgr

import (
	"context"

	"sessiond/internal/session"
)

// Stage is one round of what the daemon's jobs do above the soft threshold: a digest at once,
// then a model's summary beside it if one is due. Neither takes effect by this.
func (m *Manager) Stage(ctx context.Context, id session.ID) error {
	due, err := m.StageDigest(ctx, id)
	if err != nil || !due {
		return err
	}
	return m.StageModel(ctx, id)
}
