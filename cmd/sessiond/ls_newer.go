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

// newerPatience limits how long a list on a terminal scans the folders of other programs.
const newerPatience = 150 * time.Millisecond

// tellNewer names, below a list, the programs with histories that are not imported and not
// followed. It says nothing if the scan takes too long.
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
		fmt.Fprintln(a.err, a.dim("Not imported yet: "+strings.Join(newer, ", ")+". `sessiond import` imports it; `sessiond serve` follows imported histories."))
	}
}

// daemonFollows reports whether a daemon runs that follows imported histories.
func (a *app) daemonFollows(ctx context.Context) bool {
	cfg, err := a.load(nil)
	return err == nil && cfg.Import.Follow && a.daemonServes(ctx, cfg)
}

// daemonServes reports whether a daemon accepts connections at the configured address.
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
