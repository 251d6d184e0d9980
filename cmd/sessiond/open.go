package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	client "sessiond/clients/go"
	"sessiond/internal/config"
	"sessiond/internal/session"
	"sessiond/internal/web/guard"
)

func (a *app) openCommand() *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use: "open [SESSION]", Short: "Open the page in a browser", Args: arguments(0, 1),
		ValidArgsFunction: a.completeSession,
		Long: "Opens the daemon's page in a browser, logged in: all sessions, or SESSION. The link works once, for a\n" +
			"minute; the login lasts 12 hours.",
		Example: "  sessiond open\n  sessiond open @\n  sessiond open --print",
		RunE: func(cmd *cobra.Command, args []string) error {
			to := "/"
			if len(args) == 1 {
				if err := a.onSession(cmd.Context(), reading, args[0], func(_ *opened, sess session.Session) error {
					to = "/s/" + string(sess.ID)
					return nil
				}); err != nil {
					return err
				}
			}
			return a.openPage(cmd.Context(), to, show)
		},
	}
	cmd.Flags().BoolVar(&show, "print", false, "print the link instead")
	return cmd
}

func (a *app) openPage(ctx context.Context, to string, show bool) error {
	cfg, err := a.load(nil)
	if err != nil {
		return err
	}
	link, err := askForLink(ctx, cfg, to)
	if err != nil {
		return err
	}
	if show || a.flags.json {
		return a.report(map[string]string{"url": link}, "%s\n", link)
	}
	if opener := browse(ctx, link); opener != "" {
		fmt.Fprintln(a.out, link)
		return session.Errorf(session.Unavailable,
			"no browser could be opened here (%s): open the link above within a minute", opener)
	}
	_, err = fmt.Fprintln(a.out, "The page is open in your browser.")
	return err
}

// browse opens a link in a browser. If that fails, it returns the name of the program that failed.
func browse(ctx context.Context, link string) (failed string) {
	opener := cmp.Or(map[string]string{"darwin": "open", "windows": "explorer"}[runtime.GOOS], "xdg-open")
	if exec.CommandContext(ctx, opener, link).Run() != nil { //nolint:gosec // the daemon made the link
		return opener
	}
	return ""
}

// askForLink asks the daemon, by its socket, or else by TCP with the token. Codes: Busy (no daemon answers).
func askForLink(ctx context.Context, cfg *config.Config, to string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	place := nearestListener(cfg)
	token, _, err := guard.EnsureToken(cfg.TokenFile)
	if err != nil {
		return "", err
	}
	place.Token = token
	daemon := clientOf(place, 0)
	defer daemon.Close()
	var answer struct {
		URL string `json:"url"`
	}
	err = daemon.Do(ctx, http.MethodPost, "/open?to="+url.QueryEscape(to), nil, &answer)
	if e := (*client.Error)(nil); errors.As(err, &e) && e.Status != 0 {
		return "", session.Errorf(session.Unavailable, "the daemon gave no link: %s", e.Message)
	}
	return answer.URL, daemonError(place, err)
}
