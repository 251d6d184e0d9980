package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// importReport is what `import --json` prints.
type importReport struct {
	Sources []history.Accounting `json:"sources"`
	Total   history.Accounting   `json:"total"`
}

// printAccounts prints what became of each source's records, and the sum. It gives an error
// when nothing at all could be read, so that scripts notice.
func (a *app) printAccounts(accounts []history.Accounting) error {
	total := history.Accounting{Records: history.Records{Skipped: map[string]int{}}, Errors: []history.Problem{}}
	for _, account := range accounts {
		total.Add(account)
	}
	if a.flags.json {
		if accounts == nil {
			accounts = []history.Accounting{}
		}
		if err := a.printJSON(importReport{Sources: accounts, Total: total}); err != nil {
			return err
		}
		return failedImport(total)
	}
	a.printImport(accounts, total)
	for _, p := range total.Errors {
		fmt.Fprintf(a.err, "sessiond: %s\n", printable(problemLine(p)))
	}
	return failedImport(total)
}

// printImport draws the closing table: records read are imported, kept raw, or skipped for
// one of the reasons below it.
func (a *app) printImport(accounts []history.Accounting, total history.Accounting) {
	count := func(n int) string { return humanize.Comma(int64(n)) }
	row := func(name string, acc history.Accounting) []string {
		r := acc.Records
		return []string{
			name, count(acc.Sessions.New), count(acc.Sessions.Updated), count(acc.Sessions.Unchanged),
			count(r.Read), "= " + count(r.Imported), "+ " + count(r.Raw), "+ " + count(r.Read-r.Imported-r.Raw),
		}
	}
	var rows [][]string
	for _, acc := range accounts {
		rows = append(rows, row(string(acc.Source), acc))
	}
	if len(accounts) > 1 {
		rows = append(rows, row("together", total))
	}
	right := func(name string, keep int) column { return column{name: name, right: true, keep: keep} }
	a.printTable([]column{
		{name: "sessions of"},
		right("new", 0), right("updated", 2), right("unchanged", 1), right("records", 0),
		right("imported", 0), right("kept raw", 0), right("skipped", 0),
	}, rows)
	if reasons := skipped(total.Records.Skipped); reasons != "" {
		fmt.Fprintln(a.out, "skipped: "+reasons)
	}
}

// skipped lists the reasons, with how often each applied.
func skipped(counts map[string]int) string {
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		reasons = append(reasons, humanize.Comma(int64(counts[reason]))+" "+reason)
	}
	return strings.Join(reasons, ", ")
}

func problemLine(p history.Problem) string {
	p.Error = strings.TrimPrefix(p.Error, p.Path+": ")
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Error)
	}
	return fmt.Sprintf("%s: %s", p.Path, p.Error)
}

// failedImport is an error when there was something to read and none of it could be.
func failedImport(total history.Accounting) error {
	if touched := total.Sessions.New + total.Sessions.Updated + total.Sessions.Unchanged; touched > 0 || len(total.Errors) == 0 {
		return nil
	}
	return quietError{session.Errorf(session.Invalid, "nothing could be imported")}
}
