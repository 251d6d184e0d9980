package api

import (
	"reflect"
	"slices"
	"testing"

	"sessiond/internal/find"
)

// Each filter of requests is a documented parameter.
func TestEveryFilterIsAParameter(t *testing.T) {
	for _, c := range []struct {
		use   find.Uses
		input reflect.Type
	}{{find.Lists, reflect.TypeFor[listSessionsInput]()}, {find.Searches, reflect.TypeFor[searchInput]()}} {
		var documented []string
		for _, field := range reflect.VisibleFields(c.input) {
			if name := field.Tag.Get("query"); name != "" && field.Tag.Get("doc") != "" {
				documented = append(documented, name)
			}
		}
		for _, name := range find.Names(c.use) {
			if !slices.Contains(documented, name) {
				t.Errorf("%s: no parameter %s; add it, with its doc", c.input, name)
			}
		}
	}
}
