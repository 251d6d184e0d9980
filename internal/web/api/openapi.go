package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"sessiond/internal/analytics"
	"sessiond/internal/contextmgr"
)

// schemaName returns a type's name in OpenAPI: its Go name without View, and with Request for Body.
func schemaName(t reflect.Type, hint string) string {
	switch t { // two nouns of one name
	case reflect.TypeFor[analytics.Tokens]():
		return "UsageTokens"
	case reflect.TypeFor[contextmgr.Tokens]():
		return "ContextTokens"
	case reflect.TypeFor[routeView](): // ogen has a Route of its own
		return "Routed"
	}
	n := huma.DefaultSchemaNamer(t, hint)
	if cut, ok := strings.CutSuffix(n, "Body"); ok && cut != "" {
		return cut + requestSuffix
	}
	if cut, ok := strings.CutSuffix(n, "View"); ok && cut != "" {
		return cut
	}
	return n
}

const requestSuffix = "Request"

// document renders OpenAPI once. The framework's own error model is not used by any route.
func document(api huma.API) []byte {
	schemas := api.OpenAPI().Components.Schemas.Map()
	delete(schemas, "ErrorModel")
	delete(schemas, "ErrorDetail")
	raw, err := json.Marshal(api.OpenAPI())
	if err != nil {
		panic(fmt.Sprintf("render OpenAPI: %v", err)) // made of plain values at start
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		panic(fmt.Sprintf("render OpenAPI: %v", err))
	}
	correct(doc)
	describe(doc, words())
	components, _ := doc["components"].(map[string]any)
	named, _ := components["schemas"].(map[string]any)
	for name, schema := range named {
		if object, ok := schema.(map[string]any); ok && !strings.HasSuffix(name, requestSuffix) &&
			object["additionalProperties"] == false {
			delete(object, "additionalProperties") // answers may grow; requests are strict
		}
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		panic(fmt.Sprintf("render OpenAPI: %v", err))
	}
	return []byte(b.String())
}

// describe sets the description of each field that has none, and the type of fields that are raw JSON.
func describe(v any, words map[string]string) {
	switch x := v.(type) {
	case map[string]any:
		properties, _ := x["properties"].(map[string]any)
		for name, p := range properties {
			if field, ok := p.(map[string]any); ok {
				if words[name] != "" && field["description"] == nil {
					field["description"] = words[name]
				}
				setType(name, field)
			}
		}
		for _, child := range x {
			describe(child, words)
		}
	case []any:
		for _, child := range x {
			describe(child, words)
		}
	}
}

// setType sets the type of a field that is raw JSON in Go. The answer of explain has an array of settings.
func setType(name string, field map[string]any) {
	switch name { // null is an answer, too
	case "context", "compaction", "anchor":
		if ref := field["$ref"]; ref != nil {
			delete(field, "$ref")
			field["anyOf"] = []any{map[string]any{"$ref": ref}, map[string]any{"type": "null"}}
		}
	case "message":
		if field["x-native"] != nil {
			field["type"] = []any{"object", "null"}
		}
	case "boundary", "idle_expires_at", "inbound_at":
		field["type"] = []any{"string", "null"}
	}
	for _, key := range []string{"type", "$ref", "anyOf", "oneOf"} {
		if field[key] != nil {
			return
		}
	}
	switch name {
	case "settings":
		field["$ref"] = schemaPrefix + "Settings"
	case "metadata", "details", "extra":
		field["type"], field["additionalProperties"] = "object", true
	case "request":
		field["type"], field["additionalProperties"] = []any{"object", "null"}, true
	}
}

const schemaPrefix = "#/components/schemas/"

// correct removes "or null" from every array: the framework adds it, but no answer has a null array.
func correct(v any) {
	switch x := v.(type) {
	case map[string]any:
		if types, ok := x["type"].([]any); ok && slices.Contains(types, any("array")) {
			x["type"] = "array"
		}
		for _, child := range x {
			correct(child)
		}
	case []any:
		for _, child := range x {
			correct(child)
		}
	}
}
