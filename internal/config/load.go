package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"

	"sessiond/internal/engine"
	"sessiond/internal/folders"
	"sessiond/internal/session"
)

// Dirs are the folders of the default paths.
type Dirs struct {
	Config  string // $XDG_CONFIG_HOME
	Data    string // $XDG_DATA_HOME
	Runtime string // $XDG_RUNTIME_DIR; if it is empty or missing, the socket is beside the database

	NoSocket bool // of this system: then the token opens the address on loopback
}

// UserDirs returns the folders of a user; "" for those that the environment does not tell.
func UserDirs(user folders.User) Dirs {
	return Dirs{Config: user.Config(), Data: user.Data(), Runtime: user.Runtime(), NoSocket: user.IsOn("windows")}
}

// Input is the input of Load. Its zero value means the defaults.
type Input struct {
	Dirs    Dirs
	Path    string         // of the file; "": SESSIOND_CONFIG, else the default, which may be missing
	Environ []string       // as os.Environ returns it
	Flags   map[string]any // by key, only the used ones
}

const (
	envPrefix = "SESSIOND_"
	envConfig = "SESSIOND_CONFIG" // names the file
	envPager  = "SESSIOND_PAGER"  // is of the commands
)

// freeForm are the keys with the user's own names below them.
var freeForm = [...]string{
	"summarizers", "reset.by_type", "reset.by_channel", "routing.identity_links",
	"routing.aliases", "budget.project",
}

// Load reads all layers and checks the result. Every error has code session.Invalid and names the key,
// its layer, and valid values.
func Load(in Input) (*Config, error) {
	c := &Config{}
	k := koanf.New(".")
	origins := map[string]string{}
	if err := k.Load(confmap.Provider(defaults(), "."), nil); err != nil {
		return nil, fmt.Errorf("load defaults: %w", err)
	}
	known := k.Keys()
	slices.Sort(known)
	if err := c.loadFile(k, in, known, origins); err != nil {
		return nil, err
	}
	if err := c.loadEnviron(k, in.Environ, known, origins); err != nil {
		return nil, err
	}
	for key, value := range in.Flags {
		if !slices.Contains(known, key) {
			return nil, unknownKey(key, "a flag", known)
		}
		if err := k.Set(key, value); err != nil {
			return nil, fmt.Errorf("set %s: %w", key, err)
		}
		origins[key] = "flag --" + strings.ReplaceAll(key, "_", "-")
	}
	if err := decode(k, c); err != nil {
		return nil, explainDecode(err, known, origins)
	}
	if err := c.fillPaths(in.Dirs); err != nil {
		return nil, err
	}
	if err := c.check(origins); err != nil {
		return nil, err
	}
	c.values = c.list(k, known, origins)
	return c, nil
}

// defaults returns every key; an untyped nil is "not set".
func defaults() map[string]any {
	return map[string]any{
		"db": "", "sql_db": "", "listen": "127.0.0.1:7433", "hosts": []string{}, "socket": "", "token_file": "",
		"timezone": "Local",
		"owner":    "", "host": "", "exclude_projects": []string{},
		"summarizer.provider": "extractive", "summarizer.model": "", "summarizer.base_url": "",
		"summarizer.api_key_file": "", "summarizer.timeout": "60s",
		"compaction.preset": "balanced", "compaction.strategy": nil, "compaction.fraction": nil,
		"compaction.reserve_tokens": nil, "compaction.reserve_floor": nil,
		"compaction.keep_recent_tokens": nil, "compaction.keep_recent_messages": nil,
		"compaction.summary_max_tokens": nil, "compaction.prune_protect": nil, "compaction.prune_minimum": nil,
		"compaction.protected_tools": nil, "compaction.part_max_tokens": nil, "compaction.recall_tokens": nil,
		"compaction.cache_slots": nil, "compaction.summarizer": nil, "compaction.instructions": nil,
		"summarizers": map[string]any{},
		"reset.mode":  "daily", "reset.at_hour": 4, "reset.idle_minutes": 0,
		"reset.by_type": map[string]any{}, "reset.by_channel": map[string]any{},
		"routing.agent": "main", "routing.main_key": "main", "routing.scope": "per-sender", "routing.dm_scope": "main",
		"routing.identity_links": map[string]any{}, "routing.triggers": []string{}, "routing.commanders": []string{},
		"routing.mentions": []string{}, "routing.bot_name": "", "routing.models": []string{},
		"routing.aliases":     map[string]any{},
		"retention.idle_days": 0, "retention.trash_days": 0, "retention.events_days": 30, "retention.at_hour": 3,
		"import.follow": true,
		"backup.every":  "0s", "backup.keep": 7, "scrub.at_hour": nil, "flush.enabled": true,
		"flush.prompt": "", "flush.system_prompt": "", "flush.soft_tokens": nil,
		"budget.month": 0, "budget.project": map[string]any{}, "budget.webhook": "",
		"otlp.endpoint": "", "otlp.content": "off",
		"log.level": "info", "log.format": "auto",
	}
}

