package codex

import (
	"bytes"
	"path/filepath"
	"strings"

	"sessiond/internal/history"
)

// indexed looks the thread's name up in the index of its home. The last one counts. What
// cannot be read there gives no name; the import of the index itself reports it.
func (r *reader) indexed() string {
	dir := home(r.path)
	if dir == "" || r.talk.Here != nil {
		return "" // later names come with the index itself
	}
	file, err := history.OpenText(filepath.Join(dir, indexName))
	if err != nil {
		return ""
	}
	defer file.Close()
	title := ""
	for line, err := range history.EachRecord(file, file.Size) {
		if err != nil {
			return title
		}
		if !bytes.Contains(line.Bytes, []byte(r.id)) {
			continue
		}
		if o, _, ok := history.ParseLine(line.Bytes); ok && o.String("id") == r.id {
			title = plainText(strings.TrimSpace(o.String("thread_name")))
		}
	}
	return title
}

// readNames reads the index of names: sessions that are here get theirs, where it is the last one.
func readNames(in *history.Intake) {
	type name struct {
		title string
		at    int64 // of its last line
	}
	found := map[string]name{}
	var order []string
	in.EachLine(func(l history.FileLine) {
		o, _, _ := history.ParseLine(l.Bytes)
		id := o.String("id")
		if id == "" {
			in.Skip(skipNoName, 1)
			in.Problem(l.Number, "no name of a thread; left out")
			return
		}
		if before, again := found[id]; again {
			in.SkipAt(before.at, skipOldName, 1)
		} else {
			order = append(order, id)
		}
		found[id] = name{plainText(strings.TrimSpace(o.String("thread_name"))), l.At}
	})
	for _, id := range order {
		existing := in.Session(id)
		title, at := found[id].title, found[id].at
		if existing == nil || title == "" {
			in.SkipAt(at, skipName, 1)
			continue
		}
		if in.Old(at) || existing.Title == title && existing.TitleSource == "source" {
			in.SkipAt(at, history.SkipKnown, 1)
			continue
		}
		b := history.Batch{Aside: true}
		b.ID, b.Title = existing.ID, &title
		b.Records.Import(1)
		in.Emit(b)
	}
}

// readPrompts reads what was typed, in all threads. The rollouts hold it again, with what was
// answered: it is counted, by whether its session is here, and nothing is made of it.
func readPrompts(in *history.Intake) {
	here := map[string]bool{}
	in.EachLine(func(l history.FileLine) {
		o, _, _ := history.ParseLine(l.Bytes)
		id := o.String("session_id")
		if id == "" {
			in.Skip(skipNoPrompt, 1)
			in.Problem(l.Number, "no prompt of a thread; left out")
			return
		}
		is, asked := here[id]
		if !asked {
			is = in.Session(id) != nil
			here[id] = is
		}
		if is {
			in.Skip(skipPrompt, 1)
		} else {
			in.Skip(skipLost, 1)
		}
	})
}
