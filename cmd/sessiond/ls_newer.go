package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"sessiond/internal/config"
	"sessiond/internal/history"
	"sessiond/internal/store"
)

// newerPatience bounds how long a list waits on a terminal for the folders of other programs
// to be looked through.
const newerPatience = 150 * time.Millisecond

// tellNewer says, below a list, what known programs wrote that nothing follows and nobody
// imported yet. What cannot be looked at in time is not told.
func (a *app) tellNewer(ctx context.Context, s *store.Store) {
	if a.outTTY {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, newerPatience)
		defer cancel()
	}
	var newer []string
	follows, asked := false, false
	im := history.Importer{Store: s, Now: a.now}
	for _, src := range a.sources() {
		found, _, err := src.Find(ctx, nil)
		if err != nil || len(found) == 0 {
			continue
		}
		followed, err := s.ImportedPaths(ctx, src.Name())
		if err != nil {
			return
		}
		if len(followed) > 0 && !asked {
			follows, asked = a.daemonFollows(ctx), true
		}
		n := 0
		for _, f := range found {
			if follows && slices.ContainsFunc(followed, func(root string) bool { return history.Within(f.Path, root) }) {
				continue
			}
			if unread, err := im.Unread(ctx, src, f); err != nil {
				return
			} else if unread {
				n++
			}
		}
		if n > 0 {
			newer = append(newer, fmt.Sprintf("%s (%d)", src.Name(), n))
		}
	}
	if len(newer) > 0 && ctx.Err() == nil {
		fmt.Fprintln(a.err, a.dim("Newer than this list: "+strings.Join(newer, ", ")+". `sessiond import` brings it in; `sessiond serve` follows what was imported once."))
	}
}

// daemonFollows reports whether a daemon runs that follows what was imported.
func (a *app) daemonFollows(ctx context.Context) bool {
	cfg, err := a.load(nil)
	return err == nil && cfg.Import.Follow && a.daemonServes(ctx, cfg)
}

// daemonServes reports whether a daemon accepts connections where the configuration says.
func (a *app) daemonServes(ctx context.Context, cfg *config.Config) bool {
	network, address := "unix", cfg.Socket
	if cfg.Socket == config.SocketOff || cfg.Socket == "" {
		network, address = daemonAddress(cfg)
	}
	dialer := net.Dialer{Timeout: newerPatience}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}
