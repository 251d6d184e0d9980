package contextmgr_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect"
	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/summarize/digest"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
	"sessiond/internal/testkit/effort"
	"sessiond/internal/testkit/samples"
	"sessiond/internal/testkit/storetest"
	"sessiond/internal/tokens"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"github.com/tiktoken-go/tokenizer"
	"pgregory.net/rapid"
)

// desk is a real store and manager with the real counter and digest, and a real tokenizer to check
// their numbers.
type desk struct {
	testing.TB
	store *store.Store
	mgr   *contextmgr.Manager
	codec tokenizer.Codec
	known map[string]int64 // texts that were counted

	counted, beside int // contexts that the tokenizer counted, and those outside the stated error
}

// realTokenizer loads its large vocabulary once for all tests.
var realTokenizer = sync.OnceValues(func() (tokenizer.Codec, error) { return tokenizer.Get(tokenizer.O200kBase) })

func newDesk(t testing.TB, change ...func(*contextmgr.Config)) *desk {
	t.Helper()
	reference := tokens.Reference()
	st := testkit.Must(store.Open(t.Context(), storetest.New(t, filepath.Join(t.TempDir(), "sessions.db")), store.Options{
		Zone: time.UTC, Log: zerolog.Nop(), Measure: reference.Measure,
	}))(t)
	t.Cleanup(func() { _ = st.Close() })
	codec := testkit.Must(realTokenizer())(t)
	cfg := contextmgr.Config{
		Digest: digest.NewExtractive(reference.Text),
		Models: func(id string) (session.ModelInfo, bool) {
			return session.ModelInfo{ID: id, Family: string(tokens.O200k), Window: 128000}, true
		},
		Counter:   func(family string) contextmgr.Counter { return tokens.ForFamily(tokens.Family(family)) },
		Dialects:  dialect.Providers{},
		Reference: string(reference.Family()),
		Mask:      func(s string) string { masked, _ := redact.Mask(s); return masked },
	}
	for _, f := range change {
		f(&cfg)
	}
	return &desk{TB: t, store: st, codec: codec, known: map[string]int64{}, mgr: contextmgr.New(st, cfg)}
}

// importPi imports a transcript and returns its session.
func (d *desk) importPi(path string) session.Session {
	d.Helper()
	before := d.sessions()
	im := history.Importer{Store: d.store}
	testkit.Must(im.Run(d.Context(), pi.New(func(string) string { return "" }), []string{path}))(d)
	for _, s := range d.sessions() {
		if !slices.ContainsFunc(before, func(b session.Session) bool { return b.ID == s.ID }) {
			return testkit.Must(d.store.Session(d.Context(), s.ID))(d)
		}
	}
	d.Fatalf("nothing was imported from %s", path)
	return session.Session{}
}

func (d *desk) sessions() []session.Session {
	d.Helper()
	all, _, err := d.store.Sessions(d.Context(), store.Filter{}, store.Page{Limit: 500})
	testkit.Check(d, err)
	return all
}

// branches returns the path to each leaf of a session.
func (d *desk) branches(s session.Session) [][]session.Message {
	d.Helper()
	all, _, err := d.store.Messages(d.Context(), s.ID, store.MessagePage{Limit: 2000, All: true})
	testkit.Check(d, err)
	parents := map[int64]bool{}
	for i := range all {
		if all[i].ParentID != nil {
			parents[*all[i].ParentID] = true
		}
	}
	var paths [][]session.Message
	for i := range all {
		if !parents[all[i].RowID] {
			path := testkit.Must(d.store.Path(d.Context(), all[i].RowID, 0))(d)
			paths = append(paths, path)
		}
	}
	return paths
}

// begin creates an empty session.
func (d *desk) begin() session.ID {
	d.Helper()
	s := testkit.Must(d.store.CreateSession(d.Context(), store.NewSession{Model: "m"}))(d)
	return s.ID
}

