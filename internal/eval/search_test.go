package eval_test

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

var (
	dataDir = flag.String("data", "", "folder of LoCoMo, LongMemEval and REALTALK, as published")
	newer   = flag.Int("newer", 0, "add this many newer messages of other people about other things")
	half    = flag.String("half", "", "tune or held; without: held of the questions about transcripts, both of memory")
)

// TestSearchData prints how well questions find what answers them, beside plain FTS5.
func TestSearchData(t *testing.T) {
	var sets []dataset
	if *dataDir != "" {
		sets = readDatasets(t, *dataDir)
	}
	if *folder != "" {
		talks := openRig(t).importTalks(t, *folder, 1)
		if asked := askedQuestions(t, talks, *half); len(asked.questions) > 0 {
			sets = append(sets, asked)
		}
		long := slices.DeleteFunc(talks, func(talk talk) bool { return len(talk.messages) < leastTalk })
		sets = append(sets, madeQuestions(t, long, *half))
	}
	if len(sets) == 0 {
		t.Skip("nothing to search: give -data DIR or -folder DIR")
	}
	for _, set := range sets {
		messages := 0
		for _, c := range set.chats {
			messages += len(c.said)
		}
		fmt.Printf("\n%s: %d talks, %d messages, %d questions (%d without evidence left out), %d newer messages\n",
			set.name, len(set.chats), messages, len(set.questions), set.skipped, *newer)
		set.chats = append(set.chats, newerChats(t, *newer)...)
		fmt.Printf("%-22s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n", "", "hit@1", "hit@5", "MRR", "R@10", "any@10", "R@10 all",
			"any all", "p50", "p99")
		for _, engine := range []engine{openSessiond(t, set), openPlain(t, set)} {
			score(engine, set.questions).print(engine.name())
		}
	}
}

// engine finds ids of sayings, best first, in a dialogue or, with "", in all; and ids of talks.
type engine interface {
	name() string
	sayings(question, dialogue string, n int) []string
	talks(question, dialogue string, n int) []string
}

// figures are sums over questions.
type figures struct {
	questions, withSayings       int
	hit1, hit5, mrr              float64 // by talk, within the dialogue
	recall, any, recallAll, anyA float64 // by saying among the first ten
	times                        []time.Duration
}

func score(e engine, questions []question) (f figures) {
	for _, q := range questions {
		f.questions++
		talks := e.talks(q.text, q.dialogue, 10)
		if at := slices.IndexFunc(talks, func(id string) bool { return slices.Contains(q.chats, id) }); at >= 0 {
			f.mrr += 1 / float64(at+1)
			f.hit1 += one(at == 0)
			f.hit5 += one(at < 5)
		}
		if len(q.evidence) == 0 {
			continue
		}
		f.withSayings++
		began := time.Now()
		within := e.sayings(q.text, q.dialogue, 10)
		f.times = append(f.times, time.Since(began))
		found := found10(within, q.evidence)
		f.recall, f.any = f.recall+found, f.any+one(found > 0)
		found = found10(e.sayings(q.text, "", 10), q.evidence)
		f.recallAll, f.anyA = f.recallAll+found, f.anyA+one(found > 0)
	}
	return f
}

