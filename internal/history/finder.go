package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sessiond/internal/folders"
	"sessiond/internal/jsonx"
)

// Finder collects the files that a source may read. Each real file and folder is taken once, so that a loop of links
// ends. It looks at names and sizes only.
//
// A root may be a link. One below a root is followed within the roots and the program's own places, and wherever
// such a place has it: a folder that came from elsewhere must not lead to all that the user can read.
type Finder struct {
	Usual    bool // the roots are the program's own places
	Found    []Found
	Problems []Problem
	seen     map[string]bool // real paths
	inside   []string        // real paths of the roots and places; nil: every link is followed
	places   []string        // real paths of the places
	outside  int             // links that were not followed
}

// Confine restricts links to some roots and to places of the program.
func (f *Finder) Confine(roots, places []string) {
	for _, place := range places {
		if real, err := realPath(place); err == nil {
			f.places = append(f.places, real)
		}
	}
	f.inside = append([]string{}, f.places...)
	for _, root := range roots {
		if real, err := realPath(root); err == nil {
			f.inside = append(f.inside, real)
		}
	}
}

// Follows reports whether a path may be followed; if not, that is a problem.
func (f *Finder) Follows(path string) bool {
	real, err := realPath(path)
	return err != nil || f.follows(path, real) // looking at it reports the error
}

func (f *Finder) follows(path, real string) bool {
	within := func(folders []string, path string) bool {
		return slices.ContainsFunc(folders, func(folder string) bool { return Within(path, folder) })
	}
	if f.inside == nil || within(f.inside, real) {
		return true
	}
	if above, err := realPath(filepath.Dir(path)); err == nil && within(f.places, above) {
		f.inside = append(f.inside, real) // the user put the link there
		return true
	}
	if f.outside++; f.outside <= MaxProblems {
		f.Problem(path, fmt.Errorf("a link to %s, outside of the imported folder: not followed; "+
			"if it is a history, import it by its own path", real))
	}
	return false
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
	real, err := realPath(path)
	if err == nil && !f.follows(path, real) {
		return
	}
	f.folder(path, real, depth, match, false)
}

// folder is Folder for one whose real path is known, and may be followed. One that was listed a moment ago and is gone
// now is no problem: its program works there.
func (f *Finder) folder(path, real string, depth int, match func(name string) bool, listed bool) {
	if real != "" && !f.once(real) {
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
		isLink := entry.Type()&os.ModeSymlink != 0
		isFolder := entry.IsDir() || isLink && IsFolder(child)
		switch {
		case entry.Type().IsRegular() && match(entry.Name()):
			f.entry(filepath.Join(real, entry.Name()), entry) // no link needs to be followed
		case !isFolder && match(entry.Name()):
			f.File(child)
		case isLink && isFolder && depth > 1:
			at, err := realPath(child)
			if err != nil || f.follows(child, at) { // reading it reports the error
				f.folder(child, at, depth-1, match, true)
			}
		case isFolder && depth > 1: // looking a path up costs more than listing a folder
			f.folder(child, filepath.Join(real, entry.Name()), depth-1, match, true)
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
	case info.Mode().IsRegular() && f.follows(path, real) && f.once(real):
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
	if !f.follows(path, real) || !f.once(real) {
		return
	}
	f.Found = append(f.Found, treeOf(real, patterns))
}

// TreeAround takes the folder of a file that was named as one found thing, as Tree does.
func (f *Finder) TreeAround(file string, patterns ...string) {
	real, err := realPath(file)
	if err != nil {
		f.Problem(file, err)
		return
	}
	if folder := filepath.Dir(real); f.follows(file, real) && f.once(folder) {
		f.Found = append(f.Found, treeOf(folder, patterns))
	}
}

func treeOf(real string, patterns []string) Found {
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
	return found
}

// Trees makes each folder with one of the files found since a number of them one found thing, as Tree does.
func (f *Finder) Trees(since int, patterns ...string) {
	files, seen := slices.Clone(f.Found[since:]), map[string]bool{}
	f.Found = f.Found[:since]
	for _, file := range files {
		if folder := filepath.Dir(file.Path); !seen[folder] {
			seen[folder] = true
			f.Found = append(f.Found, treeOf(folder, patterns))
		}
	}
}

// Database takes one SQLite database with its log.
func (f *Finder) Database(path string) {
	found, err := StatSQLite(path)
	switch {
	case err != nil:
		f.Problem(path, err)
	case f.follows(path, found.Path) && f.once(found.Path):
		f.Found = append(f.Found, found)
	}
}

// FileOrDatabase takes one file: a database with its log.
func (f *Finder) FileOrDatabase(path string) {
	if IsDatabase(path) {
		f.Database(path)
	} else {
		f.File(path)
	}
}

// WithLogs takes the logs of the databases along, by their names, that were found since a number of files.
func (f *Finder) WithLogs(since int, isDatabase func(name string) bool) {
	for i, found := range f.Found[since:] {
		if with, err := StatSQLite(found.Path); err == nil && isDatabase(filepath.Base(found.Path)) {
			f.Found[since+i] = with
		}
	}
}

// End reports how many links were not followed beside those that are named.
func (f *Finder) End() {
	if more := f.outside - MaxProblems; more > 0 {
		f.Problems = append(f.Problems, Problem{
			Path:  f.Problems[len(f.Problems)-1].Path,
			Error: fmt.Sprintf("%d more links lead outside of the imported folder: not followed", more),
		})
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
	if data := env("XDG_DATA_HOME"); folders.IsAbs(data) {
		return data
	}
	return Expand("~/.local/share", env)
}

// FolderOfURI returns the path of a file: URI. A URI of another host stays as it is, and so does a path.
func FolderOfURI(uri string) string {
	rest, isFile := strings.CutPrefix(uri, "file://")
	if !isFile {
		return uri
	}
	path, err := url.PathUnescape(rest)
	if err != nil {
		return rest
	}
	if len(path) > 2 && path[0] == '/' && path[2] == ':' { // of Windows: /c:/src
		return path[1:]
	}
	return path
}

// PathOfURI returns the path of a URI as editors of VS Code's family write one: {$mid, scheme, path, fsPath, external}.
// One of another host stays a URI.
func PathOfURI(uri jsonx.Object) string {
	if scheme := uri.String("scheme"); scheme != "" && scheme != "file" {
		return cmp.Or(uri.String("external"), scheme+"://"+uri.String("authority")+uri.String("path"))
	}
	return cmp.Or(uri.String("fsPath"), uri.String("path"))
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
