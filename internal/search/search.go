package search

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sessiond/internal/session"
	"sessiond/internal/text"
	"sessiond/internal/when"
)

// Order of the hits.
type Order string

// The orders.
const (
	OrderRank   Order = "rank" // best first: hits with every word, then by BM25
	OrderNewest Order = "newest"
)

const (
	defaultLimit = 20
	maxLimit     = 200
	maxExpand    = 20
	maxTime      = 5 * time.Second // of one search; what was found until then is returned
)

// Query selects messages. Text is in the grammar of parse; filters of the Query override those in the
// text. Since is inclusive, Until exclusive. The zero values mean: any, ranked, 20 hits, no
// neighbours.
type Query struct {
	Text    string
	Session session.ID
	Key     string
	Source  session.Source
	Project string
	Role    session.Role

	// Meant returns the values that a filter's text names, of the filters session, key, source and project, in the text
	// or not: one of them is enough. nil: the text is the value.
	Meant func(ctx context.Context, filter, text string) ([]string, error)

	Projects []string                    // only of these folders
	Sessions []session.ID                // only these; nil: any
	Hide     func(*session.Session) bool // leaves out sessions
	// Listed returns those of some sessions that may be found; nil: all of them.
	Listed func(ctx context.Context, ids []session.ID) ([]session.ID, error)

	Since  *session.Time
	Until  *session.Time
	Order  Order
	Group  Group
	Limit  int           // of hits, or of sessions
	Now    time.Time     // of ages and days in the text, in the zone of the person; zero: now, UTC
	Expand int           // neighbours on each side
	Time   time.Duration // limit; 0: 5 s

	TimeIn  string // text of a person that Text was made of, and that may name a time; "": Text
	Untimed bool   // no word of it is a time

	Rare bool // rank by words alone that few messages have, not by titles, and explain nothing: quick in any history

	Mask func(string) string // masks a message's text before its snippet is cut; may be nil
}

// Hit is a found message.
type Hit struct {
	SessionID session.ID         `json:"session_id"`
	MessageID session.MessageRef `json:"message_id" doc:"The message that was found, like 20260211_001.42"`
	Seq       int64              `json:"seq"`
	Role      session.Role       `json:"role"`
	Snippet   string             `json:"snippet" doc:"Text around the words that were found"`
	Marked    string             `json:"marked,omitempty" doc:"Its tags and note, a line each, if they have the words"`
	Score     float64            `json:"score" doc:"Rank: higher is better; comparable only within one answer"`
	CreatedAt session.Time       `json:"created_at" doc:"Time of the message, RFC 3339 in UTC"`
	Before    []session.Message  `json:"before,omitempty"` // their beginnings, oldest first
	After     []session.Message  `json:"after,omitempty"`

	origin session.Origin
	tools  []string // that its message calls or answers; "" among them

	Marks [][2]int `json:"-"` // byte ranges of Snippet that matched, for highlighting; in order, none overlaps another
}

// Pieces yields the pieces of the snippet in order, and whether each matched.
func (h *Hit) Pieces() iter.Seq2[string, bool] {
	return func(yield func(piece string, matched bool) bool) {
		end := 0
		for _, m := range h.Marks {
			if !yield(h.Snippet[end:m[0]], false) || !yield(h.Snippet[m[0]:m[1]], true) {
				return
			}
			end = m[1]
		}
		yield(h.Snippet[end:], false)
	}
}

// Matched returns the number of different words of the query in the snippet. A run without spaces counts as the pairs
// of characters that it has, a Thai one half.
func (h *Hit) Matched() (n int) {
	seen := map[string]bool{}
	for piece, matched := range h.Pieces() {
		if piece = strings.ToLower(piece); matched && !seen[piece] {
			seen[piece] = true
			n++
			switch first, _ := utf8.DecodeRuneInString(piece); {
			case !text.IsUnspaced(first):
			case first < 0x2E80: // a word of Thai has some more
				n += max(0, len(text.Characters(piece))/2-1)
			default:
				n += max(0, len(text.Characters(piece))-2)
			}
		}
	}
	return n
}

