package config

import (
	"fmt"
	"strings"

	"sessiond/internal/routing"
	"sessiond/internal/session"
)

// Reset configures when a routing key starts its next session.
type Reset struct {
	Mode        string               `koanf:"mode"`         // daily, idle, both, off
	AtHour      int                  `koanf:"at_hour"`      // local hour, 0 to 23
	IdleMinutes int                  `koanf:"idle_minutes"` // 0 is never
	ByType      map[string]ResetRule `koanf:"by_type"`      // by dm, group or thread
	ByChannel   map[string]ResetRule `koanf:"by_channel"`   // inherits nothing
}

// ResetRule is a Reset of some keys; nil and "" inherit.
type ResetRule struct {
	Mode        routing.Mode `koanf:"mode"`
	AtHour      *int         `koanf:"at_hour"`
	IdleMinutes *int         `koanf:"idle_minutes"`
}

// Routing configures the sessions of keys, with the names of routing.Config.
type Routing struct {
	Agent         string         `koanf:"agent"`
	MainKey       string         `koanf:"main_key"`
	Scope         string         `koanf:"scope"`    // per-sender, global
	DMScope       string         `koanf:"dm_scope"` // main, per-peer, per-channel-peer, per-account-channel-peer
	IdentityLinks map[string]any `koanf:"identity_links"`
	Triggers      []string       `koanf:"triggers"` // of a reset; empty: /new and /reset
	// who may reset (empty: everyone) and who gives rules in a group (empty: nobody)
	Commanders []string       `koanf:"commanders"`
	Mentions   []string       `koanf:"mentions"`
	BotName    string         `koanf:"bot_name"`
	Models     []string       `koanf:"models"`  // provider/model that a reset may choose
	Aliases    map[string]any `koanf:"aliases"` // short name → provider/model
}

// Rules returns the routing rules, in the configured zone.
func (c *Config) Rules() routing.Config { return c.rules }

// checkRouting sets the rules. Codes: Invalid, with the key.
func (c *Config) checkRouting() error {
	r := &c.Routing
	rules := routing.Config{
		Agent: r.Agent, MainKey: r.MainKey, Scope: r.Scope, DMScope: r.DMScope, Links: map[string][]string{},
		Triggers: r.Triggers, Commanders: r.Commanders, Mentions: r.Mentions, BotName: r.BotName,
		Models: routing.Models{Allowed: r.Models, Aliases: map[string]string{}}, Zone: c.zone,
		Reset: c.Reset.rules(),
	}
	links, err := flatten("routing.identity_links", r.IdentityLinks)
	if err != nil {
		return err
	}
	for person, ids := range links {
		list, ok := ids.([]any)
		if !ok {
			list = []any{ids}
		}
		for _, id := range list {
			rules.Links[person] = append(rules.Links[person], fmt.Sprint(id))
		}
	}
	aliases, err := flatten("routing.aliases", r.Aliases)
	if err != nil {
		return err
	}
	for short, model := range aliases {
		text, ok := model.(string)
		if !ok || text == "" {
			return badKey("routing.aliases."+short, "must be a model, as provider/model")
		}
		rules.Models.Aliases[short] = text
	}
	if err := rules.Check(); err != nil {
		return inRoutingSection(err)
	}
	c.rules = rules
	return nil
}

// inRoutingSection adds the section routing to the path of a field, except those of other sections.
func inRoutingSection(err error) error {
	known, ok := err.(*session.Error) //nolint:errorlint // made by the rules themselves
	if ok && len(known.Fields) > 0 && !strings.HasPrefix(known.Fields[0].Path, "reset.") &&
		known.Fields[0].Path != "timezone" {
		known.Fields[0].Path = "routing." + known.Fields[0].Path
	}
	return err
}

func badKey(key, format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	return session.Errorf(session.Invalid, "%s %s", key, message).At(key, "%s", message)
}

// flatten joins names with dots, which koanf split into levels.
func flatten(key string, in map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for name, value := range in {
		inner, ok := value.(map[string]any)
		if !ok {
			if value == nil {
				return nil, badKey(key+"."+name, "has no value")
			}
			out[name] = value
			continue
		}
		below, err := flatten(key+"."+name, inner)
		if err != nil {
			return nil, err
		}
		for rest, value := range below {
			out[name+"."+rest] = value
		}
	}
	return out, nil
}

func (r *Reset) rules() routing.Reset {
	base := routing.Rule{Mode: routing.Mode(r.Mode), AtHour: &r.AtHour}
	if r.IdleMinutes != 0 {
		base.IdleMinutes = &r.IdleMinutes
	}
	out := routing.Reset{Base: &base, ByType: map[string]routing.Rule{}, ByChannel: map[string]routing.Rule{}}
	for name, rule := range r.ByType {
		out.ByType[name] = routing.Rule(rule)
	}
	for name, rule := range r.ByChannel {
		out.ByChannel[name] = routing.Rule(rule)
	}
	return out
}
