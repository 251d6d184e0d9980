package contextmgr_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
	"sessiond/internal/testkit"

	"pgregory.net/rapid"
)

// told is a conversation whose summaries must carry on what they hold.
type told struct {
	*desk
	t     *rapid.T
	id    session.ID
	in    contextmgr.Budget
	n     int               // turns
	calls int               // so far
	held  map[string]string // lines of the summary in force, by text: their section
	seen  int64             // its compaction
}

// standing are rules of a few tokens each, which fit into the section of rules of every summary.
var standing = []string{
	"Never touch the vendor folder.",
	"All timestamps are UTC, no exceptions.",
	"Please keep every line under 100 characters.",
	"Tests must not sleep.",
	"Ask me before you install anything.",
}

func (k *told) turn() {
	said := fmt.Sprintf("Please look at part%d.go and rename the helper %d in it.", k.n%7, k.n)
	if k.n%5 == 2 && k.n/5 < len(standing) {
		said = standing[k.n/5] + " " + said
	}
	if rapid.IntRange(0, 5).Draw(k.t, "fact") == 0 {
		said += fmt.Sprintf(" The budget of the project Heron%d is $%d,500.", k.n, 100+k.n)
	}
	k.n++
	k.follow(k.id, newText(session.User, session.Person, said))
	k.next()
	for range rapid.IntRange(0, 9).Draw(k.t, "calls") {
		k.calls++
		id := fmt.Sprintf("c%d", k.calls)
		call := newText(session.Assistant, session.Model, "")
		call.Finish = session.FinishToolCalls
		call.Parts = []session.Part{{
			Kind: session.PartToolCall, ToolName: "read", CallID: id,
			Arguments: fmt.Sprintf(`{"path":"src/part%d.go"}`, k.calls),
		}}
		result := newText(session.Tool, session.ByTool, "")
		result.Parts = []session.Part{{Kind: session.PartToolResult, ToolName: "read", CallID: id, Text: strings.Repeat(
			fmt.Sprintf("func helper%d(x int) int { return x*%d }\n", k.calls, k.n), rapid.IntRange(1, 40).Draw(k.t, "lines"))}}
		k.follow(k.id, call, result)
		k.next()
		if rapid.IntRange(0, 9).Draw(k.t, "compact") == 0 {
			k.compact(session.StrategySummarize, rapid.Int64Range(0, 1500).Draw(k.t, "keep"))
		}
	}
	reply := newText(session.Assistant, session.Model,
		fmt.Sprintf("I renamed helper %d, because two packages had one of that name.", k.n))
	reply.Finish = session.FinishStop
	k.follow(k.id, reply)
}

func newText(role session.Role, origin session.Origin, text string) session.Message {
	return session.Message{
		Kind: session.KindMessage, Role: role, Origin: origin, InContext: true, Display: true,
		Parts: []session.Part{session.TextPart(text)},
	}
}

// next takes a turn and compares the summary in force with the one before.
func (k *told) next() {
	testkit.Must(k.mgr.Turn(k.Context(), k.id, contextmgr.TurnInput{Budget: k.in}))(k.t)
	k.compare()
}

// compact hides what is possible, in the middle of whatever is going on.
func (k *told) compact(strategy session.Strategy, keep int64) {
	in, none := contextmgr.CompactInput{Budget: k.in, Strategy: strategy, KeepTokens: &keep}, int64(0)
	in.Settings.KeepRecentMessages = &none
	if _, _, err := k.mgr.Compact(k.Context(), k.id, in); err != nil {
		k.t.Fatal(err)
	}
	k.compare()
}

var ruleWithMessage = regexp.MustCompile(`\(#\d+\)$`)

func (k *told) compare() {
	sess := testkit.Must(k.store.Session(k.Context(), k.id))(k.t)
	c := testkit.Must(k.store.Effective(k.Context(), sess))(k.t)
	if c == nil || c.RowID == k.seen {
		return
	}
	now, summary := map[string]string{}, c.Summary+"\n"+c.PrefixSummary
	section := ""
	for line := range strings.Lines(summary) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			section = strings.TrimLeft(line, "# ")
		} else if text, ok := strings.CutPrefix(line, "- "); ok && section != "Index" {
			now[text] = section
		}
	}
	limit := k.in.Window * 3 / 4 / 10
	if k.in.Settings.SummaryMaxTokens != nil {
		limit = *k.in.Settings.SummaryMaxTokens
	}
	roomy := k.count(summary) < limit/2
	for line, section := range k.held {
		if _, carried := now[line]; carried || section == "In progress" || section == "Next steps" {
			continue
		}
		if roomy || ruleWithMessage.MatchString(line) {
			k.t.Fatalf("%s, of %d tokens, lost the line %q, which the summary before had under %s:\n%s",
				session.CompactionName(c.RowID), k.count(summary), line, section, summary)
		}
	}
	k.held, k.seen = now, c.RowID
}

// A rule or a fact of a summary is in the next one until something takes it back, or the budget drops it: over turns
// with any number of calls, in small windows and large, through merges and turns that are split.
func TestSummariesCarryOnWhatTheyHold(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	rapid.Check(t, func(rt *rapid.T) {
		k := &told{desk: d, t: rt, id: d.begin(), held: map[string]string{}}
		k.in = contextmgr.Budget{Window: rapid.SampledFrom([]int64{6000, 8000, 16000}).Draw(rt, "window"), CloseCalls: true}
		if rapid.Bool().Draw(rt, "roomy") { // no line is dropped for want of room
			most := int64(1500)
			k.in.Settings.SummaryMaxTokens = &most
		}
		for range rapid.IntRange(6, 24).Draw(rt, "turns") {
			k.turn()
			switch rapid.IntRange(0, 15).Draw(rt, "also") {
			case 0:
				k.compact(session.StrategySummarize, rapid.Int64Range(0, 1500).Draw(rt, "keep"))
			case 1:
				k.compact(session.StrategyTruncate, 500)
			}
		}
	})
}
