package routing

import "strings"

// Failure is the class of a provider's error.
type Failure string

// The failures.
const (
	FailOverflow   Failure = "overflow"           // too large: compact and retry
	FailCompaction Failure = "compaction_failure" // compaction itself was too large
	FailRoleOrder  Failure = "role_order"
	FailCorrupt    Failure = "corrupt"
	FailOther      Failure = "other"
)

// Recovery is a failure and whether it ends the generation. The generation keeps its messages.
type Recovery struct {
	Class Failure
	Ends  Reason // "": the generation goes on
}

// Recover classifies a provider's error message.
func Recover(message string) Recovery {
	m := strings.ToLower(message)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(m, w) {
				return true
			}
		}
		return false
	}
	overflow := !has("too small", "minimum is") && (has(
		"prompt is too long", "prompt too long", "prompt too large", "request_too_large", "maximum context length",
		"context length exceeded", "context_length_exceeded", "exceeds model context window", "context overflow",
		"exceeds the context window", "request size exceeds") || has("413") && has("too large"))
	switch {
	case overflow && has("compact", "summariz", "summaris"):
		return Recovery{Class: FailCompaction, Ends: EndOverflow}
	case overflow:
		return Recovery{Class: FailOverflow}
	case has("roles must alternate", "incorrect role information"):
		return Recovery{Class: FailRoleOrder, Ends: EndRoleOrder}
	case has("function call turn comes immediately after"):
		return Recovery{Class: FailCorrupt, Ends: EndCorrupt}
	}
	return Recovery{Class: FailOther}
}
