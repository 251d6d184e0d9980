package main

import (
	"cmp"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"sessiond/internal/testkit"
)

var manFolder = flag.String("man", "", "write the manual pages into this `folder`, for a release")

// A release has a manual page for each command. They are made here, so that the program needs no library for them.
func TestManualPages(t *testing.T) {
	folder := cmp.Or(*manFolder, t.TempDir())
	testkit.Check(t, os.MkdirAll(folder, 0o755))
	root := (&app{env: &env{}}).root()
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Source: "sessiond", Manual: "sessiond"}
	if os.Getenv("SOURCE_DATE_EPOCH") == "" {
		header.Date = &time.Time{}
	}
	testkit.Check(t, doc.GenManTree(root, header, folder))
	for _, cmd := range append(root.Commands(), root) {
		path := filepath.Join(folder, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
		page, err := os.ReadFile(path)
		if cmd.Hidden && err == nil {
			t.Errorf("the hidden command %s has a page", cmd.Name())
		}
		if cmd.Hidden || cmd.Name() == "help" {
			continue
		}
		testkit.Check(t, err)
		plain := strings.ReplaceAll(string(page), `\-`, "-")
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(plain, "--"+f.Name) {
				t.Errorf("the page of %s lacks --%s", cmd.Name(), f.Name)
			}
		})
		if _, err := exec.LookPath("groff"); err == nil {
			out, err := exec.Command("groff", "-man", "-ww", "-z", "-K", "utf8", path).CombinedOutput()
			if err != nil || len(out) > 0 {
				t.Errorf("groff reads %s: %v %s", path, err, out)
			}
		}
	}
}
