package opencode

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// kept returns opencode's own commands for its sessions: sessiond writes nothing to its database.
func kept() *history.Kept {
	return &history.Kept{
		List: []string{"opencode", "session", "list", "--format", "json"}, Show: []string{"opencode", "export"},
		Delete: []string{"opencode", "session", "delete"}, Listed: listed, Handover: shownHandover,
	}
}

// listed parses the output of `opencode session list --format json`, which prints nothing where there is no session.
func listed(printed []byte) (all []history.KeptSession, err error) {
	if len(printed) == 0 {
		return nil, nil
	}
	var rows []struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	}
	if err := json.Unmarshal(printed, &rows); err != nil {
		return nil, session.Errorf(session.Malformed, "`opencode session list --format json` prints no list: %w", err)
	}
	for _, r := range rows {
		all = append(all, history.KeptSession{ID: r.ID, Title: r.Title})
	}
	return all, nil
}

// shownHandover parses the output of `opencode export`.
func shownHandover(printed []byte) (of *history.Handover, continued bool, err error) {
	var shown struct {
		Messages []struct {
			Parts []struct {
				Metadata jsontext.Value `json:"metadata"`
			} `json:"parts"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(printed, &shown); err != nil {
		return nil, false, session.Errorf(session.Malformed, "`opencode export` prints no session: %w", err)
	}
	for i, m := range shown.Messages {
		repeats := false
		for _, p := range m.Parts {
			o, _ := jsonx.ReadObject(p.Metadata)
			is, first := history.MarkIn(o)
			repeats = repeats || is
			if i == 0 && first != nil {
				of = first
			}
		}
		continued = continued || !repeats
	}
	return of, of != nil && continued, nil
}
