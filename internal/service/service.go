// Package service describes how the service manager of a system keeps the daemon running for its user: the file that
// it reads, and the commands that act on it. It writes and runs nothing, so that tests ask for every system.
package service

import (
	"encoding/xml"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf16"

	"sessiond/internal/folders"
	"sessiond/internal/session"
)

// Name is the service's name. The program `sessiond` of another project, an X session manager, has a unit of that name.
const Name = "sessiond-store"

// Service is the daemon as a service manager knows it.
type Service struct {
	Manager string
	File    string // what the manager reads
	Text    []byte // of File
	Log     string // the file of the daemon's log; "": the manager keeps the log
	Note    string // what a user should know

	Probe     []string   // fails where the manager does not run for this user
	Install   [][]string // after File was written
	Restart   [][]string
	Active    []string // succeeds while the daemon runs
	ShowLog   []string
	FollowLog []string
	Uninstall [][]string // before File is removed
	Removed   [][]string // after it
}

// Daemon is what the service runs.
type Daemon struct {
	Binary  string   // the absolute path of sessiond
	Args    []string // of it, such as --config FILE
	Environ []string // variables that the user's shell has and a service manager does not: NAME=VALUE
	UID     int
}

// For returns the service on the user's system. Codes: Invalid (the system has none that is known, no home).
func For(user folders.User, d Daemon) (Service, error) {
	home := user.Home()
	switch {
	case home == "":
		return Service{}, session.Errorf(session.Invalid, "HOME is not set: it says where the service's file belongs")
	case strings.ContainsAny(d.Binary+strings.Join(d.Args, "")+strings.Join(d.Environ, ""), "\n\r\x00"):
		return Service{}, session.Errorf(session.Invalid, "a service cannot be given a path or setting with a line break")
	case user.IsOn("windows"):
		return onWindows(user, d), nil
	case user.IsOn("darwin"):
		return onMac(home, d), nil
	case user.IsOn("linux"):
		return onLinux(user, d), nil
	}
	return Service{}, session.Errorf(session.Invalid,
		"sessiond knows systemd, launchd and the tasks of Windows, and this system has none of them: "+
			"let your own supervisor run `sessiond serve`")
}

// onLinux is a unit of the user's systemd. It has no Protect*: the daemon reads the homes in which agents keep their
// histories.
func onLinux(user folders.User, d Daemon) Service {
	const unit = Name + ".service"
	file := filepath.Join(user.Config(), "systemd", "user", unit)
	ctl := func(args ...string) []string { return append([]string{"systemctl", "--user"}, args...) }
	return Service{
		Manager: "systemd", File: file, Text: []byte(Unit(d)),
		Note:  "It runs while you are logged in; `loginctl enable-linger` keeps it running after that.",
		Probe: ctl("show-environment"),
		// By its path: systemd itself may know another XDG_CONFIG_HOME than the user's shell.
		Install:   [][]string{ctl("daemon-reload"), ctl("enable", file), ctl("restart", unit)},
		Restart:   [][]string{ctl("restart", unit)},
		Active:    ctl("is-active", "--quiet", unit),
		ShowLog:   []string{"journalctl", "--user", "--unit", unit, "--lines", "200", "--no-pager"},
		FollowLog: []string{"journalctl", "--user", "--unit", unit, "--lines", "20", "--follow"},
		Uninstall: [][]string{ctl("disable", "--now", unit)},
		Removed:   [][]string{ctl("daemon-reload")},
	}
}

// Unit returns the text of the unit of systemd.
func Unit(d Daemon) string {
	var b strings.Builder
	b.WriteString("[Unit]\nDescription=sessiond, the session store of the AI agents of this user\n\n[Service]\n")
	command := []string{systemdWord(d.Binary)}
	for _, arg := range append([]string{"serve"}, d.Args...) {
		command = append(command, systemdWord(arg))
	}
	fmt.Fprintf(&b, "ExecStart=%s\n", strings.Join(command, " "))
	for _, pair := range d.Environ {
		fmt.Fprintf(&b, "Environment=%s\n", strings.ReplaceAll(systemdWord(pair), "$$", "$")) // no variables there
	}
	b.WriteString(`Restart=on-failure
RestartSec=2
TimeoutStopSec=30
NoNewPrivileges=yes
LockPersonality=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
UMask=0077

[Install]
WantedBy=default.target
`)
	return b.String()
}

// systemdWord quotes a word of a command line where systemd would split or expand it.
func systemdWord(word string) string {
	word = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$").Replace(word)
	if strings.ContainsAny(word, " \t'\"\\;=") {
		return `"` + word + `"`
	}
	return word
}

