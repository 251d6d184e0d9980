package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sessiond/internal/session"
	"sessiond/internal/text"
)

// Counts alone limit a recall: the same question gets the same answer on a busy machine, and a redo the same bytes.
const (
	recallHits   = 10
	recallTerms  = 8       // limit of a text's terms
	recallText   = 4 << 10 // bytes of a text that are read: what a person pastes goes on with details
	recallChunks = 8       // of candidates that are read, each three times the hits

	// A word in more messages than this does not distinguish them.
	commonWord = 400

	// In a smaller history, a word is rare when it is in this few messages or in less than a tenth.
	fewMessages = 10

	relevantPart = 0.25 // of the best score that a hit must reach
	nameWeight   = 1.5  // of a name or a number, relative to a plain word
	lengthWeight = 0.05 // small: a lost detail is often in a tool's long output
)

// tailPatience is the limit for reading messages that are not yet indexed. A thousand take 0.1 s; only huge ones
// reach it.
const tailPatience = 2 * time.Second

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
	Newest  int64            // row id of the newest message within; 0: any
	Allowed func(int64) bool // by row id of the message; nil: all within the spans
	MaxHits int              // 0: 10
}

// Recalled is the result of a recall. Unread is the number of older messages of all sessions that are not yet indexed
// and were not searched.
type Recalled struct {
	Hits   []RecallHit // best first
	Unread int
}

// RecallHit names a relevant message.
type RecallHit struct {
	RowID int64
	Ref   session.MessageRef
	Score float64
}

// Recall finds the hidden messages that share the rarest words with a text, for a context that lost
// them to a summary. It weighs words by their rarity in these sessions, names and numbers more, and
// slightly prefers short messages.
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
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	places, mark, end, err := ix.beginRead(ctx)
	if err != nil {
		return Recalled{}, err
	}
	defer end()
	unread := 0
	if q.Newest == 0 || q.Newest > mark {
		ix.tail.mu.Lock()
		defer ix.tail.mu.Unlock()
		timed, cancel := context.WithTimeout(ctx, tailPatience)
		defer cancel()
		err := ix.tail.extend(timed, ix.src, mark)
		if err != nil && (ctx.Err() != nil || timed.Err() == nil || isDamage(err)) {
			return Recalled{}, fmt.Errorf("read messages that are not yet indexed: %w", err)
		}
		unread = int(ix.tail.base - mark)
		if ix.tail.n > 0 {
			places = append(places, ix.tail.db)
		}
	}
	r := recall{q, cmp.Or(q.MaxHits, recallHits)}
	hits, err := r.find(ctx, places)
	return Recalled{hits, unread}, err
}

// recall is the state of one recall.
type recall struct {
	RecallQuery
	limit int
}

// posting lists the messages with a term: docids by place, newest first, at most commonWord+1 of each. count
// is their number.
type posting struct {
	docs   [][]int64
	count  int64
	weight float64
}

// rare reports whether the term distinguishes messages in a history of total messages.
func (p posting) rare(total int64) bool { return p.count <= fewMessages || p.count < total/10 }

func (r *recall) find(ctx context.Context, places []queryer) ([]RecallHit, error) {
	total := int64(0)
	for _, s := range r.Within {
		total += max(0, s.Through-s.From+1)
	}
	if total == 0 {
		return nil, nil
	}
	terms := recallTermsOf(r.Text)
	languages, err := languagesIn(ctx, places)
	if err != nil {
		return nil, err
	}
	for i := range terms {
		terms[i].addLanguages(languages)
	}
	postings, err := r.lookUp(ctx, places, terms)
	if err != nil {
		return nil, err
	}
	var together map[docAt]bool
	if !slices.ContainsFunc(postings, func(p posting) bool { return p.rare(total) }) {
		if together = rareTogether(postings, total); len(together) == 0 {
			return nil, nil
		}
	}
	return r.rank(ctx, places, postings, together, total)
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
	sorted := slices.DeleteFunc(slices.Clone(postings), func(p posting) bool {
		return p.count == 0 || p.count > commonWord
	})
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
func recallTermsOf(s string) []term {
	type weighted struct {
		word, lower string
		weight      float64
	}
	seen := map[string]bool{}
	var words []weighted
	if len(s) > recallText {
		s = strings.ToValidUTF8(s[:recallText], "")
	}
	said := strings.FieldsFunc(text.Tokenize(s, text.English, false).Text, func(r rune) bool {
		return r == ' ' || text.IsUnspaced(r)
	})
	for _, word := range append(said, CluesOf(s)...) {
		lower, length := strings.ToLower(word), utf8.RuneCountInString(word)
		if seen[lower] || length < 2 && !text.IsUnspaced([]rune(word)[0]) || text.IsStopWord(lower) {
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
		if r, _ := utf8.DecodeRuneInString(w.word); !text.IsUnspaced(r) {
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

// lookUp returns the messages of each term.
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
	var postings []posting
	whole := context.WithoutCancel(ctx) // as in beginRead; one lookup is short
	for _, t := range terms {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p := posting{docs: make([][]int64, len(places)), weight: weight(t.raw)}
		for i, place := range places {
			docs, err := readRows(whole, place, scanValue[int64], newestDocs, t.match()+within, commonWord+1)
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

// candidate is a message with some of the terms.
type candidate struct {
	docAt
	score float64
}

// rank scores the messages with a rare term by all their terms, then by their length. It ignores common
// words, unless no other is rare. Messages with several words together count as if those were rare.
func (r *recall) rank(ctx context.Context, places []queryer, postings []posting, together map[docAt]bool,
	total int64,
) ([]RecallHit, error) {
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
	enough := 3 * r.limit            // more than the limit, because their order still changes
	var docs []doc
	for chunk := range slices.Chunk(candidates[:min(len(candidates), recallChunks*enough)], enough) {
		if len(docs) >= enough {
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
			hits = append(hits, RecallHit{
				RowID: d.rowID, Ref: session.MessageRef{Session: d.session, Seq: d.seq},
				Score: d.score,
			})
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
		found, err := readRows(ctx, place, scanDoc, `SELECT docid, message_id, session_id, seq, words, tool, 0.0 FROM docs
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
