package clients_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	client "sessiond/clients/go"
	"sessiond/internal/config"
	"sessiond/internal/testkit"
)

// outside is a program of somebody else: its module has another name than ours, and so has the client's, as a release
// sets it.
const outside = `package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	sessiond "example.com/acme/sessiond/clients/go"
)

func main() {
	ctx := context.Background()
	client := sessiond.New(sessiond.Options{})
	s, err := client.CreateSession(ctx, sessiond.NewSessionRequest{Title: "tides", Model: "claude-opus-4-8"})
	if err != nil {
		log.Fatal(err)
	}
	turn, err := client.TakeTurn(ctx, s.ID, sessiond.TurnRequest{
		Dialect:  sessiond.Anthropic,
		System:   sessiond.Set("Be brief."),
		Messages: []any{map[string]any{"role": "user", "content": "How high is the water?"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(turn.Context.Request))
	_, err = client.ReadSession(ctx, "20200101_001", sessiond.ReadSessionQuery{})
	var e *sessiond.Error
	fmt.Println(errors.As(err, &e) && e.Code == sessiond.CodeNotFound && e.Status == 404)
}
`

// A program outside the tree builds and runs against the client, offline, under whatever path a release gives it; and
// this repository builds against the client under that path, too.
func TestProgramOutsideTheTreeUsesTheClient(t *testing.T) {
	d := startDaemon(t)
	dir := t.TempDir()
	lib, program := filepath.Join(dir, "lib"), filepath.Join(dir, "program")
	copyTree(t, "go", lib)
	testkit.Check(t, os.MkdirAll(program, 0o755))
	testkit.Check(t, os.WriteFile(filepath.Join(program, "main.go"), []byte(outside), 0o644))
	testkit.Check(t, os.WriteFile(filepath.Join(program, "go.mod"), []byte(`module example.org/tides

go 1.24

require example.com/acme/sessiond/clients/go v0.1.0

replace example.com/acme/sessiond/clients/go => ../lib
`), 0o644))
	run(t, lib, nil, "go", "mod", "edit", "-module", "example.com/acme/sessiond/clients/go")
	env := append(slices.DeleteFunc(d.environ(), func(v string) bool { return strings.HasPrefix(v, "HOME=") }),
		"HOME="+os.Getenv("HOME"), "GOPROXY=off", "GOFLAGS=-mod=mod", "GOWORK=off")
	said := run(t, program, env, "go", "run", ".")
	if !strings.Contains(said, `"How high is the water?"`) || !strings.Contains(said, `"Be brief."`) ||
		!strings.HasSuffix(said, "true\n") {
		t.Error(said)
	}

	for _, name := range []string{"go.mod", "go.sum"} {
		raw := testkit.Must(os.ReadFile(filepath.Join("..", name)))(t)
		testkit.Check(t, os.WriteFile(filepath.Join(dir, name), raw, 0o644))
	}
	own := filepath.Join(dir, "go.mod")
	run(t, dir, nil, "go", "mod", "edit", "-replace", "sessiond/clients/go="+lib, own)
	if deps := run(t, ".", nil, "go", "list", "-deps", "-modfile", own, "sessiond/cmd/sessiond"); !strings.Contains(deps,
		"sessiond/clients/go\n") {
		t.Error("the command does not use the client")
	}
}

