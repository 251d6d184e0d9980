package contextmgr

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/callid"
	"sessiond/internal/session"
)

// Policy is what a provider requires of a conversation. Four rules hold for all providers and are
// no field: calls and results are paired, missing results are closed with an error (Repair), images
// keep to limits (images.go), and reasoning with nothing behind it is left out (the dialects' Send).
// Send also joins neighbours of one role. Rules: OpenClaw, transcript-policy.
type Policy struct {
	CallIDs     callid.Rule `json:"call_ids"`
	Signatures  Signatures  `json:"signatures"`
	DropBlank   bool        `json:"drop_empty_assistant"` // drop blank replies and blank texts in replies
	LeadingUser bool        `json:"leading_user"`         // the first message has the user's role
}

// Signatures says which signatures of thoughts a provider is sent. The dialect decides about
// signatures of another maker's model.
type Signatures string

// The rules for signatures.
const (
	KeepSignatures Signatures = "keep"
	DropForeign    Signatures = "drop_foreign" // drop ids of OpenAI's messages
	Base64Only     Signatures = "base64_only"
)

// PolicyOf returns the policy of a provider: by the dialect if only one provider speaks it, else by
// the provider's name or the model's, which may have its maker before it.
func PolicyOf(provider, dialect, model string) Policy {
	model = strings.ToLower(model)
	is := func(name string, models ...string) bool {
		return strings.EqualFold(provider, name) || slices.ContainsFunc(models, func(word string) bool { return strings.Contains(model, word) })
	}
	switch {
	case dialect == "anthropic":
		return Policy{CallIDs: callid.FixInvalid, Signatures: DropForeign, DropBlank: true}
	case dialect == "gemini":
		return Policy{CallIDs: callid.Strict, Signatures: Base64Only, DropBlank: true, LeadingUser: true}
	case is("mistral", "mistral", "mixtral", "codestral", "pixtral", "devstral", "ministral"):
		return Policy{CallIDs: callid.Strict9, Signatures: DropForeign, DropBlank: true}
	case is("gemini", "gemini"): // through OpenRouter, or Google's server of OpenAI's form
		return Policy{CallIDs: callid.Keep, Signatures: Base64Only, DropBlank: true}
	}
	return Policy{CallIDs: callid.Keep, Signatures: KeepSignatures}
}

// leadText stands in the user's role before a context that would begin with a reply.
const leadText = "(The beginning of the conversation is not part of this context.)"

// applyPolicy brings paired items into the shape that a provider requires.
func (d *Draft) applyPolicy(p Policy, dialect string) {
	ids := callid.New(p.CallIDs)
	kept, renamed := d.Items[:0], 0
	for i := range d.Items {
		item := &d.Items[i]
		if p.DropBlank && !item.dropBlank() {
			d.Losses = append(d.Losses, fmt.Sprintf("%s: only white space, left out", item.Message.ID))
			continue
		}
		native := p.CallIDs == callid.Strict && item.Message.Dialect == dialect
		renamed += item.renameCalls(ids, native)
		if n := item.dropSignatures(p.Signatures); n > 0 {
			d.Losses = append(d.Losses, fmt.Sprintf("%s: %d signatures of another provider left out", item.Message.ID, n))
		}
		kept = append(kept, *item)
	}
	if p.LeadingUser && len(kept) > 0 && kept[0].Message.Role == session.Assistant {
		kept = slices.Insert(kept, 0, newUserItem(ItemLead, session.TextPart(leadText)))
		d.Adjustments = append(d.Adjustments, "the context begins with a reply, so a short text in the user's role precedes it")
	}
	if renamed > 0 {
		d.Adjustments = append(d.Adjustments, fmt.Sprintf("%d calls and their results are sent under other ids, which this provider accepts", renamed))
	}
	d.Items = kept
}

// copyParts copies the item's parts before they are changed: a stored message's are shared.
func (item *Item) copyParts() {
	if !item.ownsParts {
		item.Message.Parts = slices.Clone(item.Message.Parts)
		item.ownsParts = true
	}
}

