package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"sessiond/internal/search"
)

// What a search reads of the index, newest first and ranked.
const (
	bareNewest = `SELECT d.docid, d.message_id, d.session_id, d.seq, d.words
		FROM (SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT 24) w
		CROSS JOIN docs d ON d.docid = w.rowid`
	bareRanked = `SELECT d.docid, d.message_id, d.session_id, d.seq, d.words, -w.score
		FROM (SELECT rowid, score FROM (SELECT rowid, bm25(words, 1.0, 0.6, 0.0) AS score
			FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT 5000) ORDER BY score, rowid DESC LIMIT 24) w
		CROSS JOIN docs d ON d.docid = w.rowid`
)

// find measures searches in the largest history, and recall at all sizes.
func (b *bench) find(ctx context.Context) (err error) {
	var recalls []variant
	var large *opened
	var index *search.Index
	for _, size := range b.sizes() {
		o, err := b.open(ctx, size)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, o.close()) }()
		ix, err := search.Open(ctx, filepath.Join(filepath.Dir(o.db), "search.db"), o.store)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, ix.Close()) }()
		if _, err := ix.CatchUp(ctx); err != nil {
			return err
		}
		recalls = append(recalls, o.recalls(ix))
		large, index = o, ix
	}
	bare, err := openLean(filepath.Join(filepath.Dir(large.db), "search.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.close()) }()
	for _, s := range []struct {
		word, about string
		order       search.Order
		statement   string
		aims        []aim
	}{
		{rareWord, "a rare word", search.OrderNewest, bareNewest, []aim{{atMost: float64(time.Millisecond)}}},
		{knownWord, "a word in 0.9 %", search.OrderNewest, bareNewest, []aim{{atMost: float64(time.Millisecond)}}},
		{commonWord, "a word in 20 %", search.OrderNewest, bareNewest, nil},
		{rareWord, "a rare word", search.OrderRank, bareRanked, nil},
		{knownWord, "a word in 0.9 %", search.OrderRank, bareRanked, nil},
		{commonWord, "a word in 20 %", search.OrderRank, bareRanked, nil},
	} {
		times, err := race(ctx, b.rounds, b.count(40),
			variant{name: "search", run: func(ctx context.Context, n int) error {
				return each(n, func(int) error {
					r, err := index.Search(ctx, search.Query{Text: s.word, Order: s.order, Limit: 20})
					if len(r.Hits) == 0 || r.Pending > 0 {
						err = errors.Join(err, fmt.Errorf("%d hits, %d messages not indexed", len(r.Hits), r.Pending))
					}
					return err
				})
			}},
			variant{name: "bare", run: func(ctx context.Context, n int) error {
				return each(n, func(int) error { return bare.read(ctx, s.statement, `"`+s.word+`"`) })
			}})
		if err != nil {
			return err
		}
		b.add(row{
			name: fmt.Sprintf("search %s messages, %s: %s", thousands(large.size), s.order, s.about), product: times[0], baseline: times[1],
			against: "the SELECT on the index, straight on the driver", aims: s.aims,
		})
	}
	times, err := race(ctx, b.rounds, b.count(40), recalls...)
	if err != nil {
		return err
	}
	sizes := b.sizes()
	last := len(sizes) - 1
	b.add(row{
		name: "recall in half of " + thousands(sizes[last]) + " messages", product: times[last], baseline: times[0],
		against: "the same in a history of " + thousands(sizes[0]), aims: []aim{{atMost: float64(5 * time.Millisecond)}},
	})
	return nil
}

// recalls is the variant that looks up what the last question of the long session asks for.
func (o *opened) recalls(index *search.Index) variant {
	return variant{name: "recall", run: func(ctx context.Context, n int) error {
		return each(n, func(int) error {
			r, err := index.Recall(ctx, search.RecallQuery{
				Text:   question,
				Within: []search.Span{{Session: o.long, From: 1, Through: o.last[o.long] - keptShort}},
			})
			if err == nil && len(r.Hits) == 0 && r.Complete {
				err = errors.New("nothing was recalled")
			}
			return err
		})
	}}
}
