package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sessiond/internal/testkit"
)

// Each command, hook and MCP server pays for what the packages of the program allocate before main: a table, a pattern
// or a registry is made at its first use.
func TestPackagesAllocateLittleAtTheStart(t *testing.T) {
	const limit = 3_500_000 // bytes
	deps := testkit.Must(exec.CommandContext(t.Context(), "go", "list", "-deps", "sessiond/cmd/sessiond").Output())(t)
	ours := map[string]bool{"main": true}
	for dep := range strings.FieldsSeq(string(deps)) {
		ours[dep] = true
	}
	cmd := exec.CommandContext(t.Context(), "sessiond", "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var traced bytes.Buffer
	cmd.Stderr = &traced
	testkit.Check(t, cmd.Run())
	total, packages, largest := 0, 0, ""
	for line := range strings.Lines(traced.String()) { // init NAME @1.2 ms, 0.3 ms clock, 456 bytes, 7 allocs
		var name string
		var at, took float64
		var size int
		if _, err := fmt.Sscanf(line, "init %s @%g ms, %g ms clock, %d bytes", &name, &at, &took, &size); err != nil ||
			!ours[name] {
			continue // of packages that only the tests have
		}
		packages++
		total += size
		if size > 100_000 {
			largest += fmt.Sprintf("\n%9d %s", size, name)
		}
	}
	if packages < 100 {
		t.Fatalf("only %d packages in the trace:\n%.2000s", packages, traced.String())
	}
	if total > limit {
		t.Errorf("%d packages allocate %d bytes before main, more than %d; the largest:%s", packages, total, limit, largest)
	}
}