// Result is the result of a search. Pending is the number of messages that are not yet in the index.
// The search read them, or, if Partial, only the newest of them.
type Result struct {
	Hits     []Hit        `json:"hits,omitzero"`
	Sessions []SessionHit `json:"sessions,omitzero"` // instead of hits, with GroupSession
	// Missing are words that no message has; what was found is without them.
	Missing []Missing `json:"missing,omitempty"`
	// Time is a time that the query names, which is preferred and not required.
	Time *NamedTime `json:"time,omitempty"`
	// Elsewhere are filters that would find something, when those of the query find nothing.
	Elsewhere []string `json:"elsewhere,omitempty"`
	Pending   int      `json:"pending"`
	Partial   bool     `json:"partial,omitempty"`
	// Stopped says that the search met its limit of time: there may be more and better hits.
	Stopped bool `json:"stopped,omitempty"`
}

// StoppedAdvice says what to do about a search that was stopped.
const StoppedAdvice = "narrow it: more letters of a beginning*, rarer words, one session, a project or a time"

// Search finds messages. It leaves out sessions in the trash. With OrderRank, messages with all words
// come first, and those with some words fill the list; with OrderNewest, the latter only appear when
// no message has all words. Codes: Invalid (also: nothing was found within the limit of time).
func (ix *Index) Search(ctx context.Context, q Query) (Result, error) {
	p, err := q.check(ctx)
	if err != nil {
		return Result{}, err
	}
	result, err := ix.search(ctx, q, p)
	if isDamage(err) {
		if err = ix.abandon(ctx); err == nil {
			result, err = ix.search(ctx, q, p)
		}
	}
	if err != nil {
		return Result{}, fmt.Errorf("search: %w", err)
	}
	return result, nil
}

func (ix *Index) search(ctx context.Context, q Query, p parsed) (Result, error) {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	run := run{
		ix: ix, query: q, parsed: p, seen: map[int64]bool{}, sessions: map[session.ID]*candidateSession{},
		hits: []Hit{}, rarity: map[string]float64{},
	}
	if err := run.loadSharedPath(ctx); err != nil {
		return Result{}, err
	}
	places, mark, end, err := ix.beginRead(ctx)
	if err != nil {
		return Result{}, err
	}
	defer end()
	ix.tail.mu.Lock()
	err = ix.tail.extend(ctx, ix.src, mark)
	unread := errors.Is(err, errStoreDamaged) // what is indexed is found
	pending, partial := ix.tail.pending(mark), unread || ix.tail.base > mark
	run.places = places
	if ix.tail.n > 0 {
		run.places = append(run.places, ix.tail.db)
		defer ix.tail.mu.Unlock()
	} else {
		ix.tail.mu.Unlock() // a long search holds up no other one
	}
	if err != nil && !unread {
		return Result{}, fmt.Errorf("read messages that are not yet indexed: %w", err)
	}
	if run.languages, err = languagesIn(ctx, run.places); err != nil {
		return Result{}, err
	}
	for i := range run.parsed.terms {
		run.parsed.terms[i].addLanguages(run.languages)
	}
	if err := run.findInTime(ctx); err != nil {
		return Result{}, err
	}
	result := Result{
		Hits: run.hits, Sessions: run.found, Missing: run.missing, Time: run.namedTime(), Elsewhere: run.elsewhere,
		Pending: pending, Partial: partial, Stopped: run.stopped,
	}
	if _, limited := session.ScopeOf(ctx); limited {
		result.hideOthers()
	}
	return result, nil
}

// hideOthers removes the numbers that depend on the messages of all owners: how rare the words are, and what is not
// yet indexed. Scores then say the order alone: 1, 1/2, 1/3 …
func (r *Result) hideOthers() {
	r.Pending = 0
	byOrder := func(hits []Hit) {
		for i := range hits {
			hits[i].Score = 1 / float64(i+1)
		}
	}
	byOrder(r.Hits)
	for i := range r.Sessions {
		r.Sessions[i].Score = 1 / float64(i+1)
		byOrder(r.Sessions[i].Passages)
	}
}

