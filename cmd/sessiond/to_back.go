package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"sessiond/internal/connect"
	"sessiond/internal/handover"
	"sessiond/internal/history"
	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/tokens"
)

// toBack continues the session that was handed over, in its own program, with what was done in the other one.
func (a *app) toBack(ctx context.Context, name string, f toFlags) error {
	a.catchUp(ctx)
	var start *resumption
	if err := a.onSession(ctx, reading, name, func(s *opened, sess session.Session) error {
		first, fork, err := handoverPair(ctx, s.store, &sess)
		if err != nil {
			return err
		}
		if err := a.checkShared(&fork); err != nil {
			return err
		}
		text, err := meanwhile(ctx, s.store, &fork)
		if err != nil {
			return err
		}
		if f.text {
			_, err = fmt.Fprintln(a.out, text)
			return err
		}
		start, err = a.startBack(ctx, s.store, &first, &fork, text, f)
		return err
	}); err != nil || start == nil {
		return err
	}
	return a.replaceBy(*start)
}

// handoverPair returns the session that was handed over, and its newest continuation in another program. Either may be
// named. Codes: NotFound.
func handoverPair(ctx context.Context, s *store.Store,
	named *session.Session,
) (first, fork session.Session, err error) {
	if named.ParentKind == session.ParentFork {
		first, err = s.Session(ctx, named.ParentID)
		if err == nil && first.Source != named.Source {
			return first, *named, nil
		}
		if err != nil {
			return first, fork, err
		}
	}
	forks, _, err := s.Sessions(ctx, store.Filter{ParentID: named.ID, ParentKind: session.ParentFork, AnyState: true},
		store.Page{Limit: 100})
	if err != nil {
		return first, fork, err
	}
	for _, other := range forks { // the newest first
		if other.Source != named.Source {
			return *named, other, nil
		}
	}
	return first, fork, session.Errorf(session.NotFound,
		"%s was not continued in another program: `sessiond to PROGRAM` does that", named.ID)
}

// mostMeanwhile limits what a command line holds, in bytes.
const mostMeanwhile = 60 << 10

// meanwhile tells what was said and done in a fork since it was handed over, its end if that is long.
func meanwhile(ctx context.Context, s *store.Store, fork *session.Session) (string, error) {
	program, _ := session.ProgramNamed(string(fork.Source))
	var said bytes.Buffer
	carrier := handover.Carrier{Mask: &redact.Masker{}}
	err := handover.WriteText(&said, func(yield func(*session.Message) error) error {
		return s.EachOnPath(ctx, *fork.HeadID, func(m *session.Message) error {
			if m.ID.Session != fork.ID || !m.InContext {
				return nil
			}
			carried := carrier.Carry(m, "message")
			for i := range carried {
				handover.ShortenResults(&carried[i])
				if err := yield(&carried[i]); err != nil {
					return err
				}
			}
			return nil
		})
	})
	text := strings.ToValidUTF8(said.String()[max(0, said.Len()-mostMeanwhile):], "")
	if said.Len() > mostMeanwhile {
		text = "… (the beginning is left out)\n" + text
	}
	return session.HandoverNote(fmt.Sprintf("Meanwhile this conversation was continued in %s (session %s in sessiond). "+
		"What was said and done there follows; it is done. Read the files again before you change them, and say in two "+
		"sentences where the work stands.\n\n%s", program.Title, fork.ID, strings.TrimSpace(text))), err
}

// startBack returns the command that continues the first session with a text as its prompt.
func (a *app) startBack(ctx context.Context, s *store.Store, first, fork *session.Session, text string,
	f toFlags,
) (*resumption, error) {
	r, err := a.resumption(ctx, s, first)
	if err != nil {
		return nil, err
	}
	program, _ := session.ProgramNamed(string(first.Source))
	if program.Prompt == "" {
		return nil, session.Errorf(session.Invalid, "%s takes no prompt with the session that it resumes: continue it with "+
			"`%s`, and paste what `sessiond to --back %s --text` prints", program.Title, r.Shell, fork.ID)
	}
	words := strings.Fields(strings.TrimPrefix(program.Prompt, "TEXT"))
	r.Shell += strings.Join(append([]string{""}, words...), " ") +
		fmt.Sprintf(` "$(sessiond to --back %s --text)"`, connect.QuoteShell(string(fork.ID)))
	r.Command = append(slices.Concat(r.Command, words), text)
	if f.dryRun || !a.inTTY || !a.outTTY || a.flags.json {
		return nil, a.report(r, "%s\n", r.Shell)
	}
	if !f.yes {
		sure, err := a.ask(ctx, fmt.Sprintf("%s goes on in %s, with what was done in %s: %s. [Y/n] ", first.ID,
			program.Title, fork.Source, aboutTokens(tokens.Reference().Text(text))), true)
		if err != nil || !sure {
			return nil, err
		}
	}
	return &r, nil
}

