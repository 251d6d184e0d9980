package api

import (
	"context"
	"unicode/utf8"

	"sessiond/internal/search"
	"sessiond/internal/session"
)

type searchInput struct {
	Query   string `query:"q" required:"true" doc:"Words to search for: word, \"as written\", begin* for beginnings of three letters or more (fewer in the last word), -word to exclude; and filters: role: origin: source: project: session: key: path: tool: (-role: to exclude) after: before: (the first 32 words count)"`
	Session string `query:"session" doc:"Only in this session"`
	Key     string `query:"key" doc:"Only sessions of this routing key"`
	Source  string `query:"source" enum:"sessiond,goose,codex,pi,opencode,claude-code,openclaw,gemini-cli,copilot-cli,qwen-code,kilo,omp" doc:"Only sessions of this program"`
	Project string `query:"project" doc:"Only sessions of this project: its folder, or its name in lists: the end of that (cli, workspace/cli)"`
	Role    string `query:"role" enum:"system,user,assistant,tool" doc:"Only messages of this role"`
	Since   string `query:"since" doc:"Only messages at or after this time: RFC 3339, a day, or words like last week, in the time zone of the configuration"`
	Until   string `query:"until" doc:"Only messages before this time or day"`
	Order   string `query:"order" enum:"rank,newest" doc:"rank (the default): best first; newest: newest first"`
	Group   string `query:"group" enum:"message,session" doc:"message (the default): hits are messages; session: sessions, each with up to three of its best messages"`
	Limit   int    `query:"limit" minimum:"1" maximum:"200" doc:"Hits per answer, or sessions; default 20"`
	Expand  int    `query:"expand" minimum:"0" maximum:"20" doc:"Messages to return before and after each hit, the first 1,000 bytes of each text; default 0"`
}

// hitView is a message that was found, its neighbours as the API gives messages.
type hitView struct {
	search.Hit
	Before []messageItem `json:"before,omitempty" doc:"With expand: the messages before it, oldest first, their beginnings"`
	After  []messageItem `json:"after,omitempty" doc:"With expand: the messages after it, oldest first, their beginnings"`
}

// sessionHitView is a session that was found.
type sessionHitView struct {
	search.SessionHit
	Passages []hitView `json:"passages" doc:"Its best messages, up to three; none if only its title was found"`
}

type searchView struct {
	Hits      []hitView         `json:"hits,omitzero" doc:"The messages that were found; for a question (who, what, …?) also messages beside the best ones, which may have none of its words"`
	Sessions  []sessionHitView  `json:"sessions,omitzero" doc:"With group=session, instead of hits: the sessions that were found, best first"`
	Missing   []search.Missing  `json:"missing,omitempty" doc:"Words that no message has: what was found is without them"`
	Time      *search.NamedTime `json:"time,omitempty" doc:"A time that the query names, like last week: its messages are preferred, not required"`
	Elsewhere []string          `json:"elsewhere,omitempty" doc:"When the filters find nothing: filters that would find something"`
	Pending   int               `json:"pending" doc:"Messages that are not in the index yet; they were searched without it"`
	Partial   bool              `json:"partial,omitempty" doc:"The index is behind, and some messages were not searched"`
	Stopped   bool              `json:"stopped,omitempty" doc:"The search was stopped after 5 s, and there may be more and better hits: narrow it"`
}

func (s *Server) search(ctx context.Context, in *searchInput) (*output[searchView], error) {
	if !utf8.ValidString(in.Query) {
		return nil, session.Errorf(session.Invalid, "q is not UTF-8").At("q", "not UTF-8")
	}
	query := search.Query{
		Text: in.Query, Session: session.ID(in.Session), Source: session.Source(in.Source), Project: in.Project,
		Role: session.Role(in.Role), Order: search.Order(in.Order), Group: search.Group(in.Group), Limit: in.Limit, Expand: in.Expand,
		Now: s.Now().In(s.Store.Zone()),
	}
	var err error
	if query.Key, err = s.canonical(in.Key); err != nil {
		return nil, err
	}
	if query.Since, err = s.parseMoment("since", in.Since); err != nil {
		return nil, err
	}
	if query.Until, err = s.parseMoment("until", in.Until); err != nil {
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
	out := searchView{Missing: found.Missing, Time: found.Time, Elsewhere: found.Elsewhere, Pending: found.Pending, Partial: found.Partial, Stopped: found.Stopped}
	if found.Sessions == nil {
		if out.Hits, err = viewHits(found.Hits); err != nil {
			return nil, err
		}
		return reply(out, nil)
	}
	out.Sessions = make([]sessionHitView, len(found.Sessions))
	for i, hit := range found.Sessions {
		out.Sessions[i].SessionHit = hit
		if out.Sessions[i].Passages, err = viewHits(hit.Passages); err != nil {
			return nil, err
		}
	}
	return reply(out, nil)
}

func viewHits(hits []search.Hit) ([]hitView, error) {
	views := make([]hitView, len(hits))
	for i, hit := range hits {
		v := hitView{Hit: hit}
		var err error
		if v.Before, err = listItems("", hit.Before); err != nil {
			return nil, err
		}
		if v.After, err = listItems("", hit.After); err != nil {
			return nil, err
		}
		views[i] = v
	}
	return views, nil
}