// The client finds the daemon where the command does.
func TestClientFindsTheDaemonAsTheCommandDoes(t *testing.T) {
	for _, c := range []struct{ name, file, env string }{
		{"defaults", "", ""},
		{"an address", "listen: 127.0.0.1:7555 # here\n", ""},
		{"every address", "listen: ':7555'\n", ""},
		{"quoted", "listen: \"127.0.0.1:7555\"\nsocket: 'off'\nlog:\n  level: warn\n", ""},
		{"the environment", "listen: 127.0.0.1:7555\n", "SESSIOND_LISTEN=127.0.0.1:7556"},
		{"no address", "socket: HOME/x y.sock\n", "SESSIOND_LISTEN="},
		{"another database", "", "SESSIOND_DB=HOME/data/my.db"},
		{"another token", "token_file: HOME/secret\nsocket: off\n", ""},
		{"a comment", "# listen: x\n#socket: y\nlisten: # none\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			fill := strings.NewReplacer("HOME", home)
			testkit.Check(t, os.MkdirAll(filepath.Join(home, "config", "sessiond"), 0o700))
			testkit.Check(t, os.WriteFile(filepath.Join(home, "config", "sessiond", "config.yaml"),
				[]byte(fill.Replace(c.file)), 0o600))
			env := []string{
				"HOME=" + home, "XDG_CONFIG_HOME=" + home + "/config", "XDG_DATA_HOME=" + home + "/share",
				"XDG_RUNTIME_DIR=" + home + "/run", fill.Replace(c.env),
			}
			cfg := testkit.Must(config.Load(config.Input{Environ: env, Dirs: config.Dirs{
				Config: home + "/config", Data: home + "/share", Runtime: home + "/run",
			}}))(t)
			testkit.Check(t, os.MkdirAll(filepath.Dir(cfg.TokenFile), 0o700))
			testkit.Check(t, os.WriteFile(cfg.TokenFile, []byte("secret\n"), 0o600))

			want := client.Place{URL: "http://" + cfg.Listen, Token: "secret"}
			if strings.HasPrefix(cfg.Listen, ":") {
				want.URL = "http://127.0.0.1" + cfg.Listen
			}
			if cfg.Listen == "" {
				want = client.Place{Socket: cfg.Socket}
			}
			testkit.Equal(t, want, client.FindDaemon(env))
			if cfg.Socket == config.SocketOff {
				return
			}
			testkit.Check(t, os.MkdirAll(filepath.Dir(cfg.Socket), 0o700))
			testkit.Check(t, os.WriteFile(cfg.Socket, nil, 0o600))
			testkit.Equal(t, client.Place{Socket: cfg.Socket}, client.FindDaemon(env))
		})
	}
	d := startDaemon(t)
	testkit.Equal(t, client.Place{Socket: d.socket}, client.FindDaemon(d.environ()))
	testkit.Check(t, os.Rename(d.socket, d.socket+".gone"))
	testkit.Equal(t, client.Place{URL: d.url, Token: d.token()}, client.FindDaemon(d.environ()))
}

// told is what the model knows of a session: the texts on the path to the head with the ids of their messages, and the
// documents with their revisions.
type told struct {
	texts  []string
	refs   []string
	last   int64 // seq of the session's newest message
	states map[string]string
	counts map[string]int64 // changes of each document, also of one that was deleted
}

// model is a walk of random operations, each checked against what is known.
type model struct {
	t       *testing.T
	clients []*client.Client // of one daemon
	random  *rand.Rand
	known   map[string]*told
	ids     []string
	done    map[string]int
}

func (m *model) client() *client.Client { return m.clients[m.random.IntN(len(m.clients))] }

// code fails the test if an error has another code; "" stands for none.
func (m *model) code(what, want string, err error) {
	m.t.Helper()
	if got := client.CodeOf(err); got != want || want == "" && err != nil {
		m.t.Fatalf("%s: %v, want the code %q", what, err, want)
	}
}

// Thousands of operations, by two clients of one daemon, on its socket and by TCP, answer as a few maps and slices do.
func TestClientAnswersAsTheModelDoes(t *testing.T) {
	operations := 4000
	if testing.Short() {
		operations = 800
	}
	d := startDaemon(t)
	m := &model{
		t: t, random: rand.New(rand.NewPCG(1, 2)), known: map[string]*told{}, done: map[string]int{},
		clients: []*client.Client{
			client.New(client.Options{Place: client.Place{Socket: d.socket}}),
			client.New(client.Options{Place: client.Place{URL: d.url, Token: d.token()}}),
		},
	}
	steps := map[string]func(id string, s *told){
		"append": m.append, "stale": m.stale, "pop": m.pop, "head": m.moveHead, "read": m.read, "turn": m.turn,
		"state": m.state, "states": m.several, "fork": m.fork, "search": m.search,
	}
	names := slices.Sorted(maps.Keys(steps))
	began := time.Now()
	for n := range operations {
		if len(m.ids) == 0 || n%200 == 0 {
			m.create()
		}
		id, name := m.ids[m.random.IntN(len(m.ids))], names[m.random.IntN(len(names))]
		steps[name](id, m.known[id])
		m.done[name]++
	}
	t.Logf("%d operations in %s: %v", operations, time.Since(began).Round(time.Millisecond), m.done)
	for id, s := range m.known {
		m.read(id, s)
	}
}

