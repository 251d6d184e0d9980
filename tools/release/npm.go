package main

import (
	_ "embed"
	"path/filepath"
	"strings"
)

// launcher is the program of the npm package: it runs the one of the platform's package.
//
//go:embed launcher.js
var launcher string

// writeNPM writes a package for each platform that carries its program, and the package sessiond, which has them as
// optional dependencies: npm installs the one that fits, and no script downloads anything.
func (r *release) writeNPM() error {
	common := func(more map[string]any) map[string]any {
		manifest := map[string]any{
			"version": r.version, "description": description, "homepage": r.repository, "license": "MIT",
			"repository": map[string]any{"type": "git", "url": "git+" + r.repository + ".git"},
		}
		for key, value := range more {
			manifest[key] = value
		}
		return manifest
	}
	write := func(name string, manifest map[string]any, files ...file) error {
		text, err := jsonText(manifest)
		if err != nil {
			return err
		}
		files = append(files, file{name: "package.json", text: text, mode: 0o644},
			file{name: "LICENSE", from: "LICENSE", mode: 0o644})
		archive := "npm_" + strings.NewReplacer("@", "", "/", "-").Replace(name) + "_" + r.version + ".tgz"
		return writeTree(filepath.Join(r.out, "npm", filepath.FromSlash(name)), filepath.Join(r.out, archive), files, r.at)
	}
	optional := map[string]string{}
	for _, p := range platforms {
		name := r.scope + "/" + p.node
		optional[name] = r.version
		system, cpu, _ := strings.Cut(p.node, "-")
		err := write(name, common(map[string]any{
			"name": name, "os": []string{system}, "cpu": []string{cpu}, "preferUnplugged": true,
		}), file{name: "bin/" + p.programName(), from: r.program(p), mode: 0o755})
		if err != nil {
			return err
		}
	}
	return write("sessiond", common(map[string]any{
		"name": "sessiond", "bin": map[string]string{"sessiond": "bin/sessiond.js"}, "optionalDependencies": optional,
		"engines": map[string]string{"node": ">=18"},
	}), file{name: "bin/sessiond.js", text: strings.ReplaceAll(launcher, "@SCOPE", r.scope), mode: 0o755},
		file{name: "README.md", from: "README.md", mode: 0o644})
}
