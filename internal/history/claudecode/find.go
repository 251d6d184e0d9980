package claudecode

import (
	"path/filepath"
	"slices"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/pattern"
)

const ending = ".jsonl"

// projects is the folder of a home that holds transcripts.
const projects = "projects"

// search lists the projects of a home, and all *.jsonl files below another folder.
func search(f *history.Finder, folder string) {
	if inHome := filepath.Join(folder, projects); history.IsFolder(inHome) {
		folder = inHome
	}
	f.Folder(folder, maxFolders, isTranscriptName)
}

// maxFolders ends a search that began at the wrong place.
const maxFolders = 8

// isTranscriptName reports whether a file may be a transcript. What was typed stands in
// history.jsonl, too.
func isTranscriptName(name string) bool {
	return strings.HasSuffix(name, ending) && name != "history.jsonl"
}

// rank orders the files of sub-agents after the rest.
func rank(f history.Found) int {
	if isAgentFile(f.Path) {
		return 1
	}
	return 0
}

// isAgentFile reports whether a file is a sub-agent's, or the journal of a run of several.
func isAgentFile(path string) bool {
	return agentOf(path) != "" || filepath.Base(path) == journal+ending
}

// Names of a run's journal, of the folder of a session's sub-agents, and within that of runs of workflows.
const (
	journal   = "journal"
	subagents = "subagents"
	workflows = "workflows"
)

// agentOf returns the sub-agent's id in a file's name, "" for another file.
func agentOf(path string) string {
	id, ok := strings.CutPrefix(stem(path), "agent-")
	if !ok {
		return ""
	}
	return id
}

func stem(path string) string { return strings.TrimSuffix(filepath.Base(path), ending) }

var uuidForm = pattern.New(`^(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// isUUID reports whether s has the form of the ids that name main files.
func isUUID(s string) bool { return uuidForm.MatchString(s) }

// trunkOf returns the session that a sub-agent's file lies under, "" if its folders do not say.
func trunkOf(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if filepath.Base(dir) == subagents {
			if id := filepath.Base(filepath.Dir(dir)); isUUID(id) {
				return id
			}
			return ""
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// runOf returns the run of a workflow that a file belongs to, "" for another one.
func runOf(path string) string {
	if dir := filepath.Dir(path); filepath.Base(filepath.Dir(dir)) == workflows {
		return filepath.Base(dir)
	}
	return ""
}

// agentsOf returns the sub-agents that a run of a workflow of the transcript has files of.
func agentsOf(in *history.Intake, run string) (agents []string) {
	if run == "" {
		return nil
	}
	own := strings.TrimSuffix(in.Found.Path, ending)
	for _, file := range in.FilesUnder(filepath.Join(own, subagents, workflows, filepath.Base(run))) {
		if agent := agentOf(file); agent != "" && strings.HasSuffix(file, ending) {
			agents = append(agents, agent)
		}
	}
	return agents
}

// hasAgentFile reports whether a sub-agent of the transcript at path has a file of its own.
func hasAgentFile(in *history.Intake, path, agent string) bool {
	if strings.ContainsAny(agent, `/\`) {
		return false
	}
	name := "agent-" + agent + ending
	own := filepath.Join(strings.TrimSuffix(path, ending), subagents)
	for _, file := range []string{filepath.Join(own, name), filepath.Join(filepath.Dir(path), name)} {
		if in.IsBeside(file) {
			return true
		}
	}
	return slices.ContainsFunc(in.FilesUnder(filepath.Join(own, workflows)), func(file string) bool {
		return filepath.Base(file) == name
	})
}
