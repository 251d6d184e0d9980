package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/routing"
	"sessiond/internal/session"
)

// Reset says when a routing key starts its next session.
type Reset struct {
	Mode        string         `koanf:"mode"`         // daily, idle, both, off
	AtHour      int            `koanf:"at_hour"`      // local hour, 0 to 23
	IdleMinutes int            `koanf:"idle_minutes"` // 0 is never
	ByType      map[string]any `koanf:"by_type"`      // dm, group, thread → the same three
	ByChannel   map[string]any `koanf:"by_channel"`   // inherits nothing
}

// Routing says which session belongs to whom. The names are those of routing.Config, which
// also has the rules.
type Routing struct {
	Agent         string         `koanf:"agent"`
	MainKey       string         `koanf:"main_key"`
	Scope         string         `koanf:"scope"`    // per-sender, global
	DMScope       string         `koanf:"dm_scope"` // main, per-peer, per-channel-peer, per-account-channel-peer
	IdentityLinks map[string]any `koanf:"identity_links"`
	Triggers      []string       `koanf:"triggers"`   // of a reset; empty: /new and /reset
	Commanders    []string       `koanf:"commanders"` // who may reset; empty: everyone
	Mentions      []string       `koanf:"mentions"`
	BotName       string         `koanf:"bot_name"`
	Models        []string       `koanf:"models"`  // provider/model that a reset may choose
	Aliases       map[string]any `koanf:"aliases"` // short name → provider/model
}

// Rules are the routing rules that the configuration gives, in its zone.
func (c *Config) Rules() routing.Config { return c.rules }

// checkRouting makes the rules. Codes: Invalid, with the key at fault.
func (c *Config) checkRouting() error {
	r := &c.Routing
	rules := routing.Config{
		Agent: r.Agent, MainKey: r.MainKey, Scope: r.Scope, DMScope: r.DMScope, Links: map[string][]string{},
		Triggers: r.Triggers, Commanders: r.Commanders, Mentions: r.Mentions, BotName: r.BotName,
		Models: routing.Models{Allowed: r.Models, Aliases: map[string]string{}}, Zone: c.zone,
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
			return badKey("routing.aliases."+short, "must name a model, as provider/model")
		}
		rules.Models.Aliases[short] = text
	}
	if rules.Reset, err = c.Reset.rules(); err != nil {
		return err
	}
	if err := rules.Check(); err != nil {
		return inSection(err)
	}
	c.rules = rules
	return nil
}

// inSection puts the section before a field that is not of reset.
func inSection(err error) error {
	known, ok := err.(*session.Error) //nolint:errorlint // made by the rules themselves
	if ok && len(known.Fields) > 0 && !strings.HasPrefix(known.Fields[0].Path, "reset.") && known.Fields[0].Path != "timezone" {
		known.Fields[0].Path = "routing." + known.Fields[0].Path
	}
	return err
}

func badKey(key, format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	return session.Errorf(session.Invalid, "%s %s", key, message).At(key, "%s", message)
}

// flatten joins names that hold dots again, which the file's reader took for levels.
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

func (r *Reset) rules() (routing.Reset, error) {
	base := routing.Rule{Mode: routing.Mode(r.Mode), AtHour: &r.AtHour}
	if r.IdleMinutes != 0 {
		base.IdleMinutes = &r.IdleMinutes
	}
	out := routing.Reset{Base: &base, ByType: map[string]routing.Rule{}, ByChannel: map[string]routing.Rule{}}
	for _, section := range []struct {
		key  string
		from map[string]any
		to   map[string]routing.Rule
	}{{"reset.by_type", r.ByType, out.ByType}, {"reset.by_channel", r.ByChannel, out.ByChannel}} {
		for _, name := range slices.Sorted(maps.Keys(section.from)) {
			rule, err := ruleOf(section.key+"."+name, section.from[name])
			if err != nil {
				return out, err
			}
			section.to[name] = rule
		}
	}
	return out, nil
}

// ruleOf reads {mode, at_hour, idle_minutes}.
func ruleOf(key string, value any) (routing.Rule, error) {
	var rule routing.Rule
	members, ok := value.(map[string]any)
	if !ok {
		return rule, badKey(key, "must be like { mode: idle, idle_minutes: 30 }")
	}
	for name, v := range members {
		switch name {
		case "mode":
			rule.Mode = routing.Mode(fmt.Sprint(v))
		case "at_hour", "idle_minutes":
			n, err := strconv.Atoi(fmt.Sprint(v))
			if err != nil {
				return rule, badKey(key+"."+name, "is %v: it is a whole number", v)
			}
			if name == "at_hour" {
				rule.AtHour = &n
			} else {
				rule.IdleMinutes = &n
			}
		default:
			return rule, badKey(key+"."+name, "is no setting: there are mode, at_hour and idle_minutes")
		}
	}
	return rule, nil
}
