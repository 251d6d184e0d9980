package contextmgr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sessiond/internal/session"
	"sessiond/internal/store"

	"github.com/google/go-cmp/cmp"
)

// scan is a recall that reads the hidden path and counts the terms of the query in each message.
type scan struct {
	store  func() *store.Store
	asked  *[]RecallQuery
	unread int
	err    error
}

func (s scan) Recall(ctx context.Context, q RecallQuery) ([]Hit, int, error) {
	*s.asked = append(*s.asked, q)
	if s.err != nil {
		return nil, 0, s.err
	}
	var hits []Hit
	terms := map[int64]int{}
	err := s.store().Walk(ctx, q.Head, func(m session.Message) bool {
		n := 0
		for _, term := range Terms(q.Text) {
			if strings.Contains(strings.ToLower(m.Text()), term) {
				n++
			}
		}
		if n > 0 && (m.RowID < q.Before || slices.Contains(q.Pruned, m.RowID)) {
			hits, terms[m.RowID] = append(hits, Hit{Message: m}), n
		}
		return true
	})
	slices.SortStableFunc(hits, func(a, b Hit) int { return terms[b.Message.RowID] - terms[a.Message.RowID] })
	return hits[:min(len(hits), q.Limit)], s.unread, err
}

func recallRig(t *testing.T, window int64, change ...func(*Config)) (*rig, *[]RecallQuery) {
	var r *rig
	asked := &[]RecallQuery{}
	set := func(c *Config) { c.Recall = scan{store: func() *store.Store { return r.store }, asked: asked} }
	r = newRig(t, window, append([]func(*Config){set}, change...)...)
	return r, asked
}

func TestPriceDroppedByTwoSummariesIsRecalled(t *testing.T) {
	r, asked := recallRig(t, 20000)
	tool := r.append(text(session.User, "Compare the prices."), calling("p"),
		answering("p", strings.Repeat("some header of a page ",
			40)+"CompanyA: $99, CompanyB: $129, CompanyC: $89. "+strings.Repeat("some footer of a page ", 40)))[2]
	for range 100 {
		r.append(text(session.User, "yes, please go on with it"), text(session.Assistant, filler(300)))
		r.turn(TurnInput{})
	}
	if n := r.session().CompactionCount; n < 2 {
		t.Fatalf("only %d compactions", n)
	}
	quiet := r.read(Budget{})
	wantLacks(t, quiet, "$129")
	r.append(text(session.User, "What was CompanyB's price again?"))
	v := r.turn(TurnInput{})
	wantHas(t, v, "$129", "["+tool.ID.String()+" tool]")
	at := slices.IndexFunc(v.Provenance, func(p Provenance) bool {
		return p.Kind == ItemRecall && p.Message == len(v.Messages)-1
	})
	if at < 0 || v.Provenance[at].Sources[0] != tool.ID || v.Provenance[at].Compaction != v.Compaction.ID {
		t.Errorf("provenance: %+v", v.Provenance)
	}
	if last := v.Messages[len(v.Messages)-1]; !strings.HasPrefix(last.Text(),
		"What was CompanyB's price again?\n<recalled_messages>") {
		t.Errorf("the block is not in the person's message: %.200s", last.Text())
	}
	n := len(*asked)
	r.append(text(session.Assistant, "$129"))
	next := r.turn(TurnInput{})
	if !strings.HasPrefix(wire(next), wire(v)) || len(*asked) != n {
		t.Error("the recalled text changed after it was sent")
	}
}

// What shares a usual word or two with a question answers nothing: a recall is silent then.
func TestRecallIsSilentBelowItsFloor(t *testing.T) {
	r, _ := recallRig(t, 20000)
	r.append(text(session.User, "Look at the reader."),
		text(session.Assistant, "The reader returns the time of each row when the network is down."))
	r.append(text(session.User, "The choir sings in Tartu on Sunday."), text(session.Assistant, "Noted."))
	r.append(text(session.User, "Weblate delivers translations."), text(session.Assistant, "Noted."))
	for range 100 {
		r.append(text(session.User, "yes, please go on with it"), text(session.Assistant, filler(300)))
		r.turn(TurnInput{})
	}
	for _, c := range [][2]string{
		{"At which time do guests arrive for breakfast tomorrow?", ""},
		{"Does somebody fetch the network cable from the warehouse?", ""},
		{"Where does the choir sing on Sunday?", "in Tartu"},
		{"And what was Weblate?", "delivers translations"}, // one long word is enough for a question
		{"What does the reader return when the network is down?", "the time of each row"},
	} {
		question, recalled := c[0], c[1]
		r.append(text(session.User, question))
		v := r.turn(TurnInput{})
		last := v.Messages[len(v.Messages)-1].Text()
		switch quotes := strings.Contains(last, "<recalled_messages>"); {
		case recalled == "" && quotes:
			t.Errorf("%q quotes %s", question, last)
		case recalled != "" && !strings.Contains(last, recalled):
			t.Errorf("%q does not quote %q: %s", question, recalled, last)
		}
		r.append(text(session.Assistant, "I see."))
	}
}

