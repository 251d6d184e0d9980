// Package folders says by which one name a path is known, however its system or program spells it, which repository
// a folder belongs to, and how lists call a project. It imports nothing of sessiond.
package folders

import (
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"sessiond/internal/pattern"
)

// Clean returns the one spelling of a path: without dots and doubled slashes, and a path of Windows with its drive in
// front and with slashes, C:/src/shop, whether it was written C:\src\shop, c:/src/shop, \\?\C:\src\shop,
// /mnt/c/src/shop (WSL), /cygdrive/c/src/shop or /c/src/shop (Git Bash). A share of WSL, \\wsl$\Ubuntu\home\ana, is the
// path in Linux, another one begins with \\host. A path of another system is not changed but for dots and slashes; ""
// stays "".
func Clean(name string) string {
	if name == "" {
		return ""
	}
	if drive, rest, ok := cutDrive(name); ok {
		return joinDrive(drive, rest)
	}
	if !strings.HasPrefix(name, `\\`) && !strings.HasPrefix(name, "//") {
		return path.Clean(name)
	}
	slashed := strings.ReplaceAll(name, `\`, "/")
	for _, long := range []string{"//?/", "//./"} {
		if rest, ok := strings.CutPrefix(slashed, long); ok {
			if share, ok := strings.CutPrefix(rest, "UNC/"); ok {
				return Clean(`\\` + share)
			}
			return Clean(rest)
		}
	}
	host, rest, _ := strings.Cut(slashed[2:], "/")
	switch host = strings.ToLower(host); {
	case host == "wsl$", host == "wsl.localhost":
		_, rest, _ = strings.Cut(rest, "/") // behind the name of the distribution
		return Clean("/" + rest)
	case strings.HasPrefix(name, "//"): // rather doubled by a program
		return path.Clean(name)
	}
	return `\\` + path.Clean(host+"/"+rest)
}

// Join returns the one spelling of a path that is relative to a directory, or absolute. What begins with ~ stays. In a
// directory of Windows /d/x is on drive D, as Git Bash writes it.
func Join(directory, name string) string {
	switch {
	case strings.HasPrefix(name, "~"):
		return name
	case IsWindows(directory) && oneLetter.MatchString(name):
		return joinDrive(name[1], name[2:])
	case IsAbs(name) || directory == "":
		return Clean(name)
	case IsWindows(directory):
		name = strings.ReplaceAll(name, `\`, "/")
	}
	return Clean(strings.TrimRight(directory, `/\`) + "/" + name)
}

// IsAbs reports whether a path is absolute on any system.
func IsAbs(name string) bool { return strings.HasPrefix(name, "/") || IsWindows(name) }

// IsWindows reports whether a path begins with a drive (C:\, C:/) or a share (\\host) of Windows.
func IsWindows(name string) bool {
	return strings.HasPrefix(name, `\\`) || len(name) > 2 && name[1] == ':' && isSlash(name[2]) && isLetter(name[0])
}

// Resolved returns the one spelling of a path without symbolic links, as the system follows them. What of it does not
// exist any more counts by its text, also the target of a link.
func Resolved(name string) string {
	const mostLinks = 40 // more lead in a circle
	if _, _, windows := cutDrive(name); windows || !strings.HasPrefix(name, "/") || runtime.GOOS == "windows" {
		return Clean(name)
	}
	done, rest := "/", name
	for links := 0; rest != ""; {
		var element string
		element, rest, _ = strings.Cut(rest, "/")
		next := path.Join(done, element) // of ".." the folder above
		target, err := os.Readlink(next)
		if err != nil || links == mostLinks {
			done = next
			continue
		}
		links++
		if strings.HasPrefix(target, "/") {
			done = "/"
		}
		rest = target + "/" + rest
	}
	return Clean(done)
}

// RealPath returns a path to open without symbolic links, as far as it exists. Unlike Resolved it keeps the system's
// spelling: under WSL /mnt/c is no C:.
func RealPath(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	if dir := filepath.Dir(name); dir != name {
		return filepath.Join(RealPath(dir), filepath.Base(name))
	}
	return name
}

// Within reports whether a path is a folder, or below it. Both are in the spelling of Clean.
func Within(name, folder string) bool {
	folder = strings.TrimSuffix(folder, "/")
	return name == folder && name != "" || strings.HasPrefix(name, folder+"/")
}

func isSlash(b byte) bool  { return b == '/' || b == '\\' }
func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

var oneLetter = pattern.New(`^/[A-Za-z](/|$)`)

// cutDrive cuts the drive off a path of Windows in any of its spellings.
func cutDrive(name string) (drive byte, rest string, ok bool) {
	if len(name) > 1 && name[1] == ':' && isLetter(name[0]) && (len(name) == 2 || isSlash(name[2])) {
		return name[0], name[2:], true
	}
	if len(name) > 2 && name[0] == '/' && name[2] == ':' && (len(name) == 3 || name[3] == '/') { // of a file:// address
		return cutDrive(name[1:])
	}
	for _, mount := range []string{"/mnt", "/cygdrive", ""} {
		below, found := strings.CutPrefix(name, mount)
		if !found || !oneLetter.MatchString(below) || mount == "" && below[1]|0x20 != 'c' {
			continue // /w may be a folder of Linux; nobody calls one /c
		}
		if at := mount + below[:2]; !isMounted(at) {
			return below[1], below[2:], true
		}
	}
	return 0, "", false
}

func joinDrive(drive byte, rest string) string {
	return strings.ToUpper(string(rune(drive))) + ":" + path.Clean("/"+strings.ReplaceAll(rest, `\`, "/"))
}

// isMounted reports whether a folder that looks like a drive is one of this host, and no drive: only WSL has drives
// there.
func isMounted(folder string) bool {
	if runtime.GOOS == "windows" || inWSL() {
		return false
	}
	_, err := os.Stat(folder)
	return err == nil
}

var inWSL = sync.OnceValue(func() bool {
	version, _ := os.ReadFile("/proc/version") // of another system: none
	return strings.Contains(strings.ToLower(string(version)), "microsoft")
})

// local returns how this host opens a path in the spelling of Clean; "" if it cannot.
func local(name string) string {
	switch {
	case !IsWindows(name) && filepath.IsAbs(name), runtime.GOOS == "windows":
		return filepath.FromSlash(name)
	case inWSL() && len(name) > 2 && name[1] == ':':
		return "/mnt/" + strings.ToLower(name[:1]) + name[2:]
	}
	return ""
}
