package routing

import "strings"

// Mode says which rules end a generation.
type Mode string

// The modes. ModeDaily with idle minutes applies both rules: the first to expire counts.
const (
	ModeDaily Mode = "daily"
	ModeIdle  Mode = "idle"
	ModeBoth  Mode = "both" // daily, and idle with its default of 60 minutes
	ModeOff   Mode = "off"  // no rule
)

// Defaults of a policy.
const (
	DefaultHour        = 4
	defaultIdleMinutes = 60
)

// Rule is a part of the reset configuration; nil and "" defer to the next rule.
type Rule struct {
	Mode        Mode
	AtHour      *int // local, 0 to 23
	IdleMinutes *int // at least 1
}

// Reset configures when keys begin a new generation.
type Reset struct {
	Base        *Rule
	ByType      map[string]Rule // dm (or direct), group, thread
	ByChannel   map[string]Rule // replaces all of the above and inherits nothing
	IdleMinutes *int            // the old setting: alone it means idle only
}

// Policy is the resolved rule of one key.
type Policy struct {
	Mode        Mode
	AtHour      int
	IdleMinutes *int // nil: no idle window
}

// daily and idle report which rules apply.
func (p Policy) daily() bool { return p.Mode == ModeDaily || p.Mode == ModeBoth }
func (p Policy) idle() bool  { return p.Mode != ModeOff && p.IdleMinutes != nil }

// Policy returns the policy of a type of conversation on a channel ("": none).
func (r *Reset) Policy(t Type, channel string) Policy {
	channel = strings.ToLower(strings.TrimSpace(channel))
	for name, rule := range r.ByChannel {
		if channel != "" && strings.ToLower(strings.TrimSpace(name)) == channel {
			return resolve(ModeDaily, nil, rule)
		}
	}
	var own, base Rule
	for name, rule := range r.ByType {
		if typeNamed(name) == t {
			own = rule
		}
	}
	fallback := ModeDaily
	if r.Base != nil {
		base = *r.Base
	} else if len(r.ByType) == 0 && r.IdleMinutes != nil {
		fallback = ModeIdle
	}
	return resolve(fallback, r.IdleMinutes, own, base)
}

func typeNamed(name string) Type {
	t := Type(strings.ToLower(strings.TrimSpace(name)))
	if t == laterDirect {
		return TypeDirect
	}
	return t
}

// resolve sets each field from the first rule that has it.
func resolve(mode Mode, idle *int, rules ...Rule) Policy {
	p := Policy{AtHour: DefaultHour, IdleMinutes: idle}
	for i := len(rules) - 1; i >= 0; i-- {
		if rules[i].AtHour != nil {
			p.AtHour = *rules[i].AtHour
		}
		if rules[i].IdleMinutes != nil {
			p.IdleMinutes = rules[i].IdleMinutes
		}
		if rules[i].Mode != "" {
			mode = rules[i].Mode
		}
	}
	p.Mode = mode
	if p.IdleMinutes == nil && (mode == ModeIdle || mode == ModeBoth) {
		p.IdleMinutes = new(defaultIdleMinutes)
	}
	return p
}

// Check validates each rule. Codes: Invalid, with the setting's path.
func (r *Reset) Check() error {
	if r.IdleMinutes != nil && *r.IdleMinutes < 1 {
		return badIdle("reset.idle_minutes", *r.IdleMinutes)
	}
	if r.Base != nil {
		if err := r.Base.check("reset"); err != nil {
			return err
		}
	}
	for name, rule := range r.ByType {
		switch typeNamed(name) {
		case TypeDirect, TypeGroup, TypeThread:
		default:
			return invalid("reset.by_type."+name, "is not a type of conversation; use dm, group or thread")
		}
		if err := rule.check("reset.by_type." + name); err != nil {
			return err
		}
	}
	for name, rule := range r.ByChannel {
		if err := rule.check("reset.by_channel." + name); err != nil {
			return err
		}
	}
	return nil
}

func (r *Rule) check(path string) error {
	switch r.Mode {
	case "", ModeDaily, ModeIdle, ModeBoth, ModeOff:
	default:
		return invalid(path+".mode", "is %q; use daily, idle, both or off", clip(string(r.Mode)))
	}
	if r.AtHour != nil && (*r.AtHour < 0 || *r.AtHour > 23) {
		return invalid(path+".at_hour", "is %d; use an hour from 0 to 23", *r.AtHour)
	}
	if r.IdleMinutes != nil && *r.IdleMinutes < 1 {
		return badIdle(path+".idle_minutes", *r.IdleMinutes)
	}
	if r.IdleMinutes != nil && *r.IdleMinutes > maxIdleMinutes {
		return invalid(path+".idle_minutes", "is %d; at most %d minutes (ten years) are allowed", *r.IdleMinutes,
			maxIdleMinutes)
	}
	return nil
}

// maxIdleMinutes keeps a window far below the limit of time.Duration.
const maxIdleMinutes = 10 * 366 * 24 * 60

func badIdle(path string, minutes int) error {
	return invalid(path, "is %d; use a whole number of minutes from 1, or omit it for no idle window", minutes)
}
