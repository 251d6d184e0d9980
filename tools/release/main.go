// Command release makes the files of a release from built programs: archives, packages for Debian and RPM, npm folders,
// a container image, a Homebrew formula, a Scoop manifest, checksums. Two runs on the same programs write the same
// bytes. scripts/release builds the programs and calls it.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sessiond/internal/service"
)

// release is what is released, and where to.
type release struct {
	version    string
	at         time.Time // of the commit: the time of every file
	built      string    // folder with a folder for each platform, and man and completions
	out        string
	repository string // the address of the project, without a slash at its end
	scope      string // of npm, with its @
	maintainer string
	tools      string // folder with nfpm and crane
}

// platform is a system that has releases.
type platform struct {
	os, arch string // as Go names them
	node     string // as Node does: process.platform, a hyphen, process.arch
}

var platforms = [...]platform{
	{"linux", "amd64", "linux-x64"},
	{"linux", "arm64", "linux-arm64"},
	{"darwin", "arm64", "darwin-arm64"},
	{"windows", "amd64", "win32-x64"},
}

const description = "The session store of every AI agent on a host: one daemon, one SQLite file"

func main() {
	var r release
	var epoch int64
	var unit bool
	flag.StringVar(&r.version, "version", "", "of the release")
	flag.Int64Var(&epoch, "time", 0, "of the commit, in seconds since 1970")
	flag.StringVar(&r.built, "built", "", "folder with the built programs")
	flag.StringVar(&r.out, "out", "", "folder of the release")
	flag.StringVar(&r.repository, "repository", "", "address of the project")
	flag.StringVar(&r.scope, "scope", "", "scope of npm")
	flag.StringVar(&r.maintainer, "maintainer", "", "of the packages")
	flag.StringVar(&r.tools, "tools", "", "folder with nfpm and crane")
	flag.BoolVar(&unit, "unit", false, "print the unit of systemd that the packages carry, and end")
	flag.Parse()
	if unit {
		fmt.Print(service.Unit(service.Daemon{Binary: "/usr/bin/sessiond"}))
		return
	}
	r.at = time.Unix(epoch, 0).UTC()
	if err := r.make(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// make writes all files of the release.
func (r *release) make() error {
	if r.version == "" || r.built == "" || r.out == "" || r.at.Unix() == 0 {
		return fmt.Errorf("name -version, -time, -built and -out")
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, step := range []func() error{
		r.writeArchives, r.writePackages, r.writeNPM, r.writeImage, r.writeFormula, r.writeScoop, r.writeChecksums,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// program returns the built program of a platform.
func (r *release) program(p platform) string {
	return filepath.Join(r.built, p.os+"_"+p.arch, p.programName())
}

func (p platform) programName() string {
	if p.os == "windows" {
		return "sessiond.exe"
	}
	return "sessiond"
}

func (r *release) archiveName(p platform) string {
	return fmt.Sprintf("sessiond_%s_%s_%s.%s", r.version, p.os, p.arch,
		map[bool]string{true: "zip", false: "tar.gz"}[p.os == "windows"])
}

// address returns where a file of the release is downloaded.
func (r *release) address(name string) string {
	return r.repository + "/releases/download/v" + r.version + "/" + name
}

// tool runs one of the tools of the release.
func (r *release) tool(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(r.tools, name), args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.at.Unix()))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// documents are what every archive and package has beside the program: their names there, and where they are.
func (r *release) documents() (map[string]string, error) {
	found := map[string]string{"LICENSE": "LICENSE", "README.md": "README.md", "CHANGELOG.md": "CHANGELOG.md"}
	for _, folder := range []string{"man", "completions"} {
		entries, err := os.ReadDir(filepath.Join(r.built, folder))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			found[folder+"/"+e.Name()] = filepath.Join(r.built, folder, e.Name())
		}
	}
	return found, nil
}

func (r *release) writeArchives() error {
	documents, err := r.documents()
	if err != nil {
		return err
	}
	for _, p := range platforms {
		files := []file{{name: p.programName(), from: r.program(p), mode: 0o755}}
		for name, from := range documents {
			files = append(files, file{name: name, from: from, mode: 0o644})
		}
		write := writeTarGz
		if p.os == "windows" {
			write = writeZip
		}
		if err := write(filepath.Join(r.out, r.archiveName(p)), files, r.at); err != nil {
			return err
		}
	}
	return nil
}

// writePackages writes packages for Debian and RPM. Their name is not the program's: another project has a package
// sessiond, a session manager for X, with a program and a unit of that name.
func (r *release) writePackages() error {
	for _, p := range platforms {
		if p.os != "linux" {
			continue
		}
		config := filepath.Join(r.built, "nfpm_"+p.arch+".yaml")
		var b strings.Builder
		fmt.Fprintf(&b, `name: sessiond-store
arch: %s
version: %s
version_schema: semver
maintainer: %q
description: %q
homepage: %q
license: MIT
section: utils
mtime: %s
conflicts: [sessiond]
rpm:
  buildhost: localhost
contents:
`, p.arch, r.version, r.maintainer, description, r.repository, r.at.Format(time.RFC3339))
		add := func(from, to string, mode int) {
			fmt.Fprintf(&b, "  - {src: %q, dst: %q, file_info: {mode: 0%o, mtime: %s}}\n", from, to, mode,
				r.at.Format(time.RFC3339))
		}
		add(r.program(p), "/usr/bin/sessiond", 0o755)
		add(filepath.Join(r.built, "sessiond-store.service"), "/usr/lib/systemd/user/sessiond-store.service", 0o644)
		add("LICENSE", "/usr/share/doc/sessiond-store/copyright", 0o644)
		documents, err := r.documents()
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(mapKeys(documents)) {
			from := documents[name]
			switch base := filepath.Base(name); {
			case strings.HasPrefix(name, "man/"):
				packed := filepath.Join(r.built, "packed", base+".gz")
				if err := writeGz(packed, from); err != nil {
					return err
				}
				add(packed, "/usr/share/man/man1/"+base+".gz", 0o644)
			case base == "sessiond.bash":
				add(from, "/usr/share/bash-completion/completions/sessiond", 0o644)
			case base == "sessiond.zsh":
				add(from, "/usr/share/zsh/vendor-completions/_sessiond", 0o644)
			case base == "sessiond.fish":
				add(from, "/usr/share/fish/vendor_completions.d/sessiond.fish", 0o644)
			}
		}
		if err := os.WriteFile(config, []byte(b.String()), 0o644); err != nil {
			return err
		}
		for _, packager := range []string{"deb", "rpm"} {
			name := fmt.Sprintf("sessiond-store_%s_%s.%s", r.version, p.arch, packager)
			if err := r.tool("nfpm", "package", "--config", config, "--packager", packager, "--target",
				filepath.Join(r.out, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeFormula writes a Homebrew formula of the archives.
func (r *release) writeFormula() error {
	source := func(system, arch string) (string, error) {
		name := r.archiveName(platform{os: system, arch: arch})
		sum, err := sha256Of(filepath.Join(r.out, name))
		return fmt.Sprintf("      url %q\n      sha256 %q\n", r.address(name), sum), err
	}
	mac, err1 := source("darwin", "arm64")
	intel, err2 := source("linux", "amd64")
	arm, err3 := source("linux", "arm64")
	if err := cmp.Or(err1, err2, err3); err != nil {
		return err
	}
	text := fmt.Sprintf(`class Sessiond < Formula
  desc %q
  homepage %q
  version %q
  license "MIT"

  on_macos do
    depends_on arch: :arm64
    on_arm do
%s    end
  end

  on_linux do
    on_intel do
%s    end
    on_arm do
%s    end
  end

  def install
    bin.install "sessiond"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/sessiond.bash" => "sessiond"
    zsh_completion.install "completions/sessiond.zsh" => "_sessiond"
    fish_completion.install "completions/sessiond.fish"
  end

  service do
    run [opt_bin/"sessiond", "serve"]
    keep_alive successful_exit: false
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/sessiond version")
  end
end
`, "Session store of every AI agent on a host", r.repository, r.version, mac, intel, arm)
	return os.WriteFile(filepath.Join(r.out, "sessiond.rb"), []byte(text), 0o644)
}

// writeScoop writes a Scoop manifest of the archive for Windows.
func (r *release) writeScoop() error {
	name := r.archiveName(platform{os: "windows", arch: "amd64"})
	sum, err := sha256Of(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	return writeJSON(filepath.Join(r.out, "sessiond.json"), map[string]any{
		"version": r.version, "description": description, "homepage": r.repository, "license": "MIT", "bin": "sessiond.exe",
		"architecture": map[string]any{"64bit": map[string]any{"url": r.address(name), "hash": sum}},
	})
}

// writeChecksums lists the SHA-256 of each file of the release, as sha256sum reads it.
func (r *release) writeChecksums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() == "checksums.txt" {
			continue
		}
		sum, err := sha256Of(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "checksums.txt"), []byte(b.String()), 0o644)
}
