package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sessiond/internal/find"
	"sessiond/internal/mcp"
	"sessiond/internal/picker"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/web/api"
	"sessiond/internal/web/guard"
	"sessiond/internal/web/pages"

	protocol "github.com/modelcontextprotocol/go-sdk/mcp"
)

// frontEnds are the ways to ask for sessions, on one database.
type frontEnds struct {
	*shop
	app *app
	api http.Handler
	web *pages.Pages
	mcp *mcp.Server
	out bytes.Buffer
}

func newFrontEnds(h *shop) *frontEnds {
	f := &frontEnds{shop: h}
	f.app = &app{env: &env{out: &f.out, err: &f.out, environ: h.environ(), now: time.Now, dir: h.home}}
	f.app.flags.db = h.db
	s := testkit.Must(f.app.wire(h.Context(), wiring{readOnly: true}))(h)
	h.Cleanup(func() { testkit.Check(h, s.close()) })
	routes := f.app.cfg.Rules()
	f.api = api.New(api.Deps{
		Store: s.store, Search: s.index, Contexts: s.contexts, Catalogue: s.catalogue, Now: time.Now,
		Log: zerolog.Nop(),
	})
	f.web = pages.New(pages.Config{
		Store: s.store, Search: s.index, Contexts: s.contexts, Models: s.catalogue.Model, Key: routes.Canonical,
		Guard: guard.New(guard.Options{}),
		API:   f.api, Now: time.Now, Zone: time.UTC, Log: zerolog.Nop(), Alarm: func(context.Context) string { return "" },
	})
	f.mcp = mcp.New(mcp.Config{
		Folder: h.home, Now: time.Now, Log: zerolog.Nop(),
		Open: func(context.Context) (mcp.Database, error) {
			return mcp.Database{Store: s.store, Index: s.index, Close: func() error { return nil }}, nil
		},
	})
	return f
}

var idForm = regexp.MustCompile(`\b[0-9]{8}_[0-9]{3}\b`)

// idsIn returns the sessions that an answer names.
func idsIn(answer string) []string {
	ids := idForm.FindAllString(answer, -1)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// run runs a command and returns what it prints.
func (f *frontEnds) run(args ...string) string {
	f.Helper()
	var out, problems bytes.Buffer
	e := *f.app.env
	e.out, e.err = &out, &problems
	run(f.Context(), args, &e)
	return out.String() + problems.String()
}

func (f *frontEnds) get(from http.Handler, path string, q url.Values) string {
	w := httptest.NewRecorder()
	from.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path+"?"+q.Encode(), nil))
	if to := w.Header().Get("Location"); w.Code == http.StatusSeeOther { // the page's own form has empty fields
		w = httptest.NewRecorder()
		from.ServeHTTP(w, httptest.NewRequest(http.MethodGet, to, nil))
	}
	return w.Body.String()
}

// asked is what a request names: filters, and in those that a query's text can have.
type asked struct {
	name, value string
	inText      string // the same in the text of a query; "": the text has no such filter
	want        []session.ID
}

