package recall

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/contextmgr"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// told is a conversation in a store: the prices stand in the fifth message, and on a branch
// beside the path.
func told(t *testing.T) (Lookup, []session.Message) {
	ctx := t.Context()
	dir := t.TempDir()
	st := testkit.Must(store.Open(ctx, storetest.New(t, filepath.Join(dir, "sessions.db")),
		store.Options{Zone: time.UTC}))(t)
	t.Cleanup(func() { testkit.Check(t, st.Close()) })
	ix := testkit.Must(search.Open(ctx, filepath.Join(dir, "search.db"), st))(t)
	t.Cleanup(func() { testkit.Check(t, ix.Close()) })
	s, err := st.CreateSession(ctx, store.NewSession{Directory: dir})
	testkit.Check(t, err)
	say := func(role session.Role, text string) session.Message {
		return session.Message{
			Kind: session.KindMessage, Role: role, InContext: true,
			Parts: []session.Part{session.TextPart(text)},
		}
	}
	tool := func(kind session.PartKind, text string) session.Part {
		return session.Part{Kind: kind, CallID: "c", ToolName: "read", Text: text, Arguments: "{}"}
	}
	call := session.Message{
		Kind: session.KindMessage, Role: session.Assistant, Finish: session.FinishToolCalls,
		InContext: true, Parts: []session.Part{tool(session.PartToolCall, "")},
	}
	result := session.Message{
		Kind: session.KindMessage, Role: session.Tool, InContext: true,
		Parts: []session.Part{tool(session.PartToolResult, "The zebra costs 4711 crowns.")},
	}
	_, err = st.Append(ctx, store.Append{Session: s.ID, Messages: []session.Message{
		say(session.User, "Hello."), say(session.Assistant, "Hello."), say(session.User, "Look at the list."), call, result,
		say(session.Assistant, "Done."),
	}})
	testkit.Check(t, err)
	_, err = st.Append(ctx, store.Append{
		Session: s.ID, Parent: &session.MessageRef{Session: s.ID, Seq: 2},
		Messages: []session.Message{say(session.User, "The zebra costs no crowns here.")},
	})
	testkit.Check(t, err)
	testkit.Must(st.Append(ctx, store.Append{
		Session: s.ID, Parent: &session.MessageRef{Session: s.ID, Seq: 6},
		Messages: []session.Message{
			say(session.User, "Thanks."), say(session.Assistant, "Anything else?"),
			say(session.User, "What does the zebra cost in crowns?"),
		},
	}))(t)
	testkit.Must(ix.CatchUp(ctx))(t)
	now := testkit.Must(st.Session(ctx, s.ID))(t)
	path := testkit.Must(st.Path(ctx, *now.HeadID, 0))(t)
	return Lookup{Index: ix, Store: st}, path
}

// ask asks for the price while the path is kept from an index on and some messages are pruned.
func ask(t *testing.T, l Lookup, path []session.Message, kept int, pruned ...int64) []contextmgr.Hit {
	t.Helper()
	hits, unread, err := l.Recall(t.Context(), contextmgr.RecallQuery{
		Head: path[len(path)-1].RowID, Before: path[kept].RowID, Pruned: pruned,
		Text: path[len(path)-1].Text(), Limit: 8,
	})
	testkit.Check(t, err)
	if unread > 0 {
		t.Fatalf("%d messages were not searched", unread)
	}
	return hits
}

func TestAHiddenMessageComesWithThoseBesideIt(t *testing.T) {
	l, path := told(t)
	hits := ask(t, l, path, 6)
	if len(hits) != 1 || hits[0].Message.ID.Seq != 5 {
		t.Fatalf("found %+v, want message 5 alone: the branch is not on the path, the question not hidden", hits)
	}
	var beside []string
	for _, n := range hits[0].Neighbours {
		beside = append(beside, n.ID.String()[len(n.ID.String())-2:])
	}
	if got := strings.Join(beside, " "); got != ".4 .6" {
		t.Errorf("beside it: %s", got)
	}
	if n := ask(t, l, path, 5)[0].Neighbours; len(n) != 1 || n[0].ID.Seq != 4 {
		t.Errorf("a message that is kept is quoted, too: %+v", n)
	}
}

func TestAKeptMessageIsFoundOnlyIfItsOutputIsPruned(t *testing.T) {
	l, path := told(t)
	if hits := ask(t, l, path, 0); len(hits) != 0 {
		t.Errorf("nothing is hidden, found %+v", hits)
	}
	hits := ask(t, l, path, 2, path[4].RowID)
	if len(hits) != 1 || hits[0].Message.RowID != path[4].RowID || len(hits[0].Neighbours) != 0 {
		t.Errorf("found %+v, want the pruned output alone", hits)
	}
}

func TestRecallEndsWithItsContext(t *testing.T) {
	l, path := told(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := l.Recall(ctx, contextmgr.RecallQuery{
		Head: path[len(path)-1].RowID, Before: path[6].RowID,
		Text: "zebra crowns", Limit: 8,
	})
	if err == nil {
		t.Error("a cancelled recall answers")
	}
}
