package api

import (
	"context"
	"io"
	"net/url"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"sessiond/internal/analytics"
	"sessiond/internal/session"
)

func (s *Server) listQueries(context.Context, *struct{}) (*listOutput[analytics.Query], error) {
	all, err := s.Reports.Queries()
	return replyList(all, "", err)
}

type runQueryInput struct {
	Name string `path:"name" doc:"The query's name, as GET /v1/queries lists it"`

	query url.Values
}

// Resolve implements huma.Resolver: a query's parameters are the URL's.
func (in *runQueryInput) Resolve(ctx huma.Context) []error {
	u := ctx.URL()
	in.query = u.Query()
	return nil
}

func (s *Server) runQuery(ctx context.Context, in *runQueryInput) (*output[analytics.Result], error) {
	params := map[string]string{}
	for name, values := range in.query {
		params[name] = values[0]
	}
	return reply(s.Reports.Run(ctx, in.Name, params))
}

type sqlBody struct {
	SQL  text `json:"sql" doc:"One statement that only reads"`
	Rows int  `json:"rows,omitempty" doc:"Largest number of rows; default 1000"`
}

type sqlInput struct {
	body[sqlBody]
}

// sqlView is the answer to a SELECT, as JSON already if it comes from a process of its own.
type sqlView struct {
	analytics.Result
	encoded []byte
}

// Schema implements huma.SchemaProvider.
func (sqlView) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[analytics.Result](), true, "Result")
}

func (v sqlView) writeJSON(w io.Writer) error {
	if v.encoded == nil {
		return writeJSON(w, v.Result)
	}
	_, err := w.Write(v.encoded)
	return err
}

func (s *Server) runSQL(ctx context.Context, in *sqlInput) (*output[sqlView], error) {
	if in.value.SQL == "" {
		return nil, session.Errorf(session.Invalid, "sql is empty: send one SELECT").At("sql", "must not be empty")
	}
	if in.value.Rows < 0 {
		return nil, session.Errorf(session.Invalid, "rows must be 1 or more").At("rows", "must be 1 or more")
	}
	limits := analytics.Limits{Rows: in.value.Rows}
	var view sqlView
	var err error
	if s.SQL == nil {
		view.Result, err = s.Reports.SQL(ctx, string(in.value.SQL), limits)
	} else {
		view.encoded, err = s.SQL.SQL(ctx, string(in.value.SQL), limits)
	}
	return reply(view, err)
}

type usageInput struct {
	GroupBy []analytics.Dimension `query:"group_by" enum:"day,model,source,project,purpose" doc:"The sums to return; default: all. A sub-agent counts for the project of the session that started it"`
	Since   string                `query:"since" doc:"The first day, YYYY-MM-DD"`
	Until   string                `query:"until" doc:"The last day, YYYY-MM-DD"`
	Source  string                `query:"source" doc:"Only sessions of this program: its name (claude-code), or a part of it"`
	Project string                `query:"project" doc:"Only sessions of this project: its folder, its name in lists (cli, workspace/cli), or a part of it"`
	Tag     string                `query:"tag" doc:"Only sessions with this tag, on them or on one of their messages, and their sub-agents"`
}

func (s *Server) readUsage(ctx context.Context, in *usageInput) (*output[analytics.Stats], error) {
	project, err := s.finder().One(ctx, "project", in.Project)
	if err != nil {
		return nil, filterError(err)
	}
	source, err := s.finder().One(ctx, "source", in.Source)
	if err != nil {
		return nil, filterError(err)
	}
	tag, err := s.finder().One(ctx, "tag", in.Tag)
	if err != nil {
		return nil, filterError(err)
	}
	return reply(s.Reports.Stats(ctx, analytics.Filter{
		Since: in.Since, Until: in.Until, Source: session.Source(source), Project: project, Tag: tag,
	}, in.GroupBy...))
}
