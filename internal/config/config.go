// Package config loads sessiond's settings. A later layer overrides an earlier one: defaults, the file,
// the SESSIOND_* environment, flags. `sessiond config` prints the origin of each value.
package config

import (
	"maps"
	"path/filepath"
	"time"

	"sessiond/internal/analytics"
	"sessiond/internal/contextmgr"
	"sessiond/internal/engine"
	"sessiond/internal/routing"
)

// Config is the checked configuration with all defaults: no path is empty.
type Config struct {
	DB string `koanf:"db"` // the database file, or postgres://…
	// of a database on PostgreSQL: its address for callers' SQL, of a role that can only read
	SQLDB     string   `koanf:"sql_db"`
	Listen    string   `koanf:"listen"`     // host:port; "" turns TCP off
	Hosts     []string `koanf:"hosts"`      // names that a request's Host may have, beside loopback and addresses
	Socket    string   `koanf:"socket"`     // path of the Unix socket; "off" turns it off
	TokenFile string   `koanf:"token_file"` // 0600, created on first start
	Timezone  string   `koanf:"timezone"`   // for ids, day boundaries and resets

	Owner string `koanf:"owner"` // of new sessions, where no named token says it
	Host  string `koanf:"host"`  // name of this host in sessions and imports; "": the system's

	ExcludeProjects []string `koanf:"exclude_projects"` // folders that tools and hooks show to no agent

	Summarizer Summarizer `koanf:"summarizer"`
	// others, which compaction.summarizer, a session or a preset of the same name choose
	Summarizers map[string]Summarizer `koanf:"summarizers"`
	Compaction  contextmgr.Settings   `koanf:"compaction"` // nil is "as the preset says"
	Reset       Reset                 `koanf:"reset"`
	Routing     Routing               `koanf:"routing"`
	Retention   Retention             `koanf:"retention"`
	Import      Import                `koanf:"import"`
	Backup      Backup                `koanf:"backup"`
	Scrub       Scrub                 `koanf:"scrub"`
	Flush       Flush                 `koanf:"flush"`
	Budget      Budget                `koanf:"budget"`
	OTLP        OTLP                  `koanf:"otlp"`
	Log         Log                   `koanf:"log"`

	data     string // sessiond's folder of this user
	file     string // path, also of a missing file
	fileRead bool
	warnings []string
	values   []Value
	zone     *time.Location
	rules    routing.Config
}

// Summarizer configures the summariser. Its API key is no setting: it comes from a file that only its
// owner can read, or from the environment.
type Summarizer struct {
	Provider   string        `koanf:"provider"` // extractive, gemini, openai
	Model      string        `koanf:"model"`    // "": the provider's default
	BaseURL    string        `koanf:"base_url"` // "": the provider's own
	APIKeyFile string        `koanf:"api_key_file"`
	Timeout    time.Duration `koanf:"timeout"`
}

// AllSummarizers returns the summarizers by name; "" is the default one.
func (c *Config) AllSummarizers() map[string]Summarizer {
	all := map[string]Summarizer{"": c.Summarizer}
	maps.Copy(all, c.Summarizers)
	return all
}

// Retention configures removal by age, in days; 0: never. The daemon checks once a day, at AtHour.
type Retention struct {
	IdleDays   int `koanf:"idle_days"`   // after this time without activity: to the trash, unless archived
	TrashDays  int `koanf:"trash_days"`  // after this time in the trash: purged
	EventsDays int `koanf:"events_days"` // events, which contain no text of messages
	AtHour     int `koanf:"at_hour"`     // local hour, 0 to 23
}

// Import configures imported sources.
type Import struct {
	Follow bool `koanf:"follow"` // the daemon keeps them up to date
}

// Backup configures the daemon's own backups.
type Backup struct {
	Every time.Duration `koanf:"every"` // 0: never
	Keep  int           `koanf:"keep"`
}

// Scrub configures the local hour at which purged bytes are scrubbed; nil: only on demand.
type Scrub struct {
	AtHour *int `koanf:"at_hour"`
}

// Flush configures the memory flush before a compaction.
type Flush struct {
	Enabled      bool   `koanf:"enabled"`
	Prompt       string `koanf:"prompt"`        // of the user's role; "": the default text
	SystemPrompt string `koanf:"system_prompt"` // "": the default text
	SoftTokens   *int64 `koanf:"soft_tokens"`   // distance below the threshold; nil: the preset's
}

// FlushSettings returns the settings of Flush for the context manager.
func (c *Config) FlushSettings() contextmgr.FlushSettings {
	f := c.Flush
	return contextmgr.FlushSettings{
		Enabled: f.Enabled, Prompt: f.Prompt, SystemPrompt: f.SystemPrompt,
		SoftTokens: f.SoftTokens, Zone: c.zone,
	}
}

// Budget is what models may cost in a calendar month, in US dollars. It is shown, and limits nothing.
type Budget struct {
	Month   float64            `koanf:"month"`   // of all projects; 0: none
	Project map[string]float64 `koanf:"project"` // by its path, its name in lists, or the end of its path
	Webhook string             `koanf:"webhook"` // gets a POST at 80 and at 100 %, once each a month; "": off
}

// Limits returns the budget as reports compare it.
func (b *Budget) Limits() analytics.Budget {
	return analytics.Budget{Month: b.Month, Projects: b.Project}
}

// OTLP names a collector of OpenTelemetry that gets spans of calls, tools and compactions.
type OTLP struct {
	Endpoint string `koanf:"endpoint"` // "": off
	Content  string `koanf:"content"`  // on: with texts, arguments and results; off
}

// Log configures the daemon's log on standard error.
type Log struct {
	Level  string `koanf:"level"`  // debug, info, warn, error
	Format string `koanf:"format"` // auto, console, json
}

// SocketOff is the value of Socket that turns the Unix socket off.
const SocketOff = "off"

// File returns the path of the configuration file and whether it was read.
func (c *Config) File() (path string, read bool) { return c.file, c.fileRead }

// Models returns the path of the user's overrides of the model catalogue, beside the file. The
// overrides may be missing; "" where no folder of configurations is known.
func (c *Config) Models() string {
	if c.file == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(c.file), "models.json")
}

// Warnings returns problems that do not stop the daemon.
func (c *Config) Warnings() []string { return c.warnings }

// Zone returns the location of Timezone.
func (c *Config) Zone() *time.Location { return c.zone }

// Value is one setting as `sessiond config` prints it.
type Value struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin string `json:"origin"` // default, file PATH, environment NAME, flag --NAME
}

// Values returns all settings, sorted by key.
func (c *Config) Values() []Value { return c.values }

// DataDir returns the folder of the database and its other files. With a database on PostgreSQL it is
// sessiond's folder of this user, which has the search index, the token and backups.
func (c *Config) DataDir() string {
	if engine.IsPostgres(c.DB) {
		return c.data
	}
	return filepath.Dir(c.DB)
}
