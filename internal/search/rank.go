package search

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/session"
	"sessiond/internal/text"
)

// How messages are ranked. docs/performance.md has what each is worth on real questions.
const (
	// BM25's k1: how much more it counts that a word is said again. Little: one message is about one
	// thing, and a tool's output repeats everything.
	saturation = 0.6
	// BM25's b: how much a long message is held back. Less than the usual 0.75, because a long answer is
	// as often the one that is wanted.
	lengthShare = 0.4
	// A word that a message lacks counts this much if the message beside it has it: people ask for what a talk
	// was about, and the words of that lie in several messages.
	besideShare = 0.6
	// The share falls evenly with the distance and ends after so many messages. A talk names whom it is about
	// once; in a long history that name tells it from all the others that have the question's usual words.
	shareReach = 10
	// Of a question, also the messages beside this many of the best get such shares: an answer often has no word
	// of what was asked just before.
	askedDocs = 20
	// A tool's call or output counts so much: listings and diffs repeat the words of what was said about them.
	toolFactor = 0.7
	// The length of a message, in words, that is neither held back nor preferred: one of a chat. Measured against
	// the mean of agents' histories, which tools' outputs make long, all that people say would count as short.
	usual = 30.0
)

const (
	// Ranking compares as many messages as have the rarest words, up to this, so that a query with common
	// words takes no longer in a larger history.
	rankedDepth = 5000
	// Of so few words people expect all in a hit; a question's words are clues. Messages with all of a few come first.
	fewWords = 3
	// As many of the best are ranked with their neighbours.
	bestDocs = 400
)

// builtinB is b of FTS5's bm25(). Its k1 is 1.2; the weight 2 of a column makes it 0.6.
const builtinB = 0.75

const bestFirst = `
	SELECT d.docid, d.message_id, d.session_id, d.seq, d.words, d.tool, -w.score
	FROM (SELECT rowid, score FROM (
	          SELECT rowid, bm25(words, 2.0, 2.0, 0.0) AS score
	          FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT +?)
	      ORDER BY score, rowid DESC LIMIT +?) w
	CROSS JOIN docs d ON d.docid = w.rowid`

const scoresOfWord = `SELECT rowid, -bm25(words, 2.0, 2.0, 0.0) FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT +?`

// bestExpressions returns what selects the messages to rank, in the order in which it is tried. The rarest
// words select, never the age alone; common ones only add to the scores.
func (r *run) bestExpressions(ctx context.Context) ([]string, error) {
	if r.parsed.asksForTime() {
		return []string{joinTerms(r.parsed.content(), "OR")}, nil
	}
	terms, counts, err := r.byRarity(ctx, r.parsed.content())
	if err != nil || len(terms) == 0 {
		return nil, err
	}
	rare, sum := 1, counts[0]
	for ; rare < len(terms) && sum+counts[rare] <= rankedDepth; rare++ {
		sum += counts[rare]
	}
	if len(terms) > 1 && counts[0] < rankedDepth { // a word in more messages is near most of them
		r.sharing = terms[:rare]
		r.summed = r.query.Rare || rare == len(terms)
	}
	var steps []string
	if r.query.Rare {
		if counts[0] >= rankedDepth {
			return nil, nil
		}
		return []string{joinTerms(terms[:rare], "OR")}, nil
	}
	some, all := joinTerms(terms[:rare], "OR"), joinTerms(terms, "OR")
	few := len(terms) <= fewWords && r.query.Group == GroupMessage && !asks(r.query.Text)
	eachCommon := rare < len(terms) && sum >= rankedDepth // all together may not be
	if len(terms) > 1 && (few || eachCommon) {
		steps = append(steps, joinTerms(terms, "AND"))
	}
	if rare < len(terms) { // the words that select stand twice, so the others do, too
		common := joinTerms(terms[rare:], "OR")
		steps = append(steps, "("+some+") AND ("+some+" OR "+common+" OR "+common+")")
	}
	return append(steps, all), nil
}