// Every filter of find.Filters finds the same through each front end that has it.
func TestEachFilterFindsTheSameThroughEveryFrontEnd(t *testing.T) {
	h := newShop(t)
	yes := true
	in := func(dir string) string { return filepath.Join(h.home, dir) }
	bank := h.talk(store.NewSession{
		Title: "bank", Source: session.SourceClaudeCode, SourceID: "claude-1", Directory: in("bank"),
		Model: "claude-opus-4-6", Key: "agent:bot:bank",
	}, time.Hour, "money", "money")
	garden := h.talk(store.NewSession{Title: "garden", Directory: in("garden"), Model: "gpt-5", GitBranch: "spring"},
		30*24*time.Hour, "money")
	helper := h.talk(store.NewSession{Title: "helper", Directory: in("bank"), ParentID: bank, Kind: "subagent"}, time.Hour,
		"money")
	h.change(func(s *store.Store) {
		testkit.Must(s.PatchSession(t.Context(), garden, store.SessionPatch{Starred: &yes}))(t)
		testkit.Must(s.PatchSession(t.Context(), helper, store.SessionPatch{Archived: &yes}))(t)
		testkit.Must(s.ChangeTags(t.Context(), store.Marking{Session: garden}, []string{"release"}, nil))(t)
		first := session.MessageRef{Session: bank, Seq: 1}
		testkit.Must(s.ChangeTags(t.Context(), store.Marking{Session: bank, Message: &first}, []string{"seed"}, nil))(t)
	})
	var began session.Time
	h.change(func(s *store.Store) {
		began = testkit.Must(s.Session(t.Context(), garden))(t).CreatedAt
		testkit.Must(s.Append(t.Context(), store.Append{Session: helper, Messages: []session.Message{{
			Kind: session.KindMessage, Role: session.Assistant, Origin: session.Model, InContext: true, Display: true,
			Finish: session.FinishError, Parts: []session.Part{session.TextPart("overloaded")},
		}}}))(t)
	})
	key := ""
	h.change(func(s *store.Store) { key = testkit.Must(s.Session(t.Context(), bank))(t).Key })
	f := newFrontEnds(h)
	all := []session.ID{bank, garden, helper}
	cases := []asked{
		{"source", "claude", "source:claude", []session.ID{bank}},
		{"source", "sessiond", "source:sessiond", []session.ID{garden, helper}},
		{"project", in("bank"), "project:" + in("bank"), []session.ID{bank, helper}},
		{"project", "gard", "project:gard", []session.ID{garden}},
		{"model", "OPUS", "", []session.ID{bank}},
		{"directory", in("garden"), "", []session.ID{garden}},
		{"directory", "gard", "", []session.ID{garden}},
		{"session", string(bank), "session:" + string(bank), []session.ID{bank}},
		{"session", "claude-1", "session:claude-1", []session.ID{bank}},
		{"key", key, "key:" + key, []session.ID{bank}},
		{"role", "assistant", "role:assistant", []session.ID{bank}},
		{"owner", "nobody", "", nil},
		{"host", "pier", "", all},
		{"parent", string(bank), "", []session.ID{helper}},
		{"children", string(bank), "", []session.ID{helper}},
		{"forks", string(bank), "", nil},
		{"since", "7d", "after:7d", []session.ID{bank, helper}},
		{"until", "7d", "before:7d", []session.ID{garden}},
		{"tag", "Release", "", []session.ID{garden}},
		{"tag", "seed", "", []session.ID{bank}}, // of a message
		{"on", began.In(time.Local).Format("2006-01-02T15:04"), "", []session.ID{garden}},
		{"branch", "Spring", "", []session.ID{garden}},
		{"errors", "true", "", []session.ID{helper}},
		{"starred", "true", "", []session.ID{garden}},
		{"archived", "true", "", []session.ID{helper}},
		{"trash", "true", "", nil},
	}
	for _, filter := range find.Filters {
		if !slices.ContainsFunc(cases, func(c asked) bool { return c.name == filter.Name }) {
			t.Errorf("filter %s has no case here", filter.Name)
		}
	}
	for _, c := range cases {
		t.Run(c.name+" "+filepath.Base(c.value), func(t *testing.T) {
			at := slices.IndexFunc(find.Filters, func(f find.Filter) bool { return f.Name == c.name })
			uses, flag := find.Filters[at].Uses, "--"+c.name+"="+c.value
			want := idsOf(c.want)
			same := func(by, answer string) {
				t.Helper()
				if got := idsIn(answer); !slices.Equal(got, want) {
					t.Errorf("%s: %v, want %v\n%.600s", by, got, want, answer)
				}
			}
			if uses&find.Searches != 0 {
				same("search", onlyTitles(f.run("search", "money", flag), "sessiond resume"))
				same("search --json", f.run("search", "money", flag, "--json"))
				q := url.Values{"q": {"money"}, "group": {"session"}, c.name: {c.value}}
				same("GET /v1/search", f.get(f.api, "/v1/search", q))
				page := f.get(f.web.Before(http.NotFoundHandler()), "/", url.Values{"q": {"money"}, c.name: {c.value}})
				same("the page's search", hrefsOf(page))
			}
			if uses&find.Lists != 0 {
				listed := want
				if c.name != "archived" {
					listed = slices.DeleteFunc(slices.Clone(want), func(id string) bool { return id == string(helper) })
				}
				want = listed
				same("ls", onlyTitles(f.run("ls", "--all", flag), "No session matches"))
				same("ls --json", idsOfJSON(f.run("ls", "--all", "--json", flag)))
				same("GET /v1/sessions", idsOfJSON(f.get(f.api, "/v1/sessions", url.Values{c.name: {c.value}})))
				same("the page's list", hrefsOf(f.get(f.web.Before(http.NotFoundHandler()), "/",
					url.Values{"all": {"1"}, c.name: {c.value}})))
				want = idsOf(c.want)
			}
			if c.inText != "" {
				same("search with the filter in its text", onlyTitles(f.run("search", "money "+c.inText), "sessiond resume"))
				same("the tool search", f.tool(t, "money "+c.inText))
				found := testkit.Must(newPickerData(f.app, &opened{
					store: f.data("garden").store, index: f.data("garden").index, catalogue: f.data("garden").catalogue,
				}).Search(t.Context(), picker.Scope{SubAgents: true}, "money "+c.inText))(t)
				var ids []session.ID
				for _, row := range found.Rows {
					ids = append(ids, row.ID)
				}
				want = slices.DeleteFunc(want, func(id string) bool { return id == string(helper) }) // archived
				same("the picker", strings.Join(idsOf(ids), " "))
			}
		})
	}
	// An unknown name is refused in the same words.
	const words = `no session matches project "nowhere"; projects: `
	for by, answer := range map[string]string{
		"ls": f.run("ls", "--project", "nowhere"), "search": f.run("search", "money", "--project", "nowhere"),
		"search --json":    f.run("search", "money", "--project", "nowhere", "--json"),
		"GET /v1/sessions": f.get(f.api, "/v1/sessions", url.Values{"project": {"nowhere"}}),
		"GET /v1/search":   f.get(f.api, "/v1/search", url.Values{"q": {"money"}, "project": {"nowhere"}}),
		"the page": f.get(f.web.Before(http.NotFoundHandler()), "/",
			url.Values{"q": {"money"}, "project": {"nowhere"}}),
	} {
		answer = strings.NewReplacer(`\"`, `"`, "&#34;", `"`, "No session", "no session").Replace(answer)
		if !strings.Contains(answer, words) {
			t.Errorf("%s: %.800s", by, answer)
		}
	}
}

