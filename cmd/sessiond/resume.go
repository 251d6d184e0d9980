package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"sessiond/internal/connect"
	"sessiond/internal/history"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

func (a *app) resumeCommand() *cobra.Command {
	var run bool
	var in string
	cmd := &cobra.Command{
		Use: "resume SESSION", Short: "Print the command that continues a session in its program", Args: arguments(1, 1),
		ValidArgsFunction: a.completeSession,
		Long: "Prints the shell command that continues SESSION in its own program and folder.\n" +
			"--exec runs it. --in continues it in another program, as `sessiond to` does.",
		Example: "  sessiond resume @\n  sessiond resume --exec 20260211_001\n  eval \"$(sessiond resume @)\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			if in != "" {
				return a.to(cmd.Context(), in, args[0], toFlags{})
			}
			var r resumption
			err := a.read(cmd.Context(), func(s *store.Store) error {
				sess, err := a.resolve(cmd.Context(), s, args[0])
				if err == nil {
					r, err = a.resumption(cmd.Context(), s, &sess)
				}
				return err
			})
			switch {
			case err != nil:
				return err
			case run:
				return a.replaceBy(r)
			}
			return a.report(r, "%s\n", r.Shell)
		},
	}
	cmd.Flags().BoolVar(&run, "exec", false, "run the command instead of printing it")
	cmd.Flags().StringVar(&in, "in", "", "continue it in another `PROGRAM`")
	return cmd
}

// resumption is the command that continues a session, and where.
type resumption struct {
	Session   session.ID     `json:"session_id"`
	Source    session.Source `json:"source"`
	Command   []string       `json:"command"`
	Directory string         `json:"directory,omitempty"` // "": wherever one is
	Shell     string         `json:"shell"`               // both, for a shell

	program string // the file of the command
}

// plainID matches ids that are safe on a command line.
var plainID = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._:@+-]*$`)

// resumption finds the command that continues a session. Codes: Invalid (there is none), NotFound
// (its folder or its program does not exist).
func (a *app) resumption(ctx context.Context, s *store.Store, sess *session.Session) (resumption, error) {
	no := func(format string, args ...any) (resumption, error) {
		return resumption{}, session.Errorf(session.Invalid, "%s %s", sess.ID, fmt.Sprintf(format, args...))
	}
	byKey := sess.Source == session.SourceOpenClaw // whose keys name jobs and threads, too
	helps := sess.Kind == "subagent" || sess.ParentKind == session.ParentChild && !byKey
	switch {
	case sess.Source == session.SourceSessiond:
		return no("belongs to sessiond: continue it with `sessiond append %s user TEXT` or POST /v1/sessions/%s/turns",
			sess.ID, sess.ID)
	case helps && sess.ParentID != "":
		return no("was started by another session, and %s resumes only sessions that a person started: "+
			"`sessiond resume %s` resumes that one", sess.Source, sess.ParentID)
	// which resumes those of SDKs, too
	case helps || sess.Kind != session.KindChat && !byKey && sess.Source != session.SourceClaudeCode:
		return no("is a %s session, which %s cannot resume", sess.Kind, sess.Source)
	}
	r := resumption{Session: sess.ID, Source: sess.Source, Directory: sess.Directory}
	id := sess.SourceID
	switch sess.Source {
	case session.SourceGoose: // gives the id of a deleted session to a new one of the same day
		if goneInGoose(sess) {
			return no("was deleted in goose")
		}
		id, _, _ = strings.Cut(id, "@")
	case session.SourceCursor: // of its CLI alone
		if history.Notes(sess, string(sess.Source)).String("store") != "agent" {
			return no("is a conversation of Cursor's editor: open it there; only those of its CLI agent have a command")
		}
	case session.SourceOpenClaw: // continues what a key names now, wherever one is
		if sess.Key == "" {
			return no("has no known key, and openclaw resumes sessions by key")
		}
		if sess.EndedAt != nil {
			current, err := a.newestOf(ctx, s, sess.Key)
			if err != nil {
				return resumption{}, err
			}
			return no("has ended; its key now names %s, which openclaw resumes", current)
		}
		id, r.Directory = sess.Key, ""
	}
	program, _ := session.ProgramNamed(string(sess.Source))
	if program.Resume == "" {
		return no("comes from %s, which has no known command to resume a session", sess.Source)
	}
	r.Command = append(strings.Fields(program.Resume), id)
	if !plainID.MatchString(id) {
		return no("has the id %q in %s, which is not safe on a command line", id, sess.Source)
	}
	return a.checked(r)
}

// goneInGoose reports whether an import found that Goose no longer has the session.
func goneInGoose(sess *session.Session) bool {
	var notes struct {
		Goose struct {
			Gone string `json:"gone"`
		} `json:"goose"`
	}
	return json.Unmarshal(sess.Metadata, &notes) == nil && notes.Goose.Gone != ""
}

// newestOf returns the session that a key names now.
func (a *app) newestOf(ctx context.Context, s *store.Store, key string) (session.ID, error) {
	data, _, err := s.Sessions(ctx, store.Filter{Key: key}, store.Page{Limit: 1000})
	var newest session.Session
	for _, one := range data {
		if newest.ID == "" || one.Generation > newest.Generation {
			newest = one
		}
	}
	return newest.ID, err
}

// checked completes the shell command and checks that it can run.
func (a *app) checked(r resumption) (resumption, error) {
	words := make([]string, len(r.Command))
	for i, word := range r.Command {
		words[i] = connect.QuoteShell(word)
	}
	r.Shell = strings.Join(words, " ")
	if r.Directory != "" {
		if printable(r.Directory) != r.Directory {
			return r, session.Errorf(session.Invalid,
				"the folder of %s has control characters in its name, which is not safe to print: %q", r.Session, r.Directory)
		}
		if info, err := os.Stat(r.Directory); err != nil || !info.IsDir() {
			return r, session.Errorf(session.NotFound, "folder %s no longer exists; if you moved it, run there: %s", r.Directory,
				r.Shell)
		}
		if filepath.Clean(r.Directory) != filepath.Clean(a.dir) {
			r.Shell = "cd " + connect.QuoteShell(r.Directory) + " && " + r.Shell
		}
	}
	if r.program = a.host().LookPath(r.Command[0]); r.program == "" {
		return r, session.Errorf(session.NotFound, "%s is not on the PATH; install it or add its folder, then run: %s",
			r.Command[0], r.Shell)
	}
	return r, nil
}

// replaceBy replaces this process by the command.
func (a *app) replaceBy(r resumption) error {
	environ := a.environ
	if r.Directory != "" {
		if err := os.Chdir(r.Directory); err != nil {
			return err
		}
		environ = slices.DeleteFunc(slices.Clone(environ), func(v string) bool { return strings.HasPrefix(v, "PWD=") })
		environ = append(environ, "PWD="+r.Directory)
	}
	err := become(r.program, r.Command, environ)
	if errors.Is(err, syscall.ENOEXEC) {
		return session.Errorf(session.Invalid, "%s cannot run: it is not a program for this system", r.program)
	}
	return fmt.Errorf("run %s: %w", r.program, err)
}
