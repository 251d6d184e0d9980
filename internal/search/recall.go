package search

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sessiond/internal/session"
)

const (
	recallTime  = 5 * time.Millisecond
	recallHits  = 10
	recallTerms = 8       // limit of a text's terms
	recallText  = 4 << 10 // bytes of a text that are read: what a person pastes goes on with details
	recallStep  = 8       // messages of the tail between two checks of the time

	// A word in more messages than this does not distinguish them.
	commonWord = 400

	// In a smaller history, a word is rare when it is in this few messages or in less than a tenth.
	fewMessages = 10

	relevantPart = 0.25 // of the best score that a hit must reach
	nameWeight   = 1.5  // of a name or a number, relative to a plain word
	lengthWeight = 0.05 // small: a lost detail is often in a tool's long output
)

// Span is a range of a session's messages, both ends included.
type Span struct {
	Session session.ID
	From    int64 // seq
	Through int64 // seq
}

// RecallQuery asks for hidden messages that are relevant to a text.
type RecallQuery struct {
	Text    string
	Within  []Span           // of the hits
	Allowed func(int64) bool // by row id of the message; nil: all within the spans
	MaxHits int              // 0: 10
	Time    time.Duration    // limit; 0: 5 ms
}

// Recalled is the result of a recall. Complete is false if the time ran out: there may be better hits.
type Recalled struct {
	Hits     []RecallHit // best first
	Complete bool
}

// RecallHit names a relevant message.
type RecallHit struct {
	RowID int64
	Ref   session.MessageRef
	Score float64
}

// Recall finds the hidden messages that share the rarest words with a text, for a context that lost
// them to a summary. It weighs words by their rarity in these sessions, names and numbers more, and
// slightly prefers short messages. It reads messages that are not yet indexed as far as the time
// allows.
func (ix *Index) Recall(ctx context.Context, q RecallQuery) (Recalled, error) {
	recalled, err := ix.recall(ctx, q)
	if isDamage(err) {
		// The next catch-up fills it again; a turn does not wait for that.
		recalled, err = Recalled{}, ix.abandon(ctx)
	}
	if err != nil {
		return Recalled{}, fmt.Errorf("recall: %w", err)
	}
	return recalled, nil
}

func (ix *Index) recall(ctx context.Context, q RecallQuery) (Recalled, error) {
	r := recall{RecallQuery: q, complete: true, limit: cmp.Or(q.MaxHits, recallHits)}
	budget := cmp.Or(q.Time, recallTime)
	r.until, r.ranking = time.Now().Add(budget), budget/4
	// Reading the tail must leave time for the index.
	half, cancelHalf := context.WithDeadline(ctx, r.until.Add(-budget/2))
	defer cancelHalf()

	ix.mu.RLock()
	defer ix.mu.RUnlock()
	places, mark, end, err := ix.beginRead(ctx)
	if err != nil {
		return Recalled{}, err
	}
	defer end()
	if ix.tail.mu.TryLock() {
		defer ix.tail.mu.Unlock()
		err := ix.tail.extend(half, ix.src, mark, tailLimit, recallStep)
		if err != nil && !r.outOfTime(ctx, half, err) {
			return Recalled{}, fmt.Errorf("read messages that are not yet indexed: %w", err)
		}
		if ix.tail.base > mark {
			r.complete = false
		}
		if ix.tail.n > 0 {
			places = append(places, ix.tail.db)
		}
	} else {
		r.complete = false // a search is reading the tail
	}
	return r.find(ctx, places)
}

// recall is the state of one recall.
type recall struct {
	RecallQuery
	until    time.Time
	ranking  time.Duration // before until
	limit    int
	complete bool
}

// outOfTime reports whether err only means that timed is over, and records it. ctx is the caller's own
// context, whose end is an error.
func (r *recall) outOfTime(ctx, timed context.Context, err error) bool {
	if ctx.Err() != nil || timed.Err() == nil || isDamage(err) {
		return false
	}
	r.complete = false
	return true
}

// posting lists the messages with a term: docids by place, newest first, at most commonWord+1 of each. count
// is their number.
type posting struct {
	docs    [][]int64
	count   int64
	weight  float64
	related bool // nobody asked for it; it tells nothing of whether the asked words are rare
}

// rare reports whether the term distinguishes messages in a history of total messages.
func (p posting) rare(total int64) bool { return p.count <= fewMessages || p.count < total/10 }