// dropBlank drops blank texts from a reply and reports whether anything is left. A part with a
// signature is never blank.
func (item *Item) dropBlank() bool {
	m := &item.Message
	blank := func(p session.Part) bool {
		return p.Kind == session.PartText && strings.TrimSpace(p.Content()) == "" && !maySign(&p)
	}
	if m.Role != session.Assistant || !slices.ContainsFunc(m.Parts, blank) {
		return true
	}
	item.copyParts()
	m.Parts = slices.DeleteFunc(m.Parts, blank)
	item.Changed = true
	return len(m.Parts) > 0
}

// renameCalls sets the ids that calls and results are sent with, and returns how many calls
// changed. Calls that the provider executed itself keep their ids; native: all calls do.
func (item *Item) renameCalls(ids *callid.Names, native bool) int {
	m := &item.Message
	renamed := 0
	lastResult := "" // the sent id of the result that further parts belong to
	for i := range m.Parts {
		p := &m.Parts[i]
		var sent string
		switch {
		case p.CallID == "":
			continue
		case m.Role == session.Tool && p.Kind == session.PartToolResult:
			sent = ids.Answer(p.CallID)
			lastResult = sent
		case m.Role == session.Tool && lastResult != "":
			sent = lastResult
		case p.Kind != session.PartToolCall:
			continue
		case native || executedInline(m, p.CallID):
			ids.Own(p.CallID)
			continue
		default:
			if sent = ids.Call(p.CallID); sent != p.CallID {
				renamed++
			}
		}
		if sent != p.CallID {
			item.copyParts()
			m.Parts[i].CallID = sent
		}
	}
	return renamed
}

// maySign reports whether a part's extra fields may hold a signature.
func maySign(p *session.Part) bool { return strings.Contains(string(p.Extra), "ignature") }

// dropSignatures drops the signatures that a rule rejects and returns how many.
func (item *Item) dropSignatures(rule Signatures) int {
	if rule == KeepSignatures || rule == "" {
		return 0
	}
	n := 0
	for i := range item.Message.Parts {
		old := item.Message.Parts[i].Extra
		mentions := func(field string) bool { return strings.Contains(string(old), field) }
		if !mentions(thoughtField) && !mentions(thoughtField2) && !mentions(textField) {
			continue
		}
		if extra, dropped := withoutSignatures(old, rule); dropped > 0 {
			item.copyParts()
			item.Message.Parts[i].Extra = extra
			n += dropped
		}
	}
	return n
}

// Fields with a signature that a rule may reject.
const (
	thoughtField  = "thoughtSignature"
	thoughtField2 = "thought_signature"
	textField     = "textSignature"
)

// withoutSignatures drops the rejected signatures from extra fields. Dialects keep them at the top
// or under fields; pi and Google's form of OpenAI use names of their own.
func withoutSignatures(extra session.JSON, rule Signatures) (session.JSON, int) {
	var fields map[string]jsontext.Value
	if !decode(extra, &fields) {
		return extra, 0
	}
	n := 0
	for name, value := range fields {
		switch name {
		case thoughtField, thoughtField2, textField:
			var text string
			if json.Unmarshal(value, &text) != nil || !rule.accepts(text) {
				delete(fields, name)
				n++
			}
		case "rest", "extra_content", "google":
			inner, dropped := withoutSignatures(session.JSON(value), rule)
			if dropped > 0 {
				fields[name] = jsontext.Value(inner)
				n += dropped
			}
		}
	}
	if n == 0 {
		return extra, 0
	}
	return session.JSONOf(fields), n
}

func (rule Signatures) accepts(signature string) bool {
	switch rule {
	case DropForeign:
		return !strings.HasPrefix(signature, "msg_")
	case Base64Only:
		return DropForeign.accepts(signature) && isBase64(signature)
	}
	return true
}

// isBase64 accepts either alphabet, with or without padding, if decoding and encoding give the same
// text.
func isBase64(s string) bool {
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(s, "-_") {
		encoding = base64.RawURLEncoding
	}
	data, err := encoding.Strict().DecodeString(strings.TrimRight(s, "="))
	return err == nil && len(data) > 0
}
