package export

import (
	"context"
	"io"
	"slices"

	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

// mostAgents is how many sub-agents a page has within it: those that began first.
const mostAgents = 100

// writePage writes a session with its sub-agents as a page.
func writePage(ctx context.Context, out io.Writer, s *store.Store, ids []session.ID, opt *Options) (Report, error) {
	ids, err := idsOrAll(ctx, s, ids)
	if err != nil {
		return Report{}, err
	}
	report := Report{Sessions: ids}
	for _, id := range ids {
		if err := onePage(ctx, out, s, id, opt, &report); err != nil {
			return report, err
		}
	}
	return report, nil
}

func onePage(ctx context.Context, out io.Writer, s *store.Store, id session.ID, opt *Options, report *Report) error {
	links, err := agentsOf(ctx, s, id)
	if err != nil {
		return err
	}
	for i := range links {
		links[i].Title = opt.Mask.Text(links[i].Title)
	}
	var page *transcript.Page
	before, secrets := 0, 0
	if opt.Mask != nil {
		before = opt.Mask.Masked
	}
	for i := -1; i < len(links); i++ {
		if i >= 0 {
			id = links[i].Session
		}
		r, err := read(ctx, s, id, opt)
		if err != nil {
			return err
		}
		said, err := s.SaidOnPath(ctx, r.spans, id)
		if err != nil {
			return err
		}
		heading := transcript.HeadingOf(&r.Session, said, opt.Zone)
		if page == nil {
			page = transcript.NewPage(out, heading, opt.Zone)
			page.Own, page.Sessions, page.Within = id, "#", map[session.ID]bool{}
			for _, l := range links {
				page.Within[l.Session] = true
			}
		} else {
			page.Agent(id, heading)
		}
		items := transcript.NewStream(r.Session, r.compactions, transcript.Mention(page.Pieces, links).Item)
		if err := r.eachOnPath(ctx, func(m *session.Message) error {
			report.Messages++
			if opt.Mask == nil {
				secrets += secretsIn(m)
			}
			return items.Message(m)
		}); err != nil {
			return err
		}
		if err := items.Close(); err != nil {
			return err
		}
	}
	if page.Masked = opt.Mask != nil; page.Masked {
		secrets = opt.Mask.Masked - before
	}
	page.Secrets = secrets
	return page.Close()
}

// agentsOf returns the sub-agents below a session, at any depth, parents first, with titles as they are shown.
func agentsOf(ctx context.Context, s *store.Store, id session.ID) (all []session.Link, err error) {
	known := map[session.ID]bool{id: true}
	for of := []session.ID{id}; len(of) > 0 && len(all) < mostAgents; of = of[1:] {
		links, err := s.Hanging(ctx, of[0], mostAgents)
		if err != nil {
			return nil, err
		}
		for _, l := range links {
			if l.Kind == session.ParentChild && !known[l.Session] && len(all) < mostAgents {
				known[l.Session] = true
				all, of = append(all, l), append(of, l.Session)
			}
		}
	}
	return all, nil
}

// secretsIn counts the values of a message that a masked export masks.
func secretsIn(m *session.Message) int {
	copied := *m
	copied.Parts = slices.Clone(m.Parts)
	var masker redact.Masker
	masker.Message(&copied)
	return masker.Masked
}