func (m *model) create() {
	made, err := m.client().CreateSession(m.t.Context(), client.NewSessionRequest{
		Title: fmt.Sprint("session ", len(m.ids)), Model: "gpt-4o", Metadata: map[string]any{"n": len(m.ids)},
	})
	m.code("create", "", err)
	m.ids = append(m.ids, made.ID)
	m.known[made.ID] = &told{states: map[string]string{}, counts: map[string]int64{}}
}

func (s *told) say(id, text string) {
	s.last++
	s.texts, s.refs = append(s.texts, text), append(s.refs, fmt.Sprint(id, ".", s.last))
}

// cut leaves the first messages on the path.
func (s *told) cut(keep int) { s.texts, s.refs = s.texts[:keep:keep], s.refs[:keep:keep] }

func (s *told) head() client.Field[string] {
	if len(s.refs) == 0 {
		return client.Null[string]()
	}
	return client.Set(s.refs[len(s.refs)-1])
}

// append appends one to three messages, sometimes twice with one key.
func (m *model) append(id string, s *told) {
	var request client.AppendRequest
	for range 1 + m.random.IntN(3) {
		text := fmt.Sprintf("%s says <%d> & more", []string{"the moon", "ein Priel", "潮汐"}[m.random.IntN(3)], s.last)
		request.Messages = append(request.Messages, map[string]any{"role": "user", "content": text})
		s.say(id, text)
	}
	key := client.IdempotencyKey(fmt.Sprint(id, ".", s.last))
	var first *client.Appended
	for range 1 + m.random.IntN(2) {
		done, err := m.client().AppendMessages(m.t.Context(), id, request, key)
		m.code("append", "", err)
		if want := fmt.Sprint(id, ".", s.last); done.Head == nil || *done.Head != want || first != nil &&
			*first.Head != *done.Head {
			m.t.Fatalf("append to %s: head %v, want %s", id, done.Head, want)
		}
		first = done
	}
}

// stale sends a head that is another one.
func (m *model) stale(id string, s *told) {
	head := client.Set(fmt.Sprint(s.last + 1))
	_, err := m.client().AppendMessages(m.t.Context(), id, client.AppendRequest{
		Messages: []any{map[string]any{"role": "user", "content": "never"}}, ExpectHead: head,
	})
	m.code("a stale head", client.CodeConflict, err)
	var e *client.Error
	if errors.As(err, &e); len(s.refs) > 0 && e.Head != s.refs[len(s.refs)-1] {
		m.t.Fatalf("a stale head of %s: the error says that the head is %q", id, e.Head)
	}
}

func (m *model) pop(id string, s *told) {
	popped, err := m.client().PopMessage(m.t.Context(), id, client.PopMessageQuery{},
		client.PopRequest{ExpectHead: s.head()})
	m.code("pop", "", err)
	if len(s.texts) == 0 {
		if string(popped.Message) != "null" && popped.Message != nil {
			m.t.Fatalf("pop of nothing: %s", popped.Message)
		}
		return
	}
	got, err := popped.Message.Message()
	m.code("pop", "", err)
	at := len(s.texts) - 1
	if got.Content != s.texts[at] || got.ID != s.refs[at] {
		m.t.Fatalf("pop of %s: %q, want %q", id, got.Content, s.texts[at])
	}
	s.cut(at)
}

// moveHead continues from a message on the path, or from the beginning.
func (m *model) moveHead(id string, s *told) {
	if m.random.IntN(4) > 0 { // else no conversation grows
		return
	}
	keep := len(s.texts) - min(len(s.texts), m.random.IntN(4))
	seq := client.Null[string]()
	if keep > 0 {
		seq = client.Set(s.refs[keep-1])
	}
	_, err := m.client().MoveHead(m.t.Context(), id, client.HeadRequest{Seq: seq})
	m.code("move the head", "", err)
	s.cut(keep)
}

