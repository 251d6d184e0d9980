package routing_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/routing"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"
)

// confCase is one case of session behaviour; docs/keys.md names where the rules come from.
type confCase struct {
	ID, Area            string
	Given, When, Expect jsontext.Value
}

func allCases(t *testing.T) []confCase {
	t.Helper()
	raw := testkit.Must(os.ReadFile("testdata/sessions.json"))(t)
	var all []confCase
	testkit.Check(t, json.Unmarshal(raw, &all))
	return all
}

// conform runs the cases of an area, one subtest each.
func conform(t *testing.T, area string, run func(t *testing.T, c confCase)) {
	t.Helper()
	n := 0
	for _, c := range allCases(t) {
		if c.Area == area {
			n++
			t.Run(c.ID, func(t *testing.T) { run(t, c) })
		}
	}
	if n == 0 {
		t.Fatalf("no case of area %s", area)
	}
}

// into reads a part of a case and refuses members that the test does not know of.
func into[T any](t *testing.T, raw jsontext.Value) T {
	t.Helper()
	var v T
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

// expect compares what was got with the members that the case names.
func expect(t *testing.T, got map[string]any, want jsontext.Value) {
	t.Helper()
	raw := testkit.Must(json.Marshal(got))(t)
	var a, b map[string]any
	testkit.Check(t, errors.Join(json.Unmarshal(raw, &a), json.Unmarshal(want, &b)))
	for name := range a {
		if _, asked := b[name]; !asked && a["error"] == nil {
			delete(a, name)
		}
	}
	testkit.Equal(t, b, a)
}

// outcome returns either the result, or the case's word for the error.
func outcome(err error, result map[string]any) map[string]any {
	if err == nil {
		return result
	}
	var known *session.Error
	if !errors.As(err, &known) || known.Code != session.Invalid || len(known.Fields) != 1 {
		return map[string]any{"error": err.Error()}
	}
	words := map[string]string{
		"key": "invalid_key", "agent": "invalid_agent_id", "peer": "peer_id_required", "timezone": "invalid_zone",
		"identity_links": "ambiguous_identity_link", "label": "invalid_label",
		"reset.at_hour": "invalid_config", "reset.idle_minutes": "invalid_config",
	}
	return map[string]any{"error": words[known.Fields[0].Path]}
}

func TestKeysConformance(t *testing.T) {
	type given struct {
		AgentID       string              `json:"agent_id"`
		MainKey       string              `json:"main_key"`
		Scope         string              `json:"scope"`
		DMScope       string              `json:"dm_scope"`
		IdentityLinks map[string][]string `json:"identity_links"`
	}
	type when struct {
		Op, Key, Value, Kind, Channel, UUID, From, Provider string
		AgentID                                             string  `json:"agent_id"`
		AccountID                                           *string `json:"account_id"`
		PeerID                                              string  `json:"peer_id"`
		TopicID                                             string  `json:"topic_id"`
		BaseKey                                             string  `json:"base_key"`
		ThreadID                                            string  `json:"thread_id"`
		UseSuffix                                           bool    `json:"use_suffix"`
		JobID                                               string  `json:"job_id"`
		HookKey                                             *string `json:"hook_key"`
		ChatType                                            string  `json:"chat_type"`
	}
	conform(t, "keys", func(t *testing.T, c confCase) {
		g, w := into[given](t, c.Given), into[when](t, c.When)
		rules := routing.Config{
			Agent: g.AgentID, MainKey: g.MainKey, Scope: g.Scope, DMScope: g.DMScope,
			Links: g.IdentityLinks,
		}
		text := func(s *string) string {
			if s == nil {
				return ""
			}
			return *s
		}
		var err error
		got := map[string]any{}
		switch w.Op {
		case "parse":
			k, ok := routing.Parse(w.Key)
			got = map[string]any{"ok": ok, "agent_id": k.Agent, "rest": k.Rest}
		case "canonical":
			got["key"], err = rules.Canonical(w.Key)
		case "normalize_agent_id":
			got["value"], err = routing.NormalizeID(w.Value)
		case "build_dm":
			got["key"], err = rules.Direct(w.AgentID, w.Channel, text(w.AccountID), w.PeerID)
		case "build_peer":
			got["key"], err = rules.Peer(w.AgentID, w.Kind, w.Channel, w.PeerID, w.TopicID)
		case "build_thread":
			got["key"], got["parent_key"], err = rules.Thread(w.BaseKey, w.ThreadID, w.UseSuffix)
		case "build_cron":
			got["key"], err = rules.Job(w.AgentID, w.JobID)
		case "build_hook":
			got["key"], err = rules.Hook(w.AgentID, text(w.HookKey), w.UUID)
		case "from_inbound":
			got["key"], err = rules.Inbound(g.AgentID, w.From, w.Provider, w.ChatType)
		case "classify":
			class := routing.Classify(w.Key)
			got = map[string]any{"reset_type": class.Type, "source": class.Source}
		default:
			t.Fatalf("op %s", w.Op)
		}
		expect(t, outcome(err, got), c.Expect)
	})
}

func TestTriggerConformance(t *testing.T) {
	type given struct {
		Authorized      bool
		Triggers        []string
		ChatType        string   `json:"chat_type"`
		MentionPatterns []string `json:"mention_patterns"`
		BotUsername     *string  `json:"bot_username"`
		Models          struct {
			Default string
			Allowed []string
			Aliases map[string]string
		}
	}
	conform(t, "trigger", func(t *testing.T, c confCase) {
		g, w := into[given](t, c.Given), into[struct{ Text string }](t, c.When)
		rules := routing.Config{
			Triggers: g.Triggers, Mentions: g.MentionPatterns,
			Models: routing.Models{Allowed: g.Models.Allowed, Aliases: g.Models.Aliases},
		}
		if g.BotUsername != nil {
			rules.BotName = *g.BotUsername
		}
		got := rules.Triggered(routing.Message{Text: w.Text, Authorized: g.Authorized, InGroup: g.ChatType == "group"})
		result := map[string]any{"reset": got.Reset, "trigger": nil, "remainder": nil, "model": nil}
		if got.Reset {
			result["trigger"], result["remainder"] = got.Word, got.Remainder
		}
		if got.Model != "" {
			result["model"] = got.Model
		}
		expect(t, result, c.Expect)
	})
}

// confRule and confReset are reset settings under the original's names.
type confRule struct {
	Mode        routing.Mode
	AtHour      *int `json:"atHour"`
	IdleMinutes *int `json:"idleMinutes"`
}

type confReset struct {
	Reset          *confRule
	ResetByType    map[string]confRule `json:"resetByType"`
	ResetByChannel map[string]confRule `json:"resetByChannel"`
	IdleMinutes    *int                `json:"idleMinutes"`
}

func (c confReset) rules() routing.Reset {
	of := func(r confRule) routing.Rule {
		return routing.Rule{Mode: r.Mode, AtHour: r.AtHour, IdleMinutes: r.IdleMinutes}
	}
	out := routing.Reset{
		IdleMinutes: c.IdleMinutes, ByType: map[string]routing.Rule{},
		ByChannel: map[string]routing.Rule{},
	}
	if c.Reset != nil {
		base := of(*c.Reset)
		out.Base = &base
	}
	for name, r := range c.ResetByType {
		out.ByType[name] = of(r)
	}
	for name, r := range c.ResetByChannel {
		out.ByChannel[name] = of(r)
	}
	return out
}

func TestPolicyConformance(t *testing.T) {
	conform(t, "policy", func(t *testing.T, c confCase) {
		g := into[struct{ Config confReset }](t, c.Given)
		w := into[struct {
			Type    routing.Type
			Channel string
		}](t, c.When)
		rules := g.Config.rules()
		p := rules.Policy(w.Type, w.Channel)
		expect(t, outcome(rules.Check(), map[string]any{"mode": p.Mode, "at_hour": p.AtHour, "idle_minutes": p.IdleMinutes}),
			c.Expect)
	})
}

func TestBoundaryConformance(t *testing.T) {
	conform(t, "boundary", func(t *testing.T, c confCase) {
		g := into[struct {
			Zone   string
			AtHour int `json:"at_hour"`
		}](t, c.Given)
		w := into[struct{ Now time.Time }](t, c.When)
		zone, err := routing.LoadZone(g.Zone)
		if err != nil {
			expect(t, outcome(err, nil), c.Expect)
			return
		}
		expect(t, map[string]any{"boundary": routing.Boundary(w.Now, zone, g.AtHour).UTC()}, c.Expect)
	})
}

func TestFreshnessConformance(t *testing.T) {
	conform(t, "freshness", func(t *testing.T, c confCase) {
		g := into[struct {
			Zone   string
			Policy struct {
				Mode        routing.Mode
				AtHour      int  `json:"at_hour"`
				IdleMinutes *int `json:"idle_minutes"`
			}
			LastActivityAt time.Time  `json:"last_activity_at"`
			LastInboundAt  *time.Time `json:"last_inbound_at"`
		}](t, c.Given)
		w := into[struct{ Now time.Time }](t, c.When)
		zone := testkit.Must(routing.LoadZone(g.Zone))(t)
		inbound := g.LastActivityAt
		if g.LastInboundAt != nil {
			inbound = *g.LastInboundAt
		}
		p := routing.Policy{Mode: g.Policy.Mode, AtHour: g.Policy.AtHour, IdleMinutes: g.Policy.IdleMinutes}
		f := p.Fresh(w.Now, inbound, g.LastActivityAt, zone)
		result := map[string]any{"fresh": f.Fresh, "reason": nil, "boundary": f.Boundary, "idle_expires_at": f.IdleExpiresAt}
		if f.Reason != "" {
			result["reason"] = f.Reason
		}
		expect(t, result, c.Expect)
	})
}

func TestRecoveryConformance(t *testing.T) {
	conform(t, "recovery", func(t *testing.T, c confCase) {
		w := into[struct{ Op, Message string }](t, c.When)
		r := routing.Recover(w.Message)
		expect(t, map[string]any{"class": r.Class, "reset": r.Ends != ""}, c.Expect)
	})
}

func TestCarryConformance(t *testing.T) {
	conform(t, "carry", func(t *testing.T, c confCase) {
		g := into[struct{ Entry map[string]jsontext.Value }](t, c.Given)
		w := into[struct {
			Reason    routing.Reason
			ModelHint string `json:"model_hint"`
		}](t, c.When)
		want := into[struct {
			Kept, Cleared []string
			Set           map[string]jsontext.Value
		}](t, c.Expect)
		before := len(g.Entry)
		next := routing.Carry(g.Entry, w.ModelHint)
		for _, name := range want.Kept {
			if !bytes.Equal(next[name], g.Entry[name]) {
				t.Errorf("%s was %s and is %s", name, g.Entry[name], next[name])
			}
		}
		for name, value := range want.Set {
			if !bytes.Equal(next[name], value) {
				t.Errorf("%s is %s, not %s", name, next[name], value)
			}
		}
		for _, name := range want.Cleared {
			if v, there := next[name]; there {
				t.Errorf("%s is still there: %s", name, v)
			}
		}
		if len(g.Entry) != before {
			t.Error("the entry before was changed")
		}
	})
}

func TestSilentConformance(t *testing.T) {
	conform(t, "silent", func(t *testing.T, c confCase) {
		w := into[struct {
			Text  string
			Media bool
		}](t, c.When)
		outcome, text := routing.Reply(w.Text, w.Media)
		expect(t, map[string]any{"outcome": outcome, "text": text}, c.Expect)
	})
}

// areas says where the cases of each area run: the file, below this package's folder, that
// holds their test. The counters of areas usage and compaction need no store and stand beside
// their like.
func areas() map[string]string {
	const here, overHTTP, contexts = "conformance_test.go", "../web/api/conformance_test.go", "../contextmgr/flush_test.go"
	return map[string]string{
		"keys": here, "trigger": here, "policy": here, "boundary": here, "freshness": here, "recovery": here, "carry": here,
		"silent":   here,
		"activity": overHTTP, "routing": overHTTP, "usage": overHTTP, "listing": overHTTP,
		"flush": contexts, "compaction": contexts, "hygiene": "../contextmgr/hygiene_test.go",
	}
}

// leftOut are the areas whose cases no test runs, and why.
func leftOut() map[string]string {
	return map[string]string{
		"prune": "pruning of old tool outputs is the context manager's, " +
			"which goes by tokens and turns and has no rule that these cases are about",
		"silent_stream": "sessiond stores whole replies: no front end delivers one in pieces",
	}
}

// Every case is run by one test or left out for a reason that stands above.
func TestEveryCaseRunsOrHasAReason(t *testing.T) {
	run, left, ids := 0, 0, map[string]bool{}
	for _, c := range allCases(t) {
		ids[c.ID] = true
		switch {
		case areas()[c.Area] != "":
			run++
		case leftOut()[c.Area] != "":
			left++
		default:
			t.Errorf("%s: no test runs area %s", c.ID, c.Area)
		}
	}
	if run != 200 || left != 20 || len(ids) != 220 {
		t.Errorf("%d cases run, %d are left out, %d ids", run, left, len(ids))
	}
	for area, file := range areas() {
		source := testkit.Must(os.ReadFile(file))(t)
		if !bytes.Contains(source, []byte(`"`+area+`"`)) || !bytes.Contains(source, []byte("Conformance(t *testing.T)")) {
			t.Errorf("%s runs no cases of area %s", file, area)
		}
	}
}

func TestCasesEqualTheOriginals(t *testing.T) {
	original := testkit.Must(os.ReadFile(filepath.Join(samples.Conformance(t), "sessions.json")))(t)
	own := testkit.Must(os.ReadFile("testdata/sessions.json"))(t)
	if !bytes.Equal(original, own) {
		t.Error("testdata/sessions.json is not the original")
	}
}
