package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sessiond/internal/analytics"
	"sessiond/internal/engine"
	"sessiond/internal/store"
	"sessiond/internal/web/api"
)

func (a *app) queryCommand() *cobra.Command {
	var asCSV bool
	cmd := &cobra.Command{
		Use:   "query [NAME | SQL]",
		Short: "Run a named query, or your own SELECT",
		Long: "Lists the named queries. With NAME it runs one; with SQL it runs a read-only statement\n" +
			"with limits on rows and time. Most flags are parameters of named queries.",
		Example: "  sessiond query\n  sessiond query cost-by-project --since 2026-02-01\n" +
			"  sessiond query 'SELECT source, COUNT(*) FROM sessions GROUP BY source'",
		Args: arguments(0, 1), ValidArgsFunction: completeQuery,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.paged(cmd.Context(), a.listQueries)
			}
			params := map[string]string{}
			cmd.Flags().Visit(func(f *pflag.Flag) {
				if f.Annotations[isParam] != nil {
					params[f.Name] = f.Value.String()
				}
			})
			ctx := cmd.Context()
			return a.read(ctx, func(s *store.Store) error {
				if err := a.parseDays(params); err != nil {
					return err
				}
				return a.paged(ctx, func() error { return a.query(ctx, s, args[0], params, asCSV) })
			})
		},
	}
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print CSV")
	addParams(cmd.Flags())
	return cmd
}

// parseDays replaces the times among parameters by their days: queries compare days.
func (a *app) parseDays(params map[string]string) error {
	for _, name := range []string{"since", "until"} {
		at, err := a.moment(name, params[name])
		if err != nil {
			return err
		}
		if at != nil {
			params[name] = at.Day(a.cfg.Zone())
		}
	}
	return nil
}

// parameter is the value of a query's parameter, as it was typed.
type parameter string

func (p *parameter) String() string { return string(*p) }
func (p *parameter) Type() string   { return "VALUE" }

func (p *parameter) Set(s string) error {
	*p = parameter(s)
	return nil
}

// isParam marks the flags that are parameters of named queries.
const isParam = "parameter of a named query"

// addParams adds a flag for every parameter of a named query; its usage names those queries.
func addParams(flags *pflag.FlagSet) {
	all, err := analytics.Queries(false)
	if err != nil {
		return // running a query reports the error
	}
	users, meanings := map[string][]string{}, map[string]string{}
	for _, q := range all {
		for _, p := range q.Params {
			users[p.Name] = append(users[p.Name], q.Name)
			meanings[p.Name], _, _ = strings.Cut(p.Description, " (default")
		}
	}
	for name, queries := range users {
		which := strings.Join(queries, ", ")
		if len(queries) > 3 {
			which = fmt.Sprintf("%s and %d more", strings.Join(queries[:2], ", "), len(queries)-2)
		}
		usage := fmt.Sprintf("%s (of %s)", meanings[name], which)
		short := ""
		if name == "limit" {
			short, usage = "n", "print at most `N` rows"
		}
		flags.VarP(new(parameter), name, short, usage)
		flags.Lookup(name).Annotations = map[string][]string{isParam: {}}
	}
}

func (a *app) listQueries() error {
	cfg, err := a.load(nil)
	if err != nil {
		return err
	}
	all, err := analytics.Queries(engine.IsPostgres(cfg.DB))
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(api.ListOf(all, ""))
	}
	rows := make([][]string, len(all))
	for i, q := range all {
		rows[i] = []string{q.Name, q.Description}
	}
	a.printTable([]column{{name: "name"}, {name: "question", least: 30, grow: true}}, rows)
	return nil
}

func (a *app) query(ctx context.Context, s *store.Store, text string, params map[string]string, asCSV bool) error {
	reports := analytics.New(s.Reader(), s.Zone()).WithSQL(s.SQLReader())
	var res analytics.Result
	var err error
	if strings.ContainsAny(text, " \n\t") {
		var limits analytics.Limits
		for name, value := range params {
			if name != "limit" {
				return usagef("--%s is a parameter of named queries; write the value into the SQL", name)
			}
			if limits.Rows, err = strconv.Atoi(value); err != nil || limits.Rows < 1 {
				return usagef("--limit %q must be a number above 0", value)
			}
		}
		res, err = reports.SQL(ctx, text, limits)
	} else {
		if name, given := params["session"]; given {
			sess, err := a.resolve(ctx, s, name)
			if err != nil {
				return err
			}
			params["session"] = string(sess.ID)
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
	rows := [][]string{res.Columns}
	for _, r := range res.Rows {
		rows = append(rows, cells(r, ""))
	}
	return a.writeCSV(rows)
}

func (a *app) printResult(res analytics.Result) {
	if len(res.Rows) == 0 {
		fmt.Fprintln(a.out, "No rows.")
		return
	}
	cols := make([]column, len(res.Columns))
	rows := make([][]string, len(res.Rows))
	for r, row := range res.Rows {
		rows[r] = cells(row, "–")
	}
	for i, name := range res.Columns {
		number := isNumber(res.Rows, i)
		cols[i] = column{name: printable(name), least: 8, grow: true, right: number}
		for _, r := range rows { // numbers are never truncated
			if number {
				cols[i].least = max(cols[i].least, len(r[i]))
			}
		}
	}
	a.printTable(cols, rows)
	if res.Truncated {
		a.warn("there are more rows; --limit shows more")
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
