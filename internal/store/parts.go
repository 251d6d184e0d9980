package store

import (
	"fmt"
	"unsafe"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

func (t *tx) insertParts(sess *session.Session, m *session.Message, earlier []session.Message) error {
	return t.insertLinkedParts(sess, m, func(i int) (*int64, error) { return t.callOf(m, i, earlier) })
}

// insertLinkedParts stores a message's parts; call finds the row of the call that the i-th one
// answers.
func (t *tx) insertLinkedParts(sess *session.Session, m *session.Message, call func(i int) (*int64, error)) error {
	calls := false
	for i := range m.Parts {
		p := &m.Parts[i]
		placePart(m, i)
		switch p.Kind {
		case session.PartToolCall:
			calls = true
		case session.PartToolResult:
			var err error
			if p.CallPartID, err = call(i); err != nil {
				return fmt.Errorf("find call %q: %w", p.CallID, err)
			}
		}
		if err := t.insertBlob(p.Blob); err != nil {
			return err
		}
		if _, err := t.exec(insertPart, partRow(p)...); err != nil {
			return fmt.Errorf("insert part: %w", err)
		}
	}
	if !calls || t.opt.Touched == nil {
		return nil
	}
	for _, f := range t.opt.Touched(m, sess.Directory) {
		if _, err := t.exec(insertTouched, f.Path, m.RowID, f.Op, string(sess.ID)); err != nil {
			return fmt.Errorf("insert touched file: %w", err)
		}
	}
	return nil
}

const (
	partInsertColumns    = `id, message_id, idx, kind, text, tool_name, call_id, call_part_id, arguments, is_error, duration_ms, blob, tokens, extra`
	insertPart           = `INSERT INTO parts (` + partInsertColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	touchedInsertColumns = `path, message_id, op, session_id`
	insertTouched        = `INSERT INTO touched_files (` + touchedInsertColumns + `) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`
)

func placePart(m *session.Message, i int) {
	p := &m.Parts[i]
	p.MessageID, p.Idx, p.RowID = m.RowID, int64(i), m.RowID<<10|int64(i)
}

// partRow gives the values of partInsertColumns.
func partRow(p *session.Part) []any { return anys(addPart(make([]engine.Value, 0, 14), p)) }

// addPart adds the values of partInsertColumns to those of a statement.
func addPart(row []engine.Value, p *session.Part) []engine.Value {
	var failed engine.Value
	if p.IsError != nil {
		failed = engine.Bool(*p.IsError)
	}
	return append(row,
		engine.Int(p.RowID), engine.Int(p.MessageID), engine.Int(p.Idx), text(p.Kind), text(p.Text), text(p.ToolName), text(p.CallID), optionalInt(p.CallPartID),
		text(p.Arguments), failed, optionalInt(p.DurationMS), optionalText(p.BlobSHA), engine.Int(p.Tokens), jsonText(p.Extra),
	)
}

// anys gives the values of a row as database/sql takes them.
func anys(row []engine.Value) []any {
	all := make([]any, len(row))
	for i := range row {
		all[i] = row[i].Any()
	}
	return all
}

func text[T ~string](s T) engine.Value { return engine.Text(string(s)) }

func optionalInt(p *int64) (v engine.Value) {
	if p != nil {
		v = engine.Int(*p)
	}
	return v
}

func optionalText(p *string) (v engine.Value) {
	if p != nil {
		v = engine.Text(*p)
	}
	return v
}

// optional gives what p points to, in a form that the driver takes as it is: a pointer or a
// named type goes through reflection, which shows in every append.
func optional[T bool | int64 | string](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// jsonText is NULL where there is none.
func jsonText(j session.JSON) (v engine.Value) {
	if len(j) > 0 {
		v = engine.Text(unsafe.String(unsafe.SliceData(j), len(j))) // for binding, which copies it
	}
	return v
}
