package bench_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// BenchmarkPostgres measures daemons on a server of PostgreSQL of its own, with its default settings.
func BenchmarkPostgres(b *testing.B) {
	cluster, program := storetest.NewCluster(b), binary(b)
	b.Run("append", func(b *testing.B) { benchmarkPostgresAppend(b, cluster, program) })
	b.Run("lag", func(b *testing.B) { benchmarkPostgresLag(b, cluster, program) })
	b.Run("read", func(b *testing.B) { benchmarkPostgresRead(b, cluster, program) })
}

// benchmarkPostgresAppend appends through one and more daemons, each client to a session of its own. The
// baseline is pgbench, which runs the bare statements with as many clients.
func benchmarkPostgresAppend(b *testing.B, cluster *storetest.Cluster, program string) {
	text := newAuthor(3).sentence(60)
	bare := openPgbench(b, cluster, text)
	address := cluster.NewDatabase("appends")
	daemons := make([]*daemon, 4)
	for i := range daemons {
		daemons[i] = serveIn(b, b.TempDir(), program, address)
	}
	cpu := func() (sum time.Duration) {
		for _, d := range daemons {
			sum += d.cpu()
		}
		return sum
	}
	for _, n := range []int{1, 2, 4} {
		for _, k := range []int{1, 16, pgbenchClients} {
			if k < n {
				continue
			}
			b.Run(fmt.Sprintf("%d daemons, %d clients", n, k), func(b *testing.B) {
				clients, appends := make([]*client, k), make([][]byte, k)
				for i := range clients {
					clients[i] = daemons[i%n].dial(b)
					appends[i] = clients[i].newSession(b, text)
				}
				each := sized(max(60, 1000/k))
				many := func() error {
					return atOnce(k, func(i int) error { return repeat(each, clients[i].sends(appends[i]))() })
				}
				wall, _ := compare(b, 2*k*each, &side{op: many, per: k * each, cpu: cpu}, bare.side(k, each))
				b.ReportMetric(1/wall, "messages/s")
			})
		}
	}
}

// pgbench appends with the least that an append can be on PostgreSQL.
type pgbench struct {
	program, script, address string
	took                     time.Duration
}

const pgbenchClients = 64

func openPgbench(b *testing.B, cluster *storetest.Cluster, text string) *pgbench {
	p := &pgbench{
		program: cluster.Program("pgbench"), script: filepath.Join(b.TempDir(), "append.sql"),
		address: cluster.NewDatabase("bare"),
	}
	opt := options()
	opt.Now = func() time.Time { return time.Date(2026, 2, 11, 10, 0, 0, 0, time.UTC) } // days in ids are the script's
	s := testkit.Must(store.Open(b.Context(), p.address, opt))(b)
	for range pgbenchClients {
		id := testkit.Must(s.CreateSession(b.Context(), store.NewSession{Title: "A title"}))(b).ID
		testkit.Must(s.Append(b.Context(), store.Append{
			Session:  id,
			Messages: []session.Message{textMessage(session.User, session.Person, text)},
		}))(b)
	}
	testkit.Check(b, s.Close())
	line := appendStatements(place{
		variable(":id"), variable(":seq"), variable(":last_seq"), variable(":head_id"),
		variable(":path"), variable(":row"), variable(":part"),
	}, text)
	script := strings.Join([]string{
		"BEGIN;",
		"SELECT id, head_id, last_seq, total_tokens FROM sessions WHERE id = '20260211_' || to_char(:client_id + 1, " +
			"'FM000') FOR UPDATE \\gset",
		"\\set seq :last_seq + 1",
		fmt.Sprintf("\\set path :total_tokens + %d", floorTokens),
		line[0].text() + " RETURNING id AS row \\gset",
		"\\set part :row * 1024",
		line[1].text() + ";",
		line[2].text() + ";",
		"INSERT INTO events (session_id, type, seq, data, created_at) VALUES (:id, 'messages.appended', :seq, NULL, now());",
		"COMMIT;",
	}, "\n")
	// A command of pgbench that begins with a backslash, and what \gset ends, is one line.
	script = strings.ReplaceAll(strings.ReplaceAll(script, "\t", ""), ",\n", ", ")
	testkit.Check(b, os.WriteFile(p.script, []byte(strings.ReplaceAll(script, ")\nVALUES", ") VALUES")), 0o600))
	return p
}

var pgbenchRate = regexp.MustCompile(`tps = ([\d.]+) \(without initial connection time\)`)

// side runs the script in k clients, each times each. Its time is pgbench's own: without connecting.
func (p *pgbench) side(k, each int) *side {
	return &side{name: "pgbench", per: k * each, cpu: noCPU, took: func() time.Duration {
		return p.took
	}, op: func() error {
		out, err := exec.Command(p.program, "-n", "-M", "prepared", "-f", p.script, "-c", strconv.Itoa(k), "-j",
			strconv.Itoa(min(k, 2)), "-t", strconv.Itoa(each), p.address).CombinedOutput()
		rate := pgbenchRate.FindSubmatch(out)
		if err != nil || rate == nil || !bytes.Contains(out, []byte("number of failed transactions: 0 ")) {
			return fmt.Errorf("pgbench: %w: %s", err, out)
		}
		perSecond, err := strconv.ParseFloat(string(rate[1]), 64)
		p.took = time.Duration(float64(k*each) / perSecond * float64(time.Second))
		return err
	}}
}

