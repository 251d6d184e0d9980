package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/config"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// input returns an Input whose folders are the test's own, with a file if text is not "".
func input(t *testing.T, text string) config.Input {
	t.Helper()
	root := t.TempDir()
	in := config.Input{Dirs: config.Dirs{
		Config: filepath.Join(root, "config"), Data: filepath.Join(root, "data"),
		Runtime: filepath.Join(root, "run"),
	}}
	if text != "" {
		folder := filepath.Join(in.Dirs.Config, "sessiond")
		testkit.Check(t, os.MkdirAll(folder, 0o700))
		testkit.Check(t, os.WriteFile(filepath.Join(folder, "config.yaml"), []byte(text), 0o600))
	}
	return in
}

func load(t *testing.T, in config.Input) *config.Config {
	t.Helper()
	return testkit.Must(config.Load(in))(t)
}

func origin(t *testing.T, c *config.Config, key string) string {
	t.Helper()
	for _, v := range c.Values() {
		if v.Key == key {
			return v.Origin
		}
	}
	t.Fatalf("no setting %q among the values", key)
	return ""
}

func TestDefaultsNeedNoFile(t *testing.T) {
	in := input(t, "")
	c := load(t, in)
	if want := filepath.Join(in.Dirs.Data, "sessiond", "sessions.db"); c.DB != want {
		t.Errorf("DB = %q, want %q", c.DB, want)
	}
	if want := filepath.Join(in.Dirs.Data, "sessiond", "token"); c.TokenFile != want {
		t.Errorf("TokenFile = %q, want %q", c.TokenFile, want)
	}
	if want := filepath.Join(in.Dirs.Data, "sessiond", "sessiond.sock"); c.Socket != want {
		t.Errorf("without a runtime folder Socket = %q, want %q", c.Socket, want)
	}
	if want := filepath.Join(in.Dirs.Config, "sessiond", "models.json"); c.Models() != want {
		t.Errorf("Models = %q, want %q", c.Models(), want)
	}
	if c.Listen != "127.0.0.1:7433" || c.Summarizer.Provider != "extractive" || c.Summarizer.Timeout != time.Minute ||
		*c.Compaction.Preset != "balanced" || c.Compaction.Fraction != nil || c.Reset.AtHour != 4 || !c.Import.Follow ||
		c.Backup.Keep != 7 || c.Scrub.AtHour != nil || !c.Flush.Enabled || c.Log.Level != "info" {
		t.Errorf("defaults are wrong: %+v", c)
	}
	if got := origin(t, c, "listen"); got != "default" {
		t.Errorf("origin of listen = %q", got)
	}
	if _, read := c.File(); read {
		t.Error("a file was read where there is none")
	}
}

func TestSocketIsInTheRuntimeFolder(t *testing.T) {
	in := input(t, "")
	testkit.Check(t, os.MkdirAll(in.Dirs.Runtime, 0o700))
	if c := load(t, in); c.Socket != filepath.Join(in.Dirs.Runtime, "sessiond.sock") {
		t.Errorf("Socket = %q", c.Socket)
	}
}

func TestLaterLayersOverride(t *testing.T) {
	in := input(t,
		"listen: 127.0.0.1:1\nlog: { level: debug }\ncompaction: { preset: pi, fraction: 0.5, protected_tools: [a, b] }\n"+
			"summarizer:\n  timeout: 5s\n")
	in.Environ = []string{
		"HOME=/x", "SESSIOND_LISTEN=127.0.0.1:2", "SESSIOND_COMPACTION_KEEP_RECENT_MESSAGES=9",
		"SESSIOND_SUMMARIZER_BASE_URL=http://127.0.0.1:9/v1", "SESSIOND_SCRUB_AT_HOUR=3",
	}
	in.Flags = map[string]any{"listen": "127.0.0.1:3"}
	c := load(t, in)
	if c.Listen != "127.0.0.1:3" || c.Log.Level != "debug" || c.Summarizer.Timeout != 5*time.Second ||
		c.Summarizer.BaseURL != "http://127.0.0.1:9/v1" {
		t.Errorf("layers are merged wrongly: %+v", c)
	}
	if *c.Compaction.Preset != "pi" || *c.Compaction.Fraction != 0.5 || *c.Compaction.KeepRecentMessages != 9 ||
		strings.Join(*c.Compaction.ProtectedTools, " ") != "a b" || c.Compaction.ReserveTokens != nil ||
		*c.Scrub.AtHour != 3 {
		t.Errorf("compaction = %+v", c.Compaction)
	}
	path, _ := c.File()
	for key, want := range map[string]string{
		"listen":                          "flag --listen",
		"compaction.keep_recent_messages": "environment SESSIOND_COMPACTION_KEEP_RECENT_MESSAGES",
		"compaction.fraction":             "file " + path,
		"compaction.reserve_tokens":       "default",
	} {
		if got := origin(t, c, key); got != want {
			t.Errorf("origin of %s = %q, want %q", key, got, want)
		}
	}
}

