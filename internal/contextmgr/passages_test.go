package contextmgr

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"sessiond/internal/session"
)

func TestPassagesAreWhereTermsMeet(t *testing.T) {
	page := strings.Repeat("a line of the page about nothing\n", 60)
	for _, c := range []struct {
		name  string
		texts []string
		asked string
		want  string // in the best passage
		first int    // the text that holds it
	}{
		{"far down in a long output", []string{"The port was discussed.", page + "redis listens on port 6390\n" + page}, "Which port does redis listen on?", "6390", 1},
		{"not where only one of them stands often", []string{strings.Repeat("port ", 90) + page + strings.Repeat("redis ", 90), "redis: port 6390"}, "redis port", "6390", 1},
		{"other endings", []string{page, page + "Der Vertrag mit Brandl wurde zum 3. Mai gekündigt.\n" + page}, "Wann kündigen wir den Brandl-Vertrag?", "3. Mai", 1},
		{"Chinese", []string{strings.Repeat("我们谈谈座位怎么摆。\n", 60), strings.Repeat("先整理书架。\n", 60) + "恒达科技报价 35200 元。\n"}, "恒达科技的报价是多少？", "35200 元", 1},
		{"Japanese", []string{strings.Repeat("庭の手入れです。\n", 60) + "竹の間 29700円です。\n" + strings.Repeat("次の準備です。\n", 60)}, "竹の間の料金はいくらですか", "29700円", 0},
		{"a name in camel case", []string{page + "import { UserMessageComponent } from './um.js'\n", page}, "the user message component", "um.js", 0},
		{"of equal ones the newer", []string{"The limit is 40 units.", "The limit is 55 units."}, "limit units", "55", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := make([]int64, len(c.texts))
			for i := range rows {
				rows[i] = int64(i + 1)
			}
			found := findPassages(c.texts, rows, Terms(c.asked))
			if len(found) == 0 {
				t.Fatal("nothing was found")
			}
			best := found[0]
			text := c.texts[best.hit][best.from:best.to]
			if best.hit != c.first || !strings.Contains(text, c.want) || !utf8.ValidString(text) || utf8.RuneCountInString(text) > 2*passageRunes {
				t.Errorf("the best passage is of text %d: %q", best.hit, text)
			}
		})
	}
}

func TestRepeatedLineIsQuotedOnce(t *testing.T) {
	var hits []Hit
	for i := range 20 {
		text := fmt.Sprintf("%d: const zebraLimit = crowns(4711)\n%s", i, filler(200))
		hits = append(hits, Hit{Message: session.Message{RowID: int64(i + 1), ID: session.MessageRef{Session: "20260211_001", Seq: int64(i + 1)}, Parts: []session.Part{session.TextPart(text)}}})
	}
	other := calling("c")
	other.RowID, other.ID = 99, session.MessageRef{Session: "20260211_001", Seq: 99}
	other.Calls()[0].Arguments = `{"command":"feed --zebra 12 --crowns"}`
	hits = append(hits, Hit{Message: other})
	got := quoteHits(quoteInput{hits: hits, terms: []string{"zebra", "crowns"}, budget: 700, mask: func(s string) string { return s }, weigh: bytesWeigh{}})
	if n := strings.Count(got.Text, "zebraLimit"); n != 1 {
		t.Errorf("it is quoted %d times", n)
	}
	if !strings.Contains(got.Text, "feed --zebra 12") {
		t.Errorf("the arguments of a call are not quoted:\n%s", got.Text)
	}
}

func TestFoldCaseKeepsBytePositions(t *testing.T) {
	for _, s := range []string{"", "ABC", "ÄÖÜ İstanbul ẞ K", "混合 Text", "broken \xff\xc3 A", "Ⱥ"} {
		if got := foldCase(s); len(got) != len(s) {
			t.Errorf("%q became %q", s, got)
		}
	}
	if got := foldCase("Größe ÄÖ 日本 X"); got != "größe äö 日本 x" {
		t.Errorf("got %q", got)
	}
}
