package geminicli

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"

	"sessiond/internal/history"
	"sessiond/internal/pattern"
)

// Names of files that hold a session: session-2026-01-15T20-51-f7633853.jsonl, and for a
// sub-agent its id.
var (
	chatName  = pattern.New(`^session-.*\.jsonl?$`)
	agentName = pattern.New(`^[0-9a-f]{8}-[0-9a-f-]{27}\.jsonl$`)
)

const logName = "logs.json"

// maxDepth reaches from tmp to a sub-agent: project, chats, session, file.
const maxDepth = 8

// compare orders sessions before the sub-agents that they started, and logs of prompts last.
func compare(a, b history.Found) int {
	return cmp.Or(cmp.Compare(rank(a.Path), rank(b.Path)), strings.Compare(filepath.Base(a.Path), filepath.Base(b.Path)))
}

func isHistory(name string) bool {
	return chatName.MatchString(name) || agentName.MatchString(name) || name == logName
}

func rank(path string) int {
	switch name := filepath.Base(path); {
	case name == logName:
		return 2
	case agentName.MatchString(name):
		return 1
	}
	return 0
}

// parentOf names the session that started the sub-agent whose file is at path: its folder. It is
// "" for a file that is none of a sub-agent.
func parentOf(path string) string {
	folder := filepath.Dir(path)
	if !agentName.MatchString(filepath.Base(path)) || filepath.Base(filepath.Dir(folder)) != "chats" {
		return ""
	}
	return filepath.Base(folder)
}

// directoryOf finds the directory in which a session ran. The session itself has only a hash
// of it, so it is looked up where Gemini CLI keeps the names of its project folders; "" if
// these do not tell.
func directoryOf(path, hash string) string {
	project := filepath.Dir(path)
	for filepath.Base(project) != "chats" && project != filepath.Dir(project) {
		project = filepath.Dir(project)
	}
	project = filepath.Dir(project)
	if root, err := history.ReadFile(filepath.Join(project, ".project_root")); err == nil && len(root) < 1<<12 {
		return history.Plain(bytes.TrimSpace(root))
	}
	var known struct {
		Projects map[string]string `json:"projects"`
	}
	list, err := history.ReadFile(filepath.Join(project, "..", "..", "projects.json"))
	if err != nil || json.Unmarshal(list, &known) != nil {
		return ""
	}
	for folder, name := range known.Projects {
		if sum := sha256.Sum256([]byte(folder)); name == filepath.Base(project) || hex.EncodeToString(sum[:]) == hash {
			return history.Plain(folder)
		}
	}
	return ""
}
