// Package dialect turns a provider's wire form into messages and messages into a provider's
// wire form. It is the registry; each form is a package of its own below it.
package dialect

import (
	"encoding/json"
	"slices"
	"strings"

	"sessiond/internal/dialect/anthropic"
	"sessiond/internal/dialect/gemini"
	"sessiond/internal/dialect/native"
	"sessiond/internal/dialect/openaichat"
	"sessiond/internal/dialect/responses"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// The names of the dialects, as messages.dialect and the wire have them.
const (
	Native          = native.Name
	OpenAIChat      = openaichat.Name
	OpenAIResponses = responses.Name
	Anthropic       = anthropic.Name
	Gemini          = gemini.Name
)

// Decoded, Request and Sent are what goes in and out of every form.
type (
	Decoded = wire.Decoded
	Request = wire.Request
	Sent    = wire.Sent
)

// forms lists the dialects that this version reads and writes.
func forms() []wire.Form {
	return []wire.Form{
		native.Form(),
		openaichat.Form(),
		responses.Form(),
		anthropic.Form(),
		gemini.Form(),
	}
}

// Decode reads messages in the dialect of that name; "" detects it. Errors carry the path of
// the value at fault: messages[3].content[0]. Codes: Malformed, Invalid, TooLarge.
func Decode(name string, raw []json.RawMessage) (Decoded, error) {
	if name == "" {
		detected, err := Detect(raw)
		if err != nil {
			return Decoded{}, err
		}
		name = detected
	}
	form, err := find(name)
	if err != nil {
		return Decoded{}, err
	}
	return form.Decode(raw)
}

// Export returns messages in the dialect of that name. What was decoded from it comes back as
// the same JSON values. Codes: Invalid.
func Export(name string, msgs []session.Message) ([]json.RawMessage, error) {
	form, err := find(name)
	if err != nil {
		return nil, err
	}
	return form.Export(msgs)
}

// Send makes what a provider accepts as a request. Codes: Invalid.
func Send(name string, in Request) (Sent, error) {
	form, err := find(name)
	if err != nil {
		return Sent{}, err
	}
	if form.Send == nil {
		return Sent{}, session.Errorf(session.Invalid, "dialect %q is no provider's form: name one of %s", name, names(sendable))
	}
	return form.Send(in)
}

// Names lists the dialects that Decode and Export know. Send knows those that are Sendable.
func Names() []string {
	var all []string
	for _, f := range forms() {
		all = append(all, f.Name)
	}
	return all
}

// Sendable reports whether Send knows the dialect.
func Sendable(name string) bool {
	return slices.ContainsFunc(forms(), func(f wire.Form) bool { return f.Name == name && sendable(f) })
}

func find(name string) (wire.Form, error) {
	all := forms()
	if i := slices.IndexFunc(all, func(f wire.Form) bool { return f.Name == name }); i >= 0 {
		return all[i], nil
	}
	return wire.Form{}, session.Errorf(session.Invalid, "unknown dialect %q: name one of %s", wire.Clip(name), names(func(wire.Form) bool { return true }))
}

func sendable(f wire.Form) bool { return f.Send != nil }

func names(which func(wire.Form) bool) string {
	var found []string
	for _, f := range forms() {
		if which(f) {
			found = append(found, f.Name)
		}
	}
	return strings.Join(found, ", ")
}
