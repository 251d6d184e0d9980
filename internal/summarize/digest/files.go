package digest

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"sessiond/internal/redact"
)

// The labels of the lines of an index that name files. Each summary writes these lines anew from
// the whole lists; parseOutline skips them.
const (
	modifiedLabel = "Files modified: "
	readLabel     = "Files read: "
)

// fileLines names files within budget, grouped by directory: dir/{a.go, b.go}, else dir/ (14 files),
// else the directories above, else only their number. Modified files come first and may leave less
// room for read ones. Secrets are masked.
func fileLines(read, modified []string, budget int64, count func(string) int64) []string {
	var lines []string
	for _, l := range [...]struct {
		label string
		files []string
	}{{modifiedLabel, modified}, {readLabel, read}} {
		if len(l.files) == 0 {
			continue
		}
		text := nameFiles(l.files, budget-count(l.label)-2, count)
		if text == "" {
			continue
		}
		text, _ = redact.Mask(l.label + text)
		budget -= count(text) + 2
		lines = append(lines, text)
	}
	return lines
}

// directory is a group of files.
type directory struct {
	path      string // ends with a slash; "": the files have no common directory
	files     []string
	countOnly bool
}

func (d *directory) String() string {
	switch {
	case d.countOnly && len(d.files) == 1:
		return d.path + " (1 file)"
	case d.countOnly:
		return fmt.Sprintf("%s (%d files)", d.path, len(d.files))
	case d.path == "" || len(d.files) == 1:
		return d.path + strings.Join(d.files, ", ")
	}
	return d.path + "{" + strings.Join(d.files, ", ") + "}"
}

// nameFiles names all files in budget tokens; "" if not even their number fits.
func nameFiles(files []string, budget int64, count func(string) int64) string {
	dirs := groupFiles(files, func(f string) (dir, name string) {
		if dir, name = path.Split(f); name == "" { // a directory itself
			return "", f
		}
		return dir, name
	})
	if text := joinDirectories(dirs); count(text) <= budget {
		return text
	}
	// The largest directories lose their names first: they free the most room.
	order := make([]*directory, len(dirs))
	for i := range dirs {
		order[i] = &dirs[i]
	}
	slices.SortStableFunc(order, func(a, b *directory) int { return cmp.Compare(len(b.files), len(a.files)) })
	left := count(joinDirectories(dirs)) // an estimate, so that not every text is counted
	for _, d := range order {
		left -= count(d.String())
		d.countOnly = d.path != ""
		left += count(d.String())
		if left > budget {
			continue
		}
		if text := joinDirectories(dirs); count(text) <= budget {
			return text
		}
	}
	for depth := 6; depth > 0; depth-- {
		above := groupFiles(files, func(f string) (dir, name string) { return directoryAbove(f, depth), f })
		for i := range above {
			above[i].countOnly = true
		}
		if text := joinDirectories(above); count(text) <= budget {
			return text
		}
	}
	if text := fmt.Sprintf("%d files", len(files)); count(text) <= budget {
		return text
	}
	return ""
}

func joinDirectories(dirs []directory) string {
	texts := make([]string, len(dirs))
	for i := range dirs {
		texts[i] = dirs[i].String()
	}
	return strings.Join(texts, ", ")
}

// groupFiles groups files by the directory that split returns, in the order of their first files.
func groupFiles(files []string, split func(string) (dir, name string)) []directory {
	var dirs []directory
	at := map[string]int{}
	for _, f := range files {
		dir, name := split(f)
		i, ok := at[dir]
		if !ok {
			i = len(dirs)
			at[dir] = i
			dirs = append(dirs, directory{path: dir})
		}
		dirs[i].files = append(dirs[i].files, name)
	}
	return dirs
}

// directoryAbove returns the first depth parts of a file's directory.
func directoryAbove(file string, depth int) string {
	dir, _ := path.Split(file)
	end := 0
	for n := 0; end < len(dir) && n < depth; end++ {
		if dir[end] == '/' && end > 0 {
			n++
		}
	}
	return cmp.Or(dir[:end], "./")
}
