package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"sessiond/internal/web/api"
)

// version is set by the linker for releases.
var version = "dev"

func buildVersion() api.Version {
	v := api.Version{Version: version, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	return v
}

func versionLine() string {
	v := buildVersion()
	return fmt.Sprintf("sessiond %s (%s)\n", v.Version, v.Go)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version",
		RunE: func(*cobra.Command, []string) error {
			return a.report(buildVersion(), "%s", versionLine())
		},
	}
}
