package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	client "sessiond/clients/go"
	"sessiond/internal/config"
	"sessiond/internal/session"
)

// healthcheckCommand is for a container's health check in an image without curl.
func (a *app) healthcheckCommand() *cobra.Command {
	return &cobra.Command{
		Use: "healthcheck", Short: "Check that the daemon answers", Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.load(nil)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 3*time.Second)
			defer cancel()
			place := daemonAddress(cfg)
			if place == (client.Place{}) {
				return session.Errorf(session.Invalid,
					"no listener is configured: set `listen` to an address, or `socket` to a path")
			}
			daemon := clientOf(place, 0)
			defer daemon.Close()
			_, err = daemon.CheckHealth(ctx)
			return daemonError(place, err)
		},
	}
}

// daemonAddress returns where the daemon is for a process on the same host; the zero value: nowhere.
func daemonAddress(cfg *config.Config) client.Place {
	if host, port, err := net.SplitHostPort(cfg.Listen); err == nil {
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "127.0.0.1"
		}
		return client.Place{URL: "http://" + net.JoinHostPort(host, port)}
	}
	if cfg.Socket == config.SocketOff {
		return client.Place{}
	}
	return client.Place{Socket: cfg.Socket}
}

// nearestListener returns the daemon's socket, or without one its address.
func nearestListener(cfg *config.Config) client.Place {
	if cfg.Socket == config.SocketOff || cfg.Socket == "" {
		return daemonAddress(cfg)
	}
	return client.Place{Socket: cfg.Socket}
}

// clientOf returns a client of the daemon at a place, which asks once. It connects within a time; 0: as the context
// allows.
func clientOf(place client.Place, connect time.Duration) *client.Client {
	return client.New(client.Options{Place: place, Retries: -1, Connect: connect})
}

// daemonError says of a client's error which daemon it was. Codes: Busy (no daemon answers).
func daemonError(place client.Place, err error) error {
	at := cmp.Or(place.Socket, strings.TrimPrefix(place.URL, "http://"))
	var e *client.Error
	switch {
	case !errors.As(err, &e):
		return err
	case e.Code == client.CodeUnreachable:
		return session.Errorf(session.Busy, "no daemon answers on %s (`sessiond serve` starts one): %w", at, e.Unwrap())
	}
	return fmt.Errorf("%s answered %d: %s", at, e.Status, e.Message)
}
