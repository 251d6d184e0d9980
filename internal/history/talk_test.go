package history

import (
	"reflect"
	"testing"
)

// A line that is taken apart at once says what it says when it is taken apart level by level.
func FuzzTalk(f *testing.F) {
	for _, seed := range []string{
		`{"type":"message","message":{"role":"user","content":[{"type":"text","text":"a\nb"},{}, 7 ,[{"x":1}]],"n":1}, "x":2 }`,
		`{"message":{"content":[1]},"message":{"content":"a","content":[{"a":{"content":[2]}}],"message":{"content":[3]}}}`,
		`{"message":{"content":[{"a":1}],"content":"text"}}`, `{"message":[{"content":[{}]}]}`, `{"message":{"content":[{"a":1},]}}`,
		`{"message":{"content":[{"a":1}],"b":tru}}`, `{"content":[{"a":1}],"message":{}}`, "{\"message\":{\"content\":[\"\xff\"]}}", `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		talk, exact, ok := ParseTalk(line)
		o, wantExact, wantOK := ParseLine(line)
		if exact != wantExact || ok != wantOK || !reflect.DeepEqual(talk.Object, o) {
			t.Fatalf("%s: %v, %v, %s, not %v, %v, %s", line, exact, ok, talk.Object, wantExact, wantOK, o)
		}
		if !ok {
			return
		}
		message, _ := Fields(o.Get("message"))
		if !reflect.DeepEqual(talk.Message, message) {
			t.Fatalf("%s: message %s, not %s", line, talk.Message, message)
		}
		elements, _ := Elements(message.Get("content"))
		if len(elements) != len(talk.Blocks) {
			t.Fatalf("%s: %d blocks, not %d", line, len(talk.Blocks), len(elements))
		}
		for i, raw := range elements {
			block, _ := Fields(raw)
			if string(raw) != string(talk.Blocks[i].Raw) || !reflect.DeepEqual(block, talk.Blocks[i].Object) {
				t.Errorf("%s: block %d is %s", line, i, talk.Blocks[i].Raw)
			}
		}
	})
}
