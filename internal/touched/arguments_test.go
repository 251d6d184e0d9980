package touched

import (
	"encoding/json"
	"reflect"
	"testing"
)

// argumentsSeeds are arguments as programs write them, and as nobody should.
func argumentsSeeds() []string {
	return []string{
		`{"path":"a.go","offset":20,"limit":1.5e3}`, ` { "file_path" : "b.go" , "content" : "x\n\"y\" \u00e9" } `, `{}`, `null`, `[]`, `5`, `"x"`, ``, `{`,
		`{"Path":"a"}`, `{"PATH":"a","path":"b"}`, `{"path":"b","Path":"a"}`, `{"pa\u0074h":"a"}`, `{"ſtring":1,"cmd":"ls"}`, `{"worKdir":"a"}`,
		`{"path":5}`, `{"path":null}`, `{"path":["a"]}`, `{"path":"a","path":null}`, `{"path":"a\u0000\ud800"}`, "{\"path\":\"\xff\"}", "{\"x\":\"\xff\",\"path\":\"a\"}",
		`{"command":["bash","-lc","cat a"],"workdir":"/w"}`, `{"command":null}`, `{"command":"view","path":"/a"}`, `{"command": {"a":[1,{"b":[]}]} }`,
		`{"x":{"path":"inner"},"path":"outer"}`, `{"x":[{},[],"}",true,false,null,-0.5E+7],"path":"a"}`, `{"x":01,"path":"a"}`, `{"x":tru,"path":"a"}`,
		`{"path":"a"}}`, `{"path":"a",}`, `{"path":"a" "x":1}`, "{\"path\":\"a\nb\"}", `{"path":"a\x"}`, `{"path":"a\u12g4"}`, `{"path":"a`, `{"input":"*** Begin Patch\n"}`,
	}
}

func FuzzArgumentsAreReadAsEncodingJSONReadsThem(f *testing.F) {
	for _, seed := range argumentsSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want fields
		err := json.Unmarshal([]byte(text), &want)
		got, ok := argumentsOf(text)
		if ok != (err == nil) {
			t.Fatalf("%q: %v, but encoding/json says %v", text, ok, err)
		}
		if ok && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %+v, but encoding/json says %+v", text, got, want)
		}
	})
}

func TestUsualArgumentsAreNotLeftToEncodingJSON(t *testing.T) {
	for _, text := range []string{
		`{"path":"a.go","offset":20,"limit":1.5e3}`, `{"file_path":"b.go","content":"x\n\"y\" \u00e9"}`, `{"command":["bash","-lc","cat a"],"workdir":"/w"}`,
		`{"x":[{},[],"}",true,false,null,-0.5E+7],"path":"a"}`, `{"input":"*** Begin Patch\n"}`,
	} {
		if !new(fields).scan(text) {
			t.Errorf("%s was", text)
		}
	}
}
