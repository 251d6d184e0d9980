// Package config gathers sessiond's settings into one struct. A later layer wins over an
// earlier one: defaults, the file, the SESSIOND_* environment, flags. Where each value came
// from is kept, so that `sessiond config` can say it.
package config

import (
	"path/filepath"
	"time"

	"sessiond/internal/contextmgr"
	"sessiond/internal/routing"
)

// Config is the whole configuration with every default filled in: no path is empty and
// every number was checked. Zone gives the timezone as a location.
type Config struct {
	DB        string   `koanf:"db"`         // the database file
	Listen    string   `koanf:"listen"`     // host:port; "" turns TCP off
	Hosts     []string `koanf:"hosts"`      // names, beside loopback and addresses, that a request's Host may have
	Socket    string   `koanf:"socket"`     // path of the Unix socket; "off" turns it off
	TokenFile string   `koanf:"token_file"` // 0600, made on first start
	Timezone  string   `koanf:"timezone"`   // for ids, day boundaries and resets

	Summarizer Summarizer          `koanf:"summarizer"`
	Compaction contextmgr.Settings `koanf:"compaction"` // nil is "as the preset says"
	Reset      Reset               `koanf:"reset"`
	Routing    Routing             `koanf:"routing"`
	Retention  Retention           `koanf:"retention"`
	Import     Import              `koanf:"import"`
	Backup     Backup              `koanf:"backup"`
	Scrub      Scrub               `koanf:"scrub"`
	Flush      Flush               `koanf:"flush"`
	Log        Log                 `koanf:"log"`

	file     string // that was read, or would be
	fileRead bool
	warnings []string
	values   []Value
	zone     *time.Location
	rules    routing.Config
}

// Summarizer says who writes summaries. A key is never a setting of its own: it is read
// from a file that only its owner can read, or from the environment.
type Summarizer struct {
	Provider   string        `koanf:"provider"` // extractive, gemini, openai
	Model      string        `koanf:"model"`    // "": the provider's default
	BaseURL    string        `koanf:"base_url"` // "": the provider's own
	APIKeyFile string        `koanf:"api_key_file"`
	Timeout    time.Duration `koanf:"timeout"`
}

// Retention says what is removed by age, in days; 0: never. The daemon looks once a day, at AtHour.
type Retention struct {
	IdleDays   int `koanf:"idle_days"`   // not active for so long: to the trash, unless archived
	TrashDays  int `koanf:"trash_days"`  // in the trash for so long: purged
	EventsDays int `koanf:"events_days"` // events, which hold nothing that was said
	AtHour     int `koanf:"at_hour"`     // local hour, 0 to 23
}

// Import is about sources that were imported once.
type Import struct {
	Follow bool `koanf:"follow"` // serve keeps them up to date
}

// Backup says how often the daemon makes a backup by itself, and how many it keeps.
type Backup struct {
	Every time.Duration `koanf:"every"` // 0: never
	Keep  int           `koanf:"keep"`
}

// Scrub says at which local hour purged bytes are scrubbed; nil is only on demand.
type Scrub struct {
	AtHour *int `koanf:"at_hour"`
}

// Flush is the memory flush before a compaction.
type Flush struct {
	Enabled      bool   `koanf:"enabled"`
	Prompt       string `koanf:"prompt"`        // of the user's role; "": the default text
	SystemPrompt string `koanf:"system_prompt"` // "": the default text
	SoftTokens   *int64 `koanf:"soft_tokens"`   // how far under the threshold; nil: as the preset says
}

// FlushSettings are the same as the context manager takes them.
func (c *Config) FlushSettings() contextmgr.FlushSettings {
	f := c.Flush
	return contextmgr.FlushSettings{Enabled: f.Enabled, Prompt: f.Prompt, SystemPrompt: f.SystemPrompt, SoftTokens: f.SoftTokens, Zone: c.zone}
}

// Log is what the daemon writes to standard error.
type Log struct {
	Level  string `koanf:"level"`  // debug, info, warn, error
	Format string `koanf:"format"` // auto, console, json
}

// SocketOff is the value of Socket that turns the Unix socket off.
const SocketOff = "off"

// File is the path of the configuration file and whether there was one.
func (c *Config) File() (path string, read bool) { return c.file, c.fileRead }

// Models is the path of the user's overrides of the model catalogue, beside the file. It
// need not exist.
func (c *Config) Models() string { return filepath.Join(filepath.Dir(c.file), "models.json") }

// Warnings are the things that are odd and do not stop the daemon.
func (c *Config) Warnings() []string { return c.warnings }

// Zone is the location that Timezone names.
func (c *Config) Zone() *time.Location { return c.zone }

// Value is one setting as `sessiond config` prints it.
type Value struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin string `json:"origin"` // default, file PATH, environment NAME, flag --NAME
}

// Values are all settings, sorted by key, each with its origin.
func (c *Config) Values() []Value { return c.values }

// DataDir is the folder that holds the database and what belongs to it.
func (c *Config) DataDir() string { return filepath.Dir(c.DB) }