func (r *recall) find(ctx context.Context, places []queryer) (Recalled, error) {
	total := int64(0)
	for _, s := range r.Within {
		total += max(0, s.Through-s.From+1)
	}
	if total == 0 {
		return Recalled{Complete: r.complete}, nil
	}
	postings, err := r.lookUp(ctx, places, recallTermsOf(r.Text))
	if err != nil {
		return Recalled{}, err
	}
	var together map[docAt]bool
	if !slices.ContainsFunc(postings, func(p posting) bool { return !p.related && p.rare(total) }) {
		if together = rareTogether(postings, total); len(together) == 0 {
			return Recalled{Complete: r.complete}, nil
		}
	}
	hits, err := r.rank(ctx, places, postings, together, total)
	if err != nil {
		return Recalled{}, err
	}
	return Recalled{Hits: hits, Complete: r.complete}, nil
}

// docAt is a message in one of the places.
type docAt struct {
	place int
	docid int64
}

// rareTogether returns the messages that contain several words which are common alone: the rarest two,
// or as many more as it takes until the messages are few. It returns none if even all words together
// are common, or in no message.
func rareTogether(postings []posting, total int64) map[docAt]bool {
	sorted := slices.DeleteFunc(slices.Clone(postings), func(p posting) bool { return p.related || p.count == 0 || p.count > commonWord })
	slices.SortStableFunc(sorted, func(a, b posting) int { return cmp.Compare(a.count, b.count) })
	held := map[docAt]int{}
	for n, p := range sorted {
		few := map[docAt]bool{}
		for i, docs := range p.docs {
			for _, docid := range docs {
				at := docAt{i, docid}
				if held[at]++; held[at] == n+1 {
					few[at] = true
				}
			}
		}
		switch {
		case n == 0:
		case len(few) == 0:
			return nil
		case posting{count: int64(len(few))}.rare(total):
			return few
		}
	}
	return nil
}

// recallTermsOf returns the different words of a text, first the longest, which are rarely common, and
// names and numbers.
func recallTermsOf(text string) []term {
	type weighted struct {
		word, lower string
		weight      float64
	}
	seen := map[string]bool{}
	var words []weighted
	if len(text) > recallText {
		text = strings.ToValidUTF8(text[:recallText], "")
	}
	for word := range strings.FieldsSeq(normalize(text, false).text) {
		lower, length := strings.ToLower(word), utf8.RuneCountInString(word)
		if seen[lower] || length < 2 || isStopWord(lower) {
			continue
		}
		seen[lower] = true
		words = append(words, weighted{word, lower, weight(word) * float64(length)})
	}
	slices.SortStableFunc(words, func(a, b weighted) int { return cmp.Compare(b.weight, a.weight) })
	var terms []term
	room := 2 * recallTerms
	for _, w := range words {
		room-- // a pair of CJK characters is half a word
		if r, _ := utf8.DecodeRuneInString(w.word); !isCJK(r) {
			room--
		}
		if room < 0 {
			break
		}
		t, _ := field{text: w.word}.term()
		terms = append(terms, t)
	}
	return terms
}

// weight returns nameWeight for names and numbers, which have a digit or a capital inside; else 1.
func weight(word string) float64 {
	for i, r := range word {
		if unicode.IsDigit(r) || i > 0 && unicode.IsUpper(r) {
			return nameWeight
		}
	}
	return 1
}

// lookUp returns the messages of each term, until the time runs out.
func (r *recall) lookUp(ctx context.Context, places []queryer, terms []term) ([]posting, error) {
	var tags []string
	seen := map[session.ID]bool{}
	for _, s := range r.Within {
		if !seen[s.Session] {
			seen[s.Session] = true
			tags = append(tags, "tags : "+quote(tag(tagSession, string(s.Session))))
		}
	}
	within := " AND (" + strings.Join(tags, " OR ") + ")"
	searches := make([]*sql.Stmt, len(places))
	for i, place := range places {
		var err error
		if searches[i], err = place.PrepareContext(ctx, newestDocs); err != nil {
			return nil, err
		}
		defer func() { _ = searches[i].Close() }()
	}
	type lookup struct {
		match   string
		weight  float64
		related bool
	}
	var lookups []lookup
	for _, t := range terms {
		lookups = append(lookups, lookup{t.match(), weight(t.raw), false})
	}
	for _, t := range terms { // when all words as they stand have had their time
		if match, ok := relatedTo(t); ok {
			lookups = append(lookups, lookup{match, relatedShare * weight(t.raw), true})
		}
	}
	var postings []posting
	whole := context.WithoutCancel(ctx) // as in beginRead; one lookup is short
	for _, l := range lookups {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if time.Until(r.until) < r.ranking { // what is left ranks them
			r.complete = false
			break
		}
		p := posting{docs: make([][]int64, len(places)), weight: l.weight, related: l.related}
		for i := range places {
			docs, err := readDocIDs(whole, searches[i], l.match+within, commonWord+1)
			if err != nil {
				return nil, err
			}
			p.docs[i] = docs
			p.count += int64(len(docs))
		}
		postings = append(postings, p)
	}
	return postings, nil
}

