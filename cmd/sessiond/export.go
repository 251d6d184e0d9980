package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"sessiond/internal/engine"
	"sessiond/internal/export"
	"sessiond/internal/find"
	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
	"sessiond/internal/web/api"
)

type exportFlags struct {
	lsFlags
	format, out     string
	force, redacted bool
}

func (a *app) exportCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use: "export [SESSION...]", Short: "Export sessions for people or for other programs", Args: arguments(0, unlimited),
		ValidArgsFunction: a.completeSession,
		Long: "Exports the named sessions, those that match the filters of `sessiond ls`, or all.\n" +
			"Formats: jsonl holds everything, and `sessiond import sessiond FILE` restores it;\n" +
			"md and html are for reading; openai has one line of messages per session; atif is a\n" +
			"trajectory in Harbor's format; the others are files of those programs.",
		Example: "  sessiond export -o all.jsonl\n  sessiond export @ -o talk.html\n" +
			"  sessiond export --project ~/src/demo --since 7d --format md -o notes/ --redact",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("format") {
				f.format = string(formatOf(f.out))
			}
			return a.read(cmd.Context(), func(s *store.Store) error { return a.export(cmd.Context(), s, args, f) })
		},
	}
	fl := cmd.Flags()
	f.filters = filterFlags(cmd, &f.Request, find.Lists)
	a.completeFilters(cmd)
	wordFlag(cmd, &f.format, "format", strings.Join(export.Names(),
		", ")+" (default: by the extension of the output, else jsonl)", export.Names()...)
	fl.StringVarP(&f.out, "output", "o", "", "`FILE`, or FOLDER/ for one file per session (default: standard output)")
	fl.BoolVar(&f.force, "force", false, "overwrite existing files")
	fl.BoolVar(&f.redacted, "redact", false, "mask secrets (keys, tokens, passwords) and count them")
	return cmd
}

// formatOf returns the format of a file's extension.
func formatOf(name string) export.Format {
	for _, word := range export.Names() {
		if f := export.Format(word); name != "" && filepath.Ext(name) == f.Extension() {
			return f
		}
	}
	return export.JSONL
}

func (a *app) export(ctx context.Context, s *store.Store, names []string, f exportFlags) error {
	e := exporting{app: a, store: s, format: export.Format(f.format), force: f.force, leftOut: map[string]int{}}
	if f.redacted {
		e.mask = &redact.Masker{}
	}
	if err := e.choose(ctx, names, f.lsFlags); err != nil {
		return err
	}
	toOutput := f.out == "" || f.out == "-"
	path := a.absolute(f.out)
	toFolder := strings.HasSuffix(f.out, "/") || isFolder(path)
	if (toOutput || !toFolder) && len(e.ids) > 1 && !e.format.Many() {
		return usagef("a file of format %s holds one session, and these are %s: -o DIR/ writes one file per session",
			e.format, humanize.Comma(int64(len(e.ids))))
	}
	to := func() error {
		ids := e.ids
		if e.all && e.format.Many() {
			ids = nil // everything, also the data of no session
		}
		switch {
		case toOutput:
			return e.toOutput(ctx, ids)
		case toFolder:
			return e.toFolder(ctx, path)
		case !isFolder(filepath.Dir(path)):
			return session.Errorf(session.NotFound, "the folder of %s does not exist: create it first", path)
		}
		return e.toFile(ctx, path, ids)
	}
	err := to()
	switch {
	case !engine.IsDamage(err):
	case toOutput:
		return fmt.Errorf("%w; with -o FILE the sessions that cannot be read are left out", err)
	case e.leaveOutDamaged(ctx):
		err = errors.Join(to(), quietError{err})
	}
	var quiet quietError
	if err != nil && !errors.As(err, &quiet) {
		return err
	}
	return errors.Join(err, e.report(toOutput))
}

// leaveOutDamaged takes the sessions that cannot be read out of the export, and names them.
func (e *exporting) leaveOutDamaged(ctx context.Context) bool {
	damaged, err := e.store.DamagedSessions(ctx)
	if err != nil || len(damaged) == 0 {
		return false
	}
	e.all = false
	e.ids = slices.DeleteFunc(e.ids, func(id session.ID) bool {
		out := slices.Contains(damaged, id)
		if out {
			e.warn("%s is left out: the database is damaged where it lies; `sessiond doctor` says more", id)
		}
		return out
	})
	return true
}

// exporting is one run of the command.
type exporting struct {
	*app
	store   *store.Store
	format  export.Format
	force   bool
	mask    *redact.Masker
	ids     []session.ID // to export
	all     bool         // these are all the sessions
	files   []string
	bytes   int64
	written []session.ID
	count   int // messages
	leftOut map[string]int
}

// choose finds the sessions to export: the named ones, those that match the filters, or all.
func (e *exporting) choose(ctx context.Context, names []string, f lsFlags) error {
	given := f.given()
	switch {
	case len(names) > 0 && given != "":
		return usagef("SESSION and filters exclude one another: name sessions or filter them")
	case len(names) > 0:
		for _, name := range names {
			sess, err := e.resolve(ctx, e.store, name)
			if err != nil {
				return err
			}
			if !slices.Contains(e.ids, sess.ID) {
				e.ids = append(e.ids, sess.ID)
			}
		}
		return nil
	case given == "":
		all, err := e.store.AllKin(ctx)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return session.Errorf(session.NotFound,
				"there is no session to export: `sessiond import` imports the histories of your agents")
		}
		e.all = true
		for _, kin := range all {
			e.ids = append(e.ids, kin.ID)
		}
		return nil
	}
	f.all = true // an export folds nothing
	filter, err := e.filter(ctx, e.store, &f)
	if err != nil {
		return err
	}
	found, _, err := readPages(0, store.Page{}, func(page store.Page) ([]session.Session, string, error) {
		return e.store.Sessions(ctx, filter, page)
	})
	if err == nil && len(found) == 0 {
		hint := cmp.Or(strings.TrimSuffix(f.hint(), "."), " `sessiond ls` lists the sessions")
		err = session.Errorf(session.NotFound, "nothing was exported: no session matches %s;%s", given, hint)
	}
	e.ids = sessionIDs(found)
	return err
}

