package routing

import (
	"time"

	"sessiond/internal/session"
)

// turnPatience is the time after which a silent turn counts as abandoned.
const turnPatience = 10 * time.Minute

// TurnRuns reports from a conversation's last message whether a turn is running: a person asked, a
// tool answered, or the reply called tools or was paused, and that is not too long ago.
func TurnRuns(role session.Role, finish session.Finish, at, now time.Time) bool {
	if now.Sub(at) > turnPatience {
		return false
	}
	switch role {
	case session.User, session.Tool:
		return true
	case session.Assistant:
		return finish == session.FinishToolCalls || finish == session.FinishPaused
	}
	return false
}
