package codex

import (
	"crypto/sha256"
	"encoding/hex"
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
	modified := session.At(r.file.modified)
	c := history.Cursor{Source: session.SourceCodex, Path: r.path, Size: r.file.stored, ModifiedAt: &modified}
	from := int64(0)
	if cursor != nil && cursor.Offset <= r.file.size {
		sum := sha256.New()
		if _, err := io.Copy(sum, io.NewSectionReader(r.file, 0, cursor.Offset)); err != nil {
			return nil, err
		}
		if hex.EncodeToString(sum.Sum(nil)) == cursor.Hash {
			from, c.Counts = cursor.Offset, cursor.Counts
		}
	}
	found := map[string]string{}
	var order []string
	var records history.Records
	lines := history.NewLines(r.file, from, r.file.size)
	for number := int32(1); ; number++ {
		line, _, ended, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return r.problems, err
		}
		if !ended {
			records.Skip(history.SkipTorn, 1)
			break
		}
		c.Offset = lines.Offset()
		o, _, ok := history.ParseLine(line)
		switch id := o.String("id"); {
		case len(strings.TrimSpace(string(line))) == 0:
			records.Skip(history.SkipBlank, 1)
		case !ok || id == "":
			records.Skip(skipNoName, 1)
			r.problem(number, "no name of a thread; left out")
		default:
			if _, again := found[id]; again {
				records.Skip(skipOldName, 1)
			} else {
				order = append(order, id)
			}
			found[id] = plainText(strings.TrimSpace(o.String("thread_name")))
		}
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(r.file, 0, c.Offset)); err != nil {
		return r.problems, err
	}
	c.Hash = hex.EncodeToString(sum.Sum(nil))
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
	last.Cursor = &c
	return r.problems, r.emit(last)
}
