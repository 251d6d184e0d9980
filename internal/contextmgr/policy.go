package contextmgr

import (
	"slices"
	"strings"

	"sessiond/internal/callid"
)

// Policy is what a provider asks of the copy of a conversation that it is sent. Four rules
// hold for all of them and are no field: calls and results are paired, what is missing is
// closed with an error (Repair), images keep to limits (images.go), and reasoning with nothing
// behind it is left out (the dialects' Send). Joining neighbours of one role is a matter of the
// wire form, so Send does it. Rules: OpenClaw, transcript-policy.
type Policy struct {
	CallIDs     callid.Rule `json:"call_ids"`
	Signatures  Signatures  `json:"signatures"`
	DropBlank   bool        `json:"drop_empty_assistant"` // replies, and texts in them, of nothing but white space
	LeadingUser bool        `json:"leading_user"`         // something of the user's role stands first
}

// Signatures says which signatures of thoughts a provider is sent. Whether it can read those
// of another maker's model is for the dialect to know.
type Signatures string

// The rules for signatures.
const (
	KeepSignatures Signatures = "keep"
	DropForeign    Signatures = "drop_foreign" // not those that are ids of OpenAI's messages
	Base64Only     Signatures = "base64_only"
)

// policyRow is a provider with what it is known by: its dialect, or, where several speak one
// form, its own name or words in those of its models.
type policyRow struct {
	name     string
	dialects []string
	models   []string
	policy   Policy
}

// policies is the table, the first row that fits counts. What no row fits is sent as it is.
func policies() []policyRow {
	return []policyRow{
		{
			name: "anthropic", dialects: []string{"anthropic"},
			policy: Policy{CallIDs: callid.FixInvalid, Signatures: DropForeign, DropBlank: true},
		},
		{
			name: "google", dialects: []string{"gemini"},
			policy: Policy{CallIDs: callid.Strict, Signatures: Base64Only, DropBlank: true, LeadingUser: true},
		},
		{
			name: "mistral", models: []string{"mistral", "mixtral", "codestral", "pixtral", "devstral", "ministral"},
			policy: Policy{CallIDs: callid.Strict9, Signatures: DropForeign, DropBlank: true},
		},
		{ // by way of OpenRouter, or of Google's own server of OpenAI's form
			name: "gemini", models: []string{"gemini"},
			policy: Policy{CallIDs: callid.Keep, Signatures: Base64Only, DropBlank: true},
		},
	}
}

// PolicyOf gives the policy of whoever is asked: the dialect decides where only one provider
// speaks it, then the provider's name or the model's, which may have its maker before it.
func PolicyOf(provider, dialect, model string) Policy {
	model = strings.ToLower(model)
	for _, row := range policies() {
		known := slices.Contains(row.dialects, dialect)
		if len(row.dialects) == 0 {
			known = strings.EqualFold(provider, row.name) || slices.ContainsFunc(row.models, func(word string) bool { return strings.Contains(model, word) })
		}
		if known {
			return row.policy
		}
	}
	return Policy{CallIDs: callid.Keep, Signatures: KeepSignatures}
}
