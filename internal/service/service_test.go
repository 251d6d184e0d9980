package service

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"sessiond/internal/folders"
	"sessiond/internal/testkit"
)

func on(t *testing.T, system string, env map[string]string, d Daemon) Service {
	t.Helper()
	return testkit.Must(For(folders.User{System: system, Getenv: func(name string) string { return env[name] }}, d))(t)
}

var (
	linux   = map[string]string{"HOME": "/home/ana"}
	mac     = map[string]string{"HOME": "/Users/ana"}
	windows = map[string]string{"USERPROFILE": `C:\Users\ana`}
)

func TestServiceFilesOfEverySystem(t *testing.T) {
	for _, c := range []struct {
		system, binary string
		env            map[string]string
		file, log      string
	}{
		{"linux", "/home/ana/.local/bin/sessiond", linux, "/home/ana/.config/systemd/user/sessiond-store.service", ""},
		{
			"darwin", "/Users/ana/.local/bin/sessiond", mac, "/Users/ana/Library/LaunchAgents/sessiond-store.plist",
			"/Users/ana/Library/Logs/sessiond-store.log",
		},
		{
			"windows", `C:\Users\ana\AppData\Local\Programs\sessiond\sessiond.exe`, windows,
			"C:/Users/ana/AppData/Local/sessiond/sessiond-store.xml", "C:/Users/ana/AppData/Local/sessiond/daemon.log",
		},
	} {
		s := on(t, c.system, c.env, Daemon{Binary: c.binary, UID: 501})
		if folders.Clean(s.File) != c.file || folders.Clean(s.Log) != c.log {
			t.Errorf("%s: the file is %s, the log %q", c.system, s.File, s.Log)
		}
		for name, command := range map[string][]string{
			"probe": s.Probe, "active": s.Active, "log": s.ShowLog, "follow": s.FollowLog, "restart": s.Restart[0],
			"install": s.Install[0], "uninstall": s.Uninstall[0],
		} {
			if len(command) < 2 {
				t.Errorf("%s: no command for %s: %q", c.system, name, command)
			}
		}
	}
	for _, user := range []folders.User{
		{System: "linux", Getenv: func(string) string { return "" }},
		{System: "plan9", Getenv: func(string) string { return "/x" }},
	} {
		if _, err := For(user, Daemon{Binary: "/x/sessiond"}); err == nil {
			t.Errorf("%s has a service without a home or a manager", user.System)
		}
	}
}

// hostile are settings that a manager would split, expand or take for its own.
var hostile = Daemon{
	Binary: `/home/ana/my tools/it's "100%" $HOME/sessiond`, Args: []string{"--config", "/etc/a b.yaml"},
	Environ: []string{"XDG_DATA_HOME=/data <&> 50%", `SESSIOND_OWNER=ana "b" \c $d`},
}

