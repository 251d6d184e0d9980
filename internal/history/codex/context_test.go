package codex_test

import (
	"path/filepath"
	"testing"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect"
	"sessiond/internal/dialect/dialecttest"
	"sessiond/internal/samples"
	"sessiond/internal/session"
)

// scale weighs everything alike: what a context holds is looked at here, not its size.
type scale struct{}

func (scale) Message(*session.Message, bool) int64 { return 1 }
func (scale) Text(string) int64                    { return 1 }

// What a model would be given at the end of each path of the samples, also of branches that
// were left, is a request that the providers accept.
func TestContextsAreAccepted(t *testing.T) {
	h := newHouse(t)
	h.run(filepath.Join(samples.Dir(t), "codex"))
	checked := 0
	for _, s := range h.sessions() {
		effective, err := h.store.Effective(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		var leaves []int64
		if err := h.store.Reader().Select(&leaves, `SELECT id FROM messages m WHERE session_id = ? AND NOT EXISTS (SELECT 1 FROM messages c WHERE c.parent_id = m.id)`, s.ID); err != nil {
			t.Fatal(err)
		}
		if s.HeadID != nil {
			leaves = append(leaves, *s.HeadID)
		}
		for _, leaf := range leaves {
			path, err := h.store.Path(t.Context(), leaf, 0)
			if err != nil {
				t.Fatal(err)
			}
			overlay := effective
			if overlay != nil {
				hidden := -1
				for i := range path {
					if path[i].RowID == *overlay.ThroughID {
						hidden = i
					}
				}
				if hidden < 0 {
					overlay = nil
				} else {
					path = path[hidden+1:]
				}
			}
			made := contextmgr.Assemble(contextmgr.Material{Overlay: overlay, Messages: path, CloseCalls: true, Weigh: scale{}})
			if len(made.Messages()) == 0 {
				continue
			}
			for name, validate := range map[string]func([]byte) error{
				dialect.OpenAIResponses: dialecttest.ValidateResponses, dialect.Anthropic: dialecttest.ValidateAnthropic,
				dialect.OpenAIChat: dialecttest.ValidateOpenAIChat,
			} {
				sent, err := dialect.Send(name, dialect.Request{Messages: made.Messages(), Model: s.Model})
				if err != nil {
					t.Errorf("%s to %s: %v", s.SourceID, name, err)
					continue
				}
				if err := validate(sent.Request); err != nil {
					t.Errorf("%s to %s: %v", s.SourceID, name, err)
				}
			}
			checked++
		}
	}
	if checked < 10 {
		t.Errorf("%d contexts were checked", checked)
	}
}
