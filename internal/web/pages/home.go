package pages

import (
	"context"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sessiond/internal/find"
	"sessiond/internal/folders"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

const (
	homeRows = 60
	// Of so many sessions, active since then, a list says who acts.
	mostActing = 12
	mostRecent = time.Hour
	homeHits   = 20
)

// homePage is the list of sessions, or what a search found.
type homePage struct {
	Chips  []chip
	Form   filterForm
	Year   *yearMap // nil: not shown
	Back   string   // address of this view
	Said   string   // what an action did
	Days   []day
	Next   string // address of the older sessions
	Hits   []sessionHit
	Notes  []string
	Query  string
	Empty  bool // nothing is stored yet
	Search bool
	Folds  bool // sub-agents are folded under sessions
	Offers []offer
	Limits string // the programs that are at a limit now

	names folders.Names // of the projects
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
	Children  int64  // sub-agents, at any depth
	Below     string // address of their list
	Context   string // share of the window
	Size      string // of the context, in words
	Doing     *doing // who acts now; nil: that is not known
	Cost      string
	CostWords string
	Project   string // its last folder

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
	Marked  string // its tags and note, if they were found
	Snippet template.HTML
}

func (p *Pages) home(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if clean := withoutEmpty(q); len(clean) < len(q) { // of a form: the address is a link to this view
		to := address("/", clean)
		if !isFragment(r) {
			http.Redirect(w, r, to, http.StatusSeeOther)
			return nil
		}
		w.Header().Set("HX-Push-Url", to)
		q = clean
	}
	wanted, err := find.FromQuery(q)
	if err != nil {
		return err
	}
	wanted.Text = strings.TrimSpace(wanted.Text)
	page := homePage{
		Query: wanted.Text, Chips: chips(q, append(find.Names(find.Lists), "all")), Back: address("/", q),
	}
	if !isFragment(r) {
		page.Said = takeSaid(w, r, "/")
	}
	if page.names, err = p.Store.ProjectNames(r.Context()); err != nil {
		return err
	}
	if page.Query != "" {
		page.Search, page.Chips = true, chips(q, find.Names(find.Searches))
		err = p.search(r.Context(), &page, q, wanted)
	} else {
		err = p.list(r.Context(), &page, q, wanted)
	}
	if session.CodeOf(err) == session.NotFound { // the name of a filter
		page.Notes, err = []string{sentence(err.Error())}, nil
	}
	if page.Form.Selects == nil && err == nil {
		err = p.fillForm(r.Context(), &page, q, store.Filter{}, false)
	}
	if err != nil {
		return err
	}
	return p.show(w, r, "home", frame{
		Title: "Sessions", Place: "sessions", Query: page.Query,
		Keep: chips(q, find.Names(find.Searches)), Body: page, packed: true,
	})
}

// finder runs requests of people, who click or write names.
func (p *Pages) finder() *find.Finder {
	return &find.Finder{Store: p.Store, Index: p.Search, Now: p.Now, Key: p.Key}
}

// chips returns the filters of an address, those of metadata last.
func chips(q url.Values, filters []string) (out []chip) {
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if _, ok := find.MetadataName(name); ok {
			filters = append(filters, name)
		}
	}
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

func (p *Pages) list(ctx context.Context, page *homePage, q url.Values, wanted find.Request) error {
	wanted.People = q.Get("all") == "" && wanted.Folds()
	filter, err := p.finder().Filter(ctx, wanted)
	if err != nil {
		return err
	}
	sessions, next, err := p.Store.Sessions(ctx, filter, store.Page{Limit: homeRows, Cursor: q.Get("cursor")})
	if err != nil {
		return err
	}
	if err := p.fillForm(ctx, page, q, filter, true); err != nil {
		return err
	}
	if q.Get("cursor") == "" && wanted.Folds() {
		if page.Year, err = p.yearMap(ctx, q, filter); err != nil {
			return err
		}
	}
	if next != "" {
		page.Next = address("/", q, "cursor", next)
	}
	measures, err := p.Store.Measures(ctx, sessions, p.models)
	if err != nil {
		return err
	}
	acting := 0 // sessions that are looked at
	for i := range sessions {
		s := &sessions[i]
		measure := measures[s.ID]
		r := row{Session: s, Size: transcript.Context(measure.Context), CostWords: transcript.Costs(s, &measure)}
		r.Project = page.names.With(s.Project, s.Directory)
		if r.Cost, _ = transcript.CostCell(s, &measure, wanted.People); r.CostWords == r.Cost {
			r.CostWords = ""
		}
		if measure.Rollup != nil {
			r.Children, r.Below = measure.Rollup.Children, address("/", url.Values{}, "parent", string(s.ID))
			page.Folds = page.Folds || wanted.People
		}
		r.InProject, r.FromSource = address("/", q, "project", s.Project, "cursor", ""),
			address("/", q, "source", string(s.Source), "cursor", "")
		if size := measure.Context; size.Window > 0 && size.Tokens > 0 {
			r.Context = transcript.Percent(size.Tokens, size.Window)
		}
		if p.Now().Sub(s.ActiveAt.Time) < mostRecent && acting < mostActing {
			acting++
			if r.Doing, err = p.doingIn(ctx, s); err != nil {
				return err
			}
		}
		name := p.dayName(s.ActiveAt.Time)
		if n := len(page.Days); n == 0 || page.Days[n-1].Name != name {
			page.Days = append(page.Days, day{Name: name})
		}
		last := &page.Days[len(page.Days)-1]
		last.Rows = append(last.Rows, r)
	}
	if page.Limits, err = p.finder().LimitsLine(ctx); err != nil {
		return err
	}
	page.Empty = len(sessions) == 0 && len(page.Chips) == 0 && q.Get("cursor") == ""
	return nil
}

// models knows the windows of models.
func (p *Pages) models(model string) (session.ModelInfo, bool) {
	if p.Models == nil {
		return session.ModelInfo{}, false
	}
	return p.Models(model)
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

func (p *Pages) search(ctx context.Context, page *homePage, q url.Values, wanted find.Request) error {
	wanted.Group, wanted.Limit = string(search.GroupSession), homeHits
	found, err := p.finder().Search(ctx, wanted)
	if err != nil {
		return err
	}
	for _, note := range found.Notes(func(word string) string { return "“" + word + "”" }) {
		page.Notes = append(page.Notes, sentence(note))
	}
	if t := found.Time; t != nil {
		page.Offers = append(page.Offers, offer{"only messages of: " + t.Text, address("/", q, "q", page.Query+" "+t.Filter)})
	}
	for _, s := range found.Sessions {
		hit := sessionHit{SessionHit: s, Name: page.names.Of(s.Project)}
		for i := range s.Passages {
			h := &s.Passages[i]
			hit.Found = append(hit.Found, passage{
				At: messageAddress(s.SessionID, h.MessageID), Who: string(h.Role),
				Marked: transcript.OneLine(h.Marked, promptWidth), Snippet: marked(h),
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