func TestEverySettingOfCompactionHasAKey(t *testing.T) {
	in := input(t, "")
	in.Environ = []string{
		"SESSIOND_COMPACTION_PRESET=pi", "SESSIOND_COMPACTION_STRATEGY=summarize",
		"SESSIOND_COMPACTION_INSTRUCTIONS=keep names", "SESSIOND_COMPACTION_SUMMARIZER=",
		"SESSIOND_COMPACTION_PROTECTED_TOOLS=read",
	}
	for _, v := range load(t, in).Values() {
		name := config.EnvName(v.Key)
		if strings.HasPrefix(v.Key, "compaction.") && !slices.ContainsFunc(in.Environ, func(pair string) bool {
			return strings.HasPrefix(pair, name+"=")
		}) {
			in.Environ = append(in.Environ, name+"=1")
		}
	}
	settings := reflect.ValueOf(load(t, in).Compaction)
	for i := range settings.NumField() {
		if settings.Field(i).IsNil() {
			t.Errorf("no key sets %s", settings.Type().Field(i).Name)
		}
	}
}

func TestNamedSummarizersTakeTheDefaultsTimeout(t *testing.T) {
	in := input(t,
		"summarizer: { timeout: 5s }\nsummarizers:\n  careful: { provider: gemini, model: big }\n  none: {}\n"+
			"compaction: { summarizer: careful }\n")
	in.Environ = []string{"SESSIOND_SUMMARIZER_PROVIDER="} // as a container's environment has it
	want := map[string]config.Summarizer{
		"":        {Provider: "extractive", Timeout: 5 * time.Second},
		"careful": {Provider: "gemini", Model: "big", Timeout: 5 * time.Second},
		"none":    {Provider: "extractive", Timeout: 5 * time.Second},
	}
	if got := load(t, in).AllSummarizers(); !reflect.DeepEqual(got, want) {
		t.Errorf("summarizers = %+v", got)
	}
}

func TestEmptySectionsKeepTheirDefaults(t *testing.T) {
	c := load(t, input(t, "compaction:\nretention: {}\nreset: {}\nlog: {}\n"))
	if *c.Compaction.Preset != "balanced" || c.Reset.Mode != "daily" || c.Log.Format != "auto" {
		t.Errorf("an empty section wiped out defaults: %+v", c)
	}
}

func TestFreeFormSectionsKeepTheirOwnNames(t *testing.T) {
	c := load(t, input(t, "reset:\n  by_type:\n    group: { mode: idle, idle_minutes: 30 }\n"))
	if _, ok := c.Reset.ByType["group"]; !ok {
		t.Errorf("by_type = %v", c.Reset.ByType)
	}
}

func TestUnknownVariableIsAWarning(t *testing.T) {
	in := input(t, "")
	in.Environ = []string{"SESSIOND_PORT=tcp://10.0.0.1:7433"}
	c := load(t, in)
	if len(c.Warnings()) != 1 || !strings.Contains(c.Warnings()[0], "SESSIOND_PORT") {
		t.Errorf("warnings = %q", c.Warnings())
	}
}

func TestVariablesOfTheCommandsAreNoWarning(t *testing.T) {
	in := input(t, "")
	in.Environ = []string{"SESSIOND_PAGER=less -R"}
	testkit.Equal(t, 0, len(load(t, in).Warnings()))
}

