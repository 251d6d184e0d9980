package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sessiond/internal/analytics"
	"sessiond/internal/store"
)

func (a *app) queryCommand() *cobra.Command {
	var asCSV bool
	var params map[string]string
	var limit int
	cmd := &cobra.Command{
		Use:   "query [NAME | SQL]",
		Short: "Answer a named question, or run your own SELECT",
		Long:  "Without an argument lists the named queries. NAME runs one; SQL text runs read-only, with limits on rows and time.",
		Example: "  sessiond query\n  sessiond query cost-by-project --set since=2026-02-01\n" +
			"  sessiond query 'SELECT source, COUNT(*) FROM sessions GROUP BY source'",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listQueries()
			}
			return a.read(cmd.Context(), func(s *store.Store) error {
				return a.query(cmd.Context(), s, args[0], params, limit, asCSV)
			})
		},
	}
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print CSV")
	cmd.Flags().StringToStringVar(&params, "set", nil, "parameters of a named query, name=value")
	cmd.Flags().IntVarP(&limit, "limit", "n", 0, "rows at most")
	return cmd
}

func (a *app) listQueries() error {
	all, err := analytics.Queries()
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(listOf(all, ""))
	}
	rows := make([][]string, len(all))
	for i, q := range all {
		rows[i] = []string{q.Name, q.Description}
	}
	a.printTable([]column{{name: "name"}, {name: "question", least: 30, grow: true}}, rows)
	return nil
}

func (a *app) query(ctx context.Context, s *store.Store, text string, params map[string]string, limit int, asCSV bool) error {
	reports := analytics.New(s.Reader(), s.Zone())
	var res analytics.Result
	var err error
	if strings.ContainsAny(text, " \n\t") {
		if len(params) > 0 {
			return usageError{fmt.Errorf("--set goes with a named query; write the values into the SQL")}
		}
		res, err = reports.SQL(ctx, text, analytics.Limits{Rows: limit})
	} else {
		if limit > 0 {
			if params == nil {
				params = map[string]string{}
			}
			params["limit"] = fmt.Sprint(limit)
		}
		res, err = reports.Run(ctx, text, params)
	}
	if err != nil {
		return err
	}
	switch {
	case a.flags.json:
		return a.printJSON(res)
	case asCSV:
		return a.printCSV(res)
	}
	a.printResult(res)
	return nil
}

func (a *app) printCSV(res analytics.Result) error {
	w := csv.NewWriter(a.out)
	if err := w.Write(res.Columns); err != nil {
		return err
	}
	for _, r := range res.Rows {
		if err := w.Write(cells(r, "")); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

func (a *app) printResult(res analytics.Result) {
	if len(res.Rows) == 0 {
		fmt.Fprintln(a.out, "No rows.")
		return
	}
	cols := make([]column, len(res.Columns))
	widest, at := 0, 0
	rows := make([][]string, len(res.Rows))
	for r, row := range res.Rows {
		rows[r] = cells(row, "–")
		for i, c := range rows[r] {
			if len(c) > widest {
				widest, at = len(c), i
			}
		}
	}
	for i, name := range res.Columns {
		cols[i] = column{name: name, least: 12, grow: i == at, right: isNumber(res.Rows, i)}
	}
	a.printTable(cols, rows)
	if res.Truncated {
		fmt.Fprintln(a.err, "sessiond: there are more rows; --limit shows more of them")
	}
}

func isNumber(rows [][]any, i int) bool {
	for _, r := range rows {
		switch r[i].(type) {
		case int64, float64:
			return true
		case nil:
			continue
		}
		return false
	}
	return false
}

func cells(row []any, null string) []string {
	out := make([]string, len(row))
	for i, v := range row {
		switch v := v.(type) {
		case nil:
			out[i] = null
		case []byte:
			out[i] = fmt.Sprintf("[%d bytes]", len(v))
		default:
			out[i] = fmt.Sprint(v)
		}
	}
	return out
}
