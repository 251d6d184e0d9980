package codex

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// indexed looks the thread's name up in the index of its home. The last one counts. What
// cannot be read there gives no name; the import of the index itself tells about it.
func (r *reader) indexed() string {
	dir := home(r.path)
	if dir == "" || r.existing != nil {
		return "" // later names come with the index itself
	}
	file, err := open(filepath.Join(dir, indexName))
	if err != nil {
		return ""
	}
	defer file.close()
	lines, title := history.NewLines(file, 0, file.size), ""
	for {
		line, _, _, err := lines.Next()
		if err != nil {
			return title
		}
		if !strings.Contains(string(line), r.id) {
			continue
		}
		if o, _, ok := history.ParseLine(line); ok && o.String("id") == r.id {
			title = plainText(strings.TrimSpace(o.String("thread_name")))
		}
	}
}

// names reads the index of names: sessions that are here get theirs, where it is the last one.
func (r *reader) names(cursor *history.Cursor) ([]history.Problem, error) {
	found := map[string]string{}
	var order []string
	var records history.Records
	read, err := r.list(cursor, &records, func(number int32, o history.Object) error {
		id := o.String("id")
		if id == "" {
			records.Skip(skipNoName, 1)
			r.problem(number, "no name of a thread; left out")
			return nil
		}
		if _, again := found[id]; again {
			records.Skip(skipOldName, 1)
		} else {
			order = append(order, id)
		}
		found[id] = plainText(strings.TrimSpace(o.String("thread_name")))
		return nil
	})
	if err != nil {
		return r.problems, err
	}
	for _, id := range order {
		existing, err := r.known.Session(r.ctx, session.SourceCodex, id)
		if err != nil {
			return r.problems, err
		}
		title := found[id]
		if existing == nil || title == "" {
			records.Skip(skipName, 1)
			continue
		}
		if existing.Title == title && existing.TitleSource == "source" {
			records.Skip(history.SkipKnown, 1)
			continue
		}
		b := history.Batch{Aside: true}
		b.ID, b.Title = existing.ID, &title
		b.Records.Import(1)
		if err := r.emit(b); err != nil {
			return r.problems, err
		}
	}
	last := history.Batch{Records: records}
	last.Cursor = read
	return r.problems, r.emit(last)
}

// prompts reads what was typed, in all threads. The rollouts hold it again, with what was
// answered: it is counted, by whether its session is here, and nothing is made of it.
func (r *reader) prompts(cursor *history.Cursor) ([]history.Problem, error) {
	var records history.Records
	here := map[string]bool{}
	read, err := r.list(cursor, &records, func(number int32, o history.Object) error {
		id := o.String("session_id")
		if id == "" {
			records.Skip(skipNoPrompt, 1)
			r.problem(number, "no prompt of a thread; left out")
			return nil
		}
		is, asked := here[id]
		if !asked {
			existing, err := r.known.Session(r.ctx, session.SourceCodex, id)
			if err != nil {
				return err
			}
			is = existing != nil
			here[id] = is
		}
		if is {
			records.Skip(skipPrompt, 1)
		} else {
			records.Skip(skipLost, 1)
		}
		return nil
	})
	if err != nil {
		return r.problems, err
	}
	last := history.Batch{Records: records}
	last.Cursor = read
	return r.problems, r.emit(last)
}

// listed is the cursor's state of a list.
type listed struct {
	Line int32 `json:"line"` // lines read
}

// list goes over a file to which lines are only added, from where it was read to, and gives
// take what each says (nothing, where it is no object). It gives the new cursor.
func (r *reader) list(cursor *history.Cursor, records *history.Records, take func(number int32, o history.Object) error) (*history.Cursor, error) {
	modified := session.At(r.file.modified)
	c := history.Cursor{Source: session.SourceCodex, Path: r.path, Size: r.file.stored, ModifiedAt: &modified}
	var at listed
	from := int64(0)
	if cursor != nil && cursor.Offset <= r.file.size {
		before, err := r.hashed(cursor.Offset)
		if err != nil {
			return nil, err
		}
		if before == cursor.Hash && json.Unmarshal(cursor.State, &at) == nil {
			from, c.Offset, c.Counts = cursor.Offset, cursor.Offset, cursor.Counts
		} else {
			at = listed{}
		}
	}
	lines := history.NewLines(r.file, from, r.file.size)
	for n := 0; ; n++ {
		line, _, ended, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if n%256 == 0 && r.ctx.Err() != nil {
			return nil, r.ctx.Err()
		}
		if !ended {
			records.Wait(1)
			break
		}
		c.Offset = lines.Offset()
		at.Line++
		if len(strings.TrimSpace(string(line))) == 0 {
			records.Skip(history.SkipBlank, 1)
			continue
		}
		o, _, _ := history.ParseLine(line)
		if err := take(at.Line, o); err != nil {
			return nil, err
		}
	}
	hash, err := r.hashed(c.Offset)
	if err != nil {
		return nil, err
	}
	c.Hash = hash
	c.State = session.JSONOf(at)
	return &c, nil
}

// hashed gives the hash of the bytes before an offset.
func (r *reader) hashed(end int64) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(r.file, 0, end)); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
