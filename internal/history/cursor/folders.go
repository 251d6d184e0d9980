package cursor

import (
	"path/filepath"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
)

// folderOf finds the folder of a conversation: where it says it itself, else by its workspace, else in the databases
// of workspaces, else the repository that it follows. A third of the old ones say nothing.
func (e *editor) folderOf(id string, head, data jsonx.Object) string {
	for _, o := range []jsonx.Object{head, data} {
		workspace := o.Inner("workspaceIdentifier")
		if folder := history.PathOfURI(workspace.Inner("uri")); folder != "" {
			return folder
		}
		if folder := e.workspace(workspace.String("id")); folder != "" {
			return folder
		}
	}
	if folder := e.workspace(head.String("workspaceId")); folder != "" {
		return folder
	}
	if e.folders == nil {
		e.readWorkspaces()
	}
	if folder := e.folders[id]; folder != "" {
		return folder
	}
	for _, repository := range jsonx.ReadObjects(data.Get("trackedGitRepos")) {
		return repository.String("repoPath")
	}
	return ""
}

// workspaces is the folder that holds the folders of workspaces.
func (e *editor) workspaces() string {
	user := filepath.Dir(filepath.Dir(e.in.Found.Path))
	if filepath.Base(user) == "workspaceStorage" {
		return user
	}
	return filepath.Join(user, "workspaceStorage")
}

// workspace returns the folder of a workspace by its id.
func (e *editor) workspace(id string) string {
	if id == "" || strings.ContainsAny(id, `/\`) || id == ".." {
		return ""
	}
	return workspaceFolder(filepath.Join(e.workspaces(), id))
}

// workspaceFolder returns the folder that a workspace is of, as its workspace.json says it; "" if that has several.
func workspaceFolder(path string) string {
	text, err := history.ReadFile(filepath.Join(path, "workspace.json"))
	if err != nil {
		return ""
	}
	o, _ := jsonx.ReadObject(text)
	return history.FolderOfURI(o.String("folder"))
}

// readWorkspaces reads which conversations each workspace lists. A database that cannot be read lists none: it is
// a found thing of its own, which reports that.
func (e *editor) readWorkspaces() {
	e.folders = map[string]string{}
	databases, _ := filepath.Glob(filepath.Join(e.workspaces(), "*", editorName)) // the pattern is a good one
	for _, path := range databases {
		if folder := workspaceFolder(filepath.Dir(path)); folder != "" && path != e.in.Found.Path {
			e.readWorkspace(path, folder)
		}
	}
}

func (e *editor) readWorkspace(path, folder string) {
	db, err := history.OpenSQLite(e.in.Context(), path)
	if err != nil {
		return
	}
	defer db.Close() //nolint:errcheck // nothing was written
	w := editor{SQLite: db}
	index := w.item(itemIndex)
	for _, head := range jsonx.ReadObjects(index.Get("allComposers")) {
		e.folders[head.String("composerId")] = folder
	}
	chosen, _ := jsonx.ReadArray(index.Get("selectedComposerIds"))
	for _, id := range chosen {
		text, _ := jsonx.Text(id)
		e.folders[text] = folder
	}
	const pane, view = "workbench.panel.composerChatViewPane.", "workbench.panel.aichat.view."
	var panes [][]byte
	db.Select(&panes, `SELECT CAST(value AS BLOB) FROM ItemTable WHERE key >= ? AND key < ? AND value IS NOT NULL`, pane,
		strings.TrimSuffix(pane, ".")+"/")
	for _, text := range panes {
		o, _ := jsonx.ReadObject(text)
		for _, m := range o {
			if id, ok := strings.CutPrefix(m.Key, view); ok {
				e.folders[id] = folder
			}
		}
	}
	_ = db.TakeErr() // it lists none
}
