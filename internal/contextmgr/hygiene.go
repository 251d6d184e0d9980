package contextmgr

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/callid"
	"sessiond/internal/session"
)

// noBeginning stands in the user's role before a context that would begin with a reply.
const noBeginning = "(The beginning of the conversation is not part of this context.)"

// clean brings items that are paired into the shape that a provider asks for: ids of calls,
// blank texts, signatures, who speaks first.
func (d *Draft) clean(p Policy, dialect string) {
	ids := callid.New(p.CallIDs)
	kept := d.Items[:0]
	for i := range d.Items {
		item := &d.Items[i]
		if p.DropBlank && !item.dropBlank() {
			d.Losses = append(d.Losses, fmt.Sprintf("%s: nothing but white space, left out", item.Message.ID))
			continue
		}
		own := p.CallIDs == callid.Strict && item.Message.Dialect == dialect
		if n := item.nameCalls(ids, own); n > 0 {
			d.renamed += n
		}
		if n := item.dropSignatures(p.Signatures); n > 0 {
			d.Losses = append(d.Losses, fmt.Sprintf("%s: %d signatures that are none of this provider's", item.Message.ID, n))
		}
		kept = append(kept, *item)
	}
	if p.LeadingUser && len(kept) > 0 && kept[0].Message.Role == session.Assistant {
		kept = slices.Insert(kept, 0, made(ItemLead, session.TextPart(noBeginning)))
		d.Adjustments = append(d.Adjustments, "a reply comes first, so a short text in the user's role was put before it")
	}
	if d.renamed > 0 {
		d.Adjustments = append(d.Adjustments, fmt.Sprintf("%d calls are sent under other ids, which this provider takes, their results with them", d.renamed))
	}
	d.Items = kept
}

// own gives the item parts of its own, to change them: those of a stored message are shared.
func (item *Item) own() {
	if !item.unshared {
		item.Message.Parts = slices.Clone(item.Message.Parts)
		item.unshared = true
	}
}

// dropBlank takes texts of white space out of a reply and tells whether anything is left. A
// part with a signature is never blank.
func (item *Item) dropBlank() bool {
	m := &item.Message
	blank := func(p session.Part) bool {
		return p.Kind == session.PartText && strings.TrimSpace(p.Content()) == "" && !maySign(&p)
	}
	if m.Role != session.Assistant || !slices.ContainsFunc(m.Parts, blank) {
		return true
	}
	item.own()
	m.Parts = slices.DeleteFunc(m.Parts, blank)
	item.Changed = true
	return len(m.Parts) > 0
}

// nameCalls gives calls and results the ids that they are sent with, and tells how many calls
// got another. Calls that a provider ran itself, with their results, keep those that it gave.
func (item *Item) nameCalls(ids *callid.Names, own bool) int {
	m := &item.Message
	n := 0
	result := "" // what the one before was sent under: what belongs to it follows
	for i := range m.Parts {
		p := &m.Parts[i]
		var sent string
		switch {
		case p.CallID == "":
			continue
		case m.Role == session.Tool && p.Kind == session.PartToolResult:
			sent = ids.Answer(p.CallID)
			result = sent
		case m.Role == session.Tool && result != "":
			sent = result
		case p.Kind != session.PartToolCall:
			continue
		case own || executedInline(m, p.CallID):
			ids.Own(p.CallID)
			continue
		default:
			if sent = ids.Call(p.CallID); sent != p.CallID {
				n++
			}
		}
		if sent != p.CallID {
			item.own()
			m.Parts[i].CallID = sent
		}
	}
	return n
}

// maySign tells whether there can be a signature in what the wire form held beside the text.
func maySign(p *session.Part) bool { return strings.Contains(string(p.Extra), "ignature") }

// dropSignatures takes signatures out that a rule refuses and tells how many. Everything else
// that the part says stays.
func (item *Item) dropSignatures(rule Signatures) int {
	n := 0
	for i := range item.Message.Parts {
		if p := &item.Message.Parts[i]; rule != KeepSignatures && rule != "" && maySign(p) {
			if extra, dropped := withoutSignatures(p.Extra, rule); dropped > 0 {
				item.own()
				item.Message.Parts[i].Extra = extra
				n += dropped
			}
		}
	}
	return n
}

// withoutSignatures drops the refused signatures of an extra, whichever form wrote it: the
// wire's fields stand in it, or under fields, and pi and Google's form of OpenAI have names of
// their own.
func withoutSignatures(extra session.JSON, rule Signatures) (session.JSON, int) {
	var fields map[string]json.RawMessage
	if !decode(extra, &fields) {
		return extra, 0
	}
	n := 0
	for name, value := range fields {
		switch name {
		case "thoughtSignature", "thought_signature", "textSignature":
			var text string
			if json.Unmarshal(value, &text) != nil || !rule.keeps(text) {
				delete(fields, name)
				n++
			}
		case "fields", "extra_content", "google":
			inner, dropped := withoutSignatures(session.JSON(value), rule)
			if dropped > 0 {
				fields[name] = json.RawMessage(inner)
				n += dropped
			}
		}
	}
	if n == 0 {
		return extra, 0
	}
	return session.JSONOf(fields), n
}

// keeps tells whether a rule lets a signature through.
func (rule Signatures) keeps(signature string) bool {
	switch rule {
	case DropForeign:
		return !strings.HasPrefix(signature, "msg_")
	case Base64Only:
		return DropForeign.keeps(signature) && isBase64(signature)
	}
	return true
}

// isBase64 takes either alphabet, with or without padding, as long as encoding the bytes gives
// the same text.
func isBase64(s string) bool {
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(s, "-_") {
		encoding = base64.RawURLEncoding
	}
	data, err := encoding.Strict().DecodeString(strings.TrimRight(s, "="))
	return err == nil && len(data) > 0
}
