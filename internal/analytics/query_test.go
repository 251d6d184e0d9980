package analytics_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/analytics"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// Parameters without which a query finds nothing in the fixture, since its default is today.
func fixtureParams(name string) map[string]string {
	switch name {
	case "cost-by-project":
		return map[string]string{"since": "2026-02-01"}
	case "day":
		return map[string]string{"day": "2026-02-10"}
	}
	return nil
}

func TestEveryQueryFindsSomething(t *testing.T) {
	r := reports(t)
	for _, q := range all(t) {
		t.Run(q.Name, func(t *testing.T) {
			res := testkit.Must(r.Run(t.Context(), q.Name, fixtureParams(q.Name)))(t)
			if len(res.Rows) == 0 {
				t.Error("no rows: the fixture holds nothing for it, or the query is wrong")
			}
			if i := slices.IndexFunc(res.Columns, func(c string) bool {
				return !regexp.MustCompile(`^[a-z][a-z0-9_]*$`).MatchString(c)
			}); i >= 0 {
				t.Errorf("column %q has no plain name", res.Columns[i])
			}
		})
	}
}

func TestSQLite3AnswersTheSame(t *testing.T) {
	storetest.OnFile(t)
	binary := sqlite3(t)
	path := database(t, "testdata/fixture.sql")
	r := analytics.New(open(t, path, "ro"), nil)
	for _, q := range all(t) {
		t.Run(q.Name, func(t *testing.T) {
			args := []string{"-readonly", "-bail", "-csv", "-header", "-nullvalue", "NULL", path}
			for name, value := range fixtureParams(q.Name) {
				args = append(args, "-cmd", fmt.Sprintf(".parameter set :%s \"'%s'\"", name, value))
			}
			cmd := exec.CommandContext(t.Context(), binary, args...)
			cmd.Stdin = strings.NewReader(q.SQL)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || stderr.Len() > 0 {
				t.Fatalf("sqlite3: %v: %s", err, stderr.String())
			}
			want := testkit.Must(csv.NewReader(bytes.NewReader(out)).ReadAll())(t)
			res := testkit.Must(r.Run(t.Context(), q.Name, fixtureParams(q.Name)))(t)
			if diff := cmp.Diff(want, table(res)); diff != "" {
				t.Errorf("sqlite3 (-) and the driver (+) differ:\n%s", diff)
			}
		})
	}
}

// A sqlite3 of 2022 must find nothing wrong in a file that the driver's newer one wrote.
func TestSQLite3ChecksTheFile(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), sqlite3(t), "-readonly", database(t, "testdata/fixture.sql"),
		"PRAGMA integrity_check")
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "ok\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// table prints a result as sqlite3 does with -csv -header -nullvalue NULL.
func table(res analytics.Result) [][]string {
	printed := [][]string{res.Columns}
	for _, row := range res.Rows {
		line := make([]string, len(row))
		for i, v := range row {
			switch v := v.(type) {
			case nil:
				line[i] = "NULL"
			case float64:
				line[i] = strconv.FormatFloat(v, 'f', -1, 64)
				if !strings.Contains(line[i], ".") {
					line[i] += ".0"
				}
			default:
				line[i] = fmt.Sprint(v)
			}
		}
		printed = append(printed, line)
	}
	return printed
}

// What the head says of the parameters is what a command line offers, so it must be true.
func TestQueryHeads(t *testing.T) {
	seen := map[string]string{}
	for _, q := range all(t) {
		t.Run(q.Name, func(t *testing.T) {
			head, body, _ := strings.Cut(q.SQL, "\nSELECT")
			if strings.Contains(head, "\nWITH") {
				head, body, _ = strings.Cut(q.SQL, "\nWITH")
			}
			if !regexp.MustCompile(`^[A-Z].{10,110}[.?)]$`).MatchString(q.Description) {
				t.Errorf("the first line is no sentence: %q", q.Description)
			}
			if other := seen[q.Description]; other != "" {
				t.Errorf("%s says the same", other)
			}
			seen[q.Description] = q.Name
			var described []string
			for _, p := range q.Params {
				described = append(described, p.Name)
				if !strings.Contains(p.Description, "(default: ") {
					t.Errorf("parameter %s names no default", p.Name)
				}
			}
			var used []string
			for _, m := range regexp.MustCompile(`:([a-z_]+)`).FindAllStringSubmatch(body, -1) {
				used = append(used, m[1])
			}
			slices.Sort(used)
			slices.Sort(described)
			if diff := cmp.Diff(slices.Compact(used), described); diff != "" {
				t.Errorf("used (-) and described (+) parameters differ:\n%s", diff)
			}
			if !strings.HasSuffix(q.SQL, ";\n") || strings.Contains(q.SQL, "\t") || strings.Count(q.SQL, ";") != 1 {
				t.Error("a file is one statement that ends in a semicolon, indented with spaces")
			}
			for i, line := range strings.Split(head, "\n") {
				if line != strings.TrimRight(line, " ") || !strings.HasPrefix(line, "--") {
					t.Errorf("line %d is no plain comment: %q", i+1, line)
				}
			}
		})
	}
	if len(seen) < 28 {
		t.Errorf("%d queries", len(seen))
	}
}

type filterTest struct {
	query  string
	params map[string]string
	column string
	want   []any
}