// read reads all messages in pages, in sessiond's form or a provider's, and all documents.
func (m *model) read(id string, s *told) {
	query := client.ListMessagesQuery{Limit: 1 + m.random.Int64N(40)}
	if m.random.IntN(2) == 0 {
		query.Dialect = client.OpenAIChat
	}
	var texts []string
	c := m.client()
	for item, err := range client.Pages(func(cursor string) (*client.List[client.Item], error) {
		query.Cursor = cursor
		page, err := c.ListMessages(m.t.Context(), id, query)
		if err != nil {
			return nil, err
		}
		if query.Dialect != "" && len(page.Places) != len(page.Data) {
			m.t.Fatalf("%d places of %d items", len(page.Places), len(page.Data))
		}
		return &client.List[client.Item]{Data: page.Data, NextCursor: page.NextCursor}, nil
	}) {
		m.code("list messages", "", err)
		var message struct{ Content string }
		testkit.Check(m.t, json.Unmarshal(item, &message))
		texts = append(texts, message.Content)
	}
	if !slices.Equal(texts, s.texts) {
		m.t.Fatalf("%s has %q, want %q", id, texts, s.texts)
	}
	all, err := c.ListStates(m.t.Context(), id)
	m.code("list states", "", err)
	if len(all.Data) != len(s.states) {
		m.t.Fatalf("%s has %d states, want %d", id, len(all.Data), len(s.states))
	}
	for _, state := range all.Data {
		value, err := c.ReadState(m.t.Context(), id, state.Name)
		m.code("read a state", "", err)
		want, revision := s.states[state.Name], s.counts[state.Name]
		if string(value) != want || state.Revision != revision {
			m.t.Fatalf("state %s of %s: %q of revision %d, want %q of %d", state.Name, id, value, state.Revision, want, revision)
		}
	}
}

func (m *model) turn(id string, s *told) {
	text := fmt.Sprint("turn ", s.last)
	turn, err := m.client().TakeTurn(m.t.Context(), id, client.TurnRequest{
		Dialect: client.OpenAIChat, System: client.Set("Be brief."), ExpectHead: s.head(),
		Messages: []any{map[string]any{"role": "user", "content": text}},
	})
	m.code("turn", "", err)
	s.say(id, text)
	var request struct {
		Messages []struct{ Role, Content string }
	}
	testkit.Check(m.t, json.Unmarshal(turn.Context.Request, &request))
	if n := len(request.Messages); n < 2 || !strings.HasSuffix(request.Messages[n-1].Content, text) ||
		request.Messages[0].Content != "Be brief." {
		m.t.Fatalf("turn in %s: %s", id, turn.Context.Request)
	}
}

// state writes, reads or deletes a document, bound to its revision.
func (m *model) state(id string, s *told) {
	name, c := fmt.Sprint("s", m.random.IntN(4)), m.client()
	bound := client.IfNone()
	if _, there := s.states[name]; there {
		bound = client.IfMatch(s.counts[name])
	}
	switch m.random.IntN(4) {
	case 0:
		_, err := c.PutState(m.t.Context(), id, name, 1, client.IfMatch(s.counts[name]+1))
		m.code("a stale revision", client.CodePreconditionFailed, err)
	case 1:
		m.code("delete", "", c.DeleteState(m.t.Context(), id, name))
		if _, there := s.states[name]; there {
			delete(s.states, name)
			s.counts[name]++
		}
		_, err := c.ReadState(m.t.Context(), id, name)
		m.code("read what is deleted", client.CodeNotFound, err)
	default:
		value := fmt.Sprintf(`{"n":%d}`, m.random.IntN(1000))
		var header http.Header
		_, err := c.PutState(m.t.Context(), id, name, json.RawMessage(value), bound, client.Answered(&header))
		m.code("write", "", err)
		if s.states[name] != value {
			s.counts[name]++
		}
		if s.states[name] = value; client.RevisionOf(header) != s.counts[name] {
			m.t.Fatalf("revision %d, want %d", client.RevisionOf(header), s.counts[name])
		}
	}
}

// several changes documents in one step: all of them, or none.
func (m *model) several(id string, s *told) {
	var request client.StatesRequest
	fails := m.random.IntN(3) == 0
	next, counts := maps.Clone(s.states), maps.Clone(s.counts)
	for _, n := range m.random.Perm(4)[:1+m.random.IntN(4)] {
		name := fmt.Sprint("s", n)
		revision := int64(0)
		if _, there := next[name]; there {
			revision = counts[name]
		}
		value := fmt.Sprintf(`[%d]`, m.random.IntN(1000))
		request.States = append(request.States, client.StateChangeRequest{
			Name: name, Value: json.RawMessage(value), IfRevision: &revision,
		})
		if next[name] != value {
			counts[name]++
		}
		next[name] = value
	}
	if fails {
		request.States[len(request.States)-1].IfRevision = client.Ptr(int64(99999))
	}
	_, err := m.client().PutStates(m.t.Context(), id, request)
	if fails {
		m.code("several with a stale revision", client.CodePreconditionFailed, err)
		return
	}
	m.code("several", "", err)
	s.states, s.counts = next, counts
}

