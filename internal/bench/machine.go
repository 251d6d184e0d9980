package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver that the product uses
)

// machine says what the figures were measured on.
func (b *bench) machine(ctx context.Context) error {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // in memory
	var version string
	if err := db.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&version); err != nil {
		return err
	}
	shell := "no sqlite3 shell"
	if out, err := exec.CommandContext(ctx, "sqlite3", "--version").Output(); err == nil {
		shell = "sqlite3 shell " + strings.Fields(string(out))[0]
	}
	_, err = fmt.Fprintf(b.out, "%s · %d × %s · load %s · %s %s/%s · SQLite %s in Go, %s · data on %s · %d rounds\n\n",
		time.Now().UTC().Format("2006-01-02 15:04 UTC"), runtime.NumCPU(), processor(), load(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		version, shell, fileSystem(ctx, b.data), b.rounds)
	return err
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // "" off Linux
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "CPU"
}

// load is how busy the machine is beside this run.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); len(fields) > 0 {
		return fields[0]
	}
	return "?"
}

func fileSystem(ctx context.Context, dir string) string {
	out, err := exec.CommandContext(ctx, "stat", "-f", "-c", "%T", dir).Output()
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(out))
}
