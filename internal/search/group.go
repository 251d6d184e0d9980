package search

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"sessiond/internal/session"
	"sessiond/internal/text"
)

// Group says what a result lists.
type Group string

// The groups.
const (
	GroupMessage Group = "message"
	GroupSession Group = "session" // sessions, by their best messages together
)

const (
	mostPassages = 3  // of a session
	mostTried    = 24 // rows for them: in quotes not every row is a hit
	groupedDocs  = 400
	mostRounds   = 10 // of more rows, when these are of too few sessions

	// A session's score is that of its best message, and this share of what the next ones have: a
	// conversation about something comes back to it.
	nextPassage = 0.3
	// A word in a title counts as in a short message, in the names of project and branch half of that: many
	// sessions share them.
	titleWeight   = 1.0
	projectWeight = 0.5
	// Letters by which names are looked up that may have another form of a word in another language.
	namePrefix = 5
)

// SessionHit is a found session.
type SessionHit struct {
	SessionID session.ID     `json:"session_id"`
	Title     string         `json:"title"`
	Source    session.Source `json:"source" doc:"The program that it comes from"`
	Project   string         `json:"project" doc:"Its folder"`
	ActiveAt  session.Time   `json:"active_at"`
	StarredAt *session.Time  `json:"starred_at,omitempty" doc:"Time a person starred it"`
	Score     float64        `json:"score" doc:"Rank: higher is better; comparable only within one answer"`
	Passages  []Hit          `json:"passages" doc:"Its best messages, up to three; none if only its title was found"`
}

// grouped is a session before it is read.
type grouped struct {
	id    session.ID
	score float64
	docs  []doc // best first
}

func (r *run) findSessions(ctx context.Context, steps []string, match matcher) error {
	groups, err := r.matchSessions(ctx, steps, match)
	if err != nil && (len(groups) == 0 || ctx.Err() == nil) {
		return err
	}
	return cmp.Or(r.addSessions(context.WithoutCancel(ctx), groups), err) // what was found in time is shown
}

// matchSessions returns the sessions with matching messages, best first; with an error those that were found before it.
func (r *run) matchSessions(ctx context.Context, steps []string, match matcher) (groups []grouped, err error) {
	docs := slices.Clone(r.marked.docs)
	if len(steps) == 0 {
		groups = groupDocs(docs, r.within)
	}
	for _, step := range steps {
		found := 0
		for range mostRounds {
			some, full, err := match(ctx, r.expression(step), max(groupedDocs, 4*r.query.Limit))
			if err != nil {
				return groups, err
			}
			docs = append(docs, some...)
			if r.query.Order == OrderNewest && len(r.marked.docs) > 0 {
				slices.SortStableFunc(docs, func(a, b doc) int { return cmp.Compare(b.docid, a.docid) })
			}
			groups = groupDocs(docs, r.within)
			if err := r.loadSessions(ctx, sessionsOf(docs)...); err != nil {
				return nil, err
			}
			found = len(slices.DeleteFunc(slices.Clone(groups), func(g grouped) bool {
				return r.sessions[g.id] != nil && !r.shows(g.id)
			}))
			if !full || found >= r.query.Limit || r.parsed.filters.session != "" {
				break
			}
			r.except = sessionsOf(docs) // a long conversation does not hide the others
		}
		r.except = nil
		if found >= r.query.Limit || r.query.Order == OrderNewest && found > 0 {
			break
		}
	}
	if r.query.Order == OrderRank && !r.query.Rare {
		if groups, err = r.addTitles(ctx, groups); err != nil {
			return nil, err
		}
		slices.SortStableFunc(groups, func(a, b grouped) int { return cmp.Compare(b.score, a.score) })
	}
	return groups, nil
}

// addSessions reads the sessions of groups and their best messages, until there are enough.
func (r *run) addSessions(ctx context.Context, groups []grouped) error {
	r.found = []SessionHit{}
	ids := make([]session.ID, len(groups))
	for i, g := range groups {
		ids[i] = g.id
	}
	if err := r.loadSessions(ctx, ids...); err != nil { // those that are found by their titles alone
		return err
	}
	if r.query.Order == OrderRank {
		groups = r.automatedLast(groups)
	}
	for _, g := range groups {
		if len(r.found) == r.query.Limit {
			break
		}
		r.hits = nil
		for some := range slices.Chunk(g.docs[:min(len(g.docs), mostTried)], mostPassages) {
			if err := r.addHits(ctx, some); err != nil {
				return err
			}
			if len(r.hits) >= mostPassages {
				break
			}
		}
		r.hits = r.hits[:min(len(r.hits), mostPassages)]
		id := g.id
		switch {
		case len(r.hits) > 0:
			id = r.hits[0].SessionID
		case len(g.docs) > 0:
			continue // in the trash, or gone
		}
		if slices.ContainsFunc(r.found, func(s SessionHit) bool { return s.SessionID == id }) {
			continue // a fork that also shows messages of a purged session
		}
		if err := r.loadSessions(ctx, id); err != nil {
			return err
		}
		if !r.shows(id) {
			continue
		}
		s := r.sessions[id]
		r.found = append(r.found, SessionHit{
			SessionID: s.ID, Title: s.Title, Source: s.Source, Project: s.Project, ActiveAt: s.ActiveAt, StarredAt: s.StarredAt,
			Score: math.Round(g.score*1e4) / 1e4, Passages: append([]Hit{}, r.hits...),
		})
	}
	r.hits = nil
	return nil
}