// check fills in the defaults and parses the text. Codes: Invalid.
func (q *Query) check(ctx context.Context) (parsed, error) {
	p := parse(q.Text)
	wanted, _ := p.wanted()
	if len(wanted) == 0 {
		return p, session.Errorf(session.Invalid,
			"the query %.60q contains no word to search for; use a word, a \"phrase\" or a prefix*", q.Text).
			At("q", "contains no word")
	}
	q.Order, q.Group, q.Limit = cmp.Or(q.Order, OrderRank), cmp.Or(q.Group, GroupMessage), cmp.Or(q.Limit, defaultLimit)
	if q.Order != OrderRank && q.Order != OrderNewest {
		return p, session.Errorf(session.Invalid, "order %q is unknown; use rank or newest", q.Order).
			At("order", "is rank or newest")
	}
	if q.Group != GroupMessage && q.Group != GroupSession {
		return p, session.Errorf(session.Invalid, "group %q is unknown; use message or session", q.Group).
			At("group", "is message or session")
	}
	if q.Limit < 0 || q.Limit > maxLimit {
		return p, session.Errorf(session.Invalid, "limit %d is not within 1…%d", q.Limit, maxLimit).
			At("limit", "must be within 1…%d", maxLimit)
	}
	if q.Expand < 0 || q.Expand > maxExpand {
		return p, session.Errorf(session.Invalid, "expand %d is not within 0…%d", q.Expand, maxExpand).
			At("expand", "must be within 0…%d", maxExpand)
	}
	p.filters = p.with(filters{
		role: string(q.Role), source: string(q.Source), session: string(q.Session), key: q.Key, project: q.Project,
	})
	if err := q.resolveNames(ctx, &p); err != nil {
		return p, err
	}
	if scope, limited := session.ScopeOf(ctx); limited {
		p.filters.owner = scope.Owner
		if p.filters.source == "" {
			p.filters.source = string(scope.Source)
		}
	}
	if q.Now.IsZero() {
		q.Now = time.Now().UTC()
	}
	for _, moment := range []struct {
		name, text string
		to         **session.Time
	}{{"after", p.after, &q.Since}, {"before", p.before, &q.Until}} {
		if moment.text == "" || *moment.to != nil {
			continue
		}
		at, ok := when.Moment(moment.text, q.Now)
		if !ok {
			return p, session.Errorf(session.Invalid, "%s:%s is not a time: write %s", moment.name, moment.text, when.Forms).
				At("q", "%s is a day, a time or an age", moment.name)
		}
		*moment.to = new(session.At(at))
	}
	if !q.Untimed {
		p.findTime(cmp.Or(q.TimeIn, words(q.Text)), q.Now)
	}
	for _, f := range append([]filters{p.filters}, p.without...) {
		if err := f.check(); err != nil {
			return p, err
		}
	}
	return p, nil
}

// resolveNames replaces the texts of filters by the values that they name.
func (q *Query) resolveNames(ctx context.Context, p *parsed) error {
	all := []*filters{&p.filters}
	for i := range p.without {
		all = append(all, &p.without[i])
	}
	for _, f := range all {
		for _, name := range []string{"session", "key", "source", "project"} {
			value := f.field(name)
			if *value == "" || q.Meant == nil {
				continue
			}
			values, err := q.Meant(ctx, name, *value)
			if err != nil {
				return err
			}
			*value = anyOf(values)
		}
	}
	return nil
}

// with returns the filters, overridden by those of other.
func (f filters) with(other filters) filters {
	for _, name := range []string{"role", "source", "session", "key", "project"} {
		if value := *other.field(name); value != "" {
			*f.field(name) = value
		}
	}
	return f
}

// run is the state of one search.
type run struct {
	ix        *Index
	query     Query
	parsed    parsed
	places    []queryer               // the index, the tail
	languages []text.Language         // of its texts, besides English
	seen      map[int64]bool          // by row id of the message
	except    []session.ID            // sessions that have enough rows
	shared    [][2]session.MessageRef // of a searched fork: the path before its own messages
	sharedIn  []string                // the sessions with that path
	hits      []Hit
	found     []SessionHit
	sessions  map[session.ID]*candidateSession // that were looked up; nil: there is none
	rarity    map[string]float64               // by term: BM25's weight of a word

	sharing    []term                // words that messages near those that have them get shares of
	summed     bool                  // a message's score is the sum of those of sharing: there are no other words
	wordScores [][]map[int64]float64 // by place, word and docid
	timeScores [][]map[int64]float64 // of the words that name a time

	missing   []Missing
	elsewhere []string
	marked    marked
	stopped   bool // by the limit of time
}

