package geminicli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// Gemini CLI gives each project folder a name, and keeps the project's sessions in tmp/NAME. projects.json has the
// names; a file in tmp/NAME and in history/NAME says whose it is, and is right where the two differ. Source:
// projectRegistry.ts.
const (
	registryName = "projects.json"
	markerName   = ".project_root"
)

var projectName = pattern.New(`^[a-z0-9-]+$`)

// loadRegistry returns the names of project folders. One that Gemini CLI would not take is empty.
func loadRegistry(home string) map[string]string {
	var registry struct {
		Projects map[string]string `json:"projects"`
	}
	text, err := history.ReadFile(filepath.Join(home, registryName))
	if err != nil || json.Unmarshal(text, &registry) != nil {
		return nil
	}
	for _, name := range registry.Projects {
		if !projectName.MatchString(name) {
			return nil
		}
	}
	return registry.Projects
}

// registered is a project folder as the registry names it.
func registered(root string) string {
	if root = filepath.Clean(root); runtime.GOOS == "windows" {
		root = strings.ToLower(root)
	}
	return root
}

// markers are the files that say whose a name is.
func markers(home, name string) []string {
	return []string{filepath.Join(home, "tmp", name, markerName), filepath.Join(home, "history", name, markerName)}
}

// ownerIn returns the project folder that a marker names. here is false if there is no marker.
func ownerIn(marker string) (owner string, here bool) {
	text, err := history.ReadFile(marker)
	if os.IsNotExist(err) {
		return "", false
	}
	return registered(strings.TrimSpace(string(text))), true
}

// projectIn returns the name of a project folder: the registered one, that of a marker, or the one that Gemini CLI will
// give it.
func projectIn(home, root string) string {
	root = registered(root)
	isFree := func(name string) bool { // or is the folder's
		return !slices.ContainsFunc(markers(home, name), func(marker string) bool {
			owner, here := ownerIn(marker)
			return here && owner != root
		})
	}
	registry := loadRegistry(home)
	if name, known := registry[root]; known && isFree(name) {
		return name
	}
	for _, base := range []string{"tmp", "history"} {
		entries, _ := os.ReadDir(filepath.Join(home, base)) // none: Gemini CLI has not run yet
		for _, e := range entries {
			if owner, here := ownerIn(filepath.Join(home, base, e.Name(), markerName)); here && owner == root {
				return e.Name()
			}
		}
	}
	taken := map[string]bool{}
	for _, name := range registry {
		taken[name] = true
	}
	first := nameOf(filepath.Base(root))
	for i, name := 1, first; ; i++ {
		if !taken[name] && isFree(name) {
			return name
		}
		name = first + "-" + strconv.Itoa(i)
	}
}

// nameOf makes a name of a folder's.
func nameOf(folder string) string {
	words := strings.FieldsFunc(strings.ToLower(folder), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	if len(words) == 0 {
		return "project"
	}
	return strings.Join(words, "-")
}

// hashOf is how a session names its project folder.
func hashOf(root string) string {
	sum := sha256.Sum256([]byte(root))
	return hex.EncodeToString(sum[:])
}

// claim marks the folder of a session as its project's, as Gemini CLI does. Codes: Conflict (it is another one's by
// now, or Gemini CLI has to move older sessions there first).
func claim(path string, d *history.Draft) error {
	project, root := projectOf(path), folders.Resolved(d.Directory)
	marker := filepath.Join(project, markerName)
	old := filepath.Join(filepath.Dir(project), hashOf(root))
	if history.IsFolder(old) && holdsMarkOnly(project) {
		return session.Errorf(session.Conflict, "%s has sessions of an older Gemini CLI, which it moves when it starts "+
			"the first time: run `gemini --list-sessions` in %s, then try again", old, root)
	}
	if err := os.MkdirAll(project, 0o700); err != nil {
		return fmt.Errorf("make the folder of Gemini CLI's session: %w", err)
	}
	err := history.WriteNew(marker, []byte(registered(root)))
	if os.IsExist(err) {
		if owner, _ := ownerIn(marker); owner != registered(root) {
			return session.Errorf(session.Conflict, "%s belongs to %s now: nothing was written; try again", project, owner)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("mark the folder of Gemini CLI's session: %w", err)
	}
	return nil
}

// release removes the folder of a session that was removed, if nothing but the mark is left in it.
func release(path string) {
	project := projectOf(path)
	if os.Remove(filepath.Dir(path)) != nil { // it has other sessions
		return
	}
	if holdsMarkOnly(project) {
		_ = os.Remove(filepath.Join(project, markerName)) // what stays is a mark
		_ = os.Remove(project)
	}
}

// holdsMarkOnly reports whether a folder is missing or empty but for the mark.
func holdsMarkOnly(project string) bool {
	entries, err := os.ReadDir(project)
	return err != nil && os.IsNotExist(err) || err == nil && !slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return e.Name() != markerName
	})
}

// projectOf is the folder of the project in which a session lies.
func projectOf(path string) string { return filepath.Dir(filepath.Dir(path)) }
