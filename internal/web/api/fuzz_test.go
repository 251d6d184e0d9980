package api

import (
	"encoding/json"
	"reflect"
	"testing"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Whatever a body holds, it is read, or refused with one of two codes.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `{"title":"x","metadata":{"a":[1,{"b":null}]},"window":5}`, `{"title":"\ud800"}`,
		`{"expect_head":null,"parent":"20260211_001.42"}`,
		`{"messages":[{"role":"user","content":"x"}],"initial":[{"kind":"text","text":"x"}],"tools":[],"call":{"usage":{}}}`, `{"initial":[{"type":"text","text":"x"}]}`, "\xff", `{"a":`,
		`{"settings":{"fraction":7},"volatile":"\u0000","created_at":"2026-02-11T10:00:00Z"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, into := range []any{
			new(newSessionBody), new(sessionPatchBody), new(appendBody), new(turnBody),
			new(compactBody), new(callBody), new(sqlBody),
		} {
			if code := session.CodeOf(decodeBody(raw, into)); code != "" && code != session.Malformed &&
				code != session.Invalid {
				t.Errorf("%T: code %s", into, code)
			}
		}
	})
}

// A merge patch gives what a merge of decoded values gives.
func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1}}`), []byte(`{"a":{"b":null,"c":[1]}}`))
	f.Add([]byte(`{}`), []byte(`{"":{"":null}}`))
	f.Fuzz(func(t *testing.T, target, patch []byte) {
		var to, by object
		if json.Unmarshal(target, &to) != nil || json.Unmarshal(patch, &by) != nil || to == nil || by == nil {
			return
		}
		var a, b, got any
		if json.Unmarshal(to, &a) != nil || json.Unmarshal(by, &b) != nil {
			return
		}
		merged := jsonx.Patch(session.JSON(to), session.JSON(by))
		if err := json.Unmarshal(merged, &got); err != nil {
			t.Fatalf("jsonx.Patch(%s, %s) = %s: %v", target, patch, merged, err)
		}
		if want := mergeValues(a, b); !reflect.DeepEqual(got, want) {
			t.Errorf("jsonx.Patch(%s, %s) = %s, want %v", target, patch, merged, want)
		}
	})
}

// mergeValues is the pseudocode of RFC 7396.
func mergeValues(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	into, ok := target.(map[string]any)
	if !ok {
		into = map[string]any{}
	}
	for name, value := range changes {
		if value == nil {
			delete(into, name)
		} else {
			into[name] = mergeValues(into[name], value)
		}
	}
	return into
}
