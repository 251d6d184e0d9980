package summarize

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"sessiond/internal/redact"
)

// How the lines of an index that name files begin. What follows is made anew from the whole
// lists each time, so it is never read back.
const (
	modifiedLabel = "Files modified: "
	readLabel     = "Files read: "
)

// fileLines names files within budget, collapsed by directory: dir/{a.go, b.go}, where that
// is too long dir/ (14 files), where that is too long the directories above, and at last as
// many as fit. What was modified goes first and may leave less for what was read. Secrets
// are masked.
func fileLines(read, modified []string, budget int64, count func(string) int64) []string {
	var lines []string
	for _, l := range [...]struct {
		label string
		files []string
	}{{modifiedLabel, modified}, {readLabel, read}} {
		if len(l.files) == 0 {
			continue
		}
		text := collapse(l.files, budget-count(l.label)-2, count)
		if text == "" {
			continue
		}
		text, _ = redact.Mask(l.label + text)
		budget -= count(text) + 2
		lines = append(lines, text)
	}
	return lines
}

// directory is files of an index that are named together.
type directory struct {
	path  string // ends with a slash; "": the files stand alone
	files []string
	whole bool // only the number is told
}

func (d *directory) String() string {
	switch {
	case d.whole && len(d.files) == 1:
		return d.path + " (1 file)"
	case d.whole:
		return fmt.Sprintf("%s (%d files)", d.path, len(d.files))
	case d.path == "" || len(d.files) == 1:
		return d.path + strings.Join(d.files, ", ")
	}
	return d.path + "{" + strings.Join(d.files, ", ") + "}"
}

// collapse names all files in budget tokens; "" where not even their number fits.
func collapse(files []string, budget int64, count func(string) int64) string {
	dirs := byDirectory(files)
	if text := written(dirs); count(text) <= budget {
		return text
	}
	// The largest directories give their names up first: they free the most and say the least.
	order := make([]int, len(dirs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(dirs[b].files), len(dirs[a].files)) })
	left := count(written(dirs))
	for _, i := range order {
		left -= count(dirs[i].String())
		dirs[i].whole = dirs[i].path != ""
		left += count(dirs[i].String())
		if left > budget {
			continue
		}
		if text := written(dirs); count(text) <= budget {
			return text
		}
	}
	for depth := 6; depth > 0; depth-- {
		if text := written(above(files, depth)); count(text) <= budget {
			return text
		}
	}
	if text := fmt.Sprintf("%d files", len(files)); count(text) <= budget {
		return text
	}
	return ""
}

func written(dirs []directory) string {
	texts := make([]string, len(dirs))
	for i := range dirs {
		texts[i] = dirs[i].String()
	}
	return strings.Join(texts, ", ")
}

// byDirectory groups sorted files by the directory that they lie in.
func byDirectory(files []string) []directory {
	var dirs []directory
	at := map[string]int{}
	for _, f := range files {
		dir, name := path.Split(f)
		if name == "" { // a directory itself
			dir, name = "", f
		}
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

// above groups files by the first few parts of their directory, with their number only.
func above(files []string, depth int) []directory {
	var dirs []directory
	at := map[string]int{}
	for _, f := range files {
		dir, _ := path.Split(f)
		cut := 0
		for n := 0; cut < len(dir) && n < depth; cut++ {
			if dir[cut] == '/' && cut > 0 {
				n++
			}
		}
		if dir = dir[:cut]; dir == "" {
			dir = "./"
		}
		i, ok := at[dir]
		if !ok {
			i = len(dirs)
			at[dir] = i
			dirs = append(dirs, directory{path: dir, whole: true})
		}
		dirs[i].files = append(dirs[i].files, f)
	}
	return dirs
}
