package folders

import (
	"strings"
)

// Names are the names by which lists call projects.
type Names map[string]string

// NamesOf names each project by the end of its path: as many of its last folders as make the name differ from those of
// the other ones.
func NamesOf(projects []string) Names {
	names := make(Names, len(projects))
	wanted := map[string]bool{}
	for _, project := range projects {
		wanted[project] = true
	}
	for most := 1; len(wanted) > 0; most++ {
		with := map[string][]string{}
		for project := range wanted {
			name, _ := ending(project, most)
			with[name] = append(with[name], project)
		}
		for name, same := range with {
			for _, project := range same {
				if _, whole := ending(project, most); len(same) == 1 || whole {
					names[project] = name
					delete(wanted, project)
				}
			}
		}
	}
	return names
}

// Of returns the name of a project; of one that is not known its last folder.
func (n Names) Of(project string) string {
	if name, known := n[project]; known {
		return name
	}
	name, _ := ending(project, 1)
	return name
}

// With returns the name of a session's project, and the worktree in which it ran in brackets: shop [fix-cart].
func (n Names) With(project, directory string) string {
	name := n.Of(project)
	if worktree := Worktree(directory, project); worktree != "" {
		name += " [" + worktree + "]"
	}
	return name
}

// ending returns the last folders of a path, and whether they are all of it.
func ending(project string, folders int) (name string, whole bool) {
	at := len(project)
	for range folders {
		if at = strings.LastIndexAny(project[:at], `/\`); at < 0 {
			return project, true
		}
	}
	if at+1 == len(project) { // a root
		return project, true
	}
	return project[at+1:], false
}

// EndsIn reports whether a path is an ending of another one, in any case: workspace/cli of /home/ana/workspace/cli.
func EndsIn(project, name string) bool {
	project, name = strings.ToLower(project), strings.ToLower(name)
	if project == name {
		return name != ""
	}
	if name = strings.Trim(name, "/"); name == "" || !strings.HasSuffix(project, name) {
		return false
	}
	before := len(project) - len(name)
	return before == 0 || isSlash(project[before-1])
}
