package main

import (
	"context"
	"net/http"
	"sync"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"sessiond/internal/config"
	"sessiond/internal/mcp"
)

func (a *app) mcpCommand() *cobra.Command {
	var prefix string
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve the sessions to a model, by the Model Context Protocol",
		Long: "Lets a model search and read the stored sessions: an agent program starts this command and speaks\n" +
			"MCP with it on standard input and output. It needs no daemon, only reads, and masks secrets.\n" +
			"`sessiond connect` adds it to the agent programs on this host. The daemon serves the same at /mcp.",
		Example: "  sessiond connect claude-code",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if prefix != "" && !plainID.MatchString(prefix) {
				return usagef("--prefix %q: a tool's name has letters, digits, _ and -", prefix)
			}
			cfg, err := a.load(nil)
			if err != nil {
				return err
			}
			shared := &sharedServices{app: a}
			in := a.mcpConfig(cfg, a.log(zerolog.WarnLevel))
			in.Folder, in.Open = a.dir, shared.open
			in.Own = a.getenv("CLAUDE_CODE_SESSION_ID") // Claude Code tells its servers
			in.Answered, in.Prefix = a.noteClient, prefix
			return mcp.New(in).ServeStdio(cmd.Context(), a.in, raw(a.out))
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "",
		"begin the tools' names with `TEXT`, for programs that show them without the server's name")
	return cmd
}

func (a *app) mcpConfig(cfg *config.Config, log zerolog.Logger) mcp.Config {
	return mcp.Config{Exclude: cfg.ExcludeProjects, Version: buildVersion().Version, Now: a.now, Log: log}
}

// withMCP adds /mcp to the daemon's handler.
func (a *app) withMCP(api http.Handler, s *opened, cfg *config.Config, log zerolog.Logger) http.Handler {
	in := a.mcpConfig(cfg, log)
	in.Open = func(context.Context) (mcp.Database, error) {
		return mcp.Database{Store: s.store, Index: s.index, Close: func() error { return nil }}, nil
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.New(in).Handler())
	mux.Handle("/", api)
	return mux
}

// sharedServices opens the database while there are calls, and closes it after the last of them: a client may live
// for days, in which the database is made, restored or stopped.
type sharedServices struct {
	app   *app
	mu    sync.Mutex
	calls int
	*opened
}

func (o *sharedServices) open(ctx context.Context) (mcp.Database, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calls == 0 {
		var err error
		if o.opened, err = o.app.wire(context.WithoutCancel(ctx), wiring{readOnly: true}); err != nil {
			return mcp.Database{}, err
		}
	}
	o.calls++
	return mcp.Database{Store: o.store, Index: o.index, Close: o.release}, nil
}

func (o *sharedServices) release() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calls--; o.calls > 0 {
		return nil
	}
	return o.opened.close()
}
