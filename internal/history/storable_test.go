package history

import (
	"bytes"
	"database/sql"
	"strings"
	"testing"
	"unicode/utf8"

	_ "modernc.org/sqlite" // the driver
)

// mustAgreeWithSQLite compares Storable with what the schema's CHECKs ask.
func mustAgreeWithSQLite(t *testing.T, db *sql.DB, text string) {
	t.Helper()
	var valid bool
	if err := db.QueryRowContext(t.Context(), `SELECT json_valid(?)`, text).Scan(&valid); err != nil {
		t.Fatal(err)
	}
	if got := Storable([]byte(text)); got != valid {
		t.Errorf("%.80q is storable: %v; SQLite: %v", text, got, valid)
	}
}

func inMemory(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func inside(n int, open, inner, end string) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
}

func TestJSONIsStorableWhereSQLiteFindsItValid(t *testing.T) {
	db := inMemory(t)
	for _, text := range []string{
		`{}`, ` { "a" : [ 1 , -0 , 1.5e+3 , true , false , null , "x" ] } `, `"\u00e9\ud800\/\"\b\f\n\r\t"`, `"é🙂"`, `0`, `-`, `01`, `1.`, `.5`, `+1`, `1e`, `1E5`, `0x1`,
		`NaN`, `Infinity`, `nul`, `nullx`, `true false`, `{"a":1,}`, `[1,]`, `[,1]`, `{a:1}`, `{'a':1}`, `'a'`, `{"a" 1}`, `{"a":}`, `{1:2}`, `"a`, `"\x41"`, `"\u12"`, `"\u12g4"`,
		"\"tab\there\"", "\"line\nhere\"", "\"\x7f\"", "\"\x01\"", "[1]\n", "\t[1]", "\v[1]", "\f1", "\u00a01", "\ufeff1", `/* a */ 1`, `1 // a`, `[`, `]`, `{`, `[1}`, `{"a":1]`, "", " ",
		inside(storableDepth-1, "[", "", "]"), inside(storableDepth, "[", "", "]"), inside(storableDepth+1, "[", "", "]"), inside(storableDepth, `{"a":`, "1", "}"), inside(storableDepth+1, `{"a":`, "1", "}"),
		`["` + strings.Repeat("[", 2*storableDepth) + `"]`,
	} {
		mustAgreeWithSQLite(t, db, text)
	}
}

func FuzzJSONIsStorableWhereSQLiteFindsItValid(f *testing.F) {
	for _, text := range []string{`{"a":[1,-0.5e3,"\u00e9",null]}`, `[true,false,{}]`, `"\ud800"`, inside(storableDepth+1, "[", "", "]")} {
		f.Add([]byte(text))
	}
	db := inMemory(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		if utf8.Valid(text) && bytes.IndexByte(text, 0) < 0 { // the store takes no other text
			mustAgreeWithSQLite(t, db, string(text))
		}
	})
}
