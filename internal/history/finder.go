package history

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Finder collects the files that a source may read. Links are followed; each real file and
// folder is taken once, so that a loop of links ends. It looks at names and sizes only.
type Finder struct {
	Usual    bool // the roots are the program's own places
	Found    []Found
	Problems []Problem
	seen     map[string]bool // real paths
}

// roots hands each root to folder or to file, nil: File. Of the usual places any may be missing, since
// the program was never used here. What cannot be looked at is a problem.
func (f *Finder) roots(ctx context.Context, roots []string, folder, file func(f *Finder, root string)) error {
	if file == nil {
		file = (*Finder).File
	}
	for _, root := range roots {
		if err := ctx.Err(); err != nil {
			return err
		}
		info, err := os.Stat(root)
		switch {
		case f.Usual && errors.Is(err, fs.ErrNotExist):
		case err != nil:
			f.Problem(root, err)
		case info.IsDir():
			folder(f, root)
		default:
			file(f, root)
		}
	}
	return nil
}

// Folder takes the files of a folder whose names match and, while depth is above 1, those in
// its folders. A folder that cannot be read is a problem.
func (f *Finder) Folder(path string, depth int, match func(name string) bool) {
	f.folder(path, depth, match, false)
}

// folder is Folder. One that was listed a moment ago and is gone now is no problem: its
// program works there.
func (f *Finder) folder(path string, depth int, match func(name string) bool, listed bool) {
	real, err := realPath(path)
	if err == nil && !f.once(real) {
		return
	}
	entries, err := os.ReadDir(path)
	if listed && errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		f.Problem(path, err)
		return
	}
	for _, entry := range entries {
		child := filepath.Join(path, entry.Name())
		isFolder := entry.IsDir() || entry.Type()&os.ModeSymlink != 0 && IsFolder(child)
		switch {
		case entry.Type().IsRegular() && match(entry.Name()):
			f.entry(filepath.Join(real, entry.Name()), entry) // no link needs to be followed
		case !isFolder && match(entry.Name()):
			f.File(child)
		case isFolder && depth > 1:
			f.folder(child, depth-1, match, true)
		}
	}
}

// entry takes a regular file of a folder, by its real path.
func (f *Finder) entry(real string, entry os.DirEntry) {
	info, err := entry.Info()
	switch {
	case errors.Is(err, fs.ErrNotExist): // gone since it was listed
	case err != nil:
		f.Problem(real, err)
	case f.once(real):
		f.Found = append(f.Found, Found{Path: real, Size: info.Size(), ModifiedAt: info.ModTime()})
	}
}

// File takes one regular file; anything else is left alone.
func (f *Finder) File(path string) {
	real, err := realPath(path)
	if err != nil {
		if _, link := os.Readlink(path); link == nil && errors.Is(err, fs.ErrNotExist) {
			err = errors.New("a link to what is not there")
		}
		f.Problem(path, err)
		return
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		f.Problem(path, err)
	case info.Mode().IsRegular() && f.once(real):
		f.Found = append(f.Found, Found{Path: real, Size: info.Size(), ModifiedAt: info.ModTime()})
	}
}

// Tree takes a folder as one found thing. Its size and time are those of what matches the patterns
// in it.
func (f *Finder) Tree(path string, patterns ...string) {
	real, err := realPath(path)
	if err != nil {
		f.Problem(path, err)
		return
	}
	if !f.once(real) {
		return
	}
	found := Found{Path: real}
	for _, pattern := range patterns {
		matches, _ := filepath.Glob(filepath.Join(real, pattern)) // the pattern is good
		for _, match := range matches {
			if info := stat(match); info != nil {
				found.Size += info.Size()
				if info.ModTime().After(found.ModifiedAt) {
					found.ModifiedAt = info.ModTime()
				}
			}
		}
	}
	f.Found = append(f.Found, found)
}

// Database takes one SQLite database with its log.
func (f *Finder) Database(path string) {
	found, err := StatSQLite(path)
	switch {
	case err != nil:
		f.Problem(path, err)
	case f.once(found.Path):
		f.Found = append(f.Found, found)
	}
}

// Problem notes what could not be read.
func (f *Finder) Problem(path string, err error) {
	f.Problems = append(f.Problems, Problem{Path: path, Error: Reason(err)})
}

// once reports whether a real path is new, and remembers it.
func (f *Finder) once(real string) bool {
	if f.seen[real] {
		return false
	}
	if f.seen == nil {
		f.seen = map[string]bool{}
	}
	f.seen[real] = true
	return true
}

// Expand replaces a leading ~ by the home folder; "" where there is none.
func Expand(path string, env func(string) string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		home := env("HOME")
		if home == "" {
			return ""
		}
		path = filepath.Join(home, rest)
	}
	return path
}

// DataHome returns the folder in which programs keep data, a folder each: $XDG_DATA_HOME, else
// ~/.local/share; "" where there is no home folder.
func DataHome(env func(string) string) string {
	if data := env("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return data
	}
	return Expand("~/.local/share", env)
}

// IsFolder reports whether path is a folder, also behind a link.
func IsFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func realPath(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		var at *fs.PathError
		if _, said := os.Stat(path); said != nil && !errors.As(err, &at) {
			err = said // of a link that leads to itself EvalSymlinks says that there are "too many links"
		}
		return "", err
	}
	return filepath.Abs(real)
}
