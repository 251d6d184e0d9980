package routing_test

import (
	"testing"

	"sessiond/internal/routing"
)

// The person of a direct chat gives standing rules; in a group nobody does but the commanders.
func TestWhoGivesRules(t *testing.T) {
	named := routing.Config{Commanders: []string{"telegram:7", "ann"}}
	for _, c := range []struct {
		name, key, author string
		config            routing.Config
		group, gives      bool
	}{
		{"no key", "", "bob", routing.Config{}, false, false},
		{"direct", "agent:main:telegram:dm:7", "", routing.Config{}, false, false},
		{"main", "agent:main:main", "", routing.Config{}, false, false},
		{"a group without commanders", "agent:main:telegram:group:-100", "7", routing.Config{}, true, false},
		{"a commander of the channel", "agent:main:telegram:group:-100", "7", named, true, true},
		{"his number on another channel", "agent:main:discord:group:-100", "7", named, true, false},
		{"a commander of every channel", "agent:main:discord:channel:5", "ANN", named, true, true},
		{"a member", "agent:main:telegram:group:-100", "8", named, true, false},
		{"nobody", "agent:main:telegram:group:-100", "", named, true, false},
		{"a topic of a group", "agent:main:telegram:group:-100:topic:3", "7", named, true, true},
		{"a member in a thread", "agent:main:slack:channel:c1:thread:99", "8", named, true, false},
		{"a thread of a direct chat", "agent:main:slack:dm:u1:thread:99", "8", named, false, false},
		{"one session for all: no author", "global", "", named, true, true},
		{"one session for all: a member", "global", "8", named, true, false},
	} {
		g := c.config.Givers(c.key)
		if g.Group != c.group || g.Named(c.author) != c.gives {
			t.Errorf("%s: group %v, gives %v", c.name, g.Group, g.Named(c.author))
		}
	}
}
