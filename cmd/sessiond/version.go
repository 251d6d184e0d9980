package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker for releases.
var version = "dev"

type versionInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
}

func (v versionInfo) line() string { return fmt.Sprintf("sessiond %s (%s)\n", v.Version, v.Go) }

func buildVersion() versionInfo {
	v := versionInfo{Version: version, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	return v
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version",
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			if a.flags.json {
				return a.printJSON(v)
			}
			_, err := fmt.Fprint(a.out, v.line())
			return err
		},
	}
}
