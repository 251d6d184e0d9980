package contextmgr

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/session"
)

// Output is the finished output of a tool as pruning sees it: no content.
type Output struct {
	Name   string // MESSAGE/PART, as records name it
	Tool   string
	Tokens int64
	Failed bool // an error stays
	Pruned bool // already
}

// PruneRule says which outputs may be hidden. Rule: opencode, prune.
type PruneRule struct {
	Protect   int64    // tokens of the newest outputs that stay
	Minimum   int64    // prune only if it frees more; 0: never prune
	Tools     []string // their outputs stay
	Threshold int64    // a turn that alone passes it is pruned, too, up to its last two replies; 0: never
}

func (n *Numbers) pruneRule() PruneRule {
	return PruneRule{Protect: n.PruneProtect, Minimum: n.PruneMinimum, Tools: n.ProtectedTools, Threshold: n.Threshold}
}

const (
	turnsKept   = 2 // newest turns whose outputs stay
	repliesKept = 2 // newest replies of a turn over the threshold whose outputs stay
)

// Prune returns the outputs to hide, oldest first, and the tokens that frees. It walks back over
// the finished outputs before the last two turns, beyond the newest Protect tokens, to a summary
// or an output that is pruned already.
func Prune(path []Entry, rule PruneRule) (outputs []string, freed int64) {
	if rule.Minimum <= 0 {
		return nil, 0
	}
	var seen int64
walk:
	for i := pruneBefore(path, rule.Threshold) - 1; i >= 0; i-- {
		if path[i].Kind == session.KindBranchSummary {
			break
		}
		for _, o := range slices.Backward(path[i].Outputs) {
			switch {
			case o.Pruned:
				break walk
			case o.Failed || slices.Contains(rule.Tools, o.Tool):
				continue
			}
			if seen += o.Tokens; seen > rule.Protect {
				outputs, freed = append(outputs, o.Name), freed+o.Tokens
			}
		}
	}
	if freed <= rule.Minimum {
		return nil, 0
	}
	slices.Reverse(outputs)
	return outputs, freed
}

// pruneBefore returns the entry before which outputs may be hidden.
func pruneBefore(path []Entry, threshold int64) int {
	turns, replies, lastReplies := 0, 0, -1
	var weight int64
	for i := len(path) - 1; i >= 0; i-- {
		e := &path[i]
		if !e.InContext {
			continue
		}
		weight += e.Tokens
		if e.Role == session.Assistant {
			if replies++; replies == repliesKept {
				lastReplies = i
			}
		}
		if !e.startsTurn() {
			continue
		}
		if threshold > 0 && weight > threshold && lastReplies >= 0 {
			return lastReplies
		}
		if turns++; turns == turnsKept {
			return i
		}
		weight, replies, lastReplies = 0, 0, -1
	}
	return 0
}

// prunedLine returns the line that replaces a hidden output. It names the original, and the
// caller's recall tool, if there is one.
func prunedLine(m *session.Message, p *session.Part, tokens int64, recallTool string) string {
	what := "output"
	if p.ToolName != "" {
		what = "output of " + p.ToolName
	}
	line := fmt.Sprintf("[%s hidden to make room, about %d tokens; the original is message %s", what, tokens, m.ID)
	if recallTool != "" {
		line += "; " + recallTool + " brings it back"
	}
	return line + "]"
}

// replacePruned replaces an item's pruned outputs by their lines: each result with the pictures
// and files behind it.
func replacePruned(item *Item, pruned map[string]bool, recallTool string) {
	m := &item.Message
	if len(pruned) == 0 || m.Role != session.Tool {
		return
	}
	parts := make([]session.Part, 0, len(m.Parts))
	for i := 0; i < len(m.Parts); {
		p := m.Parts[i]
		if p.Kind != session.PartToolResult || !pruned[session.OutputName(m.ID, i)] {
			parts = append(parts, p)
			i++
			continue
		}
		tokens, end := m.Output(i)
		p.Text = prunedLine(m, &p, tokens, recallTool)
		p.Blob, p.BlobSHA, p.Extra = nil, nil, nil
		p.Tokens = min(p.Tokens, session.PrunedTokens) // a large original must not shorten the line
		parts, item.Changed = append(parts, p), true
		i = end
	}
	if item.Changed {
		m.Parts, item.ownsParts = parts, true
	}
}