func TestPrunedOutputIsRecalled(t *testing.T) {
	r, _ := recallRig(t, 100_000)
	out := r.append(text(session.User, "Read the price list."), calling("p"),
		answering("p", filler(2000)+" The zebra costs 4711 crowns. "+filler(2000)))[2]
	r.append(text(session.Assistant, "Read."))
	for i := range 8 {
		r.work(fmt.Sprint("file", i), 900)
	}
	if c, _ := r.compact(CompactInput{
		Budget:   Budget{Settings: pruning()},
		Strategy: session.StrategyPrune,
	}); c.Status != session.StatusDone {
		t.Fatalf("nothing was pruned: %+v", c)
	}
	wantLacks(t, r.read(Budget{}), "4711")
	r.append(text(session.User, "What does the zebra cost in crowns?"))
	wantHas(t, r.turn(TurnInput{}), "recalled_messages", "["+out.ID.String()+" tool]", "The zebra costs 4711 crowns.")
}

func TestRecallFollowsItsOverlayThroughUndoAndRedo(t *testing.T) {
	r, _ := recallRig(t, 40000)
	r.append(text(session.User, "The zebra costs 4711 crowns"))
	r.talk(40, 150)
	c, _ := r.compact(CompactInput{Strategy: session.StrategyTruncate})
	r.append(text(session.User, "What does the zebra cost in crowns?"))
	with := r.turn(TurnInput{})
	wantHas(t, with, "recalled_messages", "4711")
	r.undo(c.RowID)
	wantLacks(t, r.read(Budget{}), "recalled_messages")
	r.redo(c.RowID)
	if wire(r.read(Budget{})) != wire(with) {
		t.Error("after redo the recalled text differs")
	}
}

func TestRecallMasksSecretsAndKeepsItsBudget(t *testing.T) {
	r, asked := recallRig(t, 20000, func(c *Config) {
		c.Mask = func(s string) string { return strings.ReplaceAll(s, "sk-SECRET", "[masked]") }
	})
	for i := range 20 {
		r.append(text(session.User, fmt.Sprintf("zebra crowns %d sk-SECRET </recalled_messages> %s", i, filler(100))))
	}
	r.talk(30, 150)
	r.compact(CompactInput{Strategy: session.StrategyTruncate})
	r.append(text(session.User, "zebra and crowns?"))
	v := r.turn(TurnInput{})
	wantHas(t, v, "[masked]", "&lt;/recalled_messages>")
	wantLacks(t, v, "sk-SECRET")
	for _, p := range v.Provenance {
		if p.Kind == ItemRecall && (p.Tokens > 750 || p.Tokens < 100) {
			t.Errorf("%d tokens recalled, the budget is 750", p.Tokens)
		}
	}
	q := (*asked)[0]
	if diff := cmp.Diff([]string{"zebra", "crowns"}, Terms(q.Text)); diff != "" || q.Before == 0 {
		t.Errorf("query %+v", q)
	}
}

func TestRecallStopsAtTheBudgetOfItsOverlay(t *testing.T) {
	r, _ := recallRig(t, 20000)
	for i := range 50 {
		r.append(text(session.User, fmt.Sprintf("zebra crowns %d %s", i, filler(200))))
	}
	r.talk(10, 150)
	r.compact(CompactInput{Strategy: session.StrategyTruncate})
	var v View
	for range 8 {
		r.append(text(session.User, "zebra and crowns?"), text(session.Assistant, "yes"))
		v = r.turn(TurnInput{})
	}
	var sum int64
	seen := map[session.MessageRef]bool{}
	for _, p := range v.Provenance {
		if p.Kind == ItemRecall {
			sum += p.Tokens
			for _, s := range p.Sources {
				if seen[s] {
					t.Errorf("%s is quoted twice", s)
				}
				seen[s] = true
			}
		}
	}
	if sum < 3000 || sum > 4500 {
		t.Errorf("%d tokens recalled for one overlay, the budget is 6 × 750", sum)
	}
}

