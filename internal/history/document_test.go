package history_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// members returns the values of a document; of the member list its elements.
func members(text, list string) (all []string, err error) {
	err = history.EachValue(strings.NewReader(text), int64(len(text)), list,
		func(name string, element bool, value jsontext.Value) error {
			switch {
			case element && name != "":
				all = append(all, string(value))
			case value != nil:
				all = append(all, name+"="+string(value))
			}
			return nil
		})
	return all, err
}

func TestDocumentGivesEachMember(t *testing.T) {
	long := strings.Repeat(`\"}]`, 50_000)
	for _, test := range []struct {
		name, text string
		list       string
		want       []string
	}{
		{"nothing", ` { } `, "", nil},
		{"no elements", `[]`, "", nil},
		{"values of all kinds", `{"a":1,"b" : "x" , "c":{"d":[1,{}]},"e":[],"f":null,"g":-1.5e3}`, "", []string{"a=1", `b="x"`, `c={"d":[1,{}]}`, "e=[]", "f=null", "g=-1.5e3"}},
		{"an array", "[1,\n{\"a\":2} ,\"x\"\t]", "", []string{"=1", `={"a":2}`, `="x"`}},
		{"a list within", `{"a":1,"list":[1,[2],{"b":3}],"z":0}`, "list", []string{"a=1", "1", "[2]", `{"b":3}`, "z=0"}},
		{"a name with an escape", `{"\u0061":1}`, "", []string{"a=1"}},
		{"strings over many pieces", `{"a":"` + long + `","z":0}`, "", []string{`a="` + long + `"`, "z=0"}},
		{"a byte order mark", "\ufeff{\"a\":1}", "", []string{"a=1"}},
		{"something behind it", `{"a":1} and more`, "", []string{"a=1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := members(test.text, test.list)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

func TestBrokenDocumentIsRefused(t *testing.T) {
	for _, text := range []string{
		``, `x`, `1`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{a:1}`, `{"a" 1}`, `{"a":1 "b":2}`, `[1 2]`,
		`[1,]`, `[,1]`, `["a]`, `{"a":[}`, `{"list":[1`, `{"list":1}`, `{"a":}`,
	} {
		if got, err := members(text, "list"); session.CodeOf(err) != session.Invalid {
			t.Errorf("%q gives %q, %v", text, got, err)
		}
	}
}

// FuzzDocument: of what is valid the members are those that encoding/json gives.
func FuzzDocument(f *testing.F) {
	f.Add(`{"a":[1,"x",{"b":null}],"c":true}`)
	f.Add(`[{"a":"\\\""},2]`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := members(text, "")
		var list []jsontext.Value
		if !json.Valid([]byte(text)) || json.Unmarshal([]byte(text), &list) != nil || list == nil {
			return
		}
		var want []string
		for _, v := range list {
			want = append(want, "="+string(v))
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}
