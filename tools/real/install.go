//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	installTime = 10 * time.Minute
	nodePackage = "node@24" // older ones make npm install old versions of the programs without a word
)

// installer keeps packages of npm in a folder, one for each version.
type installer struct {
	cache, npm, nodeBin string
}

// installation is where a program is installed.
type installation struct {
	version string
	path    []string // folders of executables
}

// prepare finds npm and installs Node.
func (in *installer) prepare(ctx context.Context) (err error) {
	if in.npm, err = exec.LookPath("npm"); err != nil {
		return errors.New("npm is not in PATH: the programs come from its registry; install Node.js first")
	}
	dir := filepath.Join(in.cache, "node")
	in.nodeBin = filepath.Join(dir, "node_modules", "node", "bin")
	if _, err := os.Stat(filepath.Join(in.nodeBin, "node")); err == nil {
		return nil
	}
	return in.add(ctx, dir, nodePackage)
}

// mostVersions is how many versions are tried: a registry may have the newest one without all of its packages.
const mostVersions = 3

// install installs the newest version that the registry has whole, unless the cache has it.
func (in *installer) install(ctx context.Context, p *program) (got installation, err error) {
	out, err := in.run(ctx, "view", p.pack, "version")
	newest := strings.TrimSpace(out)
	if err != nil || newest == "" {
		return got, fmt.Errorf("the registry does not say the version of %s: %w", p.pack, err)
	}
	if got, err = in.installVersion(ctx, p, newest); err == nil {
		return got, nil
	}
	var all []string
	if out, failed := in.run(ctx, "view", p.pack, "versions", "--json"); failed != nil ||
		json.Unmarshal([]byte(out), &all) != nil {
		return got, err
	}
	older := all[:max(0, slices.Index(all, newest))]
	for _, version := range slices.Backward(older[max(0, len(older)-mostVersions+1):]) {
		if older, failed := in.installVersion(ctx, p, version); failed == nil {
			return older, nil
		}
	}
	return got, err
}

func (in *installer) installVersion(ctx context.Context, p *program, version string) (installation, error) {
	dir := filepath.Join(in.cache, p.name, version)
	bin := filepath.Join(dir, "node_modules", ".bin")
	got := installation{version: version, path: []string{bin, in.nodeBin}}
	if _, err := os.Stat(filepath.Join(bin, p.bin)); err == nil {
		return got, nil
	}
	if err := in.add(ctx, dir, p.pack+"@"+version); err != nil {
		return got, err
	}
	if _, err := os.Stat(filepath.Join(bin, p.bin)); err != nil {
		return got, fmt.Errorf("%s@%s has no command %s", p.pack, version, p.bin)
	}
	return got, nil
}

func (in *installer) add(ctx context.Context, dir, pack string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if out, err := in.run(ctx, "install", "--prefix", dir, "--no-audit", "--no-fund", pack); err != nil {
		_ = os.RemoveAll(filepath.Join(dir, "node_modules")) // half an installation would count as one
		return fmt.Errorf("npm cannot install %s: %w: %s", pack, err, lastLines(out, 5))
	}
	return nil
}

func (in *installer) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, installTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, in.npm, args...)
	cmd.Dir = in.cache
	if err := os.MkdirAll(in.cache, 0o700); err != nil {
		return "", err
	}
	cmd.Env = append(os.Environ(), "PATH="+in.nodeBin+":"+os.Getenv("PATH"))
	return outputOf(ctx, cmd)
}

// outputOf runs a command in a process group of its own, which ends with the context.
func outputOf(ctx context.Context, cmd *exec.Cmd) (string, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second // of children that keep the output open
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("it did not end in time: %w", ctx.Err())
	}
	return string(out), err
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
