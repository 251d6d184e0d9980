package sessiond

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// Place is where a daemon listens, and what it wants to see. One of URL and Socket is set.
type Place struct {
	URL    string // of HTTP, like http://127.0.0.1:7433
	Socket string // path of the Unix socket, whose permissions are its protection
	Token  string // not needed on the socket
}

// FindDaemon finds the daemon of this host as the sessiond command does: by its configuration file, then SESSIOND_DB,
// SESSIOND_LISTEN, SESSIOND_SOCKET and SESSIOND_TOKEN_FILE, then what a running daemon says of itself beside its
// database. The socket comes first, which needs no token. environ is as os.Environ returns it, which nil stands for.
func FindDaemon(environ []string) Place {
	if environ == nil {
		environ = os.Environ()
	}
	env := environment{}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = value
	}
	set := env.settings()
	folder := filepath.Join(env.folder("XDG_DATA_HOME", "LOCALAPPDATA", "AppData/Local", ".local/share"), "sessiond")
	onServer := strings.HasPrefix(set["db"], "postgres:") || strings.HasPrefix(set["db"], "postgresql:")
	db := set["db"]
	if db == "" || onServer {
		db = filepath.Join(folder, "sessions.db")
	}
	data := filepath.Dir(db)
	running := struct {
		PID     int    `json:"pid"`
		Address string `json:"address"`
		Socket  string `json:"socket"`
	}{}
	if !onServer {
		text, err := os.ReadFile(filepath.Join(data, ".daemon-"+filepath.Base(db)+".json"))
		if err == nil {
			_ = json.Unmarshal(text, &running) // half a file: as if there were none
		}
	}
	if running.PID == 0 {
		running.Address, running.Socket = loopback(set["listen"]), env.socket(set["socket"], data)
	}
	if _, err := os.Stat(running.Socket); err == nil || running.Address == "" {
		return Place{Socket: running.Socket}
	}
	tokenFile := set["token_file"]
	if tokenFile == "" {
		tokenFile = filepath.Join(data, "token")
	}
	token, _ := os.ReadFile(tokenFile) // none: the daemon says that one is missing
	return Place{URL: "http://" + running.Address, Token: strings.TrimSpace(string(token))}
}

// loopback returns the address for a process on the same host.
func loopback(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return listen
}

type environment map[string]string

// settings reads the four settings that say where a daemon is. In the configuration file they are strings at the top,
// one a line.
func (env environment) settings() map[string]string {
	set := map[string]string{"db": "", "listen": "127.0.0.1:7433", "socket": "", "token_file": ""}
	path := env["SESSIOND_CONFIG"]
	if path == "" {
		folder := env.folder("XDG_CONFIG_HOME", "APPDATA", "AppData/Roaming", ".config")
		path = filepath.Join(folder, "sessiond", "config.yaml")
	}
	text, _ := os.ReadFile(path) // none: the defaults
	for line := range strings.Lines(string(text)) {
		name, value, isSetting := strings.Cut(line, ":")
		if _, known := set[name]; known && isSetting {
			set[name] = scalar(strings.TrimSpace(value))
		}
	}
	for name := range set {
		if value, given := env["SESSIOND_"+strings.ToUpper(name)]; given {
			set[name] = value
		}
	}
	return set
}

// scalar returns the value of a line of YAML; "" for null.
func scalar(value string) string {
	switch {
	case strings.HasPrefix(value, `"`):
		if quoted, err := strconv.QuotedPrefix(value); err == nil {
			value, _ = strconv.Unquote(quoted)
			return value
		}
	case strings.HasPrefix(value, "'"):
		text, rest := "", value[1:]
		for {
			part, after, _ := strings.Cut(rest, "'")
			if text += part; !strings.HasPrefix(after, "'") {
				return text
			}
			text, rest = text+"'", after[1:]
		}
	}
	if at := strings.Index(" "+value, " #"); at >= 0 {
		value = strings.TrimSpace(value[:at])
	}
	if value == "~" || value == "null" {
		return ""
	}
	return value
}

// socket returns the path of the daemon's socket; "": it has none.
func (env environment) socket(named, data string) string {
	if named == "off" || named == "" && runtime.GOOS == "windows" {
		return ""
	}
	if named != "" {
		return named
	}
	folder := env["XDG_RUNTIME_DIR"]
	if folder == "" && runtime.GOOS == "linux" {
		folder = "/run/user/" + strconv.Itoa(os.Getuid())
	}
	if info, err := os.Stat(folder); err == nil && info.IsDir() {
		return filepath.Join(folder, "sessiond.sock")
	}
	return filepath.Join(data, "sessiond.sock")
}

// folder returns a folder of the user: by the variable of XDG, or where the system has it.
func (env environment) folder(xdg, windows, usual, unix string) string {
	if named := env[xdg]; filepath.IsAbs(named) {
		return named
	}
	home := env["HOME"]
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	switch runtime.GOOS {
	case "windows":
		if named := env[windows]; named != "" {
			return named
		}
		return filepath.Join(home, filepath.FromSlash(usual))
	case "darwin":
		return filepath.Join(home, "Library", "Application Support")
	}
	return filepath.Join(home, filepath.FromSlash(unix))
}