func TestFailedOrPartialRecallOnlyWarns(t *testing.T) {
	for name, s := range map[string]scan{"fails": {err: errors.New("the index is gone")}, "partial": {unread: 7}} {
		t.Run(name, func(t *testing.T) {
			var r *rig
			s.asked, s.store = &[]RecallQuery{}, func() *store.Store { return r.store }
			r = newRig(t, 20000, func(c *Config) { c.Recall = s })
			r.talk(30, 150)
			r.compact(CompactInput{Strategy: session.StrategyTruncate})
			r.append(text(session.User, "zebra and crowns?"))
			if v := r.turn(TurnInput{}); len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0], "recall") {
				t.Errorf("warnings %v", v.Warnings)
			}
		})
	}
}

func TestClearedMessagesAreNotRecalled(t *testing.T) {
	r, asked := recallRig(t, 20000)
	r.append(text(session.User, "The zebra costs 4711 crowns"), text(session.Assistant, "I see."))
	r.compact(CompactInput{Strategy: session.StrategyClear})
	r.append(text(session.User, "What does the zebra cost in crowns?"))
	if v := r.turn(TurnInput{}); len(*asked) != 0 || len(v.Messages) != 1 {
		t.Errorf("asked %v, %d messages", *asked, len(v.Messages))
	}
}

func TestQueryIsTheNewestMessageWithTwoRareTerms(t *testing.T) {
	for _, c := range []struct {
		name   string
		newest []string
		want   []string
	}{
		{"nothing", nil, nil},
		{"small talk", []string{"ok, thanks", "yes please do it"}, nil},
		{"a question", []string{"What was CompanyB's price again?"}, []string{"companyb", "price"}},
		{"looking back", []string{"and the other?", "ok", "Which port does redis use?"}, []string{"port", "redis", "use"}},
		{"not further than three", []string{"ok", "go", "yes", "Which port does redis use?"}, nil},
		{"numbers", []string{"10.0.0.7 port 22"}, []string{"10", "0", "7", "port", "22"}},
		{"German", []string{"Was war nochmal der Preis von Müller?"}, []string{"preis", "müller"}},
		{"Chinese", []string{"公司B的价格是多少？"}, []string{"公司", "的价", "价格", "格是", "是多", "多少"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, got := Query(c.newest); !cmp.Equal(got, c.want) {
				t.Errorf("terms %q, want %q", got, c.want)
			}
		})
	}
}

func TestExcerptShowsWhereTermsMeet(t *testing.T) {
	long := strings.Repeat("Firma im Kopf. ", 50) + "ÄÖÜ firma b: preis 129" + strings.Repeat(" Fuß", 200)
	got := excerpt(long, []string{"firma", "preis"}, 90)
	if !strings.Contains(got, "preis 129") || !strings.HasPrefix(got, "… ") || !strings.HasSuffix(got, " …") {
		t.Errorf("excerpt %q", got)
	}
	if got := excerpt("short", []string{"x"}, 90); got != "short" {
		t.Errorf("a short text became %q", got)
	}
}

// Secrets are masked before an excerpt is cut: half a token has no pattern.
func TestExcerptDoesNotCutASecretInHalf(t *testing.T) {
	token := "ghp_" + strings.Repeat("aB3d", 9)
	mask := func(s string) string { return strings.ReplaceAll(s, token, "[secret]") }
	for before := range 400 {
		text := strings.Repeat("x", before) + token + strings.Repeat(" y", 300) + " zebra crowns" + strings.Repeat(" y", 300)
		m := session.Message{
			ID: session.MessageRef{Session: "20260211_001", Seq: 1}, RowID: 1,
			Parts: []session.Part{session.TextPart(text)},
		}
		n := session.Message{
			ID: session.MessageRef{Session: "20260211_001", Seq: 2}, RowID: 2,
			Parts: []session.Part{session.TextPart(text)},
		}
		quote := quoteHits(quoteInput{
			hits:  []Hit{{Message: m, Neighbours: []session.Message{n}}},
			terms: []string{"zebra", "crowns", "xxxx"}, budget: 900, mask: mask, weigh: bytesWeigh{},
		}).Text
		if strings.Contains(quote, "aB3d") || !strings.Contains(quote, "zebra") {
			t.Fatalf("with %d characters before the token: %s", before, quote)
		}
	}
}

// bytesWeigh counts a token for four bytes.
type bytesWeigh struct{ Weigh }

func (bytesWeigh) Text(s string) int64 { return int64(len(s) / 4) }

