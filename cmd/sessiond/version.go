package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"sessiond/internal/web/api"
)

// The linker sets them for releases: the version, the commit, and its time as RFC 3339.
var version, commit, date = "dev", "", ""

func buildVersion() api.Version {
	v := api.Version{Version: version, Commit: commit, Date: date, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok && commit == "" {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.time":
				v.Date = s.Value
			}
		}
	}
	return v
}

func versionLine() string {
	v := buildVersion()
	system := runtime.GOOS + "/" + runtime.GOARCH // says when an emulator runs the program of another processor
	about := []string{system, v.Go}
	if v.Commit != "" {
		day, _, _ := strings.Cut(v.Date, "T")
		about = []string{system, "commit " + v.Commit[:min(12, len(v.Commit))], day, v.Go}
	}
	return fmt.Sprintf("sessiond %s (%s)\n", v.Version, strings.Join(about, ", "))
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Example: "  sessiond version --json",
		RunE: func(*cobra.Command, []string) error {
			return a.report(buildVersion(), "%s", versionLine())
		},
	}
}
