package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/transcript"
)

// importReport is what `import --json` prints.
type importReport struct {
	Sources []history.Accounting `json:"sources"`
	Total   history.Accounting   `json:"total"`
}

// printAccounts prints the counts of each source, and the sum. It returns an error if nothing was
// readable, so that scripts notice.
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
	a.printProblems(total.Errors) // before the table, which must stay on the screen
	a.printImport(accounts, total)
	if n := len(total.Errors); n > 0 && a.outTTY && a.errTTY {
		fmt.Fprintf(a.out, "%s, listed above\n", transcript.Counted(n, "problem"))
	}
	return failedImport(total)
}

// printImport draws the closing table: records read are imported, kept raw, skipped for one of
// the reasons below it, or waiting for the end of a reply or line, if there are any such.
func (a *app) printImport(accounts []history.Accounting, total history.Accounting) {
	count := func(n int) string { return humanize.Comma(int64(n)) }
	row := func(name string, acc history.Accounting) []string {
		r := acc.Records
		return []string{
			name, count(acc.Sessions.New), count(acc.Sessions.Updated), count(acc.Sessions.Unchanged),
			count(r.Read), "= " + count(r.Imported), "+ " + count(r.Raw), "+ " + count(r.Read-r.Imported-r.Raw-r.Waiting),
			"+ " + count(r.Waiting),
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
	columns := []column{
		{name: "sessions of"},
		right("new", 0), right("updated", 2), right("unchanged", 1), right("records", 3),
		right("imported", 0), right("kept raw", 0), right("skipped", 0), right("waiting", 0),
	}
	if total.Records.Waiting == 0 {
		columns = columns[:len(columns)-1]
		for i, row := range rows {
			rows[i] = row[:len(columns)]
		}
	}
	a.printTable(columns, rows)
	if reasons := skipped(total.Records.Skipped); len(reasons) > 0 {
		fmt.Fprintln(a.out, a.fit("skipped: "+strings.Join(reasons, ", "), "  "))
	}
	if total.Records.Skipped[history.SkipPurged] > 0 {
		fmt.Fprintln(a.out,
			"Sessions that were purged here stay away; `sessiond import --purged` with the same names brings them back.")
	}
}

// printProblems prints each problem once.
func (a *app) printProblems(problems []history.Problem) {
	if a.told == nil {
		a.told = map[history.Problem]bool{}
	}
	for _, p := range problems {
		if !a.told[p] {
			a.warn("%s", inOneLine(printable(problemLine(p))))
		}
		a.told[p] = true
	}
}

// skipped lists the reasons, with how often each applied, the most frequent first.
func skipped(counts map[string]int) []string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, reason := range names {
		names[i] = humanize.Comma(int64(counts[reason])) + " " + reason
	}
	return names
}

func problemLine(p history.Problem) string {
	p.Error = strings.TrimPrefix(p.Error, p.Path+": ")
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Error)
	}
	return fmt.Sprintf("%s: %s", p.Path, p.Error)
}

// failedImport is an error if there was something to read and all of it failed.
func failedImport(total history.Accounting) error {
	if touched := total.Sessions.New + total.Sessions.Updated + total.Sessions.Unchanged; touched > 0 ||
		len(total.Errors) == 0 {
		return nil
	}
	return quietError{session.Errorf(session.Invalid, "nothing was imported")}
}