// automatedLast moves automated sessions behind those of people, as many of which as the query wants: a plug-in that
// watches sessions repeats what was said in them.
func (r *run) automatedLast(groups []grouped) []grouped {
	var people, automated []grouped
	for i, g := range groups {
		if len(people) == r.query.Limit {
			return slices.Concat(people, automated, groups[i:])
		}
		if s := r.sessions[g.id]; s != nil && s.Kind == session.KindAutomated {
			automated = append(automated, g)
		} else {
			people = append(people, g)
		}
	}
	return append(people, automated...)
}

func sessionsOf(docs []doc) []session.ID {
	ids := map[session.ID]bool{}
	for _, d := range docs {
		ids[d.session] = true
	}
	return slices.Sorted(maps.Keys(ids))
}

// groupDocs groups rows by session, in the order in which sessions appear.
func groupDocs(docs []doc, within func(doc) bool) (groups []grouped) {
	at := map[session.ID]int{}
	seen := map[int64]bool{}
	for _, d := range docs {
		if seen[d.rowID] || !within(d) {
			continue
		}
		seen[d.rowID] = true
		i, ok := at[d.session]
		if !ok {
			i = len(groups)
			at[d.session] = i
			groups = append(groups, grouped{id: d.session})
		}
		g := &groups[i]
		g.score += d.score * math.Pow(nextPassage, float64(len(g.docs)))
		g.docs = append(g.docs, d)
	}
	return groups
}

// addTitles adds to the scores of sessions whose title, tags, note, project or branch has words of the query, and adds
// those that are found by their titles, tags and notes alone, unless the search is narrowed.
func (r *run) addTitles(ctx context.Context, groups []grouped) ([]grouped, error) {
	content := r.parsed.content()
	named, err := r.ix.src.SessionsNamed(ctx, r.spellings(content))
	if err != nil {
		return nil, err
	}
	_, excluded := r.parsed.wanted()
	narrowed := r.parsed.filters != (filters{owner: r.parsed.filters.owner}) || len(r.query.Projects) > 0 ||
		r.query.Listed != nil || r.query.Since != nil || r.query.Until != nil ||
		len(excluded)+len(r.parsed.without) > 0
	titled := map[string]bool{}
	for id := range r.marked.sessions {
		if !slices.ContainsFunc(named, func(s session.Session) bool { return s.ID == id }) {
			named = append(named, session.Session{ID: id})
		}
	}
	for _, s := range named {
		if marks := r.marked.sessions[s.ID]; marks != nil {
			if s.TitleSource == "first_message" {
				s.Title = ""
			}
			s.Title, s.TitleSource = s.Title+"\n"+marks.String(), ""
		}
		title, project := r.namesIn(s.Title), r.namesIn(s.Project+" "+s.GitBranch)
		score, inTitle := 0.0, 0
		for _, t := range content {
			switch {
			case s.TitleSource != "first_message" && t.isIn(title): // else that message has its words
				score += titleWeight * r.rarity[t.raw]
				inTitle++
				titled[t.raw] = true
			case t.isIn(project):
				score += projectWeight * r.rarity[t.raw]
			}
		}
		i := slices.IndexFunc(groups, func(g grouped) bool { return g.id == s.ID })
		switch {
		case i >= 0:
			groups[i].score += score
		case inTitle > 0 && !narrowed:
			groups = append(groups, grouped{id: s.ID, score: score})
		}
	}
	if !narrowed { // a title has them
		r.missing = slices.DeleteFunc(r.missing, func(m Missing) bool { return titled[m.Word] })
	}
	return groups, nil
}

// namesIn returns the tokens of a name, in each language that the index has.
func (r *run) namesIn(name string) (tokens []string) {
	for _, l := range append([]text.Language{text.English}, r.languages...) {
		n := text.Tokenize(name, l, true)
		tokens = append(tokens, " "+text.Folded(n.Stems+" "+n.Symbols)+" ")
	}
	return tokens
}

// isIn reports whether a name has the term in one of its forms.
func (t term) isIn(names []string) bool {
	return slices.ContainsFunc(append([]string{t.norm.Stems}, t.stemsIn...), func(stems string) bool {
		return slices.ContainsFunc(names, func(tokens string) bool {
			return strings.Contains(tokens, " "+text.Folded(stems)+" ")
		})
	})
}