func filterTests() []filterTest {
	return []filterTest{
		{"dearest-sessions", map[string]string{"limit": "2"}, "id", []any{"20260209_001", "20260210_001"}},
		{"prompts-by-day", map[string]string{"since": "2026-02-10"}, "day", []any{"2026-02-11", "2026-02-10"}},
		{
			"path",
			map[string]string{"session": "20260211_001"},
			"seq",
			[]any{int64(1), int64(2), int64(3), int64(4), int64(1), int64(3)},
		},
		{
			"path",
			map[string]string{"session": "20260211_001", "seq": "2"},
			"seq",
			[]any{int64(1), int64(2), int64(3), int64(4), int64(1), int64(2)},
		},
		{"path", map[string]string{"session": "20260211_001", "limit": "2"}, "seq", []any{int64(1), int64(3)}},
		{"path", map[string]string{"session": "20990101_001"}, "seq", nil},
		{
			"transcript",
			map[string]string{"session": "20260209_001", "after": "4"},
			"content",
			[]any{"And the Migration test?", "Run it twice."},
		},
		{"sessions-of-file", map[string]string{"path": "store.go"}, "id", []any{"20260210_001", "20260209_001"}},
		{"sessions-of-file", map[string]string{"path": "/home/u/shop/Makefile"}, "id", []any{"20260210_001"}},
		{"sessions-of-file", map[string]string{"path": "tore.go"}, "id", nil},
		{"said", map[string]string{"text": "MIGRATION"}, "seq", []any{int64(5), int64(1)}},
		{"said", map[string]string{"text": "%"}, "seq", nil},
		{"repeated-calls", map[string]string{"times": "4"}, "times", nil},
		{"repeated-calls", map[string]string{"times": "1"}, "times", []any{int64(3), int64(1)}},
		{"full-windows", map[string]string{"percent": "61"}, "id", []any{"20260209_001"}},
		{
			"full-windows",
			map[string]string{"percent": "2"},
			"id",
			[]any{"20260209_001", "20260210_002", "20260210_001", "20260211_001"},
		},
		{"cache-misses", map[string]string{"tokens": "2001"}, "model", nil},
		{"busiest-files", map[string]string{"under": "/home/u/shop/internal/"}, "changes", []any{int64(1)}},
		{"sessions-by-metadata", map[string]string{"name": "user_id", "value": "user_123"}, "id", []any{"20260209_001"}},
		{"sessions-by-metadata", map[string]string{"name": "user_id", "value": "someone"}, "id", nil},
		{"sessions-by-metadata", map[string]string{"name": "$.tags[0]", "value": "late"}, "id", []any{"20260211_002"}},
		{"sessions-by-metadata", map[string]string{"name": "tags"}, "id", []any{"20260211_002"}},
		{"path", map[string]string{"session": "20260211_001", "limit": "0"}, "seq", nil},
		{
			"dearest-sessions",
			map[string]string{"limit": "999999999999999999", "since": "2026-02-11"},
			"id",
			[]any{"20260211_001"},
		},
	}
}

func TestParametersFilter(t *testing.T) {
	r := reports(t)
	for _, tt := range filterTests() {
		t.Run(fmt.Sprint(tt.query, tt.params), func(t *testing.T) {
			res := testkit.Must(r.Run(t.Context(), tt.query, tt.params))(t)
			testkit.Equal(t, tt.want, column(t, res, tt.column))
		})
	}
}

func TestInvalidNamesAndValues(t *testing.T) {
	r := reports(t)
	tests := []struct {
		name, query string
		params      map[string]string
		code        session.Code
		says        string
	}{
		{"no such query", "nonsense", nil, session.NotFound, `no query is named "nonsense"`},
		{"a part of a name", "dearest", nil, session.NotFound, "did you mean dearest-days, dearest-sessions"},
		{"a path", "../queries/day", nil, session.NotFound, "no query is named"},
		{"no name", "", nil, session.NotFound, "no query is named"},
		{
			"unknown parameter", "day",
			map[string]string{"limit": "3"},
			session.Invalid,
			`query day has no parameter "limit"; it has day`,
		},
		{"a query without any", "resets", map[string]string{"limit": "3"}, session.Invalid, "query resets has no parameters"},
		{
			"no number", "dearest-days",
			map[string]string{"limit": "many"},
			session.Invalid,
			`limit "many" is not a whole number`,
		},
		{"a negative number", "dearest-days", map[string]string{"limit": "-1"}, session.Invalid, "not a whole number"},
		{"no day", "day", map[string]string{"day": "Tuesday"}, session.Invalid, `day "Tuesday" is not a day`},
		{"a day that is not", "day", map[string]string{"day": "2026-02-30"}, session.Invalid, "is not a day"},
		{
			"a broken JSON path", "sessions-by-metadata",
			map[string]string{"name": "$.tags[x]", "value": "x"},
			session.Invalid,
			"path",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := r.Run(t.Context(), tt.query, tt.params)
			if session.CodeOf(err) != tt.code || !strings.Contains(fmt.Sprint(err), tt.says) {
				t.Errorf("got %s: %v", session.CodeOf(err), err)
			}
		})
	}
}

func all(t *testing.T) []analytics.Query {
	t.Helper()
	return testkit.Must(analytics.Queries(storetest.OnPostgres()))(t)
}

func column(t *testing.T, res analytics.Result, name string) []any {
	t.Helper()
	i := slices.Index(res.Columns, name)
	if i < 0 {
		t.Fatalf("no column %s in %v", name, res.Columns)
	}
	var values []any
	for _, row := range res.Rows {
		values = append(values, row[i])
	}
	return values
}