// removeHandovers removes the sessions that were written for a program and not continued there.
func (a *app) removeHandovers(ctx context.Context, program, name string) error {
	target, info, err := a.targetNamed(program, false)
	if err != nil {
		return err
	}
	var sess session.Session
	if err := a.read(ctx, func(s *store.Store) error {
		sess, err = a.resolve(ctx, s, name)
		return err
	}); err != nil {
		return err
	}
	remove := a.removeFiles
	if target.Kept != nil {
		remove = a.removeKept
	}
	removed, continued, err := remove(ctx, target, info, &sess)
	if err != nil {
		return err
	}
	switch {
	case continued > 0:
		a.warn("%s was continued in %s: what was said there stays", sess.ID, info.Title)
	case removed == 0:
		return session.Errorf(session.NotFound, "nothing was written of %s for %s", sess.ID, info.Title)
	}
	return nil
}

// removeFiles deletes the files that were written of a session and not continued.
func (a *app) removeFiles(ctx context.Context, target history.Target, info session.ProgramInfo,
	sess *session.Session,
) (removed, continued int, err error) {
	sources := a.sources()
	at := slices.IndexFunc(sources, func(s history.Source) bool { return s.Name() == info.Name })
	found, _, err := sources[at].Find(ctx, nil)
	if err != nil {
		return 0, 0, err
	}
	for _, f := range found {
		written, used, err := handoverIn(f.Path, sess)
		switch {
		case err != nil || !written:
		case used:
			continued++
		default:
			if err := os.Remove(f.Path); err != nil {
				return removed, continued, fmt.Errorf("remove a session of %s: %w", info.Title, err)
			}
			if target.TidyUp != nil {
				target.TidyUp(f.Path)
			}
			removed++
			fmt.Fprintln(a.out, "Removed "+printable(f.Path))
		}
	}
	return removed, continued, nil
}

// removeKept has a program delete from its database what was written of a session and not continued. It lists the
// sessions of the session's folder, or of the current one if that is gone.
func (a *app) removeKept(ctx context.Context, target history.Target, info session.ProgramInfo,
	sess *session.Session,
) (removed, continued int, err error) {
	dir := sess.Directory
	if !isFolder(dir) {
		dir = a.dir
	}
	kept := target.Kept
	printed, err := a.runTarget(ctx, info, dir, kept.List)
	if err != nil {
		return 0, 0, err
	}
	all, err := kept.Listed(printed)
	if err != nil {
		return 0, 0, err
	}
	from, _ := session.ProgramNamed(string(sess.Source))
	for _, k := range all {
		if !strings.HasSuffix(k.Title, handoverSuffix(from)) { // those that nobody continued keep their title
			continue
		}
		if printed, err = a.runTarget(ctx, info, dir, append(slices.Clone(kept.Show), k.ID)); err != nil {
			return removed, continued, err
		}
		of, used, err := kept.Handover(printed)
		switch {
		case err != nil:
			return removed, continued, err
		case of == nil || of.Session != sess.ID || of.SourceID != sess.SourceID:
		case used:
			continued++
		default:
			if _, err := a.runTarget(ctx, info, dir, append(slices.Clone(kept.Delete), k.ID)); err != nil {
				return removed, continued, err
			}
			removed++
			fmt.Fprintf(a.out, "Removed %s from %s\n", printable(k.ID), info.Title)
		}
	}
	return removed, continued, nil
}

// runTarget runs a command of a program in a folder, and returns what it prints. Codes: NotFound, Invalid (it fails).
func (a *app) runTarget(ctx context.Context, info session.ProgramInfo, dir string, command []string) ([]byte, error) {
	path := a.host().LookPath(command[0])
	if path == "" {
		return nil, session.Errorf(session.NotFound, "%s is not on the PATH: only %s itself can change its sessions",
			command[0], info.Title)
	}
	ctx, cancel := context.WithTimeout(ctx, importTime)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, path, command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, a.environ, &said
	printed, err := cmd.Output()
	if err != nil {
		return nil, session.Errorf(session.Invalid, "`%s` fails: %w: %s", strings.Join(command, " "), err,
			inOneLine(printable(strings.TrimSpace(said.String()))))
	}
	return printed, nil
}

// handoverIn reports whether a file was written of a session, and whether its program has continued it.
func handoverIn(path string, sess *session.Session) (written, used bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return false, false, err
	}
	defer file.Close() //nolint:errcheck // only read
	h := history.ReadHandover(file)
	if h == nil || h.Session != sess.ID || h.SourceID != sess.SourceID {
		return false, false, nil
	}
	used, err = history.IsContinued(file)
	return true, used, err
}