// follow appends messages of another session as new ones.
func (d *desk) follow(id session.ID, msgs ...session.Message) []session.Message {
	d.Helper()
	msgs = slices.Clone(msgs)
	for k := range msgs {
		m := &msgs[k]
		m.RowID, m.ID, m.ParentID, m.SessionID, m.Seq, m.ExternalID = 0, session.MessageRef{}, nil, "", 0, ""
		m.Parts = slices.Clone(m.Parts)
		for i := range m.Parts {
			p := &m.Parts[i]
			p.CallPartID = nil
			if p.Blob != nil && p.Blob.MediaType == session.TextBlob {
				p.Text, p.Blob, p.BlobSHA = p.Content(), nil, nil
			}
		}
	}
	done := testkit.Must(d.store.Append(d.Context(), store.Append{Session: id, Messages: msgs}))(d)
	return done.Messages
}

// want is the content that every context of a path must hold.
type want struct {
	system string
	person string // the text of the newest message of a person
	made   bool   // of unnatural text, for which the counter states no error
}

func wanted(path []session.Message) want {
	var w want
	for i := range path {
		m := &path[i]
		switch {
		case !m.InContext:
		case m.Role == session.User && m.Origin == session.Person:
			w.person = m.Text()
		case m.Role == session.System && w.person == "":
			w.system = m.Text()
		}
	}
	return w
}

// framing is the error of a count of a few words, in tokens: tokens.error is a share of longer text.
const framing = 8

// check checks invariant 4 on a context as the provider gets it.
func (d *desk) check(at string, v contextmgr.View, w want) {
	d.Helper()
	limit := v.Tokens.Window - v.Tokens.Reserve
	if v.Tokens.Total > limit {
		d.Fatalf("%s: %d tokens, the limit is %d", at, v.Tokens.Total, limit)
	}
	if len(v.Pending) > 0 {
		return
	}
	d.accepted(at, v)
	v.Dialect = dialect.OpenAIChat // whose words are counted
	d.checkCount(at, d.real(d.request(v)), v.Tokens, w.made)
	if len(v.Messages) > 0 && v.Messages[0].Role == session.Tool {
		d.Fatalf("%s: it starts with a result", at)
	}
	d.checkContains(at, "the system text", v.System, w.system)
	var said strings.Builder
	for i := range v.Messages {
		said.WriteString(v.Messages[i].Text())
		said.WriteByte('\n')
	}
	d.checkContains(at, "the person's last message", said.String(), w.person)
}

// checkCount compares a real tokenizer's count with the stated one. It never exceeds the window. For
// natural text it is within the stated error, two standard errors, in nearly all contexts, and
// within twice that error in every context.
func (d *desk) checkCount(at string, real int64, stated contextmgr.Tokens, made bool) {
	d.Helper()
	if made { // one piece, repeated thousands of times: the counter's error does not cover that
		return
	}
	if real > stated.Window {
		d.Errorf("%s: a real tokenizer counts %d tokens in a window of %d, stated are %d ± %d", at, real, stated.Window,
			stated.Total, stated.Error)
	}
	over := real - stated.Total - framing
	if d.counted++; over > stated.Error {
		d.beside++
	}
	if over > 2*stated.Error {
		d.Errorf("%s: a real tokenizer counts %d tokens, stated are %d ± %d", at, real, stated.Total, stated.Error)
	}
}

// checkContains checks that a text is there, at least its beginning: a large part may be cut.
func (d *desk) checkContains(at, what, where, text string) {
	d.Helper()
	if begin := string([]rune(text)[:min(60, len([]rune(text)))]); !strings.Contains(where, begin) {
		d.Fatalf("%s: %s is missing: %q", at, what, begin)
	}
}