// findInTime finds and explains within the limit of time. Codes: Invalid (nothing was found until then).
func (r *run) findInTime(ctx context.Context) error {
	timed, cancel := context.WithTimeout(ctx, cmp.Or(r.query.Time, maxTime))
	defer cancel()
	err := r.find(timed)
	quoted := func(t term) bool { return t.quoted && !t.not && !t.path }
	if err == nil && len(r.hits)+len(r.found) == 0 && slices.ContainsFunc(r.parsed.terms, quoted) {
		named := len(r.missing)
		if err = r.relaxQuotes(timed, true); err == nil && len(r.missing) > named {
			r.seen = map[int64]bool{}
			err = r.find(timed)
		}
	}
	if err == nil && !r.query.Rare {
		err = r.explain(timed)
	}
	if err == nil || timed.Err() == nil || ctx.Err() != nil {
		return err
	}
	if r.stopped = true; len(r.hits)+len(r.found) == 0 {
		return session.Errorf(session.Invalid, "the search was stopped after %s: %s", cmp.Or(r.query.Time, maxTime),
			StoppedAdvice).At("q", "takes too long")
	}
	return nil
}

// loadSharedPath widens the search of a fork to the path that it shares with other sessions.
func (r *run) loadSharedPath(ctx context.Context) error {
	id := session.ID(r.parsed.filters.session)
	if id == "" {
		return nil
	}
	var err error
	if r.shared, err = r.ix.src.SharedPath(ctx, id); session.CodeOf(err) == session.NotFound {
		return nil // no session has this name, so nothing matches
	} else if err != nil {
		return fmt.Errorf("shared path of session %s: %w", id, err)
	}
	for _, part := range r.shared {
		if id := string(part[0].Session); !slices.Contains(r.sharedIn, id) {
			r.sharedIn = append(r.sharedIn, id)
		}
	}
	return nil
}

// within reports whether a message is of the searched session or of the path that it shares.
func (r *run) within(d doc) bool {
	return len(r.shared) == 0 || string(d.session) == r.parsed.filters.session ||
		slices.ContainsFunc(r.shared, func(part [2]session.MessageRef) bool {
			return part[0].Session == d.session && part[0].Seq <= d.seq && d.seq <= part[1].Seq
		})
}

// doc is a matching row.
type doc struct {
	docid, rowID int64
	session      session.ID
	seq, words   int64
	tool         bool
	score        float64
	byWord       []float64 // of it, for each of run.sharing; nil: it has none of the words
	marked       string    // its tags and note, if the query finds it by these
	namesTime    bool      // it has the words of the time that the query names
}

func (d doc) ref() session.MessageRef { return session.MessageRef{Session: d.session, Seq: d.seq} }

func (r *run) find(ctx context.Context) (err error) {
	if err := r.relaxQuotes(ctx, false); err != nil {
		return err
	}
	if err := r.splitRuns(ctx); err != nil {
		return err
	}
	content := r.parsed.content()
	steps, match := []string{joinTerms(content, "AND"), joinTerms(content, "OR")}, r.matchNewest
	if r.query.Order == OrderRank {
		match = r.matchBest
		if steps, err = r.bestExpressions(ctx); err != nil {
			return err
		}
	}
	if err := r.findMarked(ctx); err != nil {
		return err
	}
	if r.query.Group == GroupSession {
		return r.findSessions(ctx, steps, match)
	}
	if err := r.addHits(ctx, r.marked.docs[:min(len(r.marked.docs), r.query.Limit)]); err != nil {
		return err
	}
	if r.query.Order == OrderNewest && len(r.hits) > 0 {
		defer func() {
			slices.SortStableFunc(r.hits, func(a, b Hit) int { return b.CreatedAt.Compare(a.CreatedAt.Time) })
		}()
	}
	for _, step := range steps {
		before := len(r.hits)
		if err := r.collect(ctx, step, match); err != nil || len(r.hits) == r.query.Limit ||
			r.query.Order == OrderNewest && len(r.hits) > before {
			return err
		}
	}
	return nil
}

// collect adds hits until there are enough. It drops rows of sessions in the trash, so it may read
// several times, each time more rows.
func (r *run) collect(ctx context.Context, terms string, match matcher) error {
	for limit := r.query.Limit + len(r.hits) + 4; ; limit *= 4 {
		docs, full, err := match(ctx, r.expression(terms), limit)
		if err != nil {
			return err
		}
		for len(docs) > 0 && len(r.hits) < r.query.Limit {
			n := min(len(docs), r.query.Limit-len(r.hits))
			if err := r.addHits(ctx, docs[:n]); err != nil {
				return err
			}
			docs = docs[n:]
		}
		if !full || len(r.hits) == r.query.Limit || limit > rankedDepth {
			return nil
		}
	}
}

