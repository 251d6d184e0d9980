package antigravity

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Fields of a row of calls, as the program's descriptors number them. Its output is with what the model thought, its
// input without caches.
const (
	rowModel, rowSteps             = 1, 2
	modelUsage, modelSlug, modelAs = 4, 19, 21

	usageInput, usageOutput, usageWritten, usageRead = 2, 3, 4, 5
)

// mostTokens bounds a count: a larger one is of another message.
const mostTokens = 2_000_000

// Reasons to skip that only these databases have.
const (
	skipNoUsage = "call without usage"
	skipAlone   = "database of a conversation without a transcript"
)

// readDatabase counts what a conversation used: a row is a call of a model.
func readDatabase(in *history.Intake, db *history.SQLite) {
	has := db.Schema("gen_metadata")
	in.Fail(db.TakeErr())
	if in.Err() == nil && !(has.Has("gen_metadata", "idx") && has.Has("gen_metadata", "data")) {
		in.Fail(session.Errorf(session.Invalid,
			"no conversation of Antigravity: it has no table gen_metadata with columns idx and data"))
	}
	if in.Err() != nil {
		return
	}
	id := history.Plain(strings.TrimSuffix(filepath.Base(in.Found.Path), ".db"))
	here := in.Session(id)
	if here == nil {
		in.Await(id)
		in.Skip(skipAlone, 1)
		return
	}
	times := map[string]session.Time{}
	in.Entries(here.ID, func(m *session.Message) bool {
		times[m.ExternalID] = m.CreatedAt
		return true
	})
	talk := in.Conversation(history.NewSession{Source: session.SourceAntigravity, SourceID: id})
	db.Each(func(rows *sqlx.Rows) error {
		var index int64
		var data []byte
		if err := rows.Scan(&index, &data); err != nil {
			return err
		}
		c, step, ok := callOf(data)
		if !ok {
			in.Skip(skipNoUsage, 1)
			return nil
		}
		c.ExternalID, c.Directory, c.Provider = fmt.Sprintf("antigravity:%s:%d", id, index), here.Directory, "google"
		c.Model = cmp.Or(c.Model, here.Model)
		if c.CreatedAt = times[step]; c.CreatedAt.IsZero() {
			c.CreatedAt = here.CreatedAt
		}
		if in.CallOwner(c.ExternalID) == nil {
			in.Import(1)
		} else {
			in.Skip(history.SkipKnown, 1)
		}
		talk.Call(c)
		return nil
	}, `SELECT CAST(idx AS INTEGER), CAST(COALESCE(data, '') AS BLOB) FROM gen_metadata WHERE idx IS NOT NULL ORDER BY 1`)
}

// callOf reads a row, and the step that the call made first. ok is false where it has no counts.
func callOf(data []byte) (c history.Call, step string, ok bool) {
	row, _ := history.ParseProto(data)
	model := row.Inner(rowModel)
	usage := model.Inner(modelUsage)
	for number, to := range map[int]*int64{
		usageInput: &c.InputTokens, usageOutput: &c.OutputTokens, usageWritten: &c.CacheWriteTokens,
		usageRead: &c.CacheReadTokens,
	} {
		n := usage.Number(number)
		if n > mostTokens {
			return c, "", false
		}
		*to = int64(n)
	}
	c.Model = history.Plain(cmp.Or(model.Text(modelSlug), model.Text(modelAs))) // prices know the slug
	if shown := model.Text(modelAs); shown != "" {
		c.Metadata = session.JSONOf(map[string]string{"model": history.Plain(shown)})
	}
	if steps := row.Packed(rowSteps); len(steps) > 0 {
		step = fmt.Sprintf("step %d", steps[0])
	}
	return c, step, c.ContextTokens()+c.OutputTokens > 0
}
