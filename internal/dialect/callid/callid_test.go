package callid_test

import (
	"strings"
	"testing"

	"sessiond/internal/dialect/callid"

	"pgregory.net/rapid"
)

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 70)
	tests := []struct {
		name string
		rule callid.Rule
		ids  string
		want string
	}{
		{"kept as they came", callid.Keep, "call_1|fc_2 x", "call_1|fc_2 x"},
		{"kept, but told apart when used again", callid.Keep, "x y x x", "x y x_2 x_3"},
		{"a number that is taken", callid.Keep, "x x_2 x", "x x_2 x_3"},
		{"valid ones stay, others become strict", callid.FixInvalid, "toolu_01 call_1|fc_2 価格", "toolu_01 call1fc2 23577d6a"},
		{"used again", callid.FixInvalid, "x x call|1 call|1", "x x_2 call1 call1_2"},
		{"longer than any platform takes", callid.FixInvalid, long, long[:40]},
		{"letters and digits only", callid.Strict, "a|b", "ab"},
		{"two that become one", callid.Strict, "a|b a:b", "ab abdcea6d9c"},
		{"used again without an underscore", callid.Strict, "ab ab", "ab ab2"},
		{"forty at most", callid.Strict, long + " " + long, long[:40] + " " + long[:39] + "2"},
		{"nine exactly", callid.Strict9, "call_abcdef123456 abc", "callabcde a9993e364"},
		{"nine that are taken", callid.Strict9, "abcdefghi1 abcdefghi2 abcdefghi2", "abcdefghi 4b455d9a3 2943fc07b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := callid.New(tt.rule)
			var got []string
			for _, id := range strings.Fields(tt.ids) {
				sent := n.Call(id)
				if r := n.Result(id); r != sent {
					t.Errorf("the result of %q is sent as %q, its call as %q", id, r, sent)
				}
				got = append(got, sent)
			}
			if g := strings.Join(got, " "); g != tt.want {
				t.Errorf("got %s, want %s", g, tt.want)
			}
		})
	}
	n := callid.New(callid.FixInvalid)
	got := []string{n.Call("x"), n.Call("x"), n.Answer("x"), n.Answer("x"), n.Answer("x"), n.Call("x"), n.Answer("x")}
	if strings.Join(got, " ") != "x x_2 x x_2 x_2 x_3 x_3" {
		t.Errorf("calls of one reply that share an id, and their results: %s", got)
	}
	if n := callid.New(callid.Strict); n.Own("fc_1-a") != "fc_1-a" || n.Result("fc_1-a") != "fc_1-a" ||
		n.Result("nobody's") != "nobodys" || n.Call("") != "" {
		t.Error("what the provider gave itself stays; a result without a call gets what the rule makes of its id")
	}
}

// Ids are unique and of the rule's shape, and those of a conversation that grows stay.
func TestNamesAreUniqueAndStable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rule := rapid.SampledFrom([]callid.Rule{callid.Keep, callid.FixInvalid, callid.Strict, callid.Strict9}).Draw(rt,
			"rule")
		ids := rapid.SliceOfN(rapid.StringMatching(`[ab|:_2]{1,3}|[a-c|é]{35,80}`), 1, 12).Draw(rt, "ids")
		n, used := callid.New(rule), map[string]bool{}
		for i, id := range ids {
			sent := n.Call(id)
			if used[sent] {
				rt.Fatalf("%q stands twice", sent)
			}
			used[sent] = true
			switch {
			case rule == callid.Strict9 && len(sent) != 9, rule == callid.Strict && len(sent) > 40,
				rule == callid.FixInvalid && len(sent) > 64:
				rt.Fatalf("%q is %d long", sent, len(sent))
			case rule != callid.Keep && !callid.Valid(sent),
				rule != callid.Keep && rule != callid.FixInvalid && strings.ContainsAny(sent, "_-"):
				rt.Fatalf("%q has characters that the rule forbids", sent)
			}
			again := callid.New(rule)
			last := ""
			for _, before := range ids[:i+1] {
				last = again.Call(before)
			}
			if last != sent {
				rt.Fatalf("%q is sent as %q and as %q", id, sent, last)
			}
		}
	})
}