// real counts a request with the family's tokenizer: texts, arguments, names and three tokens of
// framing for each message, without pictures.
func (d *desk) real(request session.JSON) int64 {
	d.Helper()
	var body struct {
		Messages []struct {
			Content jsontext.Value `json:"content"`
			Calls   []struct {
				Function struct{ Name, Arguments string } `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	testkit.Check(d, json.Unmarshal(request, &body))
	var sum int64
	for _, m := range body.Messages {
		sum += 3
		var text string
		var elements []struct{ Text string }
		if json.Unmarshal(m.Content, &text) != nil && json.Unmarshal(m.Content, &elements) == nil {
			for _, e := range elements {
				sum += d.count(e.Text)
			}
		}
		sum += d.count(text)
		for _, c := range m.Calls {
			sum += d.count(c.Function.Name) + d.count(c.Function.Arguments)
		}
	}
	return sum
}

func (d *desk) count(text string) int64 {
	n, known := d.known[text]
	if !known {
		c := testkit.Must(d.codec.Count(text))(d)
		n = int64(c)
		d.known[text] = n
	}
	return n
}

// interesting picks prefixes of a path: all of a short one, else a limited number around the ends of
// turns with calls and failed replies, and one in each stride.
func interesting(path []session.Message, most int) []int {
	var picked []int
	if len(path) <= 64 {
		for i := range path {
			picked = append(picked, i)
		}
		return picked
	}
	stride := max(1, len(path)/(most/2))
	var odd []int
	for i := range path {
		switch {
		case i%stride == 0 || i == len(path)-1:
			picked = append(picked, i)
		case path[i].Finish.Failed(), len(path[i].Calls()) > 1, len(path[i].Results()) > 1,
			path[i].Kind != session.KindMessage:
			odd = append(odd, i)
		}
	}
	for i := 0; i < len(odd); i += max(1, len(odd)/(most/2)) {
		picked = append(picked, odd[i])
	}
	slices.Sort(picked)
	return slices.Compact(picked)
}

// Providers accept the contexts at prefixes of real histories; these fit and hold everything
// required: read without compaction, for several windows and presets; and made turn by turn, where
// overlays follow one another.
func TestContextsAtPrefixesOfRealHistories(t *testing.T) {
	root := filepath.Join(samples.Dir(t), "pi")
	var paths []string
	for _, pattern := range []string{
		"*.jsonl", "v3/*/*.jsonl", "v3-harness/*.jsonl", "v4-harness/*.jsonl",
		"made/*.jsonl",
	} {
		found := testkit.Must(filepath.Glob(filepath.Join(root, pattern)))(t)
		paths = append(paths, found...)
	}
	if len(paths) < 9 {
		t.Fatalf("only %d samples", len(paths))
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "no-header.jsonl") {
			continue // not a session
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			notRaced(t, path)
			d := newDesk(t)
			for _, log := range d.branches(d.importPi(path)) {
				d.read(log, interesting(log, 6))
				d.liveEverywhere(log, true)
			}
			if d.beside > 1+d.counted/20 {
				t.Errorf("%d of %d contexts are larger than their stated error allows", d.beside, d.counted)
			}
		})
	}
}

// notRaced skips large histories under the race detector: they take minutes there, and short ones
// cover the same code.
func notRaced(t *testing.T, path string) {
	t.Helper()
	info := testkit.Must(os.Stat(path))(t)
	if testing.Short() && info.Size() > 100<<10 {
		t.Skipf("%d bytes of history are too many for the race detector", info.Size())
	}
}

// read checks the contexts of a session that was never compacted.
func (d *desk) read(log []session.Message, picked []int) {
	d.Helper()
	id := d.begin()
	budgets := []contextmgr.Budget{
		{Window: 8000},
		{Window: 32000},
		{Window: 128000},
		{Window: 200000},
		{Window: 32000, Settings: contextmgr.Settings{Preset: name("pi")}},
		{Window: 32000, Settings: contextmgr.Settings{Preset: name("aggressive")}, MaxOutput: 16000},
	}
	from := 0
	forms := providers()
	for n, i := range picked {
		d.follow(id, log[from:i+1]...)
		from = i + 1
		for k, b := range budgets {
			if (n+k)%3 != 0 && !effort.Long() {
				continue // each prefix has two of the budgets
			}
			to := forms[(n+k)%len(forms)]
			b.CloseCalls, b.Dialect, b.Model = i%2 == 0, to.form, to.model
			at := fmt.Sprintf("prefix %d (%s), budget %d, %s", i+1, log[i].ExternalID, k, b.Dialect)
			v, err := d.mgr.Assemble(d.Context(), id, b)
			if err != nil {
				d.Fatalf("%s: %v", at, err)
			}
			d.check(at, v, wanted(log[:i+1]))
		}
	}
}

// asked is a provider: each has rules of its own beside its dialect's.
type asked struct{ form, model string }

func providers() []asked {
	return []asked{
		{dialect.OpenAIChat, "gpt-5"},
		{dialect.Anthropic, "claude-opus-4-5"},
		{dialect.Gemini, "gemini-3-pro-preview"},
		{dialect.OpenAIResponses, "gpt-5"},
		{dialect.OpenAIChat, "mistralai/devstral"},
	}
}

// liveEverywhere replays a history with each provider: whole with the first, parts of a long one with
// the others. Histories of other programs are only validated: their words are blacked out, and the
// counter is not made for that. Without effort.Long a history is replayed with two providers.
func (d *desk) liveEverywhere(log []session.Message, whole bool) {
	d.Helper()
	for k, to := range providers() {
		if k > 0 && k != 1+len(log)%4 && !effort.Long() {
			continue
		}
		part := log
		if most := 80; len(log) > most && k > 0 {
			from := (len(log) - most) * k / len(providers())
			part = log[from : from+most]
		}
		stride := 0
		if whole {
			stride = 1 + len(part)/20
		}
		d.live(to, part, stride)
	}
}

// live takes a turn wherever an agent would, so that overlay follows overlay, and checks the prefix
// rule. It checks each stride-th context in full, and validates the others for their provider.
func (d *desk) live(to asked, log []session.Message, stride int) {
	d.Helper()
	id := d.begin()
	var last []string
	epoch := int64(-1)
	for i := range log {
		d.follow(id, log[i])
		if !log[i].InContext || log[i].Role == session.Assistant {
			continue // no turn begins here
		}
		at := fmt.Sprintf("%s, turn after %d (%s)", to.form, i+1, log[i].ExternalID)
		v, err := d.mgr.Turn(d.Context(), id, contextmgr.TurnInput{Budget: contextmgr.Budget{
			Window: 24000, Dialect: to.form,
			Model: to.model,
		}})
		if err != nil {
			d.Fatalf("%s: %v", at, err)
		}
		if len(v.Pending) > 0 {
			continue
		}
		if stride > 0 && (i%stride == 0 || v.Prefix.BrokenBy != "") {
			d.check(at, v, wanted(log[:i+1]))
		}
		sent := dialecttest.Flat(d, to.form, d.accepted(at, v))
		if v.Prefix.Epoch == epoch && v.Prefix.BrokenBy == "" &&
			(len(sent) < len(last) || !slices.Equal(sent[:len(last)], last)) {
			d.Errorf("%s: in epoch %d the context sent before is no prefix of this one", at, epoch)
		}
		last, epoch = sent, v.Prefix.Epoch
	}
}

// accepted returns a context's request, and fails if its provider would reject it.
func (d *desk) accepted(at string, v contextmgr.View) session.JSON {
	d.Helper()
	if v.Dialect == "" {
		v.Dialect = dialect.OpenAIChat
	}
	request := d.request(v)
	err := dialecttest.Validate(v.Dialect, request)
	if strings.HasPrefix(v.Model, "gemini-3") && err == nil {
		err = dialecttest.ValidateGemini3(request)
	}
	if err != nil && len(v.Messages) > 0 {
		d.Fatalf("%s: %v\n%.2000s", at, err, request)
	}
	return request
}

// request returns a context's request.
func (d *desk) request(v contextmgr.View) session.JSON {
	d.Helper()
	if v.Dialect == "" {
		v.Dialect = dialect.OpenAIChat
	}
	sent := testkit.Must(dialect.Send(v.Dialect, dialect.Request{
		System: v.System, Messages: v.Messages, Model: v.Model,
		Borders: v.Borders,
	}))(d)
	return sent.Request
}

func name(s string) *string { return &s }

// talker generates a conversation with the faults that agents produce.
type talker struct {
	*desk
	t    *rapid.T
	id   session.ID
	open []string // calls that wait for a result
	log  []session.Message
	n    int

	sent  []string // the last context on the wire
	epoch int64
}

// grows checks the prefix rule on the wire: within an epoch a context only grows at its end, or the
// answer says what broke the prefix.
func (k *talker) grows(at string, v contextmgr.View) {
	if len(v.Pending) > 0 {
		return
	}
	if last := len(v.Messages) - 1; last >= 0 && v.Messages[last].Role == session.Assistant {
		return // a reply to continue: Anthropic rejects spaces at its end, and only there
	}
	sent := dialecttest.Flat(k, v.Dialect, k.request(v))
	same := len(sent) >= len(k.sent) && slices.Equal(sent[:min(len(sent), len(k.sent))], k.sent)
	if k.sent != nil && !same && v.Prefix.Epoch == k.epoch && v.Prefix.BrokenBy == "" {
		k.t.Fatalf("%s: in epoch %d the context sent before is no prefix of this one:\n%.3000s\n%.3000s", at, k.epoch, k.sent,
			sent)
	}
	k.sent, k.epoch = sent, v.Prefix.Epoch
}

func (k *talker) say(m session.Message) {
	m.InContext, m.Display = true, true
	if m.Kind == "" {
		m.Kind = session.KindMessage
	}
	k.log = append(k.log, k.follow(k.id, m)...)
}

// words returns a numbered text of a kind that histories hold.
func (k *talker) words(most int) string {
	k.n++
	pieces := []string{
		"Please look at the parser and tell me what fails. ",
		"internal/store/append.go:42: undefined: foo\n", "価格は129ドルです。確認してください。", "{\"id\":\"a3f9-22\",\"n\":[1,2,3]}",
		"\t\tif err != nil { return err }\n", "🦓🎷 ",
	}
	piece := rapid.SampledFrom(pieces).Draw(k.t, "piece")
	size := rapid.SampledFrom([]int{0, 1, 10, 200, most}).Draw(k.t, "size")
	return fmt.Sprintf("#%d %s", k.n, strings.Repeat(piece, 1+size/len(piece)))
}

func (k *talker) person() {
	m := session.Message{
		Role: session.User, Origin: session.Person,
		Parts: []session.Part{session.TextPart(k.words(20000))},
	}
	if rapid.IntRange(0, 4).Draw(k.t, "image") == 0 {
		png,
			_ := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ" +
			"AAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")
		m.Parts = append(m.Parts, session.Part{
			Kind: session.PartImage,
			Blob: &session.Blob{MediaType: "image/png", Data: png},
		})
	}
	k.say(m)
}

// program adds a program's message in the user's role, like a heartbeat or a hook.
func (k *talker) program() {
	kind := rapid.SampledFrom([]session.Kind{
		session.KindMessage, session.KindCustomMessage, session.KindBash,
		session.KindBranchSummary,
	}).Draw(k.t, "kind")
	k.say(session.Message{
		Kind: kind, Role: session.User, Origin: session.Program,
		Parts: []session.Part{session.TextPart(k.words(5000))},
	})
}

func (k *talker) reply() {
	m := session.Message{Role: session.Assistant, Origin: session.Model, Finish: session.FinishStop}
	if rapid.IntRange(0, 3).Draw(k.t, "thinks") == 0 {
		m.Parts = append(m.Parts, session.Part{Kind: session.PartReasoning, Text: k.words(500)})
	}
	if rapid.Bool().Draw(k.t, "text") {
		m.Parts = append(m.Parts, session.TextPart(k.words(8000)))
	}
	for range rapid.IntRange(0, 3).Draw(k.t, "calls") {
		k.n++
		id := fmt.Sprintf("call_%d", k.n)
		m.Parts = append(m.Parts, session.Part{
			Kind: session.PartToolCall, CallID: id, ToolName: "write",
			Arguments: string(session.JSONOf(map[string]string{"text": k.words(40000)})),
		})
		m.Finish = session.FinishToolCalls
		k.open = append(k.open, id)
	}
	if rapid.IntRange(0, 7).Draw(k.t, "fails") == 0 {
		m.Finish = rapid.SampledFrom([]session.Finish{session.FinishError, session.FinishAborted}).Draw(k.t, "how")
		k.open = nil
	}
	k.say(m)
}

// result answers a pending call, sometimes twice, or a call that was never made.
func (k *talker) result() {
	id := "nobody"
	if len(k.open) > 0 {
		i := rapid.IntRange(0, len(k.open)-1).Draw(k.t, "which")
		if id = k.open[i]; rapid.IntRange(0, 5).Draw(k.t, "twice") > 0 {
			k.open = slices.Delete(k.open, i, i+1)
		}
	}
	m := session.Message{
		Role: session.Tool, Origin: session.ByTool,
		Parts: []session.Part{{Kind: session.PartToolResult, CallID: id, ToolName: "write", Text: k.words(60000)}},
	}
	if rapid.IntRange(0, 5).Draw(k.t, "empty") == 0 {
		m.Parts[0].Text = ""
	}
	k.say(m)
}

// Whatever agents, tools and programs leave in a history, the provider accepts its context, it fits,
// and it holds everything required.
func TestContextsOfGeneratedHistories(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	longest := 18
	if testing.Short() {
		longest = 4
	}
	rapid.Check(t, func(rt *rapid.T) {
		k := &talker{desk: d, t: rt, id: d.begin()}
		window := rapid.SampledFrom([]int64{4000, 8000, 32000}).Draw(rt, "window")
		preset := rapid.SampledFrom(contextmgr.PresetNames()).Draw(rt, "preset")
		form := rapid.SampledFrom(dialecttest.Forms()).Draw(rt, "form")
		budget := contextmgr.Budget{
			Dialect: form, Window: window, CloseCalls: true,
			Settings: contextmgr.Settings{Preset: &preset},
		}
		k.person()
		for step := range rapid.IntRange(3, longest).Draw(rt, "steps") {
			rapid.SampledFrom([]func(){
				k.person, k.program, k.program, k.reply, k.reply, k.reply, k.result, k.result,
				k.result,
			}).Draw(rt, "step")()
			at := fmt.Sprintf("step %d, %s, window %d, preset %s", step, form, window, preset)
			v, err := d.mgr.Assemble(d.Context(), k.id, budget)
			if err != nil {
				rt.Fatalf("%s: %v", at, err)
			}
			w := wanted(k.log)
			w.made = true
			d.check(at, v, w)
			if rapid.IntRange(0, 2).Draw(rt, "turn") > 0 {
				continue
			}
			in := contextmgr.TurnInput{Budget: budget, Volatile: rapid.SampledFrom([]string{
				"", "", "It is Monday.",
				"It is Tuesday.",
			}).Draw(rt, "volatile")}
			in.CloseCalls = rapid.Bool().Draw(rt, "close")
			if v, err = d.mgr.Turn(d.Context(), k.id, in); err != nil {
				rt.Fatalf("%s: %v", at, err)
			}
			d.check(at+", handed out", v, w)
			k.grows(at, v)
		}
	})
}

// The next context of an imported session has the roles that its program would send, by the
// samples' README.
func TestContextsAtHeadsMatchTheirPrograms(t *testing.T) {
	for _, c := range []struct {
		pattern, before string
		at              string // external id of another leaf; "": the head
		want            []string
	}{
		{pattern: "v3/--home-dev-demo--/*e142.jsonl", want: []string{"user", "assistant"}},
		{
			pattern: "v3/--home-dev-other--/*.jsonl", before: "v3/--home-dev-demo--/*e142.jsonl",
			want: []string{"user", "assistant", "user"},
		},
		{pattern: "v3-harness/*.jsonl", want: []string{"user"}},
		// its cut splits a turn, whose question sessiond shows again
		{pattern: "v4-harness/*e6c9e6253dc5.jsonl", want: []string{"summary", "user", "assistant", "user"}},
		{
			pattern: "v4-harness/*e6d1a35ee98b.jsonl", before: "v4-harness/*e6c9e6253dc5.jsonl",
			want: []string{"user", "assistant"},
		},
		{pattern: "made/v1-compaction.jsonl", want: []string{"summary", "user", "assistant", "user"}},
		{pattern: "made/v2-hook-message.jsonl", want: []string{"user", "user", "user"}},
		{pattern: "made/cycle-and-orphan.jsonl", want: []string{"user", "user", "user"}},
		{pattern: "made/torn-last-line.jsonl", want: []string{"user", "assistant"}},
		{pattern: "before-compaction.jsonl", want: nil},
	} {
		t.Run(filepath.Base(c.pattern), func(t *testing.T) {
			notRaced(t, sample(t, c.pattern))
			d := newDesk(t)
			if c.before != "" {
				d.importPi(sample(t, c.before))
			}
			sess := d.importPi(sample(t, c.pattern))
			v := testkit.Must(d.mgr.Assemble(t.Context(), sess.ID, contextmgr.Budget{Window: 1000000, CloseCalls: true}))(t)
			got := shownRoles(v)
			if c.want != nil {
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("roles (-want +got):\n%s", diff)
				}
				return
			}
			// Two compactions: the newest one's summary, then the path from the entry it kept.
			first := slices.IndexFunc(v.Provenance, func(p contextmgr.Provenance) bool {
				return p.Kind == contextmgr.ItemMessage
			})
			if got[0] != contextmgr.ItemSummary || v.Messages[v.Provenance[first].Message].ExternalID != "v1:550" {
				t.Errorf("it begins with %v and then %s", got[:2], v.Messages[v.Provenance[first].Message].ExternalID)
			}
		})
	}
}

func sample(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(samples.Dir(t), "pi", pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v %v", pattern, found, err)
	}
	return found[0]
}

// shownRoles returns the roles of a context's messages, and "summary" for a summary.
func shownRoles(v contextmgr.View) []string {
	roles := []string{}
	for _, p := range v.Provenance {
		switch {
		case p.Message < 0:
		case p.Kind == contextmgr.ItemSummary:
			roles = append(roles, p.Kind)
		default:
			roles = append(roles, string(v.Messages[p.Message].Role))
		}
	}
	return roles
}

// The sample with every kind of line has another leaf, at which its compaction is in force.
func TestContextAtAnotherLeafMatchesItsProgram(t *testing.T) {
	d := newDesk(t)
	sess := d.importPi(sample(t, "v3/--home-dev-demo--/*e142.jsonl"))
	all, err := d.store.Compactions(t.Context(), sess.ID)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d compactions, %v", len(all), err)
	}
	var found [][]string
	for _, path := range d.branches(sess) {
		head := path[len(path)-1].RowID
		on := testkit.Must(d.store.OnPath(t.Context(), head, *all[0].ThroughID))(t)
		at := &contextmgr.Position{HeadID: &head}
		if on && all[0].Status == session.StatusDone {
			at.CompactionID = &all[0].RowID
		}
		v := testkit.Must(d.mgr.Assemble(t.Context(), sess.ID,
			contextmgr.Budget{Window: 1000000, CloseCalls: true, At: at}))(t)
		roles := shownRoles(v)
		if v.System != "" {
			roles = slices.Insert(roles, 0, "system")
		}
		found = append(found, roles)
	}
	want := []string{"system", "summary", "user", "assistant", "tool", "assistant", "user", "assistant"}
	if !slices.ContainsFunc(found, func(roles []string) bool { return slices.Equal(roles, want) }) {
		t.Errorf("no leaf has the context %v; they have %v (compaction %+v)", want, found, all[0])
	}
}
