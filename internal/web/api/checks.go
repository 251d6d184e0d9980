package api

import (
	"slices"
	"strings"

	"sessiond/internal/session"
)

// oneOf checks that a field has one of the allowed values; "" among them allows its absence.
// Codes: Invalid.
func oneOf(field, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	names := slices.DeleteFunc(slices.Clone(allowed), func(s string) bool { return s == "" })
	what := "must be one of " + strings.Join(names, ", ")
	return session.Errorf(session.Invalid, "%s %s", field, what).At(field, "%s", what)
}

// maxTokens keeps sums of callers' numbers far from overflow.
const maxTokens = 1 << 40

// positive checks a number of tokens that is at least 1, if it is present. Codes: Invalid.
func positive(field string, value *int64) error {
	if value == nil || *value > 0 && *value <= maxTokens {
		return nil
	}
	return session.Errorf(session.Invalid, "%s must be a number of tokens, 1 or more", field).
		At(field, "must be between 1 and %d", int64(maxTokens))
}

// notNegative checks a number that is at least 0, if it is present. Codes: Invalid.
func notNegative(field string, value *int64) error {
	if value == nil || *value >= 0 && *value <= maxTokens {
		return nil
	}
	return session.Errorf(session.Invalid, "%s must be 0 or more", field).
		At(field, "must be between 0 and %d", int64(maxTokens))
}