func (e *exporting) write(ctx context.Context, out io.Writer, ids []session.ID) error {
	counted := &counter{to: out}
	report, err := export.Write(ctx, counted, e.store, e.format, ids, export.Options{Mask: e.mask})
	if err != nil {
		return err
	}
	e.bytes += counted.n
	e.count += report.Messages
	for _, id := range report.Sessions {
		if !slices.Contains(e.written, id) || e.format.Many() {
			e.written = append(e.written, id)
		}
	}
	for what, n := range report.LeftOut {
		e.leftOut[what] += n
	}
	return nil
}

func (e *exporting) toOutput(ctx context.Context, ids []session.ID) error {
	if !e.outTTY {
		return e.write(ctx, raw(e.out), ids)
	}
	if e.format == export.HTML {
		return usagef("HTML is not readable on a terminal: write it to a file with -o FILE.html")
	}
	out := bufio.NewWriter(&safeWriter{to: raw(e.out)})
	return errors.Join(e.write(ctx, out, ids), out.Flush())
}

// toFolder writes a file per session.
func (e *exporting) toFolder(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return session.Errorf(session.Invalid, "cannot create the folder %s: %w", dir, err)
	}
	for _, id := range e.ids {
		path := filepath.Join(dir, string(id)+e.format.Extension())
		if slices.Contains(e.files, path) {
			continue // written before damage was met
		}
		if err := e.toFile(ctx, path, []session.ID{id}); err != nil {
			return err
		}
	}
	return nil
}

// toFile writes one file, whole or not at all, for its owner only.
func (e *exporting) toFile(ctx context.Context, path string, ids []session.ID) error {
	if _, err := os.Lstat(path); err == nil && !e.force {
		return session.Errorf(session.Conflict, "%s exists: --force overwrites it", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".sessiond-export-*") // 0600
	if errors.Is(err, fs.ErrPermission) {
		return session.Errorf(session.Forbidden, "cannot write to the folder %s: %w", filepath.Dir(path), err)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name()) // unless it was renamed
	if err := e.write(ctx, f, ids); err != nil {
		return errors.Join(err, f.Close())
	}
	err = errors.Join(f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	e.files = append(e.files, path)
	return nil
}

// report says what was written, on standard error if the sessions are on standard output.
func (e *exporting) report(toOutput bool) error {
	out := e.out
	if toOutput {
		out = e.err
	}
	if e.flags.json {
		report := map[string]any{
			"format": e.format, "sessions": len(e.written), "messages": e.count, "bytes": e.bytes,
			"files": api.ListOf(e.files, "").Data, "left_out": e.leftOut,
		}
		if e.mask != nil {
			report["masked"] = e.mask.Masked
		}
		return writeJSON(out, report)
	}
	var words []string
	if !toOutput {
		words = append(words, transcript.Counted(len(e.written), "session"), transcript.Counted(e.count, "message"),
			humanize.Bytes(uint64(e.bytes)))
	}
	if e.mask != nil {
		words = append(words, transcript.Counted(e.mask.Masked, "secret")+" masked")
	}
	if len(e.leftOut) > 0 {
		words = append(words, fmt.Sprintf("without %s, which %s cannot hold", countedKinds(e.leftOut), e.format))
	}
	if len(words) == 0 {
		return nil
	}
	where := "sessiond"
	switch {
	case len(e.files) == 1:
		where = e.files[0]
	case len(e.files) > 1:
		where = filepath.Dir(e.files[0])
	}
	_, err := fmt.Fprintf(out, "%s: %s\n", where, strings.Join(words, ", "))
	return err
}

// countedKinds lists what was left out: 2 thoughts and 1 system prompt.
func countedKinds(leftOut map[string]int) string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(leftOut)) {
		n := leftOut[what]
		if n == 1 {
			what = strings.NewReplacer("messages", "message", "parts", "part", "pieces of messages", "piece of a message",
				"thoughts", "thought", "texts", "text", "prompts", "prompt", "pieces", "piece", "rules", "rule").Replace(what)
		}
		all = append(all, humanize.Comma(int64(n))+" "+what)
	}
	return strings.Join(all, " and ")
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// counter counts the bytes written.
type counter struct {
	to io.Writer
	n  int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(n)
	return n, err
}

// safeWriter escapes control characters in JSON for a terminal. A write that ends within a
// character is completed by the next one.
type safeWriter struct {
	to   io.Writer
	torn []byte
}

func (w *safeWriter) Write(b []byte) (int, error) {
	all := append(w.torn, b...)
	whole := bytes.TrimSuffix(all, []byte{beginsC1})
	_, err := w.to.Write(escapeC1(whole))
	w.torn = slices.Clone(all[len(whole):])
	if err != nil {
		return 0, err
	}
	return len(b), nil
}
