package pages

import (
	"cmp"
	"context"
	"fmt"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

// mostBranches bounds how many segments of a tree a page looks at.
const mostBranches = 500

// mentionBranches adds a line under each message at which a branch begins that is not shown.
func (p *Pages) mentionBranches(ctx context.Context, under *transcript.Mentions, t *talk, path store.Ranges) error {
	if t.own >= t.MessageCount {
		return nil
	}
	tree, err := p.Store.Tree(ctx, t.ID, store.TreePage{Limit: mostBranches})
	if err != nil {
		return err
	}
	for i := range tree.Segments {
		s := &tree.Segments[i]
		if path.Position(s.First.ID) > 0 {
			continue
		}
		words := fmt.Sprintf("%s, %s %s", s.First.ID, cmp.Or(string(s.First.Role), string(s.First.Kind)),
			transcript.OneLine(cmp.Or(s.First.Preview, s.First.ToolName), promptWidth))
		switch {
		case s.Parent == nil:
			t.Family = append(t.Family, relative{"another beginning", messageAddress(t.ID, s.First.ID), words})
		case path.Position(*s.Parent) > 0:
			under.Add(*s.Parent, "another branch: "+words)
		}
	}
	return nil
}

// endOfBranch returns the end of the newest branch through a message of a session's tree. Codes: NotFound.
func (p *Pages) endOfBranch(ctx context.Context, t *talk, through session.MessageRef) (string, error) {
	if _, err := p.Store.TreeMessage(ctx, t.ID, through); err != nil {
		return "", err
	}
	tree, err := p.Store.Tree(ctx, t.ID, store.TreePage{})
	if err != nil {
		return "", err
	}
	byFirst := map[session.MessageRef]*session.Segment{}
	var at *session.Segment
	for i := range tree.Segments {
		s := &tree.Segments[i]
		byFirst[s.First.ID] = s
		if s.First.ID.Session == through.Session && s.First.ID.Seq <= through.Seq && through.Seq <= s.Last.ID.Seq {
			at = s
		}
	}
	if at == nil {
		return through.String(), nil
	}
	for len(at.Children) > 0 && byFirst[at.Children[len(at.Children)-1]] != nil {
		at = byFirst[at.Children[len(at.Children)-1]]
	}
	return at.Last.ID.String(), nil
}
