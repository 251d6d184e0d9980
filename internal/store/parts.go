package store

import (
	"fmt"

	"sessiond/internal/session"
)

// insertParts inserts a message's parts, their blobs and the files that its calls touch. callOf
// returns the row of the call that the i-th part answers.
func (t *tx) insertParts(sess *session.Session, m *session.Message, callOf func(i int) (*int64, error)) error {
	calls := false
	for i := range m.Parts {
		p := &m.Parts[i]
		p.MessageID, p.Idx, p.RowID = m.RowID, int64(i), m.RowID<<10|int64(i)
		switch p.Kind {
		case session.PartToolCall:
			calls = true
		case session.PartToolResult:
			var err error
			if p.CallPartID, err = callOf(i); err != nil {
				return fmt.Errorf("find call %q: %w", p.CallID, err)
			}
		}
		if err := t.insertBlob(p.Blob); err != nil {
			return err
		}
		if err := t.exec(insertPart,
			p.RowID, p.MessageID, p.Idx, string(p.Kind), p.Text, p.ToolName, p.CallID, optional(p.CallPartID),
			p.Arguments, optional(p.IsError), optional(p.DurationMS), optional(p.BlobSHA), p.Tokens, optionalJSON(p.Extra)); err != nil {
			return fmt.Errorf("insert part: %w", err)
		}
	}
	if !calls || t.opt.Touched == nil {
		return nil
	}
	for _, f := range t.opt.Touched(m, sess.Directory) {
		if err := t.exec(insertTouched, f.Path, m.RowID, string(f.Op), string(sess.ID)); err != nil {
			return fmt.Errorf("insert touched file: %w", err)
		}
	}
	return nil
}

const (
	insertPart = `
		INSERT INTO parts (id, message_id, idx, kind, text, tool_name, call_id, call_part_id, arguments, is_error, duration_ms, blob, tokens, extra)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	insertTouched = `INSERT INTO touched_files (path, message_id, op, session_id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`
)

// optional returns what p points to, or NULL, in a type that the driver binds as it is: a pointer
// or a named type goes through reflection.
func optional[T bool | int64 | string](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// optionalJSON is NULL for an empty value.
func optionalJSON(j session.JSON) any {
	if len(j) == 0 {
		return nil
	}
	return string(j)
}