// plainWords undoes what systemd does to a line: quotes, backslashes, %% and $$.
func plainWords(line string, variables bool) []string {
	var words []string
	for _, word := range regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\S+`).FindAllString(line, -1) {
		word = strings.TrimSuffix(strings.TrimPrefix(word, `"`), `"`)
		word = strings.NewReplacer(`\\`, `\`, `\"`, `"`, "%%", "%").Replace(word)
		if variables {
			word = strings.ReplaceAll(word, "$$", "$")
		}
		words = append(words, word)
	}
	return words
}

func TestUnitKeepsHostileSettings(t *testing.T) {
	var environ []string
	for line := range strings.Lines(Unit(hostile)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "ExecStart":
			want := []string{hostile.Binary, "serve", "--config", "/etc/a b.yaml"}
			testkit.Equal(t, want, plainWords(value, true))
		case "Environment":
			environ = append(environ, plainWords(value, false)...)
		}
	}
	testkit.Equal(t, hostile.Environ, environ)
	if _, err := For(folders.User{System: "linux", Getenv: func(string) string { return "/home/ana" }},
		Daemon{Binary: "/x/sessiond", Args: []string{"a\nExecStart=/bin/sh"}}); err == nil {
		t.Error("a line break gives the unit another line")
	}
}

// systemd itself reads the unit, and agrees that it is as closed as a store of a user's histories can be.
func TestSystemdAcceptsTheUnit(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed (Debian: systemd)")
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "my tools", "sessiond")
	testkit.Check(t, os.MkdirAll(filepath.Dir(binary), 0o700))
	testkit.Check(t, os.WriteFile(binary, []byte("#!/bin/sh\n"), 0o700))
	unit := filepath.Join(dir, Name+".service")
	testkit.Check(t, os.WriteFile(unit, []byte(Unit(Daemon{
		Binary: binary, Args: []string{"--config", "/etc/a b.yaml"}, Environ: hostile.Environ,
	})), 0o600))
	run := func(args ...string) string {
		cmd := exec.Command("systemd-analyze", args...)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "HOME="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("systemd-analyze %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	for line := range strings.Lines(run("--user", "verify", unit)) {
		if strings.Contains(line, Name) { // it warns of other units of the host, too
			t.Error(line)
		}
	}
	said := run("security", "--offline=true", "--no-pager", unit)
	for _, setting := range []string{
		"NoNewPrivileges=", "LockPersonality=", "RestrictAddressFamilies=~AF_PACKET", "RestrictAddressFamilies=~AF_NETLINK",
		"RestrictRealtime=", "RestrictSUIDSGID=", "SystemCallArchitectures=", "UMask=",
	} {
		found := false
		for line := range strings.Lines(said) {
			found = found || strings.Contains(line, "✓ "+setting)
		}
		if !found {
			t.Errorf("systemd does not see %s set\n%s", setting, said)
		}
	}
}

func TestPropertyListIsWellFormed(t *testing.T) {
	s := on(t, "darwin", mac, hostile)
	var strs, keys []string
	for in := xml.NewDecoder(bytes.NewReader(s.Text)); ; {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		testkit.Check(t, err)
		if start, ok := token.(xml.StartElement); ok && (start.Name.Local == "string" || start.Name.Local == "key") {
			var text string
			testkit.Check(t, in.DecodeElement(&text, &start))
			if start.Name.Local == "key" {
				keys = append(keys, text)
			} else {
				strs = append(strs, text)
			}
		}
	}
	testkit.Equal(t, []string{
		"Label", "ProgramArguments", "EnvironmentVariables", "XDG_DATA_HOME", "SESSIOND_OWNER", "StandardOutPath",
		"StandardErrorPath", "RunAtLoad", "KeepAlive", "SuccessfulExit", "ProcessType", "Umask",
	}, keys)
	testkit.Equal(t, []string{
		Name, hostile.Binary, "serve", "--config", "/etc/a b.yaml", "/data <&> 50%", `ana "b" \c $d`, s.Log, s.Log, "Background",
	}, strs)
	file := filepath.Join(t.TempDir(), "agent.plist")
	testkit.Check(t, os.WriteFile(file, s.Text, 0o600))
	for _, lint := range [][]string{
		{"plutil", "-lint", file},
		{"plistutil", "-i", file, "-o", os.DevNull},
		{"python3", "-c", "import plistlib, sys; plistlib.load(open(sys.argv[1], 'rb'))", file},
	} {
		if _, err := exec.LookPath(lint[0]); err != nil {
			continue
		}
		if out, err := exec.Command(lint[0], lint[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", lint[0], err, out)
		}
		return
	}
	t.Skip("no program here reads property lists: plutil, plistutil or python3")
}

func TestTaskOfWindowsIsWellFormed(t *testing.T) {
	s := on(t, "windows", windows, Daemon{
		Binary: `C:\Users\ana & co\sessiond.exe`, Environ: []string{"SESSIOND_OWNER=ana <b>"},
	})
	var units []uint16
	for i := 2; i+1 < len(s.Text); i += 2 {
		units = append(units, uint16(s.Text[i])|uint16(s.Text[i+1])<<8)
	}
	text := string(utf16.Decode(units))
	var task struct {
		Command   string `xml:"Actions>Exec>Command"`
		Arguments string `xml:"Actions>Exec>Arguments"`
		Hidden    bool   `xml:"Settings>Hidden"`
		Level     string `xml:"Principals>Principal>RunLevel"`
	}
	in := xml.NewDecoder(strings.NewReader(text))
	in.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	testkit.Check(t, in.Decode(&task))
	want := fmt.Sprintf(`--headless cmd.exe /d /s /c "set "SESSIOND_OWNER=ana <b>"&& "%s" "serve`,
		`C:\Users\ana & co\sessiond.exe`)
	if want = strings.Replace(want, `"serve`, "serve", 1); task.Command != "conhost.exe" || !task.Hidden ||
		task.Level != "LeastPrivilege" || !strings.HasPrefix(task.Arguments, want) {
		t.Errorf("the task is %+v, want the arguments %s…", task, want)
	}
	if s.Note == "" {
		t.Error("nothing says that the task is untested")
	}
}