// byRarity returns the terms that any message has, the rarest first, with the numbers of messages that have them,
// counted up to rankedDepth. The others are named in the result.
func (r *run) byRarity(ctx context.Context, terms []term) (sorted []term, counts []int, err error) {
	type counted struct {
		term
		n int
	}
	var all []counted
	found := map[string]bool{}
	for _, t := range terms {
		n, err := r.count(ctx, r.expression(t.match()))
		if err == nil && n == 0 {
			t, n, err = r.nameMissing(ctx, t)
		}
		if err != nil {
			return nil, nil, err
		}
		if n > 0 {
			all = append(all, counted{t, n})
			found[shortened(t.run)] = true
		}
	}
	// of a sentence some words are found
	r.missing = slices.DeleteFunc(r.missing, func(m Missing) bool { return found[m.Word] })
	var docs float64
	for _, place := range r.places {
		var n float64
		if err := place.QueryRowContext(ctx, `SELECT docs FROM state`).Scan(&n); err != nil {
			return nil, nil, err
		}
		docs += n
	}
	for _, t := range r.parsed.terms {
		r.rarity[t.raw] = math.Log1p(docs)
	}
	for _, c := range all {
		r.rarity[c.raw] = math.Log(1 + (math.Max(docs-float64(c.n), 0)+0.5)/(float64(c.n)+0.5))
	}
	slices.SortStableFunc(all, func(a, b counted) int { return cmp.Compare(a.n, b.n) })
	for _, c := range all {
		sorted, counts = append(sorted, c.term), append(counts, c.n)
	}
	return sorted, counts, nil
}

