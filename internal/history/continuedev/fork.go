package continuedev

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// origin finds the session that this one was forked from. The CLI keeps no link: a fork begins with the messages of
// its origin, in the same folder, and what these used is more than the session counts.
func (t *talk) origin() {
	if t.here != nil {
		if t.here.ParentKind == session.ParentFork {
			if from := t.in.SessionByID(t.here.ParentID); from != nil {
				t.whole.Origins = []*session.Session{from}
			}
		}
		return
	}
	total, isKnown := t.total()
	sum := t.sum()
	if t.named || len(t.whole.Items) < history.LeastShared || isKnown && sum != (spent{}) && sum.within(total) {
		return
	}
	most := history.LeastShared - 1
	for _, from := range t.candidates() {
		shared := 0
		for _, item := range t.whole.Items {
			if t.in.Message(from.ID, item.Key) == nil {
				break
			}
			shared++
		}
		if shared > most {
			most, t.whole.Origins = shared, []*session.Session{from}
		}
	}
}

// candidates returns the stored sessions whose files begin as this one does.
func (t *talk) candidates() (found []*session.Session) {
	own := t.reader.beginning(t.in.Found.Path)
	ids := t.reader.sessionsOf(filepath.Dir(t.in.Found.Path))[own.key]
	for _, s := range t.in.Origins(slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == own.id })) {
		if s.Directory == t.whole.New.Directory {
			found = append(found, s)
		}
	}
	return found
}

// family are the sessions of a folder by how they begin, when it was listed.
type family struct {
	listed time.Time
	ids    map[string][]string
}

// sessionsOf returns the ids of the sessions in a folder by the key of their beginning. It lists the folder again when
// a file was added to it.
func (r *reader) sessionsOf(folder string) map[string][]string {
	info, err := os.Stat(folder)
	if err != nil {
		return nil
	}
	if got, ok := r.families.Load(folder); ok && got.(family).listed.Equal(info.ModTime()) {
		return got.(family).ids
	}
	all := family{info.ModTime(), map[string][]string{}}
	files, _ := os.ReadDir(folder) // one that cannot be read has none
	for _, file := range files {
		b := r.beginning(filepath.Join(folder, file.Name()))
		if b.key != "" && !slices.Contains(all.ids[b.key], b.id) {
			all.ids[b.key] = append(all.ids[b.key], b.id)
		}
	}
	r.families.Store(folder, all)
	return all.ids
}

// begun is how a session begins.
type begun struct {
	written time.Time
	id, key string // key names its second message, and so what the first two say
}

var errEnough = errors.New("that is enough")

// beginning reads how a file begins; of one that is no session nothing.
func (r *reader) beginning(path string) (b begun) {
	info, err := os.Stat(path)
	if err != nil || !fileName.MatchString(filepath.Base(path)) {
		return begun{}
	}
	if got, ok := r.beginnings.Load(path); ok && got.(begun).written.Equal(info.ModTime()) {
		return got.(begun)
	}
	b.written = info.ModTime()
	defer func() { r.beginnings.Store(path, b) }()
	file, _, err := history.Open(path)
	if err != nil {
		return b
	}
	defer file.Close()
	t := &talk{in: &history.Intake{}, names: history.Repeats{}, results: map[string]bool{}}
	_ = history.EachValue(file, info.Size(), "history", func(name string, isEntry bool, value jsontext.Value) error {
		if name == "sessionId" {
			b.id, _ = jsonx.Text(value)
		}
		if isEntry {
			t.entry(value)
		}
		if len(t.whole.Items) >= history.LeastShared {
			return errEnough
		}
		return nil
	})
	if len(t.whole.Items) >= history.LeastShared {
		b.key = t.whole.Items[history.LeastShared-1].Key
	}
	return b
}
