package jobs

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// namer is a model that names conversations; meanwhile runs while it is at work.
type namer struct {
	asked     []session.SummaryRequest
	err       error
	meanwhile func()
}

func (n *namer) Summarize(_ context.Context, in session.SummaryRequest) (session.Summary, error) {
	n.asked = append(n.asked, in)
	if n.meanwhile != nil {
		n.meanwhile()
	}
	call := session.Call{Purpose: session.PurposeTitle, Provider: "openai", Model: "m", InputTokens: 30, OutputTokens: 5}
	if n.err != nil {
		call.Status, call.Error = session.CallFailed, n.err.Error()
		return session.Summary{Calls: []session.Call{call}}, n.err
	}
	return session.Summary{Text: "Prices of CompanyB", Calls: []session.Call{call}}, nil
}

func spoken(t *testing.T) (*store.Store, session.ID) {
	t.Helper()
	s := testkit.Must(store.Open(t.Context(), storetest.New(t, filepath.Join(t.TempDir(), "sessions.db")),
		store.Options{Log: zerolog.Nop()}))(t)
	t.Cleanup(func() { testkit.Check(t, s.Close()) })
	sess := testkit.Must(s.CreateSession(t.Context(), store.NewSession{}))(t)
	for _, m := range []session.Message{
		{Role: session.User, Origin: session.Person, Parts: []session.Part{session.TextPart("What does CompanyB ask for?")}},
		{Role: session.Assistant, Origin: session.Model, Parts: []session.Part{session.TextPart("$129")}},
	} {
		testkit.Must(s.Append(t.Context(), store.Append{Session: sess.ID, Messages: []session.Message{m}}))(t)
	}
	return s, sess.ID
}

func TestModelTitleReplacesOnlyTheFirstMessage(t *testing.T) {
	for _, c := range []struct {
		name, want, source string
		err                error
		before, meanwhile  bool // a person names the session
	}{
		{name: "named by the model", want: "Prices of CompanyB", source: "model"},
		{name: "the model fails", want: "What does CompanyB ask for?", source: "first_message", err: errors.New("no answer")},
		{name: "named by a person before", want: "mine", source: "given", before: true},
		{name: "named by a person meanwhile", want: "mine", source: "given", meanwhile: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, id := spoken(t)
			rename := func() {
				title := "mine"
				testkit.Must(s.PatchSession(t.Context(), id, store.SessionPatch{Title: &title}))(t)
			}
			if c.before {
				rename()
			}
			model := &namer{err: c.err}
			if c.meanwhile {
				model.meanwhile = rename
			}
			titles := &Titles{Store: s, Model: model}
			for range 2 { // the second run makes no request once there is a title
				if err := titles.Title(t.Context(), id); !errors.Is(err, c.err) {
					t.Fatal(err)
				}
			}
			sess, err := s.Session(t.Context(), id)
			if err != nil || sess.Title != c.want || sess.TitleSource != c.source {
				t.Errorf("%q from %s, %v", sess.Title, sess.TitleSource, err)
			}
			calls, _, err := s.Calls(t.Context(), id, store.Page{})
			if err != nil || len(calls) != len(model.asked) {
				t.Errorf("%d calls for %d questions, %v", len(calls), len(model.asked), err)
			}
			if asked := len(model.asked); c.before != (asked == 0) || c.err == nil && asked > 1 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

func TestEmptyDraftsAreRemovedHourly(t *testing.T) {
	f := &fake{}
	inBubble(t, f, Backups{}, func(*Runner) {
		time.Sleep(61 * time.Minute)
		synctest.Wait()
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.drafts) != 2 || time.Since(f.drafts[1]) < draftAge {
			t.Errorf("looked at %v", f.drafts)
		}
	})
}

func TestOnlyEmptyDraftsAreRemoved(t *testing.T) {
	s, _ := spoken(t)
	empty := testkit.Must(s.CreateSession(t.Context(), store.NewSession{Draft: true}))(t)
	used := testkit.Must(s.CreateSession(t.Context(), store.NewSession{Draft: true}))(t)
	testkit.Must(s.Append(t.Context(), store.Append{
		Session:  used.ID,
		Messages: []session.Message{{Role: session.User, Parts: []session.Part{session.TextPart("hi")}}},
	}))(t)
	if n, err := s.ForgetDrafts(t.Context(), time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("%d fresh drafts vanished, %v", n, err)
	}
	if n, err := s.ForgetDrafts(t.Context(), time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("%d drafts vanished, %v", n, err)
	}
	if _, err := s.Session(t.Context(), empty.ID); session.CodeOf(err) != session.NotFound {
		t.Errorf("the empty draft: %v", err)
	}
	if _, err := s.Session(t.Context(), used.ID); err != nil {
		t.Errorf("the used draft: %v", err)
	}
}
