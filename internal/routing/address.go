package routing

import (
	"cmp"
	"strings"
)

// Kinds of conversations, as keys name them.
const (
	KindDirect  = "dm"
	KindGroup   = "group"
	KindChannel = "channel"
	KindRoom    = "room"
)

// laterDirect is the name of KindDirect in later versions of the original; it is read, never written.
const laterDirect = "direct"

func isGroup(kind string) bool {
	return kind == KindGroup || kind == KindChannel || kind == KindRoom
}

func isDirect(kind string) bool { return kind == KindDirect || kind == laterDirect }

// Direct returns the key of a direct message in the configured scope. account "" is the channel's
// default one. Codes: Invalid: a scope that separates peers needs a peer.
func (c *Config) Direct(agent, channel, account, peer string) (string, error) {
	agent, err := NormalizeID(cmp.Or(agent, c.agent()))
	if err != nil {
		return "", err
	}
	if c.DMScope == "" || c.DMScope == DMMain || c.Scope == ScopeGlobal {
		return c.main(agent), nil
	}
	channel, peer = strings.ToLower(strings.TrimSpace(channel)), strings.ToLower(strings.TrimSpace(peer))
	if peer == "" {
		return "", invalid("peer",
			"a direct message in scope %s needs the peer's id; without it the message would join another person's session",
			c.DMScope)
	}
	name, err := personOf(c.Links, channel, peer)
	if err != nil {
		return "", err
	}
	parts := []string{KindDirect, cmp.Or(name, peer)}
	if c.DMScope != DMPerPeer {
		if channel == "" {
			return "", invalid("channel", "a direct message in scope %s needs its channel", c.DMScope)
		}
		if c.DMScope == DMPerAccountPeer {
			if account, err = NormalizeID(cmp.Or(account, defaultAccount)); err != nil {
				return "", err
			}
			parts = append([]string{account}, parts...)
		}
		parts = append([]string{channel}, parts...)
	}
	return c.Canonical(Key{Agent: agent, Rest: strings.Join(parts, ":")}.String())
}

// Peer returns the key of a group, a channel or a room, and that of Direct for a direct message.
// topic "" is none. Codes: Invalid.
func (c *Config) Peer(agent, kind, channel, peer, topic string) (string, error) {
	kind = strings.ToLower(strings.TrimSpace(kind))
	if isDirect(kind) {
		return c.Direct(agent, channel, "", peer)
	}
	channel, peer, topic = strings.TrimSpace(channel), strings.TrimSpace(peer), strings.TrimSpace(topic)
	switch {
	case !isGroup(kind):
		return "", invalid("chat_type", "is %q: it is one of direct, group, channel, room", clip(kind))
	case channel == "":
		return "", invalid("channel", "a %s needs its channel", kind)
	case peer == "":
		return "", invalid("peer", "a %s needs its id", kind)
	}
	agent, err := NormalizeID(cmp.Or(agent, c.agent()))
	if err != nil {
		return "", err
	}
	rest := channel + ":" + kind + ":" + peer
	if topic != "" {
		rest += ":" + markTopic + ":" + topic
	}
	return c.Canonical(Key{Agent: agent, Rest: rest}.String())
}

// Thread returns the key of a thread below a conversation's key. Connectors that keep a thread in
// its conversation's session pass suffix false: key and parent are then the conversation's key.
// Codes: Invalid.
func (c *Config) Thread(base, thread string, suffix bool) (key, parent string, err error) {
	if parent, err = c.Canonical(base); err != nil {
		return "", "", err
	}
	thread = strings.TrimSpace(thread)
	if thread == "" || !suffix {
		return parent, parent, nil
	}
	key, err = c.Canonical(parent + ":" + markThread + ":" + thread)
	return key, parent, err
}

// Job returns the key of a scheduled job. Codes: Invalid.
func (c *Config) Job(agent, job string) (string, error) {
	if strings.TrimSpace(job) == "" {
		return "", invalid("job", "a job needs its id")
	}
	return c.Canonical(Key{
		Agent: cmp.Or(agent, c.agent()),
		Rest:  string(SourceCron) + ":" + strings.TrimSpace(job),
	}.String())
}

// Hook returns the key of a webhook: its own key if it sets one, else one with the given uuid.
// Codes: Invalid.
func (c *Config) Hook(agent, own, uuid string) (string, error) {
	agent = cmp.Or(agent, c.agent())
	own = strings.TrimSpace(own)
	if own == "" {
		own = string(SourceHook) + ":" + uuid
	}
	if _, full := Parse(own); full {
		return c.Canonical(own)
	}
	return c.Canonical(Key{Agent: agent, Rest: own}.String())
}

// Inbound returns the key of traffic from older connectors, which name only the sender: group:ID,
// CHANNEL:group:ID, a WhatsApp group's address, or a person, as in a direct message. provider is
// the channel of the traffic. Codes: Invalid.
func (c *Config) Inbound(agent, from, provider, chatType string) (string, error) {
	provider, from = strings.ToLower(strings.TrimSpace(provider)), strings.TrimSpace(from)
	parts := split(from)
	word := func(i int) string {
		if i < len(parts) {
			return strings.ToLower(parts[i])
		}
		return ""
	}
	kind := strings.ToLower(strings.TrimSpace(chatType))
	switch {
	case isGroup(word(0)) && len(parts) > 1:
		return c.Peer(agent, word(0), provider, strings.Join(parts[1:], ":"), "")
	case isGroup(word(1)) && len(parts) > 2:
		return c.Peer(agent, word(1), word(0), strings.Join(parts[2:], ":"), "")
	}
	if len(parts) > 1 && word(0) == provider {
		from = strings.Join(parts[1:], ":")
	}
	switch {
	case strings.HasSuffix(strings.ToLower(from), "@g.us"):
		return c.Peer(agent, KindGroup, "whatsapp", from, "")
	case isGroup(kind):
		return c.Peer(agent, kind, provider, from, "")
	}
	return c.Direct(agent, provider, "", from)
}
