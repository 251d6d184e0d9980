package historytest

import (
	"slices"
	"strings"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect"
	"sessiond/internal/session"
	"sessiond/internal/summarize/digest"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
	"sessiond/internal/tokens"
)

// scale weighs everything alike: what a context holds is looked at here, not its size.
type scale struct{}

func (scale) Message(*session.Message, bool) int64 { return 1 }
func (scale) Text(string) int64                    { return 1 }

// Given is what a model is given at a session's head, as the context manager puts it together:
// of each message the role, its text, its calls as (tool id) and its results as [id: text].
func (h *House) Given(id session.ID) []string {
	h.Helper()
	manager := contextmgr.New(h.Store, contextmgr.Config{
		Digest: digest.NewExtractive(tokens.Reference().Text), Dialects: dialect.Providers{},
		Reference: string(tokens.Reference().Family()),
		Models:    func(string) (session.ModelInfo, bool) { return session.ModelInfo{}, false },
		Counter:   func(family string) contextmgr.Counter { return tokens.ForFamily(tokens.Family(family)) },
	})
	view := testkit.Must(manager.Assemble(h.Context(), id, contextmgr.Budget{Window: 50_000_000, CloseCalls: true}))(h)
	var lines []string
	for i := range view.Messages {
		m := &view.Messages[i]
		line := string(m.Role) + ":"
		for j := range m.Parts {
			switch p := &m.Parts[j]; p.Kind {
			case session.PartToolCall:
				line += " (" + p.ToolName + " " + p.CallID + ")"
			case session.PartToolResult:
				line += " [" + p.CallID + ": " + p.Content() + "]"
			case session.PartText:
				line += " " + p.Content()
			default:
				line += " <" + string(p.Kind) + ">"
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// BeginsWith claims what a model is given at a session's head: as many messages as want has
// lines, each beginning as its line does.
func (h *House) BeginsWith(id session.ID, want []string) {
	h.Helper()
	got := h.Given(id)
	same := len(got) == len(want)
	for i := 0; same && i < len(want); i++ {
		same = strings.HasPrefix(got[i], want[i])
	}
	if !same {
		h.Errorf("a model is given\n     %s\nwant %s", strings.Join(got, " | "), strings.Join(want, " | "))
	}
}

// ContextsAreAccepted claims that what a model would be given at the end of each path, also of
// branches that were left, is a request that the providers accept. At least so many contexts
// must be there to check.
func (h *House) ContextsAreAccepted(atLeast int) {
	h.Helper()
	checked := 0
	for _, s := range h.Sessions() {
		effective := testkit.Must(h.Store.Effective(h.Context(), s))(h)
		var leaves []int64
		testkit.Check(h, h.Store.Reader().Select(&leaves, `SELECT id FROM messages m WHERE session_id = ? AND NOT EXISTS (SELECT 1 FROM messages c WHERE c.parent_id = m.id)`, s.ID))
		if s.HeadID != nil {
			leaves = append(leaves, *s.HeadID)
		}
		for _, leaf := range leaves {
			path := testkit.Must(h.Store.Path(h.Context(), leaf, 0))(h)
			if h.accepted(s, effective, path) {
				checked++
			}
		}
	}
	if checked < atLeast {
		h.Errorf("%d contexts were checked", checked)
	}
}

// accepted checks the context at the end of a path, if there is anything in it.
func (h *House) accepted(s session.Session, overlay *session.Compaction, path []session.Message) bool {
	h.Helper()
	on := overlay == nil || slices.ContainsFunc(path, func(m session.Message) bool {
		return m.RowID == *overlay.ThroughID
	})
	if !on {
		overlay = nil // of another branch
	}
	path = slices.DeleteFunc(slices.Clone(path), func(m session.Message) bool { return hides(overlay, &m) })
	made := contextmgr.Assemble(contextmgr.Material{
		Overlay: overlay, Messages: path, CloseCalls: true,
		Dialects: dialect.Providers{}, Weigh: scale{},
	})
	if len(made.Messages()) == 0 {
		return false
	}
	for name, validate := range map[string]func([]byte) error{
		dialect.OpenAIResponses: dialecttest.ValidateResponses, dialect.Anthropic: dialecttest.ValidateAnthropic,
		dialect.OpenAIChat: dialecttest.ValidateOpenAIChat,
	} {
		sent, err := dialect.Send(name, dialect.Request{Messages: made.Messages(), Model: s.Model})
		if err == nil {
			err = validate(sent.Request)
		}
		if err != nil {
			h.Errorf("%s to %s: %v", s.SourceID, name, err)
		}
	}
	return true
}
