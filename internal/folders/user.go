package folders

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// User finds the folders of a user. The system is a value: tests ask for the folders of all of them.
type User struct {
	System string // as in runtime.GOOS; "": this one
	Getenv func(string) string
}

// Home returns the home folder; "" if the environment names none.
func (u User) Home() string {
	if home := u.absolute("HOME"); home != "" || !u.IsOn("windows") {
		return home
	}
	return u.absolute("USERPROFILE")
}

// Data returns where programs keep data, a folder each: $XDG_DATA_HOME, else %LOCALAPPDATA%, ~/Library/Application
// Support or ~/.local/share; "" if the environment has no home.
func (u User) Data() string {
	switch data := u.absolute("XDG_DATA_HOME"); {
	case data != "":
		return data
	case u.IsOn("windows"):
		return u.appData("LOCALAPPDATA", "Local")
	case u.IsOn("darwin"):
		return u.under("Library", "Application Support")
	}
	return u.under(".local", "share")
}

// Config returns where programs keep their configurations: $XDG_CONFIG_HOME, else %APPDATA%, ~/Library/Application
// Support or ~/.config; "" if the environment has no home.
func (u User) Config() string {
	switch config := u.absolute("XDG_CONFIG_HOME"); {
	case config != "":
		return config
	case u.IsOn("windows"):
		return u.appData("APPDATA", "Roaming")
	case u.IsOn("darwin"):
		return u.under("Library", "Application Support")
	}
	return u.under(".config")
}

// Editors returns where editors of VS Code's family keep their data, by the names of their folders, as Code. Only on
// Linux they obey $XDG_CONFIG_HOME.
func (u User) Editors(names ...string) (found []string) {
	base := u.Config()
	switch {
	case u.IsOn("windows"):
		base = u.appData("APPDATA", "Roaming")
	case u.IsOn("darwin"):
		base = u.under("Library", "Application Support")
	}
	for _, name := range names {
		if base != "" {
			found = append(found, filepath.Join(base, name, "User"))
		}
	}
	return found
}

// Runtime returns the folder of sockets, which the system empties at the end of a login; "" on a system without one.
func (u User) Runtime() string {
	if dir := u.absolute("XDG_RUNTIME_DIR"); dir != "" || u.IsOn("windows") || u.IsOn("darwin") {
		return dir
	}
	return fmt.Sprintf("/run/user/%d", os.Getuid())
}

// Programs returns where a user keeps programs of its own: ~/.local/bin, on Windows a folder below %LOCALAPPDATA%; ""
// if the environment has no home.
func (u User) Programs() string {
	if !u.IsOn("windows") {
		return u.under(".local", "bin")
	}
	if local := u.appData("LOCALAPPDATA", "Local"); local != "" {
		return filepath.Join(local, "Programs", "sessiond")
	}
	return ""
}

// IsOn reports whether the user works on a system.
func (u User) IsOn(system string) bool {
	if u.System == "" {
		return runtime.GOOS == system
	}
	return u.System == system
}

// absolute returns a folder of the environment. A relative one does not count, as the XDG specification says.
func (u User) absolute(name string) string {
	if dir := u.Getenv(name); IsAbs(dir) {
		return dir
	}
	return ""
}

func (u User) appData(name, usual string) string {
	if dir := u.absolute(name); dir != "" {
		return dir
	}
	return u.under("AppData", usual)
}

func (u User) under(names ...string) string {
	home := u.Home()
	if home == "" {
		return ""
	}
	return filepath.Join(append([]string{home}, names...)...)
}

// OpenToOthers returns which of some permissions a file gives to other users. On Windows a mode says nothing of them:
// who may open a file is inherited from its folder, and a user's folders are the user's alone.
func OpenToOthers(mode, permissions fs.FileMode) fs.FileMode {
	if runtime.GOOS == "windows" {
		return 0
	}
	return mode.Perm() & permissions
}

// Sync has the names in a folder survive a power cut. Windows flushes no folder.
func Sync(folder string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Tilde writes a path in a home folder with ~. An empty home is none.
func Tilde(home, path string) string {
	if rest, ok := strings.CutPrefix(path, home); ok && home != "" && (rest == "" || rest[0] == '/') {
		return "~" + rest
	}
	return path
}