func idsOf(ids []session.ID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	slices.Sort(out)
	return out
}

// onlyTitles drops the lines with a text.
func onlyTitles(answer, text string) string {
	lines := strings.Split(answer, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool {
		return strings.Contains(line, text) || strings.Contains(line, "other filters")
	}), "\n")
}

var idField = regexp.MustCompile(`"id": ?"([0-9_]+)"`)

// idsOfJSON returns the ids of a list: other fields name other sessions.
func idsOfJSON(answer string) string {
	var ids []string
	for _, m := range idField.FindAllStringSubmatch(answer, -1) {
		ids = append(ids, m[1])
	}
	return strings.Join(ids, " ")
}

var hrefToSession = regexp.MustCompile(`href="/s/([0-9_]+)`)

// hrefsOf returns the sessions to which a page has links.
func hrefsOf(page string) string {
	var ids []string
	for _, m := range hrefToSession.FindAllStringSubmatch(page, -1) {
		ids = append(ids, m[1])
	}
	return strings.Join(ids, " ")
}

// tool returns the sessions that the tool search lists.
func (f *frontEnds) tool(t *testing.T, query string) string {
	t.Helper()
	server := httptest.NewServer(f.mcp.Handler())
	defer server.Close()
	text, failed := searches(t, &protocol.StreamableClientTransport{Endpoint: server.URL},
		map[string]any{"query": query, "scope": "all"})
	if failed {
		t.Errorf("%s: %s", query, text)
	}
	return text
}

// A program is a line in session.Programs, a folder under internal/history, and a reader in sources().
func TestEveryProgramHasItsLines(t *testing.T) {
	a := &app{env: &env{environ: []string{"HOME=" + t.TempDir()}, now: time.Now}}
	readers := map[string]bool{}
	for _, src := range a.sources() {
		readers[string(src.Name())] = true
		if !slices.Contains(session.ProgramNames(), string(src.Name())) {
			t.Errorf("%s has a reader and no line in session.Programs", src.Name())
		}
	}
	read := string(testkit.Must(os.ReadFile("import.go"))(t))
	for _, folder := range testkit.Must(os.ReadDir("../../internal/history"))(t) {
		if path := `"sessiond/internal/history/` + folder.Name() + `"`; folder.IsDir() && folder.Name() != "testdata" &&
			!strings.Contains(read, path) {
			t.Errorf("internal/history/%s is not in the list of readers in import.go", folder.Name())
		}
	}
	imports := testkit.Must(os.ReadFile("../../docs/import.md"))(t)
	schema := testkit.Must(os.ReadFile("../../docs/schema.md"))(t)
	for _, p := range session.Programs {
		if p.Name != session.SourceSessiond && !bytes.Contains(imports, []byte(p.Title)) &&
			!bytes.Contains(imports, []byte(p.Name)) {
			t.Errorf("docs/import.md does not name %s", p.Title)
		}
		if !bytes.Contains(schema, []byte(p.Name)) {
			t.Errorf("docs/schema.md does not name %s", p.Name)
		}
		if !readers[string(p.Name)] {
			t.Errorf("%s has a line in session.Programs and no reader in import.go", p.Name)
		}
		for _, text := range append([]string{string(p.Name), p.Title}, p.Aliases...) {
			if named, ok := session.ProgramNamed(text); !ok || named.Name != p.Name {
				t.Errorf("%q names %q, not %s", text, named.Name, p.Name)
			}
		}
	}
}
