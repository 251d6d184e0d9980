package pages

import (
	"context"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
	"sessiond/internal/when"
)

const (
	homeRows = 60
	homeHits = 20
)

// homePage is the list of sessions, or what a search found.
type homePage struct {
	Chips  []chip
	Days   []day
	Next   string // address of the older sessions
	Hits   []sessionHit
	Notes  []string
	Query  string
	Empty  bool // nothing is stored yet
	Search bool
	Offers []offer
}

// chip is a filter that is on, and the address without it.
type chip struct{ Name, Value, Without string }

// offer is a filter that is not on.
type offer struct{ Name, Address string }

type day struct {
	Name string
	Rows []row
}

// row is a session in the list.
type row struct {
	*session.Session
	Children int64  // sub-agents, at any depth
	Below    string // address of their list
	Context  string // share of the window
	Cost     string
	Project  string // as lists call it

	InProject, FromSource string // addresses of the list with such a filter
}

type sessionHit struct {
	search.SessionHit
	Name  string // of its project, as lists call it
	Found []passage
}

type passage struct {
	At      string // address
	Who     string
	Snippet template.HTML
}

// Filters of the list, and of a search, as they are in the address.
var (
	homeFilters   = []string{"project", "source", "model", "since", "parent", "archived", "all"}
	searchFilters = []string{"project", "source", "since"}
)

func (p *Pages) home(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	page := homePage{Query: strings.TrimSpace(q.Get("q")), Chips: chips(q, homeFilters)}
	since, err := p.since(q)
	if err != nil {
		return err
	}
	if page.Query != "" {
		page.Search, page.Chips = true, chips(q, searchFilters)
		err = p.search(r.Context(), &page, q, since)
	} else {
		err = p.list(r.Context(), &page, q, since)
	}
	if err != nil {
		return err
	}
	return p.show(w, r, "home", frame{Title: "Sessions", Place: "sessions", Query: page.Query, Keep: chips(q, searchFilters), Body: page})
}

// since parses the filter since, nil if there is none. Codes: Invalid.
func (p *Pages) since(q url.Values) (*session.Time, error) {
	since := q.Get("since")
	if since == "" {
		return nil, nil
	}
	at, ok := when.Moment(since, p.Now().In(p.Zone))
	if !ok {
		return nil, session.Errorf(session.Invalid, "since=%.40s is not a time: write %s", since, when.Forms)
	}
	return new(session.At(at)), nil
}

func chips(q url.Values, filters []string) (out []chip) {
	for _, name := range filters {
		if value := q.Get(name); value != "" {
			out = append(out, chip{name, value, address("/", q, name, "", "cursor", "")})
		}
	}
	return out
}

// address returns an address with some parameters changed.
func address(path string, q url.Values, changes ...string) string {
	with := url.Values{}
	for name, values := range q {
		with[name] = values
	}
	for i := 0; i+1 < len(changes); i += 2 {
		if with.Del(changes[i]); changes[i+1] != "" {
			with.Set(changes[i], changes[i+1])
		}
	}
	if len(with) == 0 {
		return path
	}
	return path + "?" + with.Encode()
}

func (p *Pages) list(ctx context.Context, page *homePage, q url.Values, since *session.Time) error {
	projects, err := p.Store.ProjectsNamed(ctx, q.Get("project"))
	if err != nil {
		return err
	}
	filter := store.Filter{
		Source: session.Source(q.Get("source")), Model: q.Get("model"), ParentID: session.ID(q.Get("parent")),
		Archived: q.Get("archived") != "", People: q.Get("all") == "" && q.Get("parent") == "", Since: since,
	}
	if len(projects) > 0 {
		filter.Among = map[store.Column][]string{store.ColumnProject: projects}
	}
	if since == nil {
		page.Offers = append(page.Offers, offer{"last 7 days", address("/", q, "since", "7d", "cursor", "")})
	}
	if filter.People {
		page.Offers = append(page.Offers, offer{"with sub-agents and automated sessions", address("/", q, "all", "1", "cursor", "")})
	}
	sessions, next, err := p.Store.Sessions(ctx, filter, store.Page{Limit: homeRows, Cursor: q.Get("cursor")})
	if err != nil {
		return err
	}
	if next != "" {
		page.Next = address("/", q, "cursor", next)
	}
	ids := make([]session.ID, len(sessions))
	for i := range sessions {
		ids[i] = sessions[i].ID
	}
	children, err := p.Store.Children(ctx, ids)
	if err != nil {
		return err
	}
	names, err := p.Store.ProjectNames(ctx)
	if err != nil {
		return err
	}
	for i := range sessions {
		s := &sessions[i]
		r := row{Session: s, Children: children[s.ID], Cost: transcript.ShortMoney(s.CostNanoUSD, s.UnpricedCalls), Project: names.With(s.Project, s.Directory), Below: address("/", url.Values{}, "parent", string(s.ID))}
		r.InProject, r.FromSource = address("/", q, "project", s.Project, "cursor", ""), address("/", q, "source", string(s.Source), "cursor", "")
		if window := p.window(s); window > 0 && s.ContextTokens > 0 {
			r.Context = transcript.Percent(s.ContextTokens, window)
		}
		name := p.dayName(s.ActiveAt.Time)
		if n := len(page.Days); n == 0 || page.Days[n-1].Name != name {
			page.Days = append(page.Days, day{Name: name})
		}
		last := &page.Days[len(page.Days)-1]
		last.Rows = append(last.Rows, r)
	}
	page.Empty = len(sessions) == 0 && len(page.Chips) == 0 && q.Get("cursor") == ""
	return nil
}