// outputsOf returns a message's finished outputs. tools are the tools of the calls before it.
func (s *snapshot) outputsOf(m *session.Message, tools map[string]string) []Output {
	if m.Role != session.Tool || !m.InContext {
		return nil
	}
	var outputs []Output
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != session.PartToolResult {
			continue
		}
		name, tool := session.OutputName(m.ID, i), p.ToolName
		tokens, _ := m.Output(i)
		if tool == "" {
			tool = tools[p.CallID]
		}
		outputs = append(outputs, Output{
			Name: name, Tool: tool, Tokens: s.scales.scaled(tokens),
			Failed: p.Failed(), Pruned: s.Pruned[name],
		})
	}
	return outputs
}

// hidesIn reports whether the overlay hides something of a message that it keeps.
func (s *snapshot) hidesIn(m *session.Message) bool {
	name := m.ID.String()
	if slices.ContainsFunc(s.details.Replaced, func(r session.Replaced) bool {
		return slices.Contains(r.Messages, name)
	}) {
		return true
	}
	for j := range m.Parts {
		if s.Pruned[session.OutputName(m.ID, j)] {
			return true
		}
	}
	return false
}

// partlyHidden returns the rows of the kept messages of which something is hidden.
func (s *snapshot) partlyHidden() []int64 {
	if len(s.Pruned)+len(s.details.Replaced) == 0 {
		return nil
	}
	var rows []int64
	for i := range s.Messages {
		if s.hidesIn(&s.Messages[i]) {
			rows = append(rows, s.Messages[i].RowID)
		}
	}
	return rows
}

// outputsIn returns those of the named outputs that the messages hold, the last message that
// holds one, and the reference tokens that hiding them saves.
func outputsIn(msgs []session.Message, names map[string]bool) (outputs []string, last *session.Message, saved int64) {
	for i := 0; i < len(msgs) && len(names) > 0; i++ {
		m := &msgs[i]
		for j := range m.Parts {
			if name := session.OutputName(m.ID, j); names[name] {
				tokens, _ := m.Output(j)
				outputs, last, saved = append(outputs, name), m, saved+session.PrunedSaves(tokens)
			}
		}
	}
	return outputs, last, saved
}

// planPrune makes an overlay that hides old outputs and nothing else. enough reports whether the
// context is then far enough under its threshold to need no summary.
func (s *snapshot) planPrune(in overlayInput) (made madeOverlay, enough bool) {
	n := &s.numbers
	made.record = s.newRecord(session.StrategyPrune, in)
	made.plan = Plan{Cut: Cut{0, -1}, Person: -1}
	var outputs []string
	if !s.truncated && len(s.Messages) > 0 { // else its beginning is unknown
		outputs, _ = Prune(s.entries(), n.pruneRule())
	}
	if len(outputs) == 0 {
		made.record.TokensAfter = in.before
		made.plan.NoGain = fmt.Sprintf("nothing to prune: the newest %d tokens of tool output stay, "+
			"and older output must free more than %d", n.PruneProtect, n.PruneMinimum)
		return made, false
	}
	s.hideOutputs(&made.record, outputs)
	made.plan.Hidden = len(outputs)
	d := s.withOverlay(&made.record).assemble()
	made.record.TokensAfter = d.Total
	made.plan.HiddenTokens, made.plan.KeptTokens = max(0, in.before-d.Total), d.Total
	return made, d.Total < n.Threshold*3/4
}

// hideOutputs fills a record that hides outputs and otherwise continues the overlay before it.
func (s *snapshot) hideOutputs(c *session.Compaction, outputs []string) {
	if o := s.Overlay; o != nil {
		c.Summary, c.PrefixSummary, c.Replacement, c.SummaryTokens = o.Summary, o.PrefixSummary, o.Replacement,
			o.SummaryTokens
		c.HiddenTokens, c.FirstKeptID, c.FirstKept = o.HiddenTokens, o.FirstKeptID, o.FirstKept
	}
	if c.FirstKeptID == nil {
		c.FirstKeptID, c.FirstKept = &s.Messages[0].RowID, &s.Messages[0].ID
	}
	details := s.details
	details.Pruned = append(slices.Clone(details.Pruned), outputs...)
	c.Details = session.JSONOf(details)
	_, last, saved := outputsIn(s.Messages, setOf(outputs))
	c.ThroughID, c.Through = &last.RowID, &last.ID
	c.HiddenTokens += saved
}

// recallTool returns the name of the caller's recall tool, "" for none.
func recallTool(tools string) string {
	var list []struct {
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
		Declarations []struct {
			Name string `json:"name"`
		} `json:"functionDeclarations"`
	}
	if json.Unmarshal([]byte(tools), &list) != nil {
		return ""
	}
	for _, t := range list {
		names := []string{t.Name, t.Function.Name}
		for _, d := range t.Declarations {
			names = append(names, d.Name)
		}
		for _, name := range names {
			if strings.Contains(strings.ToLower(name), "recall") {
				return name
			}
		}
	}
	return ""
}