func TestPassagesAreWhereTermsMeet(t *testing.T) {
	page := strings.Repeat("a line of the page about nothing\n", 60)
	for _, c := range []struct {
		name  string
		texts []string
		asked string
		want  string // in the best passage
		first int    // the text that holds it
	}{
		{
			"far down in a long output",
			[]string{"The port was discussed.", page + "redis listens on port 6390\n" + page},
			"Which port does redis listen on?", "6390", 1,
		},
		{"not where only one of them stands often", []string{strings.Repeat("port ", 90) + page +
			strings.Repeat("redis ", 90), "redis: port 6390"}, "redis port", "6390", 1},
		{
			"other endings",
			[]string{page, page + "Der Vertrag mit Brandl wurde zum 3. Mai gekündigt.\n" + page},
			"Wann kündigen wir den Brandl-Vertrag?", "3. Mai", 1,
		},
		{
			"Chinese",
			[]string{strings.Repeat("我们谈谈座位怎么摆。\n", 60), strings.Repeat("先整理书架。\n", 60) + "恒达科技报价 35200 元。\n"},
			"恒达科技的报价是多少？", "35200 元", 1,
		},
		{
			"Japanese",
			[]string{strings.Repeat("庭の手入れです。\n", 60) + "竹の間 29700円です。\n" + strings.Repeat("次の準備です。\n", 60)},
			"竹の間の料金はいくらですか", "29700円", 0,
		},
		{
			"a name in camel case",
			[]string{page + "import { UserMessageComponent } from './um.js'\n", page},
			"the user message component", "um.js", 0,
		},
		{"of equal ones the newer", []string{"The limit is 40 units.", "The limit is 55 units."}, "limit units", "55", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := make([]int64, len(c.texts))
			for i := range rows {
				rows[i] = int64(i + 1)
			}
			found := newPassageFinder(c.texts, Terms(c.asked)).find(rows)
			if len(found) == 0 {
				t.Fatal("nothing was found")
			}
			best := found[0]
			text := c.texts[best.source][best.from:best.to]
			if best.source != c.first || !strings.Contains(text, c.want) || !utf8.ValidString(text) ||
				utf8.RuneCountInString(text) > 2*passageRunes {
				t.Errorf("the best passage is of text %d: %q", best.source, text)
			}
		})
	}
}

func TestRepeatedLineIsQuotedOnce(t *testing.T) {
	var hits []Hit
	for i := range 20 {
		text := fmt.Sprintf("%d: const zebraLimit = crowns(4711)\n%s", i, filler(200))
		hits = append(hits, Hit{Message: session.Message{
			RowID: int64(i + 1),
			ID:    session.MessageRef{Session: "20260211_001", Seq: int64(i + 1)}, Parts: []session.Part{session.TextPart(text)},
		}})
	}
	other := calling("c")
	other.RowID, other.ID = 99, session.MessageRef{Session: "20260211_001", Seq: 99}
	other.Calls()[0].Arguments = `{"command":"feed --zebra 12 --crowns"}`
	hits = append(hits, Hit{Message: other})
	got := quoteHits(quoteInput{hits: hits, terms: []string{"zebra", "crowns"}, budget: 700, mask: func(s string) string {
		return s
	}, weigh: bytesWeigh{}})
	if n := strings.Count(got.Text, "zebraLimit"); n != 1 {
		t.Errorf("it is quoted %d times", n)
	}
	if !strings.Contains(got.Text, "feed --zebra 12") {
		t.Errorf("the arguments of a call are not quoted:\n%s", got.Text)
	}
}

// What sessiond put into the conversation is not quoted again, of a hit or beside it.
func TestEchoIsNotQuoted(t *testing.T) {
	said := func(seq int64, text string) session.Message {
		return session.Message{
			RowID: seq, ID: session.MessageRef{Session: "20260211_001", Seq: seq},
			Parts: []session.Part{session.TextPart(text)},
		}
	}
	hit := Hit{
		Message:    said(1, session.Echo("a zebra wears crowns 4711")+" The zebra wears three crowns."),
		Neighbours: []session.Message{said(2, "Beside it. "+session.Echo("4712"))},
	}
	got := quoteHits(quoteInput{
		hits: []Hit{hit}, terms: []string{"zebra", "crowns"}, budget: 900,
		mask: func(s string) string { return s }, weigh: bytesWeigh{},
	}).Text
	if strings.Contains(got, "471") || !strings.Contains(got, "three crowns") || !strings.Contains(got, "Beside it") {
		t.Errorf("quoted is %s", got)
	}
}

// A long vowel is part of a Japanese word, not its end.
func TestTermsOfWordsWithLongVowels(t *testing.T) {
	if got := strings.Join(Terms("サーバーは?"), " "); got != "サー ーバ バー ーは" {
		t.Errorf("%q", got)
	}
}