// window returns a session's window, 0 if it is not known.
func (p *Pages) window(s *session.Session) int64 {
	if s.Window != nil {
		return *s.Window
	}
	if p.Models != nil {
		if m, known := p.Models(s.Model); known {
			return m.Window
		}
	}
	return 0
}

// dayName names a day as people do.
func (p *Pages) dayName(at time.Time) string {
	now := p.Now().In(p.Zone)
	at = at.In(p.Zone)
	switch {
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
		return "Today"
	case at.Format(time.DateOnly) == now.AddDate(0, 0, -1).Format(time.DateOnly):
		return "Yesterday"
	case at.Year() == now.Year():
		return at.Format("Monday, 2 January")
	}
	return at.Format("2 January 2006")
}

func (p *Pages) search(ctx context.Context, page *homePage, q url.Values, since *session.Time) error {
	found, err := p.Search.Search(ctx, search.Query{
		Text: page.Query, Group: search.GroupSession, Limit: homeHits, Now: p.Now().In(p.Zone),
		Project: q.Get("project"), Source: session.Source(q.Get("source")), Since: since,
	})
	if err != nil {
		return err
	}
	for _, m := range found.Missing {
		note := "No message has “" + m.Word + "”"
		switch {
		case m.Searched:
			note += ": this is what was found for “" + m.DidYouMean + "”"
		case len(found.Sessions) > 0:
			note += ": the results are without it"
		}
		if note += "."; m.DidYouMean != "" && !m.Searched {
			note += " Did you mean “" + m.DidYouMean + "”?"
		}
		page.Notes = append(page.Notes, note)
	}
	if t := found.Time; t != nil {
		page.Offers = append(page.Offers, offer{"only messages of: " + t.Text, address("/", q, "q", page.Query+" "+t.Filter)})
	}
	if found.Stopped {
		page.Notes = append(page.Notes, "The search took too long and was stopped. To find more, "+search.StoppedAdvice+".")
	}
	if len(found.Elsewhere) > 0 {
		page.Notes = append(page.Notes, "Nothing was found with these filters. There are results with "+strings.Join(found.Elsewhere, " "))
	}
	names, err := p.Store.ProjectNames(ctx)
	if err != nil {
		return err
	}
	for _, s := range found.Sessions {
		hit := sessionHit{SessionHit: s, Name: names.Of(s.Project)}
		for i := range s.Passages {
			h := &s.Passages[i]
			hit.Found = append(hit.Found, passage{
				At: messageAddress(s.SessionID, h.MessageID), Who: string(h.Role), Snippet: marked(h),
			})
		}
		page.Hits = append(page.Hits, hit)
	}
	return nil
}

// messageAddress is the address of a message in a session's conversation.
func messageAddress(in session.ID, ref session.MessageRef) string {
	return "/s/" + string(in) + "?at=" + ref.String() + "#" + anchorIn(in, ref)
}

// anchorIn is the name of a message's place in a session's conversation.
func anchorIn(in session.ID, ref session.MessageRef) string {
	if ref.Session == in {
		return "m" + strconv.FormatInt(ref.Seq, 10)
	}
	return ref.String()
}

// marked returns a snippet with the words that were found in <mark>.
func marked(h *search.Hit) template.HTML {
	var b strings.Builder
	for piece, matched := range h.Pieces() {
		if piece = template.HTMLEscapeString(transcript.Clean(piece)); matched {
			piece = "<mark>" + piece + "</mark>"
		}
		b.WriteString(piece)
	}
	return template.HTML(b.String()) //nolint:gosec // escaped piece by piece
}
