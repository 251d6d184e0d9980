package jsonx_test

import (
	"testing"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// The rows are those of RFC 7396, appendix A, as far as an object is patched.
func TestPatchFollowsRFC7396(t *testing.T) {
	for _, row := range []struct{ target, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{``, `{"a":1}`, `{"a":1}`},
		{`{"big":9007199254740993}`, `{"a":1.50}`, `{"big":9007199254740993,"a":1.50}`},
	} {
		if got := jsonx.Patch(session.JSON(row.target), session.JSON(row.patch)); string(got) != row.want {
			t.Errorf("Patch(%s, %s) = %s, want %s", row.target, row.patch, got, row.want)
		}
	}
}