// onMac is an agent of launchd.
func onMac(home string, d Daemon) Service {
	const label = Name
	at := fmt.Sprintf("gui/%d", d.UID)
	file := filepath.Join(home, "Library", "LaunchAgents", label+".plist")
	log := filepath.Join(home, "Library", "Logs", label+".log")
	ctl := func(args ...string) []string { return append([]string{"launchctl"}, args...) }
	return Service{
		Manager: "launchd", File: file, Text: []byte(plist(label, log, d)), Log: log,
		Probe:     ctl("print", at),
		Install:   [][]string{ctl("bootstrap", at, file)},
		Restart:   [][]string{ctl("kickstart", "-k", at+"/"+label)},
		Active:    ctl("print", at+"/"+label),
		ShowLog:   []string{"tail", "-n", "200", log},
		FollowLog: []string{"tail", "-n", "20", "-f", log},
		Uninstall: [][]string{ctl("bootout", at+"/"+label)},
	}
}

func plist(label, log string, d Daemon) string {
	var b strings.Builder
	text := func(s string) string {
		var escaped strings.Builder
		_ = xml.EscapeText(&escaped, []byte(s)) // a Builder never fails
		return "<string>" + escaped.String() + "</string>\n"
	}
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
`)
	b.WriteString("\t<key>Label</key>\n\t" + text(label) + "\t<key>ProgramArguments</key>\n\t<array>\n")
	for _, arg := range slices.Concat([]string{d.Binary, "serve"}, d.Args) {
		b.WriteString("\t\t" + text(arg))
	}
	b.WriteString("\t</array>\n")
	if len(d.Environ) > 0 {
		b.WriteString("\t<key>EnvironmentVariables</key>\n\t<dict>\n")
		for _, pair := range d.Environ {
			name, value, _ := strings.Cut(pair, "=")
			b.WriteString("\t\t<key>" + name + "</key>\n\t\t" + text(value))
		}
		b.WriteString("\t</dict>\n")
	}
	b.WriteString("\t<key>StandardOutPath</key>\n\t" + text(log) + "\t<key>StandardErrorPath</key>\n\t" + text(log))
	b.WriteString(`	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>ProcessType</key>
	<string>Background</string>
	<key>Umask</key>
	<integer>63</integer>
</dict>
</plist>
`)
	return b.String()
}

// onWindows is a task that starts at the user's logon, without a window. A service of Windows would run as another
// account, which sees no history.
func onWindows(user folders.User, d Daemon) Service {
	folder := filepath.Join(user.Data(), "sessiond")
	log := filepath.Join(folder, "daemon.log")
	file := filepath.Join(folder, Name+".xml")
	task := func(verb string, more ...string) []string {
		return append([]string{"schtasks", "/" + verb, "/TN", Name}, more...)
	}
	// conhost gives a console program no window; cmd sends what it says to a file.
	inner := []string{windowsWord(d.Binary), "serve"}
	for _, arg := range d.Args {
		inner = append(inner, windowsWord(arg))
	}
	var set strings.Builder
	for _, pair := range d.Environ {
		fmt.Fprintf(&set, `set "%s"&& `, pair)
	}
	arguments := fmt.Sprintf(`--headless cmd.exe /d /s /c "%s%s >>%s 2>&1"`, set.String(), strings.Join(inner, " "),
		windowsWord(log))
	follow := fmt.Sprintf("Get-Content -Tail 20 -Wait -LiteralPath '%s'", strings.ReplaceAll(log, "'", "''"))
	return Service{
		Manager: "Task Scheduler", File: file, Text: utf16Bytes(taskXML("conhost.exe", arguments)), Log: log,
		Note:      "On Windows this is untested: please report how it went.",
		Probe:     []string{"schtasks", "/Query", "/TN", `\`},
		Install:   [][]string{task("Create", "/XML", file, "/F"), task("Run")},
		Restart:   [][]string{task("End"), task("Run")},
		Active:    task("Query"),
		ShowLog:   []string{"powershell", "-NoProfile", "-Command", strings.Replace(follow, " 20 -Wait", " 200", 1)},
		FollowLog: []string{"powershell", "-NoProfile", "-Command", follow},
		Uninstall: [][]string{task("End"), task("Delete", "/F")},
	}
}

// windowsWord quotes a word for cmd. A path of Windows has no quotation mark.
func windowsWord(word string) string { return `"` + word + `"` }

func taskXML(program, arguments string) string {
	escape := func(s string) string {
		var escaped strings.Builder
		_ = xml.EscapeText(&escaped, []byte(s)) // a Builder never fails
		return escaped.String()
	}
	return `<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo><Description>sessiond, the session store of the AI agents of this user</Description></RegistrationInfo>
  <Triggers><LogonTrigger><Enabled>true</Enabled></LogonTrigger></Triggers>
  <Principals><Principal id="Author"><LogonType>InteractiveToken</LogonType><RunLevel>LeastPrivilege</RunLevel></Principal></Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <Hidden>true</Hidden>
    <RestartOnFailure><Interval>PT1M</Interval><Count>3</Count></RestartOnFailure>
  </Settings>
  <Actions Context="Author"><Exec><Command>` + escape(program) + `</Command><Arguments>` + escape(arguments) +
		`</Arguments></Exec></Actions>
</Task>
`
}

// utf16Bytes encodes a text as the Task Scheduler reads it.
func utf16Bytes(text string) []byte {
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(strings.ReplaceAll(text, "\n", "\r\n"))) {
		out = append(out, byte(unit), byte(unit>>8))
	}
	return out
}
