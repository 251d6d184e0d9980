package api

import (
	"context"
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"sessiond/internal/find"
	"sessiond/internal/search"
	"sessiond/internal/session"
)

type searchInput struct {
	Query string `query:"q" required:"true" doc:"Words to search for: word, \"as written\", begin* for beginnings of three letters or more (fewer in the last word), -word to exclude; and filters: role: origin: source: project: session: key: path: tool: (-role: to exclude) after: before: (the first 32 words count)"`
	SessionFilters
	Session string `query:"session" doc:"Only in this session"`
	Role    string `query:"role" enum:"system,user,assistant,tool" doc:"Only messages of this role"`
	Since   string `query:"since" doc:"Only messages at or after this time: RFC 3339, a day, or words like last week, in the time zone of the configuration"`
	Until   string `query:"until" doc:"Only messages before this time or day"`
	Order   string `query:"order" enum:"rank,newest" doc:"rank (the default): best first; newest: newest first"`
	Group   string `query:"group" enum:"message,session" doc:"message (the default): hits are messages; session: sessions, each with up to three of its best messages"`
	Limit   int    `query:"limit" minimum:"1" maximum:"200" doc:"Hits per answer, or sessions; default 20"`
	Expand  int    `query:"expand" minimum:"0" maximum:"20" doc:"Messages to return before and after each hit, the first 1,000 bytes of each text; default 0"`

	query url.Values
}

// Resolve implements huma.Resolver.
func (in *searchInput) Resolve(ctx huma.Context) (errs []error) {
	in.query, errs = queryOf(ctx, find.Searches, "q", "order", "group", "limit", "expand")
	return errs
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

// SearchView is the answer to a search, of the API and of `search --json`.
type SearchView struct {
	Hits      []hitView         `json:"hits,omitzero" doc:"The messages that were found; for a question (who, what, …?) also messages beside the best ones, which may have none of its words"`
	Sessions  []sessionHitView  `json:"sessions,omitzero" doc:"With group=session, instead of hits: the sessions that were found, best first"`
	Missing   []search.Missing  `json:"missing,omitempty" doc:"Words that no message has: what was found is without them"`
	Time      *search.NamedTime `json:"time,omitempty" doc:"A time that the query names, like last week: its messages are preferred, not required"`
	Elsewhere []string          `json:"elsewhere,omitempty" doc:"When the filters find nothing: filters that would find something"`
	Pending   int               `json:"pending" doc:"Messages that are not in the index yet; they were searched without it"`
	Partial   bool              `json:"partial,omitempty" doc:"The index is behind, and some messages were not searched"`
	Stopped   bool              `json:"stopped,omitempty" doc:"The search was stopped after 5 s, and there may be more and better hits: narrow it"`
	Notes     []string          `json:"notes,omitempty" doc:"In words: what was not found, what was not searched, and what else would find something"`
}

func (s *Server) searchMessages(ctx context.Context, in *searchInput) (*output[SearchView], error) {
	if !utf8.ValidString(in.Query) {
		return nil, session.Errorf(session.Invalid, "q is not UTF-8").At("q", "not UTF-8")
	}
	r, err := find.FromQuery(in.query)
	if err != nil {
		return nil, err
	}
	r.Order, r.Group, r.Limit, r.Expand = in.Order, in.Group, in.Limit, in.Expand
	found, err := s.finder().Search(ctx, r)
	if err != nil {
		return nil, filterError(err)
	}
	return reply(SearchViewOf(&found))
}

// SearchViewOf returns what a search found as the API answers it.
func SearchViewOf(found *find.Found) (out SearchView, err error) {
	out = SearchView{
		Missing: found.Missing, Time: found.Time, Elsewhere: found.Elsewhere, Pending: found.Pending, Partial: found.Partial,
		Stopped: found.Stopped,
		Notes:   found.Notes(strconv.Quote),
	}
	if found.Sessions == nil {
		out.Hits, err = viewHits(found.Hits)
		return out, err
	}
	out.Sessions = make([]sessionHitView, len(found.Sessions))
	for i, hit := range found.Sessions {
		out.Sessions[i].SessionHit = hit
		if out.Sessions[i].Passages, err = viewHits(hit.Passages); err != nil {
			return out, err
		}
	}
	return out, nil
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
