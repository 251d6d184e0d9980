package engine

import (
	"bytes"
	"strings"
	"testing"
)

func TestAValueIsCopiedInPieces(t *testing.T) {
	db := open(t)
	const line = "a line of 16 byte"
	run(t, db, `CREATE TABLE long (id INTEGER PRIMARY KEY, said TEXT, n INTEGER)`)
	run(t, db, `INSERT INTO long VALUES (7, replace(hex(zeroblob(50000)), '00', ?), 1), (8, '', 2)`, line)
	raw(t, db, func(conn any) {
		for _, test := range []struct {
			column string
			row    int64
			want   string
			ok     bool
		}{
			{"said", 7, strings.Repeat(line, 50_000), true}, {"said", 8, "", true}, {"said", 9, "", false}, {"n", 7, "", false}, {"none", 7, "", false},
		} {
			var got bytes.Buffer
			if err := CopyValue(conn, "long", test.column, test.row, &got); (err == nil) != test.ok || got.String() != test.want {
				t.Errorf("%s of row %d: %d bytes, %v", test.column, test.row, got.Len(), err)
			}
		}
	})
}
