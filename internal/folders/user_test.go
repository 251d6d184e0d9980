package folders

import "testing"

func TestUserFoldersOfEverySystem(t *testing.T) {
	home := map[string]string{"HOME": "/home/ana"}
	mac := map[string]string{"HOME": "/Users/ana"}
	windows := map[string]string{"USERPROFILE": `C:\Users\ana`}
	moved := map[string]string{
		"USERPROFILE": `C:\Users\ana`, "LOCALAPPDATA": `D:\Local`, "APPDATA": `D:\Roaming`,
	}
	xdg := map[string]string{
		"HOME": "/home/ana", "XDG_DATA_HOME": "/data", "XDG_CONFIG_HOME": "/config", "XDG_RUNTIME_DIR": "/run/user/7",
	}
	relative := map[string]string{"HOME": "/home/ana", "XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "./config"}
	for _, c := range []struct {
		name, system                 string
		env                          map[string]string
		home, data, config, programs string
	}{
		{
			"Linux", "linux", home, "/home/ana", "/home/ana/.local/share", "/home/ana/.config", "/home/ana/.local/bin",
		},
		{"Linux, moved", "linux", xdg, "/home/ana", "/data", "/config", "/home/ana/.local/bin"},
		{
			"Linux, moved to a relative folder", "linux", relative,
			"/home/ana", "/home/ana/.local/share", "/home/ana/.config", "/home/ana/.local/bin",
		},
		{
			"macOS", "darwin", mac, "/Users/ana", "/Users/ana/Library/Application Support",
			"/Users/ana/Library/Application Support", "/Users/ana/.local/bin",
		},
		{
			"Windows", "windows", windows, `C:/Users/ana`, `C:/Users/ana/AppData/Local`,
			`C:/Users/ana/AppData/Roaming`, `C:/Users/ana/AppData/Local/Programs/sessiond`,
		},
		{"Windows, moved", "windows", moved, `C:/Users/ana`, `D:/Local`, `D:/Roaming`, `D:/Local/Programs/sessiond`},
		{
			"Git Bash", "windows",
			map[string]string{"HOME": "/c/Users/ana", "USERPROFILE": `C:\Users\bob`},
			`C:/Users/ana`, `C:/Users/ana/AppData/Local`, `C:/Users/ana/AppData/Roaming`,
			`C:/Users/ana/AppData/Local/Programs/sessiond`,
		},
		{"no home", "linux", nil, "", "", "", ""},
		{"no home on macOS", "darwin", nil, "", "", "", ""},
		{"no home on Windows", "windows", nil, "", "", "", ""},
	} {
		u := User{System: c.system, Getenv: func(name string) string { return c.env[name] }}
		for _, got := range []struct{ what, is, want string }{
			{"home", u.Home(), c.home},
			{"data", u.Data(), c.data},
			{"configuration", u.Config(), c.config},
			{"programs", u.Programs(), c.programs},
		} {
			if Clean(got.is) != got.want {
				t.Errorf("%s: %s is %q, want %q", c.name, got.what, got.is, got.want)
			}
		}
	}
	for system, want := range map[string]string{"darwin": "", "windows": ""} {
		if got := (User{System: system, Getenv: func(string) string { return "" }}).Runtime(); got != want {
			t.Errorf("%s: the folder of sockets is %q, want %q", system, got, want)
		}
	}
	moves := User{System: "linux", Getenv: func(name string) string { return xdg[name] }}
	if got := moves.Runtime(); got != "/run/user/7" {
		t.Errorf("Linux: the folder of sockets is %q", got)
	}
}

func TestEditorsOfEverySystem(t *testing.T) {
	for system, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"linux": {map[string]string{"HOME": "/home/ana"}, "/home/ana/.config/Code/User"},
		"darwin": {
			map[string]string{"HOME": "/Users/ana", "XDG_CONFIG_HOME": "/c"},
			"/Users/ana/Library/Application Support/Code/User",
		},
		"windows": {
			map[string]string{"APPDATA": `C:\Users\ana\AppData\Roaming`, "XDG_CONFIG_HOME": `C:\c`},
			"C:/Users/ana/AppData/Roaming/Code/User",
		},
		"plan9": {nil, ""},
	} {
		u := User{System: system, Getenv: func(name string) string { return c.env[name] }}
		got := u.Editors("Code")
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || Clean(got[0]) != c.want) {
			t.Errorf("%s: %q, want %q", system, got, c.want)
		}
	}
}
