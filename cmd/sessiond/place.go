package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sessiond/internal/folders"
	"sessiond/internal/session"
)

// caches are parts of paths below which tools keep programs that they delete again.
var caches = [...]struct{ part, tool string }{
	{"/go-build", "go run"},
	{"/_npx/", "npx"},
	{"/dlx/", "pnpm dlx"}, // ~/.cache/pnpm/dlx
	{"/dlx-", "pnpm dlx"}, // and its folders of earlier versions
	{"/xfs-", "yarn dlx"},
	{"/bunx-", "bunx"},
	{"/install/cache/", "bun"},
	{"/_cacache/", "npm"},
}

// cacheOf names the tool whose cache a program is in; "" for a program that stays.
func cacheOf(user folders.User, program string) string {
	path := folders.Clean(program)
	for _, c := range caches {
		if strings.Contains(path, c.part) {
			return c.tool
		}
	}
	for _, cache := range []string{
		user.Getenv("XDG_CACHE_HOME"), filepath.Join(user.Home(), ".cache"), filepath.Join(user.Home(), "Library", "Caches"),
		filepath.Join(user.Data(), "npm-cache"),
	} {
		if folders.IsAbs(cache) && folders.Within(path, folders.Clean(cache)) {
			return "a cache"
		}
	}
	return ""
}

// programName is the name of sessiond's file.
func (a *app) programName() string {
	if a.user().IsOn("windows") {
		return "sessiond.exe"
	}
	return "sessiond"
}

// lastingSelf returns a path of sessiond for what outlives this process: the configuration of a program, a service. A
// program in a cache is gone some day, so it offers a copy in the user's own folder. Codes: Invalid (nobody allows it).
func (a *app) lastingSelf(ctx context.Context, yes, dryRun bool) (string, error) {
	self, err := a.self()
	if err != nil {
		return "", err
	}
	real := self
	if followed, err := filepath.EvalSymlinks(self); err == nil {
		real = followed
	}
	tool := cmp.Or(cacheOf(a.user(), self), cacheOf(a.user(), real))
	if tool == "" {
		return self, nil
	}
	folder := a.user().Programs()
	if folder == "" {
		return "", session.Errorf(session.Invalid, "HOME is not set, and sessiond runs from the cache of %s (%s), which is "+
			"deleted some day: copy it to a folder of programs, and run it from there", tool, real)
	}
	to := filepath.Join(folder, a.programName())
	switch same, err := sameFile(real, to); {
	case err != nil:
		return "", err
	case same:
		return to, nil
	}
	verb := "Copy it to"
	if _, err := os.Lstat(to); err == nil {
		verb = "Replace"
	}
	why := fmt.Sprintf("sessiond runs from the cache of %s (%s), which is deleted some day.", tool,
		inOneLine(printable(real)))
	switch {
	case dryRun:
		fmt.Fprintf(a.err, "%s It would be copied to %s.\n", why, to)
		return to, nil
	case !yes && !a.inTTY:
		return "", usagef("%s There is no terminal to ask on: --yes copies it to %s", why, to)
	case !yes:
		sure, err := a.ask(ctx, fmt.Sprintf("%s\n%s %s? [Y/n] ", why, verb, to), true)
		if err == nil && !sure {
			err = session.Errorf(session.Invalid,
				"nothing was changed: copy sessiond to a folder of programs, and run it from there")
		}
		if err != nil {
			return "", err
		}
	}
	if err := copyProgram(real, to); err != nil {
		return "", fmt.Errorf("copy sessiond to %s: %w", to, err)
	}
	fmt.Fprintf(a.err, "sessiond is copied to %s.\n", to)
	if first := a.host().LookPath("sessiond"); first == "" {
		fmt.Fprintf(a.err, "Add %s to your PATH to type `sessiond` in a shell.\n", folder)
	} else if filepath.Clean(first) != filepath.Clean(to) {
		fmt.Fprintf(a.err, "Your shell runs another one first: %s.\n", inOneLine(printable(first)))
	}
	return to, nil
}

// sameFile reports whether two files have the same content. The second may be missing.
func sameFile(one, other string) (bool, error) {
	if _, err := os.Stat(other); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var sums [2][]byte
	for i, path := range []string{one, other} {
		f, err := os.Open(path)
		if err != nil {
			return false, err
		}
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return false, err
		}
		sums[i] = sum.Sum(nil)
	}
	return bytes.Equal(sums[0], sums[1]), nil
}

// copyProgram puts a copy of a program in a place, whole or not at all; what runs there runs on.
func copyProgram(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	out, err := os.CreateTemp(filepath.Dir(to), ".sessiond-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name()) //nolint:errcheck // gone after the rename
	_, err = io.Copy(out, in)
	const runnable = 0o755
	if err := errors.Join(err, out.Chmod(runnable), out.Sync(), out.Close()); err != nil {
		return err
	}
	if err := os.Rename(out.Name(), to); err == nil {
		return nil
	}
	// Windows replaces no program that runs, but renames it.
	old := to + ".old"
	_ = os.Remove(old)
	if err := os.Rename(to, old); err != nil {
		return err
	}
	return os.Rename(out.Name(), to)
}
