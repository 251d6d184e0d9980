package api

import (
	"context"
	"unicode/utf8"

	"sessiond/internal/search"
	"sessiond/internal/session"
)

type searchInput struct {
	Query   string `query:"q" required:"true" doc:"Words, \"phrases\", beginnings*, -words"`
	Session string `query:"session" doc:"Only in this session"`
	Key     string `query:"key"`
	Source  string `query:"source" enum:"sessiond,goose,codex,pi,opencode,claude-code,openclaw,gemini-cli,copilot-cli,qwen-code,kilo,omp"`
	Project string `query:"project"`
	Role    string `query:"role" enum:"system,user,assistant,tool"`
	Since   string `query:"since" doc:"At or after this time or day"`
	Until   string `query:"until" doc:"Before this time or day"`
	Order   string `query:"order" enum:"rank,newest"`
	Limit   int    `query:"limit" minimum:"1" maximum:"200" doc:"Default 20"`
	Expand  int    `query:"expand" minimum:"0" maximum:"20" doc:"Neighbours on each side of a hit"`
}

// hitView is a message that was found, its neighbours as the API gives messages.
type hitView struct {
	search.Hit
	Before []messageItem `json:"before,omitempty"`
	After  []messageItem `json:"after,omitempty"`
}

type searchView struct {
	Hits    []hitView `json:"hits"`
	Pending int       `json:"pending" doc:"Messages not indexed yet, which were scanned"`
	Partial bool      `json:"partial,omitempty" doc:"More messages are not indexed than were scanned"`
}

func (s *Server) search(ctx context.Context, in *searchInput) (*output[searchView], error) {
	if !utf8.ValidString(in.Query) {
		return nil, session.Errorf(session.Invalid, "q is not UTF-8").At("q", "not UTF-8")
	}
	query := search.Query{
		Text: in.Query, Session: session.ID(in.Session), Source: session.Source(in.Source), Project: in.Project,
		Role: session.Role(in.Role), Order: search.Order(in.Order), Limit: in.Limit, Expand: in.Expand,
	}
	var err error
	if query.Key, err = s.canonical(in.Key); err != nil {
		return nil, err
	}
	if query.Since, err = parseMoment("since", in.Since); err != nil {
		return nil, err
	}
	if query.Until, err = parseMoment("until", in.Until); err != nil {
		return nil, err
	}
	if in.Session != "" {
		if _, err := s.Store.Session(ctx, query.Session); err != nil {
			return nil, err
		}
	}
	found, err := s.Search.Search(ctx, query)
	if err != nil {
		return nil, err
	}
	out := searchView{Hits: make([]hitView, len(found.Hits)), Pending: found.Pending, Partial: found.Partial}
	for i, hit := range found.Hits {
		v := hitView{Hit: hit}
		if v.Before, err = items("", hit.Before); err != nil {
			return nil, err
		}
		if v.After, err = items("", hit.After); err != nil {
			return nil, err
		}
		out.Hits[i] = v
	}
	return reply(out, nil)
}