// benchmarkPostgresLag appends through one daemon, and measures from its answer until another one sends
// the event, and until that one's search finds the message.
func benchmarkPostgresLag(b *testing.B, cluster *storetest.Cluster, program string) {
	address, write := cluster.NewDatabase("lag"), newAuthor(5)
	first, second := serveIn(b, b.TempDir(), program, address), serveIn(b, b.TempDir(), program, address)
	from, to := first.dial(b), second.dial(b)
	var created struct{ ID string }
	testkit.Check(b, json.Unmarshal(testkit.Must(from.send(request(b, "POST", "/v1/sessions",
		object{"title": "A title"})))(b), &created))
	seen := second.events(b, created.ID)
	var events, found []time.Duration
	for seq := 1; b.Loop(); {
		for range sized(100) {
			time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond) // at no fixed time of what happens each second
			word := strings.Trim(strings.ReplaceAll(write.sentence(6), " ", ""), ".")
			testkit.Must(from.send(request(b, "POST", "/v1/sessions/"+created.ID+"/messages",
				object{"messages": []any{object{"role": "user", "content": word}}})))(b)
			answered := time.Now()
			wanted := fmt.Appendf(nil, `"%s.%d"`, created.ID, seq)
			for query := request(b, "GET", "/v1/search?q="+word, nil); ; time.Sleep(2 * time.Millisecond) {
				if bytes.Contains(testkit.Must(to.send(query))(b), wanted) {
					break
				}
				if time.Since(answered) > 10*time.Second {
					b.Fatalf("no search finds %s for 10 seconds", wanted)
				}
			}
			found = append(found, time.Since(answered))
			for s := range seen {
				if s.seq == seq {
					events = append(events, max(0, s.at.Sub(answered)))
					break
				}
			}
			seq++
		}
	}
	b.ReportMetric(0, "ns/op")
	for name, times := range map[string][]time.Duration{"event": events, "search": found} {
		for _, p := range []int{50, 99} {
			b.ReportMetric(float64(percentile(times, p).Microseconds())/1000, fmt.Sprintf("%s-p%d-ms", name, p))
		}
	}
}

type sighting struct {
	seq int
	at  time.Time
}

// events follows the events of a session from now on.
func (d *daemon) events(tb testing.TB, id string) <-chan sighting {
	tb.Helper()
	c := d.dial(tb)
	testkit.Must(fmt.Fprintf(c.conn, "GET /v1/events?session=%s HTTP/1.1\r\nHost: sessiond\r\n\r\n", id))(tb)
	res := testkit.Must(http.ReadResponse(c.in, nil))(tb)
	lines := bufio.NewScanner(res.Body)
	if res.StatusCode != http.StatusOK || !lines.Scan() {
		tb.Fatal("no events: ", res.Status)
	}
	seen := make(chan sighting, 100)
	go func() { // ends with the connection, which Cleanup closes
		defer close(seen)
		defer res.Body.Close()
		for lines.Scan() {
			var e struct{ Seq int }
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &e) == nil {
				seen <- sighting{e.Seq, time.Now()}
			}
		}
	}()
	return seen
}

// benchmarkPostgresRead copies a large history from a file to PostgreSQL, and reads both. Half of its
// messages are long conversations, half many short ones.
func benchmarkPostgresRead(b *testing.B, cluster *storetest.Cluster, program string) {
	ctx, size, opt := b.Context(), sized(*historySize), options()
	opt.Owner = "ana"
	file := &history{path: filepath.Join(b.TempDir(), "sessions.db")}
	file.store = testkit.Must(store.Open(ctx, file.path, opt))(b)
	b.Cleanup(func() { testkit.Check(b, file.store.Close()) })
	fillHistory(b, file, size/2)
	fillSessions(b, file, max(1, size/2/messagesPerSession))
	var address string
	b.Run("copy", func(b *testing.B) {
		var there, beside time.Duration
		for n := 1; b.Loop(); n++ {
			address = cluster.NewDatabase(fmt.Sprintf("copy_%d_%d", b.N, n))
			begun := time.Now()
			testkit.Check(b, run(command(program, file.path, "copy", file.path, address)))
			there += time.Since(begun)
			begun = time.Now()
			testkit.Check(b, run(command(program, file.path, "copy", file.path, filepath.Join(b.TempDir(), "copy.db"))))
			beside += time.Since(begun)
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(there.Seconds()/float64(b.N), "s")
		b.ReportMetric(float64(size*b.N)/there.Seconds(), "messages/s")
		b.ReportMetric(there.Seconds()/beside.Seconds(), "×file")
	})
	copied := &history{store: testkit.Must(store.Open(ctx, address, opt))(b)}
	b.Cleanup(func() { testkit.Check(b, copied.store.Close()) })
	for name, h := range map[string]*history{"file": file, "postgres": copied} {
		h.openIndex(b, filepath.Join(b.TempDir(), name+".db"))
		h.long, h.wide = testkit.Must(h.store.Session(ctx, file.long.ID))(b),
			testkit.Must(h.store.Session(ctx, file.wide.ID))(b)
	}
	testkit.Must(copied.store.AddToken(ctx, store.Token{Name: "ana", Owner: opt.Owner}))(b)
	there, beside := copied.reads(ctx, b), file.reads(ctx, b)
	named := copied.reads(session.WithScope(ctx, session.Scope{Owner: opt.Owner}), b)
	for i, read := range there {
		b.Run(read.name, func(b *testing.B) {
			compare(b, 10, &side{op: read.op}, &side{name: "sqlite", op: beside[i].op})
		})
		b.Run(read.name+", named token", func(b *testing.B) {
			compare(b, 10, &side{op: named[i].op}, &side{name: "own", op: read.op})
		})
	}
}
