package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"sessiond/internal/session"
	"sessiond/internal/transcript"
)

// Exit codes, the same for every command.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitNotFound = 3
	exitConflict = 4
)

// usageError is an invalid command line; cobra's own errors become one, too.
type usageError struct{ error }

// usagef returns a usageError.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// quietError ends a command that has already reported its error.
type quietError struct{ error }

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, e *env) int {
	a := &app{env: e}
	root := a.root()
	root.SetArgs(excludedLast(args))
	a.out, a.err = &cleanWriter{to: a.out, color: a.outTTY}, &cleanWriter{to: a.err, color: a.errTTY}
	root.SetIn(e.in)
	root.SetOut(e.out)
	root.SetErr(e.err)
	defer func() { removeCopy(a.copied) }()
	cmd, err := root.ExecuteContextC(ctx)
	var quiet quietError
	var status exitStatus
	switch {
	case err == nil, errors.As(err, &quiet), errors.As(err, &status):
	case errors.Is(err, io.ErrClosedPipe), errors.Is(err, syscall.EPIPE): // the reader has left
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		fmt.Fprintln(e.err, "sessiond: stopped")
	default:
		a.complain(cmd, err)
	}
	return exitCode(err)
}

func exitCode(err error) int {
	var usage usageError
	var status exitStatus
	switch code := session.CodeOf(err); {
	case err == nil:
		return exitDone
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &usage):
		return exitUsage
	case code == session.NotFound:
		return exitNotFound
	case code == session.Conflict, code == session.PreconditionFailed, code == session.CompactionRequired:
		return exitConflict
	}
	return exitFailed
}

// complain prints an error, and the invalid fields if there are several.
func (a *app) complain(cmd *cobra.Command, err error) {
	a.warn("%s", err)
	var known *session.Error
	if errors.As(err, &known) && len(known.Fields) > 1 {
		for _, f := range known.Fields {
			fmt.Fprintf(a.err, "  %s: %s\n", printable(f.Path), printable(f.Message))
		}
	}
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(a.err, "See `%s --help`.\n", cmd.CommandPath())
	}
}

// warn prints a line on standard error. It does not wrap it: users copy paths and commands from it.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintln(a.err, "sessiond: "+printable(fmt.Sprintf(format, args...)))
}

// printable removes control characters from stored or given text.
func printable(s string) string { return transcript.Clean(s) }

// inOneLine escapes line breaks, which file names may contain.
func inOneLine(s string) string { return strings.ReplaceAll(s, "\n", `\n`) }

// root is the whole command tree, in the order in which a new user needs the commands.
func (a *app) root() *cobra.Command {
	cobra.EnableCommandSorting = false
	root := &cobra.Command{
		Use:   "sessiond",
		Short: "Keeps the conversations of every AI agent on this host",
		Long: "sessiond keeps every conversation of your agents in one SQLite file, searches them,\n" +
			"and builds contexts that fit the window of each model.\n\n" +
			"SESSION is an id (20260211_001), the id in the source program, the first 6 or more\n" +
			"characters of one, words that only its title has, @ for your newest conversation in this\n" +
			"project (@2: the one before), or @@ for that of all projects. The id of a message\n" +
			"(20260211_001.27) means its session, or that message.",
		Example: "  sessiond import                 # every conversation that your agents had\n" +
			"  sessiond connect                # let your agents search them\n" +
			"  sessiond search old plan",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q%s", args[0], meant(cmd, args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.picks() {
				return a.pick(cmd.Context(), cmd)
			}
			return a.overview(cmd.Context())
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SuggestionsMinimumDistance = 2
	root.SetHelpCommand(helpCommand())
	root.Version = buildVersion().Version
	root.SetVersionTemplate(versionLine())
	flags := root.PersistentFlags()
	flags.StringVar(&a.flags.db, "db", "", "database `FILE`, or postgres://… (default: sessions.db in the data folder)")
	flags.StringVar(&a.flags.config, "config", "",
		"configuration `FILE` (default: sessiond/config.yaml in the configuration folder)")
	flags.BoolVar(&a.flags.json, "json", false, "print JSON for programs")
	flags.BoolVar(&a.flags.noColor, "no-color", false, "no colours (NO_COLOR does the same)")
	flags.BoolVar(&a.flags.noPager, "no-pager", false,
		"print long output at once, without $SESSIOND_PAGER, $PAGER or less")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	for _, cmd := range []*cobra.Command{
		a.serveCommand(),
		a.importCommand(),
		a.openCommand(),
		a.demoCommand(),
		a.connectCommand(),
		a.serviceCommand(),
		a.mcpCommand(),
		a.hookCommand(),
		a.lsCommand(),
		a.showCommand(),
		a.logCommand(),
		a.resumeCommand(),
		a.toCommand(),
		a.searchCommand(),
		a.keysCommand(),
		a.modelsCommand(),
		a.statsCommand(),
		a.yearCommand(),
		a.queryCommand(),
		a.appendCommand(),
		a.forkCommand(),
		a.headCommand(),
		a.labelCommand(),
		a.tagCommand(),
		a.rulesCommand(),
		a.contextCommand(),
		a.compactCommand(),
		a.exportCommand(),
		a.renameCommand(),
		a.starCommand(),
		a.archiveCommand(true),
		a.archiveCommand(false),
		a.trashCommand(true),
		a.trashCommand(false),
		a.purgeCommand(),
		a.backupCommand(),
		a.restoreCommand(),
		a.copyCommand(),
		a.doctorCommand(),
		a.secretsCommand(),
		a.configCommand(),
		a.tokenCommand(),
		a.uninstallCommand(),
		a.versionCommand(),
		a.completionCommand(),
		a.healthcheckCommand(),
		a.statusLineCommand(),
		a.answerSQLCommand(),
	} {
		if cmd.Args == nil {
			cmd.Args = arguments(0, 0)
		}
		if cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		cmd.DisableFlagsInUseLine = true
		root.AddCommand(cmd)
	}
	fitHelp(root, a.columns())
	return root
}

// meant suggests commands for a mistyped one.
func meant(root *cobra.Command, typed string) string {
	near := root.SuggestionsFor(typed)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// helpCommand is `sessiond help`.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show the help of a command", Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("unknown command %q", args[0])
			}
			return about.Help()
		},
	}
}
