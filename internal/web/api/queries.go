package api

import (
	"context"
	"net/url"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"sessiond/internal/analytics"
	"sessiond/internal/session"
)

type queriesOutput struct {
	Body list[analytics.Query]
}

func (s *Server) listQueries(context.Context, *struct{}) (*queriesOutput, error) {
	all, err := analytics.Queries()
	if err != nil {
		return nil, err
	}
	return &queriesOutput{Body: listOf(all, "")}, nil
}

type runQueryInput struct {
	Name string `path:"name"`

	query url.Values
}

// Resolve implements huma.Resolver: a query's parameters are the URL's.
func (in *runQueryInput) Resolve(ctx huma.Context) []error {
	u := ctx.URL()
	in.query = u.Query()
	return nil
}

type tableOutput struct {
	Body analytics.Result
}

func (s *Server) runQuery(ctx context.Context, in *runQueryInput) (*tableOutput, error) {
	params := map[string]string{}
	for name, values := range in.query {
		params[name] = values[0]
	}
	table, err := s.Reports.Run(ctx, in.Name, params)
	if err != nil {
		return nil, err
	}
	return &tableOutput{Body: table}, nil
}

type sqlBody struct {
	SQL  text `json:"sql" doc:"One statement that only reads"`
	Rows int  `json:"rows,omitempty" doc:"Rows to give at most; 1,000 without it"`
}

type sqlInput struct {
	body[sqlBody]
}

func (s *Server) runSQL(ctx context.Context, in *sqlInput) (*tableOutput, error) {
	if in.value.SQL == "" {
		return nil, session.Errorf(session.Invalid, "sql is empty: give one SELECT").At("sql", "must not be empty")
	}
	if in.value.Rows < 0 {
		return nil, session.Errorf(session.Invalid, "rows must be 1 or more").At("rows", "must be 1 or more")
	}
	table, err := s.Reports.SQL(ctx, string(in.value.SQL), analytics.Limits{Rows: in.value.Rows})
	if err != nil {
		return nil, err
	}
	return &tableOutput{Body: table}, nil
}

type usageInput struct {
	GroupBy []string `query:"group_by" enum:"day,model,source,project,purpose" doc:"Which of the sums by day, model and source to give; all without it"`
	Since   string   `query:"since" doc:"The first day, YYYY-MM-DD"`
	Until   string   `query:"until" doc:"The last day, YYYY-MM-DD"`
	Source  string   `query:"source" enum:"sessiond,goose,codex,pi,opencode,claude-code,openclaw"`
	Project string   `query:"project"`
}

type usageOutput struct {
	Body analytics.Stats
}

func (s *Server) getUsage(ctx context.Context, in *usageInput) (*usageOutput, error) {
	for _, group := range in.GroupBy {
		if group == "project" || group == "purpose" {
			return nil, session.Errorf(session.Invalid, "group_by=%s is not available in this version: GET /v1/queries/cost-by-%s tells it", group, group).
				At("group_by", "day, model and source are available")
		}
	}
	stats, err := s.Reports.Stats(ctx, analytics.Filter{
		Since: in.Since, Until: in.Until, Source: session.Source(in.Source), Project: in.Project,
	})
	if err != nil {
		return nil, err
	}
	if len(in.GroupBy) > 0 {
		for group, buckets := range map[string]*[]analytics.Bucket{"day": &stats.ByDay, "model": &stats.ByModel, "source": &stats.BySource} {
			if !slices.Contains(in.GroupBy, group) {
				*buckets = []analytics.Bucket{}
			}
		}
	}
	return &usageOutput{Body: stats}, nil
}