const newestDocs = `SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT +?`

func readDocIDs(ctx context.Context, search *sql.Stmt, expression string, limit int) ([]int64, error) {
	rows, err := search.QueryContext(ctx, expression, limit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var docs []int64
	for rows.Next() {
		var docid int64
		if err := rows.Scan(&docid); err != nil {
			return nil, err
		}
		docs = append(docs, docid)
	}
	return docs, rows.Err()
}

// candidate is a message with some of the terms.
type candidate struct {
	docAt
	score float64
}

// rank scores the messages with a rare term by all their terms, then by their length. It ignores common
// words, unless no other is rare. Messages with several words together count as if those were rare.
func (r *recall) rank(ctx context.Context, places []queryer, postings []posting, together map[docAt]bool, total int64) ([]RecallHit, error) {
	useful := slices.DeleteFunc(slices.Clone(postings), func(p posting) bool { return p.count > commonWord })
	if together == nil && !slices.ContainsFunc(useful, func(p posting) bool { return p.count > 0 && p.rare(total) }) {
		useful = slices.DeleteFunc(slices.Clone(postings), func(p posting) bool { return !p.rare(total) })
	}
	// Rare terms select the messages; the others only add to their scores.
	slices.SortStableFunc(useful, func(a, b posting) int { return cmp.Compare(a.count, b.count) })
	scores := map[docAt]float64{}
	for _, p := range useful {
		n := float64(max(total, p.count))
		idf := math.Log(1 + (n-float64(p.count)+0.5)/(float64(p.count)+0.5))
		for i, docs := range p.docs {
			for _, docid := range docs {
				at := docAt{i, docid}
				if _, known := scores[at]; known || p.rare(total) || together[at] {
					scores[at] += idf * p.weight
				}
			}
		}
	}
	candidates := make([]candidate, 0, len(scores))
	for at, score := range scores {
		candidates = append(candidates, candidate{at, score})
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.docid, a.docid), cmp.Compare(a.place, b.place))
	})
	return r.best(ctx, places, candidates)
}

// best reads the best candidates until enough of them are within the spans, and returns the hits.
func (r *recall) best(ctx context.Context, places []queryer, candidates []candidate) ([]RecallHit, error) {
	ctx = context.WithoutCancel(ctx) // as in beginRead
	enough := 6 * r.limit            // more than the limit, because their order still changes
	var docs []doc
	for n, chunk := range slices.Collect(slices.Chunk(candidates, enough)) {
		if len(docs) >= enough || n > 0 && !time.Now().Before(r.until) {
			r.complete = r.complete && len(docs) >= r.limit
			break
		}
		found, err := readCandidates(ctx, places, chunk)
		if err != nil {
			return nil, err
		}
		for _, d := range found {
			if r.within(d) && (r.Allowed == nil || r.Allowed(d.rowID)) {
				docs = append(docs, d)
			}
		}
	}
	best := 0.0
	for i := range docs {
		docs[i].score /= 1 + lengthWeight*math.Log1p(float64(docs[i].words)/100)
		best = math.Max(best, docs[i].score)
	}
	slices.SortFunc(docs, func(a, b doc) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.docid, a.docid), cmp.Compare(b.rowID, a.rowID))
	})
	hits := []RecallHit{}
	seen := map[int64]bool{}
	for _, d := range docs {
		if len(hits) == r.limit || d.score < best*relevantPart {
			break
		}
		if !seen[d.rowID] {
			seen[d.rowID] = true
			hits = append(hits, RecallHit{RowID: d.rowID, Ref: session.MessageRef{Session: d.session, Seq: d.seq}, Score: d.score})
		}
	}
	return hits, nil
}

// readCandidates reads the rows of the candidates, with their scores.
func readCandidates(ctx context.Context, places []queryer, candidates []candidate) ([]doc, error) {
	var docs []doc
	for i, place := range places {
		scores := map[int64]float64{}
		var list []string
		for _, c := range candidates {
			if c.place == i {
				scores[c.docid] = c.score
				list = append(list, strconv.FormatInt(c.docid, 10))
			}
		}
		if len(list) == 0 {
			continue
		}
		found, err := readDocs(ctx, place, `SELECT docid, message_id, session_id, seq, words, tool, 0.0 FROM docs
			WHERE docid IN (`+strings.Join(list, ", ")+`)`)
		if err != nil {
			return nil, err
		}
		for _, d := range found {
			d.score = scores[d.docid]
			docs = append(docs, d)
		}
	}
	return docs, nil
}

func (r *recall) within(d doc) bool {
	return slices.ContainsFunc(r.Within, func(s Span) bool {
		return s.Session == d.session && s.From <= d.seq && d.seq <= s.Through
	})
}
