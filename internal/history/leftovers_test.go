package history

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sessiond/internal/testkit"
)

// TestMain lets the test binary be a process that holds a private copy until it is killed.
func TestMain(m *testing.M) {
	if os.Getenv("SESSIOND_TEST_HOLDS_A_COPY") == "" {
		os.Exit(m.Run())
	}
	p, err := newPrivate()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.dir)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent closes it
}

// The copies of the dead go, those of the living stay, and so does what is no copy.
func TestLeftoversOfTheDeadAreRemoved(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dead := exec.Command(os.Args[0], "-test.run=^$")
	dead.Env = append(os.Environ(), "SESSIOND_TEST_HOLDS_A_COPY=1")
	out := testkit.Must(dead.StdoutPipe())(t)
	testkit.Must(dead.StdinPipe())(t)
	testkit.Check(t, dead.Start())
	lines := bufio.NewScanner(out)
	lines.Scan()
	theirs := lines.Text()
	if err := os.WriteFile(filepath.Join(theirs, "copy.db"), []byte("secret"), 0o600); err != nil {
		t.Error(err)
	}
	mine := testkit.Must(newPrivate())(t)
	other := filepath.Join(temp, tempNames+"file")
	testkit.Check(t, os.WriteFile(other, nil, 0o600))
	there := func(paths ...string) {
		t.Helper()
		for _, path := range []string{theirs, mine.dir, other} {
			_, err := os.Stat(path)
			want := false
			for _, p := range paths {
				want = want || p == path
			}
			if (err == nil) != want {
				t.Errorf("%s is there: %v", path, err == nil)
			}
		}
	}
	RemoveLeftovers()
	there(theirs, mine.dir, other)
	testkit.Check(t, dead.Process.Kill())
	_ = dead.Wait() // it was killed
	RemoveLeftovers()
	there(mine.dir, other)
	if err := mine.remove(); err != nil {
		t.Error(err)
	}
	there(other)
}
