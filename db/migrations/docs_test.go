package migrations_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"

	"sessiond/db/migrations"
	"sessiond/internal/testkit"
)

// described is what a text or a database says of the schema: types by table and column, and
// the columns' order.
type described struct {
	types map[string]map[string]string
	order map[string][]string
}

func (d *described) add(table, column, kind string) {
	if d.types == nil {
		d.types, d.order = map[string]map[string]string{}, map[string][]string{}
	}
	if d.types[table] == nil {
		d.types[table] = map[string]string{}
	}
	d.types[table][column] = kind
	d.order[table] = append(d.order[table], column)
}

func TestSchemaIsDocumented(t *testing.T) {
	made, written := readDatabase(t), readDocs(t)
	for table, columns := range made.order {
		if written.types[table] == nil {
			t.Errorf("docs/schema.md does not describe %s (%s)", table, strings.Join(columns, ", "))
			continue
		}
		for _, column := range columns {
			want := made.types[table][column]
			switch got, ok := written.types[table][column]; {
			case !ok:
				t.Errorf("docs/schema.md: %s lacks the line | %s | %s | … |", table, column, want)
			case got != want:
				t.Errorf("docs/schema.md: %s.%s is %s in the database, not %s", table, column, want, got)
			}
		}
		if a, b := strings.Join(columns, " "), strings.Join(written.order[table], " "); len(a) == len(b) && a != b {
			t.Errorf("docs/schema.md: the columns of %s stand in the order %s, in the database they do in %s", table, b, a)
		}
	}
	for table, columns := range written.order {
		for _, column := range columns {
			if _, ok := made.types[table][column]; !ok {
				t.Errorf("docs/schema.md describes %s.%s, which is not there", table, column)
			}
		}
	}
}

// Text that is not known is ” and a time or a number that is not known is NULL, so a text that
// can be NULL is a time, JSON, or a link.
func TestUnknownTextIsEmpty(t *testing.T) {
	made := readDatabase(t)
	for table, columns := range made.types {
		for column, kind := range columns {
			if kind != "TEXT or NULL" || strings.HasSuffix(column, "_at") {
				continue
			}
			switch column {
			case "settings", "metadata", "extra", "replacement", "details", "data", "state", "blob", "limits":
			default:
				t.Errorf("%s.%s can be NULL", table, column)
			}
		}
	}
}

func readDatabase(t *testing.T) described {
	t.Helper()
	db := testkit.Must(sql.Open("sqlite", filepath.Join(t.TempDir(), "sessions.db")))(t)
	t.Cleanup(func() { db.Close() })
	provider := testkit.Must(goose.NewProvider(goose.DialectSQLite3, db, migrations.FS))(t)
	testkit.Must(provider.Up(t.Context()))(t)
	rows := testkit.Must(db.QueryContext(t.Context(), `
		SELECT s.name, c.name, c.type || CASE WHEN s.type = 'table' AND NOT c."notnull" AND NOT c.pk THEN ' or NULL' ELSE '' END
		FROM sqlite_schema s, pragma_table_xinfo(s.name) c
		WHERE s.type IN ('table', 'view') AND s.name NOT LIKE 'sqlite\_%' ESCAPE '\' AND s.name <> 'goose_db_version'
		ORDER BY s.name, c.cid`))(t)
	return readColumns(t, rows)
}

// readColumns reads rows of table, column and type.
func readColumns(t *testing.T, rows *sql.Rows) (d described) {
	t.Helper()
	defer rows.Close()
	for rows.Next() {
		var table, column, kind string
		testkit.Check(t, rows.Scan(&table, &column, &kind))
		d.add(table, column, kind)
	}
	testkit.Check(t, rows.Err())
	return d
}

func readDocs(t *testing.T) described {
	t.Helper()
	text := testkit.Must(os.ReadFile("../../docs/schema.md"))(t)
	heading := regexp.MustCompile(`^### ([a-z_]+)$`)
	line := regexp.MustCompile(`^\| ([a-z0-9_]+) \| ([^|]*) \| ([^|]+) \|$`)
	var d described
	table := ""
	for i, l := range strings.Split(string(text), "\n") {
		if m := heading.FindStringSubmatch(l); m != nil {
			table = m[1]
			continue
		}
		if !strings.HasPrefix(l, "| ") || strings.HasPrefix(l, "| column |") {
			continue
		}
		m := line.FindStringSubmatch(l)
		if m == nil || table == "" {
			t.Fatal(fmt.Errorf("docs/schema.md:%d is no line | column | type | meaning |: %s", i+1, l))
		}
		if _, twice := d.types[table][m[1]]; twice {
			t.Errorf("docs/schema.md:%d describes %s.%s again", i+1, table, m[1])
		}
		d.add(table, m[1], strings.TrimSpace(m[2]))
	}
	return d
}