func TestNamedFileMustExist(t *testing.T) {
	in := input(t, "")
	in.Environ = []string{"SESSIOND_CONFIG=" + filepath.Join(t.TempDir(), "none.yaml")}
	if _, err := config.Load(in); session.CodeOf(err) != session.Invalid || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("err = %v", err)
	}
}

func TestInvalidSettingsAreRejected(t *testing.T) {
	for _, tc := range []struct {
		name, file string
		environ    string
		flags      map[string]any
		says       []string
	}{
		{name: "no YAML", file: "listen: [", says: []string{"config.yaml", "not valid YAML"}},
		{name: "unknown key", file: "lisen: x", says: []string{"config.yaml", `"lisen"`, `"listen"`}},
		{
			name: "another program's name", file: "compaction: { threshold: 0.7 }",
			says: []string{`"compaction.threshold"`, `"compaction.fraction"`},
		},
		{name: "unknown key in a section", file: "summarizer: { base_ulr: x }", says: []string{`"summarizer.base_url"`}},
		{name: "key outside its section", file: "base_url: x", says: []string{`"summarizer.base_url"`}},
		{name: "value for a section", file: "compaction: balanced", says: []string{`"compaction"`}},
		{name: "unknown flag", flags: map[string]any{"lissten": "x"}, says: []string{"a flag", `"listen"`}},
		{name: "listen without port", file: "listen: localhost", says: []string{"listen", "host:port", "config.yaml"}},
		{
			name: "listen with a wild port", environ: "SESSIOND_LISTEN=127.0.0.1:99999",
			says: []string{"0 to 65535", "environment SESSIOND_LISTEN"},
		},
		{name: "relative socket", file: "socket: here", says: []string{"socket", "absolute"}},
		{
			name: "relative project", environ: "SESSIOND_EXCLUDE_PROJECTS=/a,b",
			says: []string{"exclude_projects", `"b"`, "absolute"},
		},
		{name: "SQL on a file", file: "sql_db: /tmp/sessions.db", says: []string{"sql_db", "address of PostgreSQL"}},
		{name: "unknown zone", file: "timezone: Mars/Base", says: []string{"timezone", "Mars/Base"}},
		{
			name: "fraction over 1", file: "compaction: { fraction: 1.2 }",
			says: []string{"compaction.fraction", "between 0 and 1"},
		},
		{
			name: "fraction under 0", environ: "SESSIOND_COMPACTION_FRACTION=-0.1",
			says: []string{"compaction.fraction", "SESSIOND_COMPACTION_FRACTION"},
		},
		{name: "fraction is no number", file: "compaction: { fraction: much }", says: []string{"compaction.fraction"}},
		{name: "fraction is NaN", file: "compaction: { fraction: .nan }", says: []string{"compaction.fraction"}},
		{name: "unknown preset", file: "compaction: { preset: lazy }", says: []string{"compaction.preset", "balanced"}},
		{
			name: "unknown strategy", file: "compaction: { strategy: drop }",
			says: []string{"compaction.strategy", "summarize"},
		},
		{
			name: "negative tokens", file: "compaction: { keep_recent_tokens: -1 }",
			says: []string{"compaction.keep_recent_tokens"},
		},
		{
			name: "unknown provider", file: "summarizer: { provider: magic }",
			says: []string{"summarizer.provider", "extractive"},
		},
		{
			name: "unknown provider of a name", file: "summarizers: { careful: { provider: magic } }",
			says: []string{"summarizers.careful.provider", "extractive"},
		},
		{
			name: "unknown key of a name", file: "summarizers: { careful: { adress: x } }",
			says: []string{"summarizers", "adress"},
		},
		{
			name: "name without a summarizer", file: "compaction: { summarizer: careful }",
			says: []string{"compaction.summarizer", "careful"},
		},
		{name: "zero timeout", file: "summarizer: { timeout: 0s }", says: []string{"summarizer.timeout"}},
		{name: "no duration", file: "summarizer: { timeout: soon }", says: []string{"summarizer.timeout", "config.yaml"}},
		{name: "odd base url", file: "summarizer: { base_url: 'ftp://x' }", says: []string{"summarizer.base_url"}},
		{name: "hour out of range", file: "reset: { at_hour: 24 }", says: []string{"reset.at_hour", "0 to 23"}},
		{name: "scrub hour out of range", file: "scrub: { at_hour: -1 }", says: []string{"scrub.at_hour"}},
		{name: "no backup kept", file: "backup: { keep: 0 }", says: []string{"backup.keep"}},
		{name: "unknown retention", file: "retention: { days: 3 }", says: []string{"retention.days", "retention.idle_days"}},
		{
			name: "negative retention", file: "retention: { trash_days: -3 }",
			says: []string{"retention.trash_days", "0 for never"},
		},
		{
			name: "retention hour out of range", file: "retention: { at_hour: 25 }",
			says: []string{"retention.at_hour", "0 to 23"},
		},
		{name: "no sum of money", file: "budget: { month: .inf }", says: []string{"budget.month", "US dollars"}},
		{name: "no number", file: "budget: { month: .nan }", says: []string{"budget.month", "US dollars"}},
		{name: "no sum of a project", file: "budget: { project: { web: .nan } }", says: []string{"web", "above 0"}},
		{name: "project without a name", file: "budget: { project: { '': 5 } }", says: []string{"without a name"}},
		{name: "words for a sum", file: "budget: { month: lots }", says: []string{"budget.month", `"lots" is no number`}},
		{
			name: "no collector", file: "otlp: { endpoint: 'localhost:4318' }",
			says: []string{"otlp.endpoint", "http://127.0.0.1:4318"},
		},
		{
			name: "some content", file: "otlp: { endpoint: 'http://127.0.0.1:4318', content: some }",
			says: []string{"otlp.content", "on or off"},
		},
		{name: "value of a group", file: "budget: 200", says: []string{"one of its settings, budget.month"}},
		{name: "log level", file: "log: { level: loud }", says: []string{"log.level", "debug"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := input(t, tc.file)
			in.Flags = tc.flags
			if tc.environ != "" {
				in.Environ = []string{tc.environ}
			}
			_, err := config.Load(in)
			if session.CodeOf(err) != session.Invalid {
				t.Fatalf("err = %v, want code invalid", err)
			}
			for _, part := range tc.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:7433": true, "[::1]:0": true, "localhost:1": true, "127.9.9.9:1": true,
		"0.0.0.0:7433": false, ":7433": false, "192.168.0.2:1": false, "example.com:1": false, "": false,
	} {
		if got := config.Loopback(address); got != want {
			t.Errorf("Loopback(%q) = %v", address, got)
		}
	}
}

// Every key is reachable by its variable, and no two keys share one.
func TestEachVariableHasOneKey(t *testing.T) {
	seen := map[string]string{}
	for _, v := range load(t, input(t, "")).Values() {
		name := config.EnvName(v.Key)
		if other := seen[name]; other != "" {
			t.Errorf("%s means both %s and %s", name, other, v.Key)
		}
		seen[name] = v.Key
	}
	if len(seen) < 30 {
		t.Errorf("only %d settings", len(seen))
	}
}

func TestAPasswordOfTheWebhookIsNotPrinted(t *testing.T) {
	c := load(t, input(t, "budget: { month: 5, webhook: 'https://me:geheim@example.com/notices' }"))
	for _, v := range c.Values() {
		if v.Key == "budget.webhook" && v.Value != "https://me:xxxxx@example.com/notices" {
			t.Errorf("%v", v.Value)
		}
	}
	if !strings.Contains(c.Budget.Webhook, "geheim") {
		t.Error("the daemon needs the password")
	}
}

// YAML's off and on are words here, as in otlp: {endpoint: …, content: off}.
func TestCollectorOfSpans(t *testing.T) {
	for _, content := range []string{"off", "on"} {
		c := load(t, input(t, "otlp: { endpoint: 'https://me:geheim@example.com', content: "+content+" }"))
		if c.OTLP.Content != content {
			t.Errorf("content is %q, not %s", c.OTLP.Content, content)
		}
		for _, v := range c.Values() {
			if v.Key == "otlp.endpoint" && v.Value != "https://me:xxxxx@example.com" {
				t.Errorf("the endpoint is printed as %v", v.Value)
			}
		}
	}
	if c := load(t, input(t, "")); c.OTLP.Endpoint != "" || c.OTLP.Content != "off" {
		t.Errorf("without a setting it is %+v", c.OTLP)
	}
}
