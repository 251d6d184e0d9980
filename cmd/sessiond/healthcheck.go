package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

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
			network, address := daemonAddress(cfg)
			if address == "" {
				return session.Errorf(session.Invalid,
					"no listener is configured: set `listen` to an address, or `socket` to a path")
			}
			return askHealth(ctx, network, address)
		},
	}
}

// daemonAddress returns the address of the daemon for a process on the same host.
func daemonAddress(cfg *config.Config) (network, address string) {
	if host, port, err := net.SplitHostPort(cfg.Listen); err == nil {
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "127.0.0.1"
		}
		return "tcp", net.JoinHostPort(host, port)
	}
	if cfg.Socket == config.SocketOff {
		return "", ""
	}
	return "unix", cfg.Socket
}

// nearestListener returns the daemon's socket, or without one its address.
func nearestListener(cfg *config.Config) (network, address string) {
	if cfg.Socket == config.SocketOff || cfg.Socket == "" {
		return daemonAddress(cfg)
	}
	return "unix", cfg.Socket
}

func askHealth(ctx context.Context, network, address string) error {
	res, err := askDaemon(ctx, network, address, http.MethodGet, "/healthz", nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", address, res.Status)
	}
	return nil
}

// daemonClient returns a client of the daemon at an address, which connects within a time; 0: as the context allows.
func daemonClient(network, address string, connect time.Duration) *http.Client {
	dialer := net.Dialer{Timeout: connect}
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, address)
		},
	}}
}

// askDaemon sends a request without a body to the daemon. Codes: Busy (no daemon answers).
func askDaemon(ctx context.Context, network, address, method, path string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, nil)
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header
	}
	res, err := daemonClient(network, address, 0).Do(req)
	var asking *url.Error
	if errors.As(err, &asking) {
		err = session.Errorf(session.Busy, "no daemon answers on %s (`sessiond serve` starts one): %w", address, asking.Err)
	}
	return res, err
}
