package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite what the scripts compare with")

// TestMain lets the test binary be `sessiond` when it is called so, in scripts and as a
// daemon that can be killed.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sessiond": main})
}

// TestScripts runs what a user types, one file for each behaviour.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "script"),
		UpdateScripts: *update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"chatter": chatter, "exits": exits,
			"expand": expand, "sqlite": sqlite,
		},
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			e.Setenv("XDG_DATA_HOME", filepath.Join(home, "data"))
			e.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
			e.Setenv("XDG_RUNTIME_DIR", "")
			e.Setenv("TZ", "UTC")
			e.Setenv("DB", filepath.Join(home, "data", "sessiond", "sessions.db"))
			return nil
		},
	})
}

// exits CODE COMMAND… runs a command that must end with that exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	var failed *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &failed) {
		code = failed.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if code != want {
		ts.Fatalf("%v ended with exit code %d, want %d", args[1:], code, want)
	}
}

// expand FILE puts the values of the script's variables into a file.
func expand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: expand FILE")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(os.Expand(ts.ReadFile(args[0]), ts.Getenv)), 0o600))
}

// sqlite DATABASE FILE runs the SQL in a file on a database, which it makes if need be.
func sqlite(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sqlite DATABASE FILE")
	}
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = db.Exec(ts.ReadFile(args[1]))
	ts.Check(errors.Join(err, db.Close()))
}

// chatter N FILE writes N messages of small talk, questions and answers, as JSON.
func chatter(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: chatter N FILE")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	msgs := make([]map[string]string, n)
	for i := range msgs {
		msgs[i] = map[string]string{
			"role": "user",
			"content": fmt.Sprintf("Now the garden, step %d: which plants go into bed %d, and how far apart do they stand?", i,
				i%7),
		}
		if i%2 == 1 {
			msgs[i] = map[string]string{
				"role": "assistant",
				"content": fmt.Sprintf("For step %d take lettuce and leave %d centimetres between the rows; "+
					"water them in the evening, then cover them.", i, 20+i%9),
			}
		}
	}
	b, err := json.Marshal(msgs)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o600))
}
