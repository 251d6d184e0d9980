package store

import (
	"fmt"

	"sessiond/internal/session"
)

func (t *tx) insertParts(sess *session.Session, m *session.Message, earlier []session.Message) error {
	calls := false
	for i := range m.Parts {
		p := &m.Parts[i]
		p.MessageID, p.Idx, p.RowID = m.RowID, int64(i), m.RowID<<10|int64(i)
		switch p.Kind {
		case session.PartToolCall:
			calls = true
		case session.PartToolResult:
			var err error
			if p.CallPartID, err = t.callOf(m, i, earlier); err != nil {
				return fmt.Errorf("find call %q: %w", p.CallID, err)
			}
		}
		if err := t.insertBlob(p.Blob); err != nil {
			return err
		}
		if _, err := t.exec(`INSERT INTO parts (id, message_id, idx, kind, text, tool_name, call_id, call_part_id, arguments, is_error, duration_ms, blob, tokens, extra)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			p.RowID, p.MessageID, p.Idx, string(p.Kind), p.Text, p.ToolName, p.CallID, optional(p.CallPartID), p.Arguments, optional(p.IsError),
			optional(p.DurationMS), optional(p.BlobSHA), p.Tokens, p.Extra); err != nil {
			return fmt.Errorf("insert part: %w", err)
		}
	}
	if !calls || t.opt.Touched == nil {
		return nil
	}
	for _, f := range t.opt.Touched(m, sess.Directory) {
		if _, err := t.exec(`INSERT INTO touched_files (path, message_id, op, session_id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			f.Path, m.RowID, f.Op, sess.ID); err != nil {
			return fmt.Errorf("insert touched file: %w", err)
		}
	}
	return nil
}

// insertBlob stores content that is not here yet.
func (t *tx) insertBlob(b *session.Blob) error {
	if b == nil {
		return nil
	}
	var known int
	if err := t.row(`SELECT 1 FROM blobs WHERE sha256 = ?`, []any{b.SHA256}, &known); !noRows(err) {
		return err
	}
	if _, err := t.exec(`INSERT INTO blobs (sha256, size, media_type, data) VALUES (?, ?, ?, ?)`,
		b.SHA256, b.Size, b.MediaType, b.Data); err != nil {
		return fmt.Errorf("insert blob: %w", err)
	}
	return nil
}

// optional gives what p points to, in a form that the driver takes as it is: a pointer or a
// named type goes through reflection, which shows in every append.
func optional[T bool | int64 | string](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}