// count returns the number of messages that match, up to rankedDepth.
func (r *run) count(ctx context.Context, expression string) (n int, err error) {
	from, to := r.query.docRange()
	for _, place := range r.places {
		var some int
		if err := place.QueryRowContext(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? LIMIT +?)`,
			expression, from, to, rankedDepth).Scan(&some); err != nil {
			return 0, err
		}
		n += some
	}
	return n, nil
}

// shortened cuts a word that somebody pasted, for an answer.
func shortened(word string) string {
	if r := []rune(word); len(r) > text.KeptWord {
		return string(r[:text.KeptWord]) + "…"
	}
	return word
}

func (r *run) matchBest(ctx context.Context, expression string, limit int) (docs []doc, full bool, err error) {
	from, to := r.query.docRange()
	limit = max(limit, bestDocs)
	if err := r.loadWordScores(ctx); err != nil {
		return nil, false, err
	}
	for i, place := range r.places {
		var some []doc
		if r.summed {
			some, err = r.readSummed(ctx, i, expression, limit)
		} else {
			some, err = readRows(ctx, place, scanDoc, bestFirst, expression, from, to, rankedDepth, limit)
		}
		if err != nil {
			return nil, false, err
		}
		var n, words float64
		if err := place.QueryRowContext(ctx, `SELECT docs, words FROM state`).Scan(&n, &words); err != nil {
			return nil, false, err
		}
		full = full || len(some) == limit
		if some, err = r.addOfTime(ctx, place, expression, some); err != nil {
			return nil, false, err
		}
		weigh(some, r.wordScores[i], r.timeScores[i], words/math.Max(n, 1))
		docs = append(docs, some...)
	}
	if r.wantsAnswers() {
		if docs, err = r.addBeside(ctx, docs); err != nil {
			return nil, false, err
		}
	}
	shareWords(docs, len(r.sharing))
	r.preferTime(docs)
	sortDocs(docs)
	return docs, full, nil
}

const matching = `SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT +?`

// readSummed reads what bestFirst does, with the scores of loadWordScores, of which BM25's is the sum: FTS5 looks up
// the length of each message that it scores, which is most of what a search costs.
func (r *run) readSummed(ctx context.Context, place int, expression string, limit int) ([]doc, error) {
	from, to := r.query.docRange()
	found, err := readRows(ctx, r.places[place], scanValue[int64], matching, expression, from, to, rankedDepth)
	if err != nil {
		return nil, err
	}
	best := make([]candidate, len(found))
	for i, docid := range found {
		best[i].docAt = docAt{place, docid}
		for _, scores := range r.wordScores[place] {
			best[i].score += scores[docid]
		}
	}
	slices.SortFunc(best, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.docid, a.docid))
	})
	return readCandidates(ctx, r.places, best[:min(len(best), limit)])
}

// loadWordScores reads once what each word that selects gives to each message, by place. It applies no filter:
// bm25() counts the messages of each tag in an expression, and a project can have all of them.
func (r *run) loadWordScores(ctx context.Context) error {
	if r.wordScores != nil {
		return nil
	}
	from, to := r.query.docRange()
	read := func(place queryer, terms []term) (all []map[int64]float64, err error) {
		for _, t := range terms {
			found, err := readRows(ctx, place, scanScore, scoresOfWord, t.match(), from, to, rankedDepth)
			if err != nil {
				return nil, err
			}
			scores := make(map[int64]float64, len(found))
			for _, d := range found {
				scores[d.docid] = d.score
			}
			all = append(all, scores)
		}
		return all, nil
	}
	r.wordScores, r.timeScores = make([][]map[int64]float64, len(r.places)), make([][]map[int64]float64, len(r.places))
	for i, place := range r.places {
		var err error
		if r.wordScores[i], err = read(place, r.sharing); err != nil {
			return err
		}
		if r.timeScores[i], err = read(place, r.parsed.timeTerms()); err != nil {
			return err
		}
	}
	return nil
}

func scanScore(rows *sql.Rows, d *doc) error { return rows.Scan(&d.docid, &d.score) }

func sortDocs(docs []doc) {
	slices.SortStableFunc(docs, func(a, b doc) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.docid, a.docid))
	})
}

// wantsAnswers reports whether messages are looked for that need no word of the query: the answers to a question
// that asks for nothing of a single message.
func (r *run) wantsAnswers() bool {
	f := r.parsed.filters
	return r.query.Group == GroupMessage && !r.query.Rare && asks(r.query.Text) && len(r.parsed.without) == 0 &&
		f.role+f.origin+f.path+f.tool == "" && !slices.ContainsFunc(r.parsed.terms, func(t term) bool {
		return t.not || t.quoted || t.prefix && t.run == ""
	})
}

// addBeside adds the messages beside the best ones, without a score of their own.
func (r *run) addBeside(ctx context.Context, docs []doc) ([]doc, error) {
	ctx = context.WithoutCancel(ctx) // as in beginRead
	from, to := r.query.docRange()
	sortDocs(docs)
	known, sessions := map[session.MessageRef]bool{}, map[session.ID]session.Session{}
	for _, d := range docs {
		known[d.ref()] = true
	}
	indexed, err := r.rowsBeside(ctx, docs[:min(len(docs), askedDocs)])
	if err != nil {
		return nil, err
	}
	for _, d := range docs[:min(len(docs), askedDocs)] {
		for _, seq := range []int64{d.seq - 1, d.seq + 1} {
			ref := session.MessageRef{Session: d.session, Seq: seq}
			if seq < 1 || known[ref] {
				continue
			}
			known[ref] = true
			if d, ok := indexed[ref]; ok {
				if !d.tool && from <= d.docid && d.docid <= to {
					docs = append(docs, d)
				}
				continue
			}
			m, err := r.ix.src.MessageHead(ctx, ref, neighbourHead)
			if session.CodeOf(err) == session.NotFound || errors.Is(err, errStoreDamaged) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("read a message beside a found one: %w", err)
			}
			of, read := sessions[m.SessionID]
			if !read {
				of, err = r.ix.src.Session(ctx, m.SessionID)
				if err != nil && session.CodeOf(err) != session.NotFound {
					return nil, fmt.Errorf("read a message beside a found one: %w", err)
				}
				sessions[m.SessionID] = of
			}
			docid := millisOf(&m, &of) << docBits
			if !saysNothing(&m) && from <= docid && docid <= to && searchableText(&m) != "" {
				docs = append(docs, doc{docid: docid, rowID: m.RowID, session: m.SessionID, seq: m.Seq})
			}
		}
	}
	return docs, nil
}

// rowsBeside returns, without a score, the rows of the messages that were stored right before and after some: nearly
// always those that stand beside them in their sessions.
func (r *run) rowsBeside(ctx context.Context, docs []doc) (map[session.MessageRef]doc, error) {
	var rows []string
	for _, d := range docs {
		rows = append(rows, strconv.FormatInt(d.rowID-1, 10), strconv.FormatInt(d.rowID+1, 10))
	}
	found := map[session.MessageRef]doc{}
	for _, place := range r.places {
		some, err := readRows(ctx, place, scanDoc, `SELECT docid, message_id, session_id, seq, words, tool, 0.0 FROM docs
			WHERE message_id IN (`+strings.Join(rows, ", ")+`)`)
		if err != nil {
			return nil, err
		}
		for _, d := range some {
			found[d.ref()] = d
		}
	}
	return found, nil
}

// weigh replaces the b of FTS5 in the scores by lengthShare, exactly for a word that a message has once, counts
// tools less, adds what words of a time give, and fills in what each word gives.
func weigh(docs []doc, wordScores, timeScores []map[int64]float64, mean float64) {
	for i := range docs {
		d := &docs[i]
		n := float64(d.words)
		builtin := 1 + saturation*(1-builtinB+builtinB*n/math.Max(mean, 1))
		factor := builtin / (1 + saturation*(1-lengthShare+lengthShare*n/usual))
		if d.tool {
			factor *= toolFactor
		}
		d.namesTime = len(timeScores) > 0
		for _, scores := range timeScores {
			d.score += scores[d.docid]
			d.namesTime = d.namesTime && scores[d.docid] > 0
		}
		d.score *= factor
		for _, scores := range wordScores {
			d.byWord = append(d.byWord, factor*scores[d.docid])
		}
	}
}

// shareWords adds to the score of each message, word by word, the largest share that it gets of a message near it
// for which the word counts more.
func shareWords(docs []doc, words int) {
	if words == 0 {
		return
	}
	at := make(map[session.MessageRef][]float64, len(docs))
	for _, d := range docs {
		at[d.ref()] = d.byWord
	}
	shares := make([]float64, words)
	for i, d := range docs {
		clear(shares)
		for distance := -int64(shareReach); distance <= shareReach; distance++ {
			share := besideShare * (1 - (math.Abs(float64(distance))-1)/shareReach)
			for w, score := range at[session.MessageRef{Session: d.session, Seq: d.seq + distance}] {
				if len(d.byWord) > 0 {
					score -= d.byWord[w]
				}
				shares[w] = max(shares[w], share*score)
			}
		}
		for _, more := range shares {
			docs[i].score += more
		}
	}
}

// expression narrows an expression to the filters, without the excluded words and sessions.
func (r *run) expression(terms string) string {
	wanted, excluded := r.parsed.wanted()
	var must []string
	for _, t := range wanted {
		if t.quoted {
			must = append(must, t.match()+" AND ")
		}
	}
	if len(r.query.Projects) > 0 {
		must = append(must, anyTag(tagProject, r.query.Projects)+" AND ")
	}
	if r.query.Sessions != nil {
		var ids []string
		for _, id := range r.query.Sessions {
			ids = append(ids, string(id))
		}
		must = append(must, anyTag(tagSession, append(ids, ""))+" AND ") // no session has the name ""
	}
	e := r.parsed.filters.match(r.sharedIn, r.languages) + strings.Join(must, "") + "(" + terms + ")"
	var not []string
	for _, t := range excluded {
		not = append(not, t.match())
	}
	for _, f := range r.parsed.without {
		not = append(not, f.expressions(r.languages)...)
	}
	for _, id := range r.except {
		not = append(not, "tags : "+quote(tag(tagSession, string(id))))
	}
	if len(not) > 0 {
		e = "(" + e + ") NOT (" + strings.Join(not, " OR ") + ")"
	}
	return e
}
