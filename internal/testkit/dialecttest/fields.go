package dialecttest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Object is a JSON object.
type Object map[string]jsontext.Value

// Need checks fields. A field is written name:type, or name?:type if it may be missing, and fields are parted by
// spaces. Types:
//
//	text, number, flag, list, object   as JSON has them; without a type a field is any value
//	name                               a text that is not empty
//	word, word64                       letters, digits, _ and -, at most so many
//	data                               bytes in base64, not none
//	a|b                                one of these texts
//
// A type that ends in ? also allows null.
func (o Object) Need(fields string) error {
	for field := range strings.FieldsSeq(fields) {
		name, kind, _ := strings.Cut(field, ":")
		name, optional := strings.CutSuffix(name, "?")
		value, given := o[name]
		kind, nullable := strings.CutSuffix(kind, "?")
		switch {
		case !given && optional, nullable && string(value) == "null":
		case !given:
			return fmt.Errorf("%s is missing", name)
		case !isA(kind, value):
			return fmt.Errorf("%s is no %s: %.80s", name, kind, value)
		}
	}
	return nil
}

var wordOnly = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

func isA(kind string, value jsontext.Value) bool {
	var text string
	isText := value[0] == '"' && json.Unmarshal(value, &text) == nil
	switch kind {
	case "":
		return true
	case "text":
		return isText
	case "name":
		return text != ""
	case "word":
		return wordOnly.MatchString(text)
	case "word64", "word128":
		return isA("word", value) && len(text) <= map[string]int{"word64": 64, "word128": 128}[kind]
	case "data":
		_, err := base64.StdEncoding.DecodeString(text)
		return text != "" && err == nil
	case "number":
		return value[0] == '-' || value[0] >= '0' && value[0] <= '9'
	case "flag":
		return value[0] == 't' || value[0] == 'f'
	case "list":
		return value[0] == '['
	case "object":
		return value[0] == '{'
	}
	return isText && slices.Contains(strings.Split(kind, "|"), text)
}

// Text returns a field's text; "" if it is none.
func (o Object) Text(name string) (s string) {
	_ = json.Unmarshal(o[name], &s) // Need checks it
	return s
}

// Inner returns a field that is an object; nil if it is none.
func (o Object) Inner(name string) (in Object) {
	_ = json.Unmarshal(o[name], &in)
	return in
}

// only decodes an object that has these fields, as Need takes them, and no others.
func only(raw []byte, fields string) (Object, error) {
	var o Object
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	if o == nil {
		return nil, errors.New("null where an object must be")
	}
	var names []string
	for field := range strings.FieldsSeq(fields) {
		name, _, _ := strings.Cut(field, ":")
		names = append(names, strings.TrimSuffix(name, "?"))
	}
	for name := range o {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("field %q is not accepted here", name)
		}
	}
	return o, o.Need(fields)
}

// kind returns the type that an object says it has.
func kind(raw []byte) string {
	var o struct{ Type string }
	if json.Unmarshal(raw, &o) != nil {
		return ""
	}
	return o.Type
}

// array decodes an array that must not be empty.
func array(raw []byte) ([]jsontext.Value, error) {
	var a []jsontext.Value
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, err
	}
	if len(a) == 0 {
		return nil, errors.New("must be a non-empty array")
	}
	return a, nil
}

// each checks the elements of an array, which must not be empty, and says which one is wrong.
func each(field string, raw []byte, check func(k string, e []byte) error) error {
	elements, err := array(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	for i, e := range elements {
		if err := check(kind(e), e); err != nil {
			return fmt.Errorf("%s[%d] (%s): %w", field, i, kind(e), err)
		}
	}
	return nil
}

// dataURL checks a data: URL in base64, of one of the media types if any are named.
func dataURL(url string, mediaTypes ...string) error {
	head, data, _ := strings.Cut(url, ",")
	rest, isData := strings.CutPrefix(head, "data:")
	mediaType, isBase64 := strings.CutSuffix(rest, ";base64")
	if !isData || !isBase64 || len(mediaTypes) > 0 && !slices.Contains(mediaTypes, mediaType) ||
		!strings.Contains(mediaType, "/") {
		return fmt.Errorf("url begins with %.60q", head)
	}
	if _, err := base64.StdEncoding.DecodeString(data); err != nil || data == "" {
		return fmt.Errorf("url holds no base64: %w", err)
	}
	return nil
}

func isAddress(url string) bool {
	return strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")
}
