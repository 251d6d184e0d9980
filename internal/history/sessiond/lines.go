// Package sessiond writes sessions whole as lines of JSON, and imports such a file with every
// name, so that exporting it again gives the same bytes. docs/export.md is the format.
package sessiond

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Version is that of the format. A reader takes files of its own and all earlier ones; types
// of lines and fields that it does not know, which a later program of the same version may
// write, are skipped.
const Version = 1

// The lines around the store's: one export line, then for each session its line and what belongs
// to it, then the store's own data, then one end line.
const (
	lineExport = "export"
	lineEnd    = "end"
)

type exportLine struct {
	Type    string `json:"type"`
	Program string `json:"program"` // sessiond
	Version int    `json:"version"`
}

type endLine struct {
	Type     string `json:"type"`
	Sessions int    `json:"sessions"`
}

// JSON that was stored stays as it is, also where it is not quite correct.
var asStored = json.JoinOptions(
	jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true),
	jsontext.EscapeForJS(true),
	jsonv1.OmitEmptyWithLegacySemantics(true), json.Deterministic(true),
)

func marshal(line any) ([]byte, error) { return json.Marshal(line, asStored) }

func unmarshal(raw []byte, line any) error { return json.Unmarshal(raw, line, asStored) }

// typeOf reads a line's type. The writer puts it first; any line may be without one.
func typeOf(raw []byte) (string, bool) {
	in := jsontext.NewDecoder(bytes.NewReader(raw), asStored)
	for range 2 { // the brace, and the first name
		token, err := in.ReadToken()
		if err != nil {
			return "", false
		}
		if token.Kind() == '"' && token.String() == "type" {
			kind, err := in.ReadToken()
			return kind.String(), err == nil && kind.Kind() == '"'
		}
	}
	var l struct {
		Type string `json:"type"`
	}
	err := unmarshal(raw, &l)
	return l.Type, err == nil && l.Type != ""
}
