package secrets

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// Put together at run time, so that no scanner takes this file for a leak.
var (
	github  = "ghp_" + "aB3dE6gH9jK2mN5pQ8rS" + "aB3dE6gH9jK2mN5p"
	openai  = "sk-" + "proj-aB3dE6gH9jK2mN5pQ8rSaB3dE6gH"
	example = "AKIA" + "IOSFODNN7EXAMPLE"
)

// fixture is a store with a conversation in which keys stand, and forks of it.
type fixture struct {
	t  *testing.T
	s  *store.Store
	at time.Time
}

func (f *fixture) session(source session.Source) session.ID {
	return testkit.Must(f.s.CreateSession(f.t.Context(), store.NewSession{Source: source}))(f.t).ID
}

// say appends a message, an hour after the one before; one with a provider is a reply.
func (f *fixture) say(id session.ID, provider, text string, parts ...session.Part) {
	f.at = f.at.Add(time.Hour)
	m := session.Message{
		Kind: session.KindMessage, Role: session.User, Origin: session.Person, CreatedAt: session.At(f.at),
		InContext: true, Display: true, Parts: append([]session.Part{session.TextPart(text)}, parts...),
	}
	if provider != "" {
		m.Role, m.Origin, m.Provider, m.Model = session.Assistant, session.Model, provider, "some-model"
	}
	testkit.Must(f.s.Append(f.t.Context(), store.Append{Session: id, Messages: []session.Message{m}}))(f.t)
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, at: time.Date(2026, 2, 3, 9, 0, 0, 0, time.UTC)}
	f.s = testkit.Must(store.Open(t.Context(), storetest.New(t, filepath.Join(t.TempDir(), "sessions.db")),
		store.Options{Now: func() time.Time { return f.at }}))(t)
	t.Cleanup(func() { testkit.Check(t, f.s.Close()) })
	return f
}

func (f *fixture) scan() []Secret {
	return testkit.Must(Scan(f.t.Context(), f.s, func(int) {}))(f.t)
}

func TestScanSaysWhereAndToWhomASecretWent(t *testing.T) {
	f := newFixture(t)
	one := f.session("codex")
	f.say(one, "openai", "Welcome.") // before the key: it was not sent there
	f.say(one, "", "GITHUB_TOKEN="+github)
	f.say(one, "anthropic", "I use it.", session.Part{
		Kind: session.PartToolCall, ToolName: "bash", CallID: "1", Arguments: `{"env":{"token":"` + github + `"}}`,
	})
	two := f.session("pi")
	f.say(two, "", strings.Repeat("padding ", 20<<10)+openai) // a blob
	f.say(two, "", "Authorization: Bearer "+github)
	f.say(two, "", "DB_PASS=hunter2hunter2, and "+example)

	got := f.scan()
	if len(got) != 4 {
		t.Fatalf("%d secrets: %+v", len(got), got)
	}
	token := got[0]
	if token.Number != 1 || token.Kind != "github token" || !token.Known || token.Messages != 3 || token.Rotate == "" {
		t.Errorf("first %+v", token)
	}
	testkit.Equal(t, token.Programs, []string{"codex", "pi"})
	testkit.Equal(t, token.Providers, []string{"anthropic"})
	ref := func(id session.ID, seq int64) session.MessageRef { return session.MessageRef{Session: id, Seq: seq} }
	if len(token.Places) != 2 || token.Places[0].First != ref(one, 2) || token.Places[0].Last != ref(one, 3) {
		t.Errorf("places %+v", token.Places)
	}
	if got[1].Kind != "openai key" || len(got[1].Providers) != 0 {
		t.Errorf("second %+v", got[1])
	}
	if got[2].Kind != "password" || got[2].Known || got[2].Example {
		t.Errorf("third %+v", got[2])
	}
	if got[3].Kind != "aws key id" || !got[3].Example {
		t.Errorf("last %+v", got[3])
	}
	for _, value := range []string{github, openai, "hunter2", example} {
		if strings.Contains(string(session.JSONOf(got)), value[len(value)-6:]) {
			t.Errorf("the list has a part of a value: %s", session.JSONOf(got))
		}
	}
}

func TestForksSendWhatTheyShare(t *testing.T) {
	f := newFixture(t)
	origin := f.session("codex")
	f.say(origin, "", "Hello.")
	f.say(origin, "", "The key is "+github)
	fork := func(of session.ID, seq int64) session.ID {
		at := session.MessageRef{Session: of, Seq: seq}
		return testkit.Must(f.s.Fork(t.Context(), store.Fork{Session: of, At: &at}))(t).ID
	}
	before, behind := fork(origin, 1), fork(origin, 2)
	f.say(before, "google", "It was not sent here.")
	f.say(behind, "", "Go on.")
	nested := fork(behind, 1)
	f.say(nested, "mistral", "It was sent here.")

	got := f.scan()
	if len(got) != 1 {
		t.Fatalf("%d secrets: %+v", len(got), got)
	}
	testkit.Equal(t, got[0].Providers, []string{"mistral"})
}

func TestEachKindCanBeReplaced(t *testing.T) {
	for _, kind := range redact.Kinds() {
		if rotate[kind] == "" {
			t.Errorf("nothing says where a %q is replaced", kind)
		}
	}
}
