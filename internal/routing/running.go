package routing

import (
	"time"

	"sessiond/internal/session"
)

// turnPatience is how long a turn may say nothing before it is taken for given up.
const turnPatience = 10 * time.Minute

// TurnRuns tells from a conversation's last message whether a turn is running: somebody asked
// or a tool answered, the reply is not there yet, and it is not too long ago. A reply that
// calls tools or was paused is none.
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
