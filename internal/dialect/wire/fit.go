package wire

import (
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/dialect/callid"
	"sessiond/internal/session"
)

// Rules are what a provider requires of a conversation before it is encoded. Other rules hold for all providers and are
// no field: calls and results are paired, and missing results are closed with an error (the context manager); images
// keep to limits, and a note replaces kinds that the model lacks (Fit); reasoning with nothing behind it is left out,
// and neighbours of one role are joined (Send). The rules come from OpenClaw's transcript policy.
type Rules struct {
	CallIDs     callid.Rule `json:"call_ids"`
	Signatures  Signatures  `json:"signatures"`
	DropBlank   bool        `json:"drop_empty_assistant"` // drop blank replies and blank texts in replies
	LeadingUser bool        `json:"leading_user"`         // the first message has the user's role
}

// RulesOfModel returns the rules of a form that many providers speak: by the provider's name or the model's, which may
// have its maker before it.
func RulesOfModel(provider, model string) Rules {
	model = strings.ToLower(model)
	is := func(name string, models ...string) bool {
		return strings.EqualFold(provider, name) ||
			slices.ContainsFunc(models, func(word string) bool { return strings.Contains(model, word) })
	}
	switch {
	case is("mistral", "mistral", "mixtral", "codestral", "pixtral", "devstral", "ministral"):
		return Rules{CallIDs: callid.Strict9, Signatures: DropForeign, DropBlank: true}
	case is("gemini", "gemini"): // through OpenRouter, or Google's server of OpenAI's form
		return Rules{CallIDs: callid.Keep, Signatures: Base64Only, DropBlank: true}
	}
	return Rules{CallIDs: callid.Keep, Signatures: KeepSignatures}
}

// LeadText stands in the user's role before a context that would begin with a reply.
const LeadText = "(The beginning of the conversation is not part of this context.)"

// Fit changes what a provider with these rules would reject.
func (rules Rules) Fit(in session.FitRequest) session.Fitted {
	out := session.Fitted{Messages: make([]session.FittedMessage, 0, len(in.Messages)+1)}
	all := make([]fitted, 0, len(in.Messages)+1)
	ids, renamed := callid.New(rules.CallIDs), 0
	for i := range in.Messages {
		m := fitted{FittedMessage: session.FittedMessage{Message: &in.Messages[i], From: i}}
		if rules.DropBlank && !m.dropBlank() {
			out.Notes = append(out.Notes, m.loss("only white space, left out"))
			continue
		}
		native := rules.CallIDs == callid.Strict && m.Dialect == in.Dialect
		renamed += m.renameCalls(ids, native)
		if n := m.dropSignatures(rules.Signatures); n > 0 {
			out.Notes = append(out.Notes, m.loss(fmt.Sprintf("%d signatures of another provider left out", n)))
		}
		all = append(all, m)
	}
	if rules.LeadingUser && len(all) > 0 && all[0].Role == session.Assistant {
		all = slices.Insert(all, 0, fitted{FittedMessage: leadMessage()})
		out.Notes = append(out.Notes,
			wholeNote("the context begins with a reply, so a short text in the user's role precedes it"))
	}
	if renamed > 0 {
		out.Notes = append(out.Notes,
			wholeNote(fmt.Sprintf("%d calls and their results are sent under other ids, which this provider accepts", renamed)))
	}
	for i := range all {
		m := &all[i]
		out.Notes = append(out.Notes, m.dropUnsupported(in.Modalities)...)
		out.Notes = append(out.Notes, m.limitImages(in.Shrink)...)
		out.Messages = append(out.Messages, m.FittedMessage)
	}
	return out
}

func wholeNote(text string) session.FitNote { return session.FitNote{From: -1, Text: text} }

// leadMessage returns the message before a context that would begin with a reply.
func leadMessage() session.FittedMessage {
	return session.FittedMessage{From: -1, Changed: true, Message: &session.Message{
		Kind: session.KindMessage, Role: session.User, Origin: session.Program, InContext: true,
		Parts: []session.Part{session.TextPart(LeadText)},
	}}
}

// fitted is a message that is being fitted.
type fitted struct {
	session.FittedMessage
	ownsParts bool // its parts may be changed: those of the request are shared
}

func (m *fitted) loss(text string) session.FitNote {
	return session.FitNote{From: m.From, Text: text, Loss: true}
}

// copyParts copies the parts before they are changed.
func (m *fitted) copyParts() {
	if !m.ownsParts {
		m.Parts, m.ownsParts = slices.Clone(m.Parts), true
	}
}

// dropBlank drops blank texts from a reply and reports whether anything is left. A part with a signature is never
// blank.
func (m *fitted) dropBlank() bool {
	blank := func(p session.Part) bool {
		return p.Kind == session.PartText && strings.TrimSpace(p.Content()) == "" && !maySign(&p)
	}
	if m.Role != session.Assistant || !slices.ContainsFunc(m.Parts, blank) {
		return true
	}
	m.copyParts()
	m.Parts = slices.DeleteFunc(m.Parts, blank)
	m.Changed = true
	return len(m.Parts) > 0
}

// renameCalls sets the ids that calls and results are sent with, and returns how many calls changed. Calls that the
// provider executed itself keep their ids; native: all calls do.
func (m *fitted) renameCalls(ids *callid.Names, native bool) int {
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
		case native || m.HasResultOf(p.CallID):
			ids.Own(p.CallID)
			continue
		default:
			if sent = ids.Call(p.CallID); sent != p.CallID {
				renamed++
			}
		}
		if sent != p.CallID {
			m.copyParts()
			m.Parts[i].CallID = sent
		}
	}
	return renamed
}

// dropUnsupported replaces parts of a kind that the model does not accept by a note. modalities are the accepted kinds;
// none: unknown.
func (m *fitted) dropUnsupported(modalities []string) (notes []session.FitNote) {
	for i := range m.Parts {
		kind := m.Parts[i].Kind
		isMedium := kind == session.PartImage || kind == session.PartAudio || kind == session.PartFile
		if !isMedium || len(modalities) == 0 || slices.Contains(modalities, string(kind)) {
			continue
		}
		m.copyParts()
		m.Changed = true
		m.Parts[i] = session.TextPart(fmt.Sprintf("[%s left out: this model does not take any]", kind))
		notes = append(notes, m.loss(fmt.Sprintf("this model accepts no %s; a note replaces it", kind)))
	}
	return notes
}