// matcher returns up to limit matching rows in the order of the hits; full says that there may be more.
type matcher func(ctx context.Context, expression string, limit int) (docs []doc, full bool, err error)

// Newest first needs no sorting: FTS5 reads its lists backwards and stops at the limit. The plus keeps
// SQLite from preparing the statement again for the value of the limit.
const newestFirst = `
	SELECT d.docid, d.message_id, d.session_id, d.seq, d.words, d.tool, 0.0
	FROM (SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT +?) w
	CROSS JOIN docs d ON d.docid = w.rowid`

func (r *run) matchNewest(ctx context.Context, expression string, limit int) (docs []doc, full bool, err error) {
	from, to := r.query.docRange()
	for _, place := range r.places {
		some, err := readRows(ctx, place, scanDoc, newestFirst, expression, from, to, limit)
		if err != nil {
			return nil, false, err
		}
		full = full || len(some) == limit
		docs = append(docs, some...)
	}
	slices.SortStableFunc(docs, func(a, b doc) int { return cmp.Compare(b.docid, a.docid) })
	return docs, full, nil
}

func scanDoc(rows *sql.Rows, d *doc) error {
	return rows.Scan(&d.docid, &d.rowID, &d.session, &d.seq, &d.words, &d.tool, &d.score)
}

// docRange returns the docids of the query's time range.
func (q *Query) docRange() (from, to int64) {
	from, to = 0, math.MaxInt64
	if q.Since != nil {
		from = millis(*q.Since) << docBits
	}
	if q.Until != nil {
		to = millis(*q.Until)<<docBits - 1
	}
	return from, to
}

// addHits adds the hits of rows, in their order, except repeated ones and those of sessions in the
// trash. It reads all of them from the store at once.
func (r *run) addHits(ctx context.Context, docs []doc) error {
	ctx = context.WithoutCancel(ctx) // as in beginRead
	var fresh []doc
	var rows []int64
	for _, d := range docs {
		if r.seen[d.rowID] || !r.within(d) {
			continue
		}
		r.seen[d.rowID] = true
		fresh, rows = append(fresh, d), append(rows, d.rowID)
	}
	if err := r.loadSessions(ctx, sessionsOf(fresh)...); err != nil {
		return err
	}
	hits := map[int64]*Hit{} // by row: messages come in another order, and one at a time is held
	if err := r.ix.src.EachHead(ctx, rows, r.headOfHits(), func(m *session.Message) error {
		at := slices.IndexFunc(fresh, func(d doc) bool { return d.rowID == m.RowID })
		if at < 0 || m.ID != fresh[at].ref() {
			return nil // deleted since it was indexed
		}
		hit, err := r.makeHit(ctx, fresh[at], m)
		if hit != nil {
			hits[m.RowID] = hit
		}
		return err
	}); err != nil {
		return fmt.Errorf("read found messages: %w", err)
	}
	for _, d := range fresh {
		if hit := hits[d.rowID]; hit != nil {
			r.hits = append(r.hits, *hit)
		}
	}
	return nil
}

// headOfHits is how much of a found message is read: what a snippet is cut from, or all that is indexed if words
// must stand in it as written.
func (r *run) headOfHits() session.Head {
	if slices.ContainsFunc(r.parsed.terms, func(t term) bool { return t.quoted }) {
		return session.Head{Text: text.MaxText}
	}
	return session.Head{Text: snippetReach}
}

// candidateSession is a session with matching messages.
type candidateSession struct {
	session.Session
	hidden bool // by the query; what is in the trash is not
}

// loadSessions looks up sessions that are not known yet, all at once.
func (r *run) loadSessions(ctx context.Context, ids ...session.ID) error {
	unknown := slices.DeleteFunc(ids, func(id session.ID) bool {
		_, known := r.sessions[id]
		return known
	})
	if len(unknown) == 0 {
		return nil
	}
	there, err := r.ix.src.Outlines(ctx, unknown)
	if err != nil {
		return err
	}
	listed := unknown
	if r.query.Listed != nil {
		if listed, err = r.query.Listed(ctx, unknown); err != nil {
			return err
		}
	}
	for _, id := range unknown {
		r.sessions[id] = nil
	}
	for i := range there {
		s := candidateSession{Session: there[i]}
		s.hidden = !slices.Contains(listed, s.ID) || r.query.Hide != nil && r.query.Hide(&s.Session)
		r.sessions[s.ID] = &s
	}
	return nil
}