func (m *model) fork(id string, s *told) {
	if len(m.ids) > 30 || len(s.refs) == 0 {
		return
	}
	made, err := m.client().ForkSession(m.t.Context(), id, client.ForkRequest{})
	m.code("fork", "", err)
	m.ids = append(m.ids, made.ID)
	listed, err := m.client().ReadSession(m.t.Context(), made.ID, client.ReadSessionQuery{})
	m.code("read the fork", "", err)
	if listed.ParentID != id {
		m.t.Fatalf("the fork %s of %s has the parent %q", made.ID, id, listed.ParentID)
	}
	m.known[made.ID] = &told{
		texts: slices.Clone(s.texts), refs: slices.Clone(s.refs), last: listed.LastSeq,
		states: map[string]string{}, counts: map[string]int64{},
	}
}

func (m *model) search(id string, s *told) {
	found, err := m.client().SearchMessages(m.t.Context(), client.SearchMessagesQuery{
		Q: "says", Session: id, Limit: 5, Metadata: map[string]string{"n": "no such"},
	})
	m.code("search", "", err)
	if len(found.Hits) != 0 {
		m.t.Fatalf("a filter by metadata finds %d", len(found.Hits))
	}
	if _, err := m.client().ListSessions(m.t.Context(), client.ListSessionsQuery{Limit: -1}); client.CodeOf(err) !=
		client.CodeInvalid {
		m.t.Fatalf("a wrong limit: %v", err)
	}
}

// A daemon that is away, a token that is revoked, wrong values and 30 MB are errors of one type, or work.
func TestWrongInputOfTheClient(t *testing.T) {
	ctx := t.Context()
	away := client.New(client.Options{Place: client.Place{URL: "http://127.0.0.1:9", Token: "x"}, Retries: 1})
	_, err := away.ListTags(ctx)
	var e *client.Error
	if !errors.As(err, &e) || e.Code != client.CodeUnreachable || e.Status != 0 ||
		!strings.Contains(e.Message, "attempt 2") || !strings.Contains(e.Message, "sessiond serve") {
		t.Errorf("a daemon that is away: %v", err)
	}
	nowhere := client.New(client.Options{Place: client.Place{Socket: "/nowhere/sock"}, Retries: -1})
	if _, err = nowhere.ListTags(ctx); !errors.As(err, &e) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a socket that is not there: %v", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err = away.ListTags(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: %v", err)
	}

	d := startDaemon(t)
	c := client.New(client.Options{Place: client.Place{URL: d.url + "/", Token: d.token()}})
	revoked := client.New(client.Options{Place: client.Place{URL: d.url, Token: "revoked"}})
	if _, err = revoked.ListTags(ctx); client.CodeOf(err) != client.CodeUnauthorized {
		t.Errorf("a revoked token: %v", err)
	}
	for range c.Events(ctx, client.EventsQuery{After: "nonsense"}) {
		break
	}
	for _, err = range revoked.Events(ctx, client.EventsQuery{}) {
		if client.CodeOf(err) != client.CodeUnauthorized {
			t.Errorf("events with a revoked token: %v", err)
		}
	}
	_, err = c.CreateSession(ctx, client.NewSessionRequest{Kind: "nonsense"})
	if !errors.As(err, &e) || e.Code != client.CodeInvalid || len(e.Fields) != 1 || e.Fields[0].Path != "kind" {
		t.Errorf("a wrong kind: %v %+v", err, e)
	}
	made, err := c.CreateSession(ctx, client.NewSessionRequest{Key: "team/a:b", Title: "<&>"})
	testkit.Check(t, err)
	if key, err := c.ReadKey(ctx, "team/a:b", client.ReadKeyQuery{}); err != nil || key.Key != "agent:main:team/a:b" {
		t.Errorf("a key with a slash: %+v %v", key, err)
	}
	if _, err = c.AppendMessages(ctx, made.ID, client.AppendRequest{Messages: []any{func() {}}}); err == nil ||
		client.CodeOf(err) != "" {
		t.Errorf("a value without JSON: %v", err)
	}

	large := strings.Repeat("0123456789 <&> ", 2<<20)[:30<<20]
	say := func(content string) error {
		_, err := c.AppendMessages(ctx, made.ID, client.AppendRequest{
			Messages: []any{map[string]any{"role": "user", "content": content}},
		})
		return err
	}
	testkit.Check(t, say(large))
	item, err := c.ReadMessage(ctx, made.ID, "1", client.ReadMessageQuery{})
	testkit.Check(t, err)
	if message, err := item.Message(); err != nil || message.Content != large {
		t.Errorf("30 MB came back as %d bytes: %v", len(message.Content), err)
	}
	if err := say(large + large[:3<<20]); client.CodeOf(err) != client.CodeTooLarge {
		t.Errorf("33 MB: %v", err)
	}
	file, err := c.ExportSession(ctx, made.ID, "nonsense")
	if client.CodeOf(err) != client.CodeInvalid {
		t.Errorf("an export: %v %v", file, err)
	}
}

