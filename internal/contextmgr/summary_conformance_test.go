package contextmgr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/touched"

	"github.com/google/go-cmp/cmp"
)

// callsOf returns the calls of a case's entry as parts.
func callsOf(t *testing.T, raw []json.RawMessage) []session.Part {
	t.Helper()
	var parts []session.Part
	for _, one := range raw {
		c := into[struct {
			ID, Name string
			Args     json.RawMessage
		}](t, one)
		parts = append(parts, session.Part{Kind: session.PartToolCall, CallID: c.ID, ToolName: c.Name, Arguments: string(c.Args)})
	}
	return parts
}

// TestFileOperationsConformance runs the lists of files. Their place in a summary is sessiond's own:
// after the model's text, collapsed by directory.
func TestFileOperationsConformance(t *testing.T) {
	for _, c := range conformance(t, "pi.file_operations") {
		t.Run(c.ID, func(t *testing.T) {
			if why := skippedCases()[c.ID]; why != "" {
				t.Skip(why)
			}
			var before struct {
				Previous struct {
					Read, Modified []string
					Extension      bool `json:"from_extension"`
				}
			}
			testkit.Check(t, json.Unmarshal(c.given(t), &before))
			if before.Previous.Extension { // importers read no lists from an extension's record
				before.Previous.Read, before.Previous.Modified = nil, nil
			}
			var files []session.TouchedFile
			for _, e := range c.Given.Entries {
				m := session.Message{Kind: session.KindMessage, Role: session.Role(e.Role), Parts: callsOf(t, e.Calls)}
				files = append(files, touched.Files(&m, "")...)
			}
			read, modified := addFiles(files, before.Previous.Read, before.Previous.Modified)
			want := into[struct {
				Read     []string `json:"read_files"`
				Modified []string `json:"modified_files"`
			}](t, c.Expect)
			if diff := cmp.Diff([][]string{want.Read, want.Modified}, [][]string{read, modified}); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

// given returns a case's whole input.
func (c *confCase) given(t *testing.T) json.RawMessage {
	t.Helper()
	raw := testkit.Must(os.ReadFile("testdata/compaction.json"))(t)
	for _, one := range into[[]struct {
		ID    string
		Given json.RawMessage
	}](t, raw) {
		if one.ID == c.ID {
			return one.Given
		}
	}
	t.Fatalf("no case %s", c.ID)
	return nil
}

// replies is a model with the case's answers.
type replies struct {
	list  []map[string]any
	asked []session.SummaryRequest
}

func (r *replies) Summarize(_ context.Context, in session.SummaryRequest) (session.Summary, error) {
	r.asked = append(r.asked, in)
	reply := r.list[min(len(r.asked), len(r.list))-1]
	// The summarizer fails for a cut answer, an error or a call.
	if _, stopped := reply["stop"]; stopped || reply["tool_call"] == true {
		return session.Summary{}, errors.New("no whole answer")
	}
	text := fmt.Sprint(reply["text"])
	return session.Summary{Text: text, Span: text, Provider: "gemini", Model: "m"}, nil
}

// TestSerialiseConformance skips the case of another program's summarizer input by name.
func TestSerialiseConformance(t *testing.T) {
	runCases(t, "pi.serialize", func(t *testing.T, _ confCase) { t.Fatal("no case is run") })
}

// TestSummaryConformance runs pi's compactions as far as sessiond follows them: which summaries are
// requested, in which order, with which previous summary and instructions, what is carried over, and
// that no partial summary is kept. Sessiond joins the parts in its own way.
func TestSummaryConformance(t *testing.T) {
	for _, c := range conformance(t, "pi.compact") {
		t.Run(c.ID, func(t *testing.T) {
			if why := skippedCases()[c.ID]; why != "" {
				t.Skip(why)
			}
			settings := into[struct {
				Keep         int64 `json:"keep_recent_tokens"`
				Instructions string
			}](t, c.Given.Settings)
			model := &replies{list: into[struct {
				Replies []map[string]any `json:"model_replies"`
			}](t, c.given(t)).Replies}
			path, previous := sinceOverlay(pathOf(c.Given.Entries, c.Given.Leaf))
			r := &snapshot{scales: &scales{scale: 1}, numbers: Numbers{SummaryMax: 1000}}
			for i, e := range path {
				m := messageOf(t, e)
				m.RowID = int64(i + 1)
				r.Messages = append(r.Messages, m)
			}
			plan := MakePlan(entriesOf(t, path), CutRule{KeepTokens: settings.Keep, MetadataSplits: true}, PlanRoom{})
			mgr := &Manager{cfg: Config{Counter: func(string) Counter { return runes{} }}}
			w := summaryWriter{
				m: mgr, s: r, in: &overlayInput{summarizer: model, instructions: settings.Instructions},
				record: &session.Compaction{}, details: &session.CompactionDetails{},
			}
			w.past.running, _ = previous.(string)
			err := w.write(t.Context(), &plan)

			want := into[struct {
				OK      bool
				Summary string
				Calls   []struct {
					Kind     string
					Previous bool `json:"has_previous_summary"`
					Focus    bool `json:"has_focus"`
				}
			}](t, c.Expect)
			if (err == nil) != want.OK || len(model.asked) != len(want.Calls) {
				t.Fatalf("%d calls, error %v; want %+v", len(model.asked), err, want)
			}
			for i, call := range want.Calls {
				asked := model.asked[i]
				if (call.Kind == "prefix") != asked.TurnPrefix || call.Previous == asked.First() || call.Focus != (asked.Instructions != "") {
					t.Errorf("call %d: %+v; want %+v", i, asked, call)
				}
			}
			if !want.OK {
				return
			}
			said := []string{w.record.Summary, w.record.PrefixSummary}
			if whole := slices.DeleteFunc(said, func(s string) bool { return s == "" }); !inOrder(want.Summary, whole) || len(whole) == 0 {
				t.Errorf("the record says %q; pi %q", whole, want.Summary)
			}
		})
	}
}

// inOrder reports whether a text holds parts one after the other.
func inOrder(text string, parts []string) bool {
	for _, p := range parts {
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return true
}