// shows reports whether an existing session may be found.
func (r *run) shows(id session.ID) bool {
	s := r.sessions[id]
	return s != nil && !s.hidden && s.DeletedAt == nil
}

// makeHit returns the hit of a row and its message; nil if no session shows it.
func (r *run) makeHit(ctx context.Context, d doc, m *session.Message) (*Hit, error) {
	shownBy, err := r.shownBy(ctx, d)
	if err != nil || shownBy == "" {
		return nil, err
	}
	wanted, _ := r.parsed.wanted()
	text := searchableText(m)
	if d.marked == "" && slices.ContainsFunc(wanted, func(t term) bool { return t.quoted && !t.within(text) }) {
		return nil, nil // another form of the word that stands in quotes
	}
	hit := &Hit{
		SessionID: shownBy, MessageID: m.ID, Seq: m.Seq,
		Role: m.Role, CreatedAt: m.CreatedAt, Score: math.Round(d.score*1e4) / 1e4,
	}
	hit.origin, hit.Marked = m.Origin, d.marked
	if r.query.Mask != nil {
		hit.Marked = r.query.Mask(hit.Marked)
	}
	for i := range m.Parts {
		hit.tools = append(hit.tools, m.Parts[i].ToolName)
	}
	if text = shownText(m); r.query.Mask != nil {
		text = r.query.Mask(text)
	}
	hit.Snippet, hit.Marks = snippet(text, r.parsed.content())
	if r.query.Expand > 0 {
		if hit.Before, hit.After, err = r.ix.neighbours(ctx, m, r.query.Expand); err != nil {
			return nil, err
		}
	}
	return hit, nil
}

// shownBy returns the session that shows a row's message: its own, or, if that was purged, a fork that
// shares the message; "" if the session is hidden, in the trash or deleted.
func (r *run) shownBy(ctx context.Context, d doc) (session.ID, error) {
	searched := session.ID(r.parsed.filters.session)
	shared := len(r.shared) > 0 && d.session != searched
	if s := r.sessions[d.session]; s != nil {
		if s.hidden || s.DeletedAt != nil && !shared { // a fork keeps its shared path
			return "", nil
		}
		return d.session, nil
	}
	heir, err := r.ix.src.Heir(ctx, d.ref())
	switch {
	case session.CodeOf(err) == session.NotFound:
		return "", nil
	case err != nil:
		return "", fmt.Errorf("find a fork that shares message %s: %w", d.ref(), err)
	case shared: // the searched fork is one of the heirs
		return searched, nil
	}
	if err := r.loadSessions(ctx, heir.ID); err != nil || !r.shows(heir.ID) {
		return "", err
	}
	return heir.ID, nil
}

// neighbourHead is how much of each text of a message beside a hit is returned: enough to see what was talked about.
var neighbourHead = session.Head{Text: 1000}

// neighbours returns the beginnings of up to n messages before m on its path, oldest first, and of up to n that
// follow m one after the other in its session.
func (ix *Index) neighbours(ctx context.Context, m *session.Message,
	n int,
) (before, after []session.Message, err error) {
	for parent := m.ParentID; parent != nil && len(before) < n; {
		row := *parent
		parent = nil
		if err := ix.src.EachHead(ctx, []int64{row}, neighbourHead, func(p *session.Message) error {
			before, parent = append(before, *p), p.ParentID
			return nil
		}); err != nil {
			return nil, nil, fmt.Errorf("read the messages before %s.%d: %w", m.SessionID, m.Seq, err)
		}
	}
	slices.Reverse(before)
	last := m.RowID
	for seq := m.Seq + 1; len(after) < n && seq <= m.Seq+int64(4*n); seq++ {
		next, err := ix.src.MessageHead(ctx, session.MessageRef{Session: m.SessionID, Seq: seq}, neighbourHead)
		if session.CodeOf(err) == session.NotFound {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read the messages after %s.%d: %w", m.SessionID, m.Seq, err)
		}
		if next.ParentID != nil && *next.ParentID == last {
			after = append(after, next)
			last = next.RowID
		}
	}
	return before, after, nil
}
