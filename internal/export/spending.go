package export

import (
	"context"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// spending returns the newest call of each reply of the session, by the reply's row.
func (r *reading) spending(ctx context.Context) (map[int64]*session.Call, error) {
	spent := map[int64]*session.Call{}
	for page := (store.Page{Limit: 1000}); ; {
		calls, next, err := r.store.Calls(ctx, r.ID, page)
		if err != nil {
			return nil, err
		}
		for i := range calls {
			if c := &calls[i]; c.MessageID != nil && c.Purpose == session.PurposeChat {
				spent[*c.MessageID] = c
			}
		}
		if page.Cursor = next; next == "" {
			return spent, nil
		}
	}
}
