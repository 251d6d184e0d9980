package routing

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sessiond/internal/session"
)

// Scopes of an installation.
const (
	ScopePerSender = "per-sender"
	ScopeGlobal    = "global" // one session for the whole installation
)

// Scopes of direct messages.
const (
	DMMain           = "main"     // all direct messages share the agent's main session
	DMPerPeer        = "per-peer" // one session per person, on any channel
	DMPerChannelPeer = "per-channel-peer"
	DMPerAccountPeer = "per-account-channel-peer"
)

// Config configures the rules. The defaults of its zero value: agent and main key "main", scope
// per-sender, direct messages in the main session, triggers /new and /reset, a new generation
// every day at 4.
type Config struct {
	Agent    string // used if a key names none
	MainKey  string
	Scope    string
	DMScope  string
	Links    map[string][]string // person → channel:id, or a bare id for every channel
	Reset    Reset
	Triggers []string // nil: /new and /reset
	Mentions []string // names of the bot in a group, such as @bot
	BotName  string   // its user name, for /new@botname
	Models   Models
	// Commanders are the senders who may reset, as channel:id or a bare id; nil: everyone. In a group nobody else gives
	// standing rules, and nil is nobody.
	Commanders []string
	Zone       *time.Location // nil: UTC
}

func (c *Config) agent() string {
	return cmp.Or(strings.ToLower(strings.TrimSpace(c.Agent)), DefaultID)
}

func (c *Config) mainKey() string {
	return cmp.Or(strings.ToLower(strings.TrimSpace(c.MainKey)), DefaultID)
}

// Check validates the configuration. Codes: Invalid, with the field.
func (c *Config) Check() error {
	if _, err := NormalizeID(c.agent()); err != nil {
		return err
	}
	if err := CheckKey(c.MainKey); err != nil || len(split(c.mainKey())) != 1 {
		return invalid("main_key", "is %q; use one word without colons, like main", clip(c.MainKey))
	}
	for _, choice := range []struct {
		field, value string
		allowed      []string
	}{
		{"scope", c.Scope, []string{"", ScopePerSender, ScopeGlobal}},
		{"dm_scope", c.DMScope, []string{"", DMMain, DMPerPeer, DMPerChannelPeer, DMPerAccountPeer}},
	} {
		if !slices.Contains(choice.allowed, choice.value) {
			return invalid(choice.field, "is %q; use one of %s", clip(choice.value), strings.Join(choice.allowed[1:], ", "))
		}
	}
	if _, err := linkOwners(c.Links); err != nil {
		return err
	}
	for _, trigger := range c.Triggers {
		if strings.TrimSpace(trigger) == "" {
			return invalid("triggers", "has an empty trigger, which would match every message")
		}
	}
	return c.Reset.Check()
}

// MayReset reports whether a sender may reset.
func (c *Config) MayReset(channel, sender string) bool {
	if len(c.Commanders) == 0 {
		return true
	}
	return c.isCommander(channel, sender)
}

// Givers returns who gives standing rules in the conversation of a key: the person of a direct chat, the commanders of
// a group. In the one session of a global installation also messages without an author give them.
func (c *Config) Givers(key string) session.Givers {
	class := Classify(key)
	for class.Type == TypeThread {
		class = Classify(class.Parent)
	}
	global := strings.EqualFold(strings.TrimSpace(key), GlobalKey)
	return session.Givers{Group: global || class.Type == TypeGroup, Named: func(author string) bool {
		return global && author == "" || c.isCommander(class.Channel, author)
	}}
}

// isCommander reports whether the commanders name a sender.
func (c *Config) isCommander(channel, sender string) bool {
	return sender != "" && slices.ContainsFunc(c.Commanders, func(id string) bool {
		id = strings.TrimSpace(id)
		return strings.EqualFold(id, sender) || strings.EqualFold(id, channel+":"+sender)
	})
}

// LoadZone returns a zone by its IANA name. It rejects "", which time.LoadLocation maps to UTC.
// Codes: Invalid.
func LoadZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" {
		err := session.Errorf(session.Invalid, "%q is not a time zone; use a name like Europe/Berlin, or UTC", clip(name))
		return nil, err.At("timezone", "not a time zone")
	}
	return zone, nil
}
