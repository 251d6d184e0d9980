package store

import (
	"fmt"
	"unsafe"

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
func partRow(p *session.Part) []any {
	return []any{
		p.RowID, p.MessageID, p.Idx, string(p.Kind), p.Text, p.ToolName, p.CallID, optional(p.CallPartID), p.Arguments, optional(p.IsError),
		optional(p.DurationMS), optional(p.BlobSHA), p.Tokens, jsonText(p.Extra),
	}
}

// optional gives what p points to, in a form that the driver takes as it is: a pointer or a
// named type goes through reflection, which shows in every append.
func optional[T bool | int64 | string](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// jsonText is optional for JSON.
func jsonText(j session.JSON) any {
	if len(j) == 0 {
		return nil
	}
	return unsafe.String(unsafe.SliceData(j), len(j)) // for binding, which copies it
}
