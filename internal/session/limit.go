package session

import (
	"strings"
	"time"
)

// Limit is how much of what a program's account may use in a window of time was used when the program noted it.
type Limit struct {
	Source   Source  `db:"source" json:"program"`
	Name     string  `db:"name" json:"name"`                 // the window: 5h, 7d, or as the program calls it
	Used     float64 `db:"used_percent" json:"used_percent"` // of the window, by all of the account's programs
	Reached  bool    `db:"reached" json:"reached"`           // the program answers nothing until ResetsAt
	ResetsAt Time    `db:"resets_at" json:"resets_at"`
	NotedAt  Time    `db:"noted_at" json:"noted_at"`
}

// UntilWords says until when the limit holds, in a zone: until 15:00, until Monday 15:00.
func (l *Limit) UntilWords(now time.Time) string {
	at := l.ResetsAt.In(now.Location())
	switch {
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
		return "until " + at.Format("15:04")
	case at.Before(now.AddDate(0, 0, 6)):
		return "until " + at.Format("Monday 15:04")
	}
	return "until " + at.Format("2 January 15:04")
}

var windowNames = strings.NewReplacer("five_hour", "5h", "seven_day", "7d", "_", " ")

// WindowName returns the name of one of Claude Code's limits as Limit has it: 5h, 7d, 7d opus.
func WindowName(of string) string { return windowNames.Replace(of) }
