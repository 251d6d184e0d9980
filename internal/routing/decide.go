package routing

import (
	"cmp"
	"time"
)

// Event is the kind of an arrival at a key.
type Event string

// The events.
const (
	EventMessage Event = "message" // from a person or a channel
	EventSystem  Event = "system"  // a heartbeat, a job's event, housekeeping: neither resets nor refreshes
	EventRun     Event = "run"     // a job or a webhook begins
	EventReset   Event = "reset"   // a program asks for a new generation
	EventFailed  Event = "failed"  // a run ended in a provider's error
)

// Generation has the facts about a key's current generation that decisions need.
type Generation struct {
	StartedAt time.Time
	InboundAt time.Time // last message from outside; zero: none yet
	ActiveAt  time.Time // last message of a turn that such a message began
	Running   bool      // a turn is running
}

// Arrival is an event with the facts that a decision needs.
type Arrival struct {
	Event   Event
	At      time.Time
	Message Message
	Error   string // of EventFailed: the provider's words
	Class   Class  // of the key
	Channel string // used if the key names none
	Zone    *time.Location
}

// Decision is which generation an arrival belongs to: the current one, or a new one.
type Decision struct {
	New       bool
	Reason    Reason // why the current one ended; "": it goes on, or there was none
	Trigger   Trigger
	Policy    Policy
	Freshness Freshness
	Recovery  Recovery // of EventFailed
}

// Decide chooses the generation of an arrival at a key whose current generation is given, nil for
// none. While a turn runs, daily and idle rules do not end its generation: the message joins the
// turn.
func (c *Config) Decide(current *Generation, a Arrival) Decision {
	channel := cmp.Or(a.Class.Channel, a.Channel)
	d := Decision{Policy: c.Reset.Policy(a.Class.Type, channel), Freshness: Freshness{Fresh: true}}
	if a.Event == EventMessage {
		d.Trigger = c.Triggered(a.Message)
	}
	if a.Event == EventFailed {
		d.Recovery = Recover(a.Error)
	}
	if current == nil {
		d.New = true
		return d
	}
	inbound := current.InboundAt
	if inbound.IsZero() {
		inbound = current.StartedAt
	}
	d.Freshness = d.Policy.Fresh(a.At, inbound, current.ActiveAt, a.Zone)
	switch a.Event {
	case EventRun:
		d.Reason = EndRun
	case EventReset:
		d.Reason = EndRPC
	case EventFailed:
		d.Reason = d.Recovery.Ends
	case EventMessage:
		switch {
		case d.Trigger.Reset:
			d.Reason = EndCommand
		case !d.Freshness.Fresh && !current.Running:
			d.Reason = d.Freshness.Reason
		}
	}
	d.New = d.Reason != ""
	return d
}
