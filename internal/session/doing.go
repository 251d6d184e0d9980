package session

import "time"

// Actor is who acts in a conversation now.
type Actor string

// The actors.
const (
	ActsModel  Actor = "model"  // it was asked, and has not answered
	ActsTool   Actor = "tool"   // it was called, and has no result; its program may also ask a person for permission
	ActsPerson Actor = "person" // the model is done with its turn
	ActsNobody Actor = "nobody" // the same, for a while
)

// Doing is who acts in a conversation, by its newest messages. The zero value: that is not known.
type Doing struct {
	Actor Actor
	Tool  string // its name
	Since Time
	Until Time // from when on this is no longer known, or another actor's turn
}

// How long the newest message says who acts. A model or a tool that takes longer may as well have been stopped, of
// which no program writes a word.
const (
	modelTime  = 10 * time.Minute
	toolTime   = time.Hour
	personTime = 15 * time.Minute
	idleTime   = 24 * time.Hour
)

// DoingAt returns who acts at a time, by the newest messages of a path, the newest one first.
func DoingAt(newest []*Message, now time.Time) Doing {
	answered := map[string]bool{}
	var result *Message // the newest one
	for _, m := range newest {
		switch {
		case m.Kind == KindMarker || m.Kind == KindCustom || m.Kind == KindUnknown || m.Role == System:
			continue // rows of the program
		case m.Role == Tool:
			for _, r := range m.Results() {
				answered[r.CallID] = true
			}
			if result == nil {
				result = m
			}
			continue
		case m.Role == User && result == nil && m.Kind == KindMessage && m.Origin == Person:
			return doing(Doing{Actor: ActsModel, Since: m.CreatedAt}, modelTime, now)
		case m.Role != Assistant:
			return Doing{}
		}
		return doingAfterReply(m, result, answered, now)
	}
	return Doing{}
}

// doingAfterReply returns who acts after a reply, of whose calls some have results.
func doingAfterReply(m, result *Message, answered map[string]bool, now time.Time) Doing {
	for _, call := range m.Calls() {
		if !answered[call.CallID] && !m.HasResultOf(call.CallID) && !m.Finish.Failed() {
			return doing(Doing{Actor: ActsTool, Tool: call.ToolName, Since: m.CreatedAt}, toolTime, now)
		}
	}
	switch {
	case result != nil:
		return doing(Doing{Actor: ActsModel, Since: result.CreatedAt}, modelTime, now)
	case len(m.Calls()) > 0:
		return Doing{}
	case m.Finish == FinishStop || m.Finish == FinishLength || m.Finish == FinishRefusal || m.Finish == FinishAborted:
		if now.Sub(m.CreatedAt.Time) < personTime {
			return doing(Doing{Actor: ActsPerson, Since: m.CreatedAt}, personTime, now)
		}
		return doing(Doing{Actor: ActsNobody, Since: m.CreatedAt}, idleTime, now)
	}
	return Doing{} // it failed, and a program may try again, or it does not say why it ended
}

// doing returns what is known for a while, and nothing behind it, or if the time of its message is still to come.
func doing(d Doing, lasts time.Duration, now time.Time) Doing {
	d.Until = At(d.Since.Add(lasts))
	if now.After(d.Until.Time) || d.Since.After(now.Add(time.Minute)) {
		return Doing{}
	}
	return d
}