func (c *Config) loadFile(k *koanf.Koanf, in Input, known []string, origins map[string]string) error {
	path, explicit := in.Path, in.Path != ""
	if !explicit {
		path, explicit = lookup(in.Environ, envConfig)
	}
	if path == "" && in.Dirs.Config == "" {
		return nil
	}
	if path == "" {
		path, explicit = filepath.Join(in.Dirs.Config, "sessiond", "config.yaml"), false
	}
	c.file = path
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !explicit {
		return nil
	}
	if err != nil {
		return session.Errorf(session.Invalid, "cannot read the configuration file: %w", err)
	}
	layer := koanf.New(".")
	if err := layer.Load(rawbytes.Provider(raw), yaml.Parser()); err != nil {
		return session.Errorf(session.Invalid, "%s is not valid YAML: %w", path, err)
	}
	c.fileRead = true
	for _, key := range layer.Keys() {
		if isEmptySection(layer, key, known) { // merged, it would delete the section's defaults
			layer.Delete(key)
			continue
		}
		name := knownName(key, known)
		if name == "" {
			return unknownKey(key, path, known)
		}
		origins[name] = "file " + path
	}
	return k.Merge(layer)
}

// isEmptySection reports whether a key is the name of a section without settings.
func isEmptySection(layer *koanf.Koanf, key string, known []string) bool {
	isSection := slices.ContainsFunc(known, func(k string) bool { return strings.HasPrefix(k, key+".") })
	section, isMap := layer.Get(key).(map[string]any)
	return isSection && (layer.Get(key) == nil || isMap && len(section) == 0)
}

// loadEnviron reads the SESSIOND_* variables. An unknown one is only a warning: other programs create
// such names too, e.g. Kubernetes for a service named sessiond.
func (c *Config) loadEnviron(k *koanf.Koanf, environ, known []string, origins map[string]string) error {
	byEnv := map[string]string{}
	for _, key := range known {
		byEnv[EnvName(key)] = key
	}
	provider := env.Provider(".", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			key, ok := byEnv[name]
			if !ok {
				if name != envConfig && name != envPager {
					c.warnings = append(c.warnings, fmt.Sprintf("the environment has %s, which is not a setting (most similar: %s)",
						name, EnvName(nearest(strings.ToLower(strings.TrimPrefix(name, envPrefix)), known))))
				}
				return "", nil
			}
			origins[key] = "environment " + name
			return key, value
		},
	})
	if err := k.Load(provider, nil); err != nil {
		return fmt.Errorf("load the environment: %w", err)
	}
	return nil
}

// EnvName returns the environment variable of a key: summarizer.base_url is SESSIOND_SUMMARIZER_BASE_URL.
func EnvName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

func decode(k *koanf.Koanf, c *Config) error {
	return k.UnmarshalWithConf("", c, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		Result:           c,
		TagName:          "koanf",
		MatchName:        matchName,
		ErrorUnused:      true,
		WeaklyTypedInput: true, // the environment has only text
		DecodeHook: mapstructure.ComposeDecodeHookFunc(
			mapstructure.StringToTimeDurationHookFunc(),
			mapstructure.StringToSliceHookFunc(","),
		),
	}})
}

// matchName reports whether a key names a field without a tag: reserve_tokens is ReserveTokens.
func matchName(key, field string) bool {
	return strings.EqualFold(strings.ReplaceAll(key, "_", ""), field)
}

// fillPaths fills in the default paths. Codes: Invalid (the user has no home folder, and the database no name).
func (c *Config) fillPaths(dirs Dirs) error {
	if dirs.Data == "" && (c.DB == "" || engine.IsPostgres(c.DB)) {
		return session.Errorf(session.Invalid,
			"HOME is not set (on Windows USERPROFILE), so the folder of sessiond's data is unknown: set it, or XDG_DATA_HOME, "+
				"or name the database file with --db or SESSIOND_DB")
	}
	c.data = filepath.Join(dirs.Data, "sessiond")
	if c.DB == "" {
		c.DB = filepath.Join(c.data, "sessions.db")
	}
	if c.Host == "" {
		c.Host, _ = os.Hostname() // "" where there is none
	}
	if c.TokenFile == "" {
		c.TokenFile = filepath.Join(c.DataDir(), "token")
	}
	switch info, err := os.Stat(dirs.Runtime); {
	case c.Socket != "":
	case dirs.NoSocket:
		c.Socket = SocketOff
	case err == nil && info.IsDir():
		c.Socket = filepath.Join(dirs.Runtime, "sessiond.sock")
	default:
		c.Socket = filepath.Join(c.DataDir(), "sessiond.sock")
	}
	return nil
}

// withoutPassword returns an address for printing.
func withoutPassword(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Redacted()
	}
	return address
}

// list returns the settings in use, with the actual path for a default one.
func (c *Config) list(k *koanf.Koanf, known []string, origins map[string]string) []Value {
	used := map[string]any{
		"db": engine.PrintableName(c.DB), "sql_db": engine.PrintableName(c.SQLDB), "socket": c.Socket,
		"token_file": c.TokenFile, "host": c.Host, "budget.webhook": withoutPassword(c.Budget.Webhook),
		"otlp.endpoint":      withoutPassword(c.OTLP.Endpoint),
		"summarizer.timeout": c.Summarizer.Timeout.String(), "backup.every": c.Backup.Every.String(),
	}
	values := make([]Value, 0, len(known))
	for _, key := range known {
		value, ok := used[key]
		if !ok {
			value = k.Get(key)
		}
		values = append(values, Value{Key: key, Value: value, Origin: cmp.Or(origins[key], "default")})
	}
	return values
}

func lookup(environ []string, name string) (string, bool) {
	for _, pair := range environ {
		if value, ok := strings.CutPrefix(pair, name+"="); ok && value != "" {
			return value, true
		}
	}
	return "", false
}
