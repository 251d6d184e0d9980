package bench_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"sessiond/internal/search"
)

// BenchmarkSearch searches a large history. The baseline is the SELECT on the index straight on the driver.
func BenchmarkSearch(b *testing.B) {
	ctx := b.Context()
	h := openHistory(b, sized(*historySize))
	bare := openBare(b, filepath.Join(filepath.Dir(h.path), "search.db"), readerPragmas())
	for _, order := range []struct {
		name      string
		order     search.Order
		statement string
	}{
		{"newest", search.OrderNewest, `SELECT d.docid, d.message_id, d.session_id, d.seq, d.words
			FROM (SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT 24) w
			CROSS JOIN docs d ON d.docid = w.rowid`},
		{"ranked", search.OrderRank, `SELECT d.docid, d.message_id, d.session_id, d.seq, d.words, -w.score
			FROM (SELECT rowid, score FROM (SELECT rowid, bm25(words, 1.0, 0.6, 0.0) AS score
				FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT 5000) ORDER BY score, rowid DESC LIMIT 24) w
			CROSS JOIN docs d ON d.docid = w.rowid`},
	} {
		for _, word := range []struct{ word, about string }{{rareWord, "a rare word"}, {knownWord, "a word in 0.9 %"}, {commonWord, "a word in 20 %"}} {
			b.Run(order.name+", "+word.about, func(b *testing.B) {
				compare(b, 5, &side{op: func() error {
					r, err := h.index.Search(ctx, search.Query{Text: word.word, Order: order.order, Limit: 20})
					if err == nil && (len(r.Hits) == 0 || r.Pending > 0) {
						err = fmt.Errorf("%d hits, %d messages not indexed", len(r.Hits), r.Pending)
					}
					return err
				}}, &side{name: "bare", op: func() error { return bare.read(order.statement, `"`+word.word+`"`) }})
			})
		}
	}
	b.Run("recall", func(b *testing.B) {
		compare(b, 5, &side{op: func() error {
			r, err := h.index.Recall(ctx, search.RecallQuery{
				Text: question, Within: []search.Span{{Session: h.long.ID, From: 1, Through: h.long.LastSeq - keptLong}},
			})
			if err == nil && len(r.Hits) == 0 && r.Complete {
				err = errors.New("nothing was recalled")
			}
			return err
		}})
	})
}
