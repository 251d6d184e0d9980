package summarize

import (
	"regexp"
	"strings"
)

// What the model decided or found out, and what a tool established, is worth more than what either narrates.
var (
	modelFinding = regexp.MustCompile(`(?i)\b(decision:|decided (to|on|against)|root cause|the (cause|reason|culprit|problem|bug) (is|was)|turned out|turns out|i measured|measured at|so i (kept|chose|used|left)|i chose|we (chose|agreed)|the trade-?off|instead of|because|die ursache|der grund|entschieden|根本原因|原因是|决定|原因は|決め|判明)`)
	toolFinding  = regexp.MustCompile(`(?i)\b(panic|exception|traceback|fatal|fail(ed|ure)?|error)\b.*(:\d+|\d)|:\d+(:\d+)?: |\b\d[\d,.]* (passed|failed|tests?|errors?|warnings?|rows?|matches|files changed|insertions)\b|\b\d[\d.,]* ?(ms|µs|ns|s|mb|gb|kb|mib|gib|%|req/s|ops/s|mb/s)\b`)
)

// isFinding tells whether a sentence of the model or of a tool holds a decision or a result.
func (s *sentence) isFinding() bool {
	switch s.by {
	case byModel:
		return modelFinding.MatchString(s.text)
	case byTool:
		return strings.ContainsAny(s.text, "0123456789") && toolFinding.MatchString(s.text)
	case byPerson, byProgram:
	}
	return false
}
