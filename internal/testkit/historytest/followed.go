package historytest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// Followed claims that a store which followed some histories while they changed says of them what
// a store says that read them once, as they are in the end. Of every session of the fresh store:
//
//   - the followed one has it, by its id in the program, with the same title, folder, branch, kind and
//     model, and with the same parent, if it has one;
//   - the path to its head says the same, message by message: who spoke, in what form, what was said,
//     when, and whether the model and the person see it;
//   - what a model is given there is the same: the words of the overlay in force and what follows them;
//   - each of its messages, on whatever branch, is in the followed store, behind messages that say the
//     same, up to the root;
//   - each call is in the ledger under its name with its numbers, and those of the path's messages are the same.
//
// What is not claimed, since it would be wrong: the followed store may have more. A rewriting leaves what was
// said before as branches, with its calls, which were made and paid; a file that is gone leaves its session.
// Names of messages may differ: one that says something else under a name that is taken gets another.
// A fork that was here before its origin keeps its copies, and the calls are those of the first that was imported: so
// in a family of forks the ledger is compared alone.
// Where no record says which of several sessions with equal messages is a fork of which, the order of arrival
// decides, and one that adds no message is no session (told.Either).
// A reply that went on after it was imported is on the path in its longest version; shorter ones stay beside it.
// A call that is known stays with the message that it came with, when the source changes that later.
func Followed(fresh, followed *House, told Told) (differences []string) {
	fresh.Helper()
	here, forked := map[string]session.Session{}, map[session.ID]bool{}
	for _, s := range fresh.Sessions() {
		if s.ParentKind == session.ParentFork {
			forked[s.ID], forked[s.ParentID] = true, true
		}
	}
	for _, s := range followed.Sessions() {
		here[s.SourceID] = s
	}
	differ := func(of session.Session, what string, want, got any) {
		if want, got := fmt.Sprint(want), fmt.Sprint(got); want != got {
			differences = append(differences, fmt.Sprintf("%s, %s: -fresh +followed\n%s", of.SourceID, what,
				cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n"))))
		}
	}
	for _, want := range fresh.Sessions() {
		got, ok := here[want.SourceID]
		if !ok {
			if want.SourceID != "" && !told.Either { // else another one has its messages: see below
				differences = append(differences, want.SourceID+" is not here")
			}
			continue
		}
		differ(want, "session", about(want), about(got))
		if title := want.Title; want.TitleSource == "source" && !told.Cut || title != "" && got.Title == "" {
			differ(want, "title", title, got.Title)
		}
		if want.Model != "" {
			differ(want, "model", want.Model, got.Model)
		}
		if want.ParentID != "" {
			_, parentHere := here[sourceOf(fresh, want.ParentID)]
			if !told.Either || want.ParentKind != session.ParentFork && parentHere {
				differ(want, "parent", parentOf(fresh, want), parentOf(followed, got))
			}
		}
		differ(want, "path", strings.Join(says(fresh.Path(want)), "\n"), strings.Join(says(followed.Path(got)), "\n"))
		differ(want, "context", given(fresh, want), given(followed, got))
		if !forked[want.ID] && !told.Changed {
			differ(want, "calls of the path", strings.Join(callsOf(fresh, want, false), "\n"),
				strings.Join(callsOf(followed, got, false), "\n"))
		}
	}
	behind := trails(followed)
	for trail, said := range trails(fresh) {
		if _, ok := behind[trail]; !ok {
			differences = append(differences, "a message is not here, or not behind what it stands behind: "+said)
		}
	}
	ledger := callsOf(followed, session.Session{}, true)
	for _, call := range callsOf(fresh, session.Session{}, true) {
		if _, ok := slices.BinarySearch(ledger, call); !ok {
			differences = append(differences, "the ledger lacks "+call)
		}
	}
	return differences
}

// Told says what a followed store cannot have as a fresh one has it.
type Told struct {
	Either  bool // no record says which of the sessions with equal messages are forks of which
	Cut     bool // files became shorter: a name that was given there stays
	Changed bool // messages were told otherwise, in their places
}

func about(s session.Session) string {
	return fmt.Sprintf("%s %s %s", s.Directory, s.GitBranch, s.Kind)
}

func parentOf(h *House, s session.Session) string {
	if s.ParentID == "" {
		return ""
	}
	return s.ParentKind + " of " + sourceOf(h, s.ParentID)
}

func sourceOf(h *House, id session.ID) string {
	s := testkit.Must(h.Store.Session(h.Context(), id))(h)
	return s.SourceID
}

// says returns what messages say, without the names that stores and importers give them.
func says(path []session.Message) []string {
	var all []string
	for i := range path {
		m := &path[i]
		line := fmt.Sprintf("%s %s %s %s %s in=%v shown=%v", m.Kind, m.Role, m.Origin, m.Finish, m.Model, m.InContext,
			m.Display)
		// A repeated state is the same at any time, and a time that its program did not record is that of the file.
		if m.Kind == session.KindMessage && !strings.Contains(string(m.Extra), `"time":"`) {
			line += m.CreatedAt.Format(" 15:04:05.000")
		}
		for j := range m.Parts {
			p := &m.Parts[j]
			line += fmt.Sprintf(" [%s %s %s %s %q", p.Kind, p.ToolName, p.CallID, p.Arguments, p.Content())
			if p.DurationMS != nil {
				line += fmt.Sprintf(" %d ms", *p.DurationMS)
			}
			line += "]"
		}
		all = append(all, line)
	}
	return all
}

// given is what a model would be given at the head.
func given(h *House, s session.Session) string {
	effective, rest := h.Seen(s)
	summary := "nothing is hidden"
	if effective != nil {
		summary = fmt.Sprintf("%s %q %s", effective.Strategy, effective.Summary, effective.Replacement)
	}
	return summary + "\n" + strings.Join(says(rest), "\n")
}

// trails names each message by its text and those of the messages before it, up to the root.
func trails(h *House) map[string]string {
	all := map[string]string{}
	for _, s := range h.Sessions() {
		maps.Copy(all, trailsOf(h, s))
	}
	return all
}

func trailsOf(h *House, s session.Session) map[string]string {
	all, trail := map[string]string{}, map[int64]string{}
	root := func(above, said string) string {
		sum := sha256.Sum256([]byte(above + "\n" + said))
		return hex.EncodeToString(sum[:])
	}
	for _, m := range h.Entries(s.ID) {
		above := ""
		if m.ParentID != nil {
			if trail[*m.ParentID] == "" { // it lies in another session
				path := testkit.Must(h.Store.Path(h.Context(), *m.ParentID, 0))(h)
				at := ""
				for i, said := range says(path) {
					at = root(at, said)
					trail[path[i].RowID] = at
				}
			}
			above = trail[*m.ParentID]
		}
		said := says([]session.Message{m})[0]
		trail[m.RowID] = root(above, said)
		all[trail[m.RowID]] = said
	}
	return all
}

// callsOf returns the calls that messages of a session's path made, or the whole ledger: their names and numbers.
func callsOf(h *House, s session.Session, ledger bool) []string {
	var all []string
	query, args := `SELECT external_id || ' ' || input_tokens || ' ' || cache_read_tokens || ' ' || cache_write_tokens || ' ' || output_tokens || ' ' || model FROM calls`, []any{}
	if !ledger {
		var ids []int64
		for _, m := range h.Path(s) {
			ids = append(ids, m.RowID)
		}
		query, args = query+` WHERE CAST(message_id AS TEXT) IN (SELECT CAST(value AS TEXT) FROM json_each(?))`, []any{string(session.JSONOf(ids))}
	}
	testkit.Check(h, h.Store.Reader().Select(&all, query+` ORDER BY 1`, args...))
	return all
}