// found10 is the part of the evidence that was found.
func found10(found, evidence []string) float64 {
	n := 0
	for _, id := range evidence {
		if slices.Contains(found, id) {
			n++
		}
	}
	return float64(n) / float64(len(evidence))
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (f figures) print(name string) {
	n, m := float64(max(1, f.questions))/100, float64(max(1, f.withSayings))/100
	slices.Sort(f.times)
	at := func(p int) time.Duration {
		if len(f.times) == 0 {
			return 0
		}
		return f.times[min(len(f.times)-1, len(f.times)*p/100)].Round(10 * time.Microsecond)
	}
	fmt.Printf("%-22s %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f %8s %8s\n", name,
		f.hit1/n, f.hit5/n, f.mrr/n, f.recall/m, f.any/m, f.recallAll/m, f.anyA/m, at(50), at(99))
}

// newerChats returns chats of 20 messages between other people about other things. They have as many messages as given
// and are newer than those of a set. Their sentences are in testdata/newer.json: {n} stands for the second speaker, {m}
// for a third person, {k} for a relative, {t} for a time, {d} for a number, {a} and {b} for things of the topic, {v}
// for what people do with them.
func newerChats(t testing.TB, messages int) (chats []chat) {
	var from struct {
		Names, Kin, Times, Frames []string
		Topics                    []struct{ Things, Verbs []string }
	}
	testkit.Check(t, json.Unmarshal(testkit.Must(os.ReadFile("testdata/newer.json"))(t), &from))
	random := rand.New(rand.NewPCG(1, 2))
	one := func(of []string) string { return of[random.IntN(len(of))] }
	for len(chats)*20 < messages {
		c := chat{
			dialogue: "newer", id: fmt.Sprintf("newer/%d", len(chats)),
			at: time.Date(2026, 1, 1, 0, len(chats), 0, 0, time.UTC),
		}
		topics, who := random.Perm(len(from.Topics))[:3], [2]string{one(from.Names), one(from.Names)}
		for i := range min(20, messages-len(chats)*20) {
			topic := from.Topics[topics[random.IntN(len(topics))]]
			text := one(from.Frames)
			if random.IntN(5) < 2 {
				text += " " + one(from.Frames)
			}
			text = strings.NewReplacer("{n}", who[i%2], "{m}", one(from.Names), "{k}", one(from.Kin), "{t}", one(from.Times),
				"{d}", fmt.Sprint(2+random.IntN(90)), "{a}", one(topic.Things), "{b}", one(topic.Things), "{v}",
				one(topic.Verbs)).Replace(text)
			c.said = append(c.said, saying{fmt.Sprintf("%s:%d", c.id, i), []string{"user", "assistant"}[i%2], text})
		}
		chats = append(chats, c)
	}
	return chats
}

// ours is sessiond's search over a store in which each talk is a session and each dialogue a project.
type ours struct {
	t     testing.TB
	index *search.Index
	names map[session.MessageRef]string // of sayings
	talk  map[session.ID]string
}

func openSessiond(t testing.TB, set dataset) *ours {
	path := storetest.New(t, filepath.Join(t.TempDir(), "sessions.db"))
	s := testkit.Must(store.Open(t.Context(), path, store.Options{}))(t)
	t.Cleanup(func() { testkit.Check(t, s.Close()) })
	o := &ours{t: t, names: map[session.MessageRef]string{}, talk: map[session.ID]string{}}
	for _, c := range set.chats {
		if len(c.said) == 0 {
			continue
		}
		at := session.At(c.at)
		sess := testkit.Must(s.CreateSession(t.Context(), store.NewSession{Project: c.dialogue, CreatedAt: &at}))(t)
		o.talk[sess.ID] = c.id
		msgs := make([]session.Message, len(c.said))
		for i, said := range c.said {
			origin := session.Person
			if c.role(said.who) == session.Assistant {
				origin = session.Model
			}
			msgs[i] = newMessage(c.role(said.who), origin, session.TextPart(said.text))
			msgs[i].CreatedAt = session.At(c.at.Add(time.Duration(i) * time.Second))
			o.names[session.MessageRef{Session: sess.ID, Seq: int64(i + 1)}] = said.id
		}
		for part := range slices.Chunk(msgs, 500) {
			testkit.Must(s.Append(t.Context(), store.Append{Session: sess.ID, Messages: part}))(t)
		}
	}
	o.index = testkit.Must(search.Open(t.Context(), filepath.Join(filepath.Dir(path), "search.db"), s))(t)
	t.Cleanup(func() { testkit.Check(t, o.index.Close()) })
	testkit.Must(o.index.CatchUp(t.Context()))(t)
	return o
}

func (o *ours) name() string { return "sessiond" }

func (o *ours) sayings(q, dialogue string, n int) (ids []string) {
	res := testkit.Must(o.index.Search(o.t.Context(), search.Query{Text: q, Project: dialogue, Limit: n}))(o.t)
	for _, h := range res.Hits {
		ids = append(ids, o.names[h.MessageID])
	}
	return ids
}

func (o *ours) talks(q, dialogue string, n int) (ids []string) {
	res := testkit.Must(o.index.Search(o.t.Context(),
		search.Query{Text: q, Project: dialogue, Group: search.GroupSession, Limit: n}))(o.t)
	for _, h := range res.Sessions {
		ids = append(ids, o.talk[h.SessionID])
	}
	return ids
}

// plain is SQLite's own ranking: one FTS5 table with Porter's stems, the words of the question joined by
// OR, and bm25 with its defaults.
type plain struct {
	t  testing.TB
	db *sql.DB
}

func openPlain(t testing.TB, set dataset) *plain {
	db := testkit.Must(sql.Open("sqlite", ":memory:"))(t)
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	testkit.Must(db.Exec(`CREATE VIRTUAL TABLE said USING fts5(text, id UNINDEXED, talk UNINDEXED, dialogue UNINDEXED, tokenize = 'porter unicode61')`))(t)
	tx := testkit.Must(db.Begin())(t)
	for _, c := range set.chats {
		for _, s := range c.said {
			testkit.Must(tx.Exec(`INSERT INTO said VALUES (?, ?, ?, ?)`, s.text, s.id, c.id, c.dialogue))(t)
		}
	}
	testkit.Check(t, tx.Commit())
	return &plain{t, db}
}

func (p *plain) name() string { return "plain FTS5" }

func (p *plain) find(column, q, dialogue string, n int) (ids []string) {
	var quoted []string
	for _, w := range strings.FieldsFunc(q, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 127)
	}) {
		quoted = append(quoted, `"`+w+`"`)
	}
	rows := testkit.Must(p.db.Query(`SELECT `+column+` FROM said WHERE said MATCH ? AND (? = '' OR dialogue = ?) ORDER BY bm25(said) LIMIT 200`,
		strings.Join(quoted, " OR "), dialogue, dialogue))(p.t)
	defer rows.Close()
	for rows.Next() && len(ids) < n {
		var id string
		testkit.Check(p.t, rows.Scan(&id))
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (p *plain) sayings(q, dialogue string, n int) []string { return p.find("id", q, dialogue, n) }
func (p *plain) talks(q, dialogue string, n int) []string   { return p.find("talk", q, dialogue, n) }

// chatsOf cuts transcripts into chats of 20 messages.
func chatsOf(talks []talk) (chats []chat) {
	for n, talk := range talks {
		for from := 0; from < len(talk.messages); from += 20 {
			c := chat{
				dialogue: fmt.Sprint(n), id: fmt.Sprintf("%d/%d", n, from),
				at: time.Date(2025, 1, 1, n%24, 0, 0, 0, time.UTC).AddDate(0, 0, n),
			}
			for i, m := range talk.messages[from:min(from+20, len(talk.messages))] {
				var texts []string
				for j := range m.Parts {
					texts = append(texts, m.Parts[j].Content())
				}
				text := strings.TrimSpace(strings.Join(texts, "\n"))
				if text == "" {
					continue
				}
				c.said = append(c.said, saying{fmt.Sprintf("%s:%d", c.id, i), string(m.Role), text})
			}
			if len(c.said) > 0 {
				chats = append(chats, c)
			}
		}
	}
	return chats
}

// askedQuestions are questions that a person wrote about the sample transcripts, mostly in other words than
// the answers', each with texts of the messages that answer it. Every second one is for tuning. Questions
// whose answers are in none of the transcripts are left out.
func askedQuestions(t testing.TB, talks []talk, half string) dataset {
	set := dataset{name: "questions asked by a person, " + cmp.Or(half, "held"), chats: chatsOf(talks)}
	for n, line := range strings.Split(strings.TrimSpace(string(testkit.Must(os.ReadFile("testdata/asked.tsv"))(t))),
		"\n") {
		if (n%2 == 0) != (half == "tune") {
			continue
		}
		text, answers, _ := strings.Cut(line, "\t")
		q := question{text: text}
		for _, c := range set.chats {
			for _, s := range c.said {
				if slices.ContainsFunc(strings.Split(answers, "|"), func(answer string) bool {
					return strings.Contains(s.text, answer)
				}) {
					q.evidence = append(q.evidence, s.id)
					if !slices.Contains(q.chats, c.id) {
						q.chats = append(q.chats, c.id)
					}
				}
			}
		}
		if len(q.evidence) == 0 {
			set.skipped++
			continue
		}
		set.questions = append(set.questions, q)
	}
	return set
}

// madeQuestions asks for messages of transcripts by some of their rarer words, in other forms, and by words
// said around them. Half of the questions, by their hash, are for tuning.
func madeQuestions(t testing.TB, talks []talk, half string) dataset {
	set := dataset{name: "questions made from transcripts, " + cmp.Or(half, "held"), chats: chatsOf(talks)}
	random := rand.New(rand.NewPCG(3, 4))
	in := map[string]int{}
	for _, c := range set.chats {
		for _, s := range c.said {
			for w := range maps.Keys(wordsOf(s.text)) {
				in[w]++
			}
		}
	}
	for _, c := range set.chats {
		for i, s := range c.said {
			n := len(strings.Fields(s.text))
			if n < 8 || n > 120 {
				continue
			}
			own := rarest(wordsOf(s.text), in, 6)
			var around []string
			for _, j := range []int{i - 1, i + 1} {
				if j >= 0 && j < len(c.said) {
					around = append(around, rarest(wordsOf(c.said[j].text), in, 4)...)
				}
			}
			if len(own) < 3 {
				continue
			}
			random.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
			random.Shuffle(len(around), func(i, j int) { around[i], around[j] = around[j], around[i] })
			ask := []string{otherForm(own[0]), own[1]}
			if len(around) > 0 {
				ask = append(ask, around[0])
			}
			text := "What did we say about " + strings.Join(ask, " and the ") + " when I asked?"
			h := fnv.New32a()
			h.Write([]byte(text))
			if (h.Sum32()%2 == 0) == (half == "tune") {
				set.questions = append(set.questions, question{
					dialogue: c.dialogue, text: text, evidence: []string{s.id},
					chats: []string{c.id},
				})
			}
		}
	}
	return set
}

func wordsOf(text string) map[string]bool {
	words := map[string]bool{}
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' }) {
		if len(w) > 3 {
			words[w] = true
		}
	}
	return words
}

// rarest returns up to n words that the fewest messages have, but more than one.
func rarest(words map[string]bool, in map[string]int, n int) []string {
	sorted := slices.SortedFunc(maps.Keys(words), func(a, b string) int {
		if in[a] != in[b] {
			return in[a] - in[b]
		}
		return strings.Compare(a, b)
	})
	sorted = slices.DeleteFunc(sorted, func(w string) bool { return in[w] < 3 })
	return sorted[:min(n, len(sorted))]
}

// otherForm takes an ending from a word, or gives it one.
func otherForm(w string) string {
	for _, end := range []string{"ing", "ed", "s"} {
		if cut, ok := strings.CutSuffix(w, end); ok && len(cut) > 3 {
			return cut
		}
	}
	return w + "s"
}