// A daemon that is killed in the middle loses and doubles nothing that the client sends, and its stream of events
// continues.
func TestClientOutlivesKillsOfTheDaemon(t *testing.T) {
	d := startDaemon(t)
	c := client.New(client.Options{Place: client.Place{URL: d.url, Token: d.token()}, Retries: 14})
	made, err := c.CreateSession(t.Context(), client.NewSessionRequest{})
	testkit.Check(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var heard []int64
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		for e, err := range c.Events(ctx, client.EventsQuery{After: "0", Session: made.ID}) {
			if err != nil {
				t.Error(err)
			}
			if e.Type == "messages.appended" {
				heard = append(heard, e.Seq)
			}
		}
	}()
	var said sync.Map
	var count atomic.Int64
	var appending atomic.Bool
	appending.Store(true)
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := 0; appending.Load(); n++ {
				text := fmt.Sprint(w, ".", n)
				if _, err := c.AppendMessages(t.Context(), made.ID, client.AppendRequest{
					Messages: []any{map[string]any{"role": "user", "content": text}},
				}); err != nil {
					t.Error(err)
					return
				}
				said.Store(text, true)
				count.Add(1)
			}
		})
	}
	for range 3 {
		before := count.Load()
		eventually(t, func() bool { return count.Load() > before+20 })
		d.kill()
		d.start()
	}
	appending.Store(false)
	writers.Wait()
	stored := int64(0)
	for item, err := range client.Pages(func(cursor string) (*client.List[client.Item], error) {
		page, err := c.ListMessages(t.Context(), made.ID, client.ListMessagesQuery{Cursor: cursor, Limit: 500})
		if err != nil {
			return nil, err
		}
		return &client.List[client.Item]{Data: page.Data, NextCursor: page.NextCursor}, nil
	}) {
		testkit.Check(t, err)
		m, err := item.Message()
		testkit.Check(t, err)
		if _, known := said.LoadAndDelete(m.Content); !known {
			t.Errorf("%q is there twice, or was never said", m.Content)
		}
		stored++
	}
	if stored != count.Load() {
		t.Errorf("%d messages are stored, %d were sent", stored, count.Load())
	}
	time.Sleep(200 * time.Millisecond)
	eventually(t, func() bool {
		one, err := c.ReadSession(t.Context(), made.ID, client.ReadSessionQuery{})
		return err == nil && one.LastSeq == stored
	})
	stop()
	<-listening
	for i, seq := range heard {
		if seq != int64(i+1) {
			t.Fatalf("event %d is of the message %d", i+1, seq)
		}
	}
	t.Logf("%d messages, %d events", stored, len(heard))
}

// A request is repeated with the same key when the connection breaks and when the daemon is busy; one without a key is
// not.
func TestClientRepeatsWithOneKey(t *testing.T) {
	var keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		switch len(keys) {
		case 1:
			conn, _, err := http.NewResponseController(w).Hijack()
			testkit.Check(t, err)
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		case 2:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"code":"busy","detail":"later"}`))
		default:
			_, _ = w.Write([]byte(`{"id":"20260211_001"}`))
		}
	}))
	defer server.Close()
	c := client.New(client.Options{Place: client.Place{URL: server.URL}})
	made, err := c.CreateSession(t.Context(), client.NewSessionRequest{})
	if err != nil || made.ID != "20260211_001" || len(keys) != 3 || keys[0] == "" || keys[0] != keys[1] ||
		keys[0] != keys[2] {
		t.Errorf("%+v %v, keys %q", made, err, keys)
	}
	keys = nil
	if _, err := c.RunSQL(t.Context(), client.SqlRequest{SQL: "SELECT 1"}); client.CodeOf(err) !=
		client.CodeUnreachable || len(keys) != 1 {
		t.Errorf("a request without a key: %v after %d attempts", err, len(keys))
	}
}
