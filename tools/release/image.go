package main

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// certificates are the authorities that the image trusts, those of the host that builds it: a summarizer may ask a
// provider over TLS.
const certificates = "/etc/ssl/certs/ca-certificates.crt"

// writeImage writes an image of the program and nothing else, for both architectures of Linux, as an archive of an OCI
// layout. crane puts it together in a registry of this process's own on loopback.
func (r *release) writeImage() error {
	registry, stop, err := r.startRegistry()
	if err != nil {
		return err
	}
	defer stop()
	index := []string{"index", "append", "--tag", registry + "/sessiond:all"}
	for _, p := range platforms {
		if p.os != "linux" {
			continue
		}
		const user = 65532
		layer := filepath.Join(r.built, "layer_"+p.arch+".tar")
		files := []file{
			{name: "sessiond", from: r.program(p), mode: 0o755},
			{name: "data/", mode: 0o700, uid: user},
			{name: "tmp/", mode: 0o700, uid: user},
			{name: "etc/", mode: 0o755},
			{name: "etc/ssl/", mode: 0o755},
			{name: "etc/ssl/certs/", mode: 0o755},
			{name: "etc/ssl/certs/ca-certificates.crt", from: certificates, mode: 0o644},
		}
		if err := create(layer, func(out io.Writer) error { return writeTar(out, files, r.at) }); err != nil {
			return err
		}
		tag := registry + "/sessiond:" + p.arch
		if err := r.tool("crane", "append", "--oci-empty-base", "--new_layer", layer, "--new_tag", tag); err != nil {
			return err
		}
		if err := r.tool("crane", "mutate", tag, "--tag", tag, "--set-platform", "linux/"+p.arch,
			"--user", fmt.Sprintf("%d:%d", user, user), "--entrypoint", "/sessiond", "--cmd", "serve", "--exposed-ports", "7433",
			"--env", "HOME=/data", "--env", "SESSIOND_DB=/data/sessions.db", "--env", "SESSIOND_SOCKET=off",
			"--env", "SESSIOND_LISTEN=0.0.0.0:7433", "--label", "org.opencontainers.image.version="+r.version,
			"--label", "org.opencontainers.image.source="+r.repository); err != nil {
			return err
		}
		index = append(index, "--manifest", tag)
	}
	if err := r.tool("crane", index...); err != nil {
		return err
	}
	layout := filepath.Join(r.built, "image")
	if err := os.RemoveAll(layout); err != nil {
		return err
	}
	if err := r.tool("crane", "pull", "--format", "oci", registry+"/sessiond:all", layout); err != nil {
		return err
	}
	var files []file
	err = filepath.WalkDir(layout, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			name, _ := filepath.Rel(layout, path) // it is below
			files = append(files, file{name: filepath.ToSlash(name), from: path, mode: 0o644})
		}
		return err
	})
	if err != nil {
		return err
	}
	return create(filepath.Join(r.out, "sessiond-image_"+r.version+".tar"), func(out io.Writer) error {
		return writeTar(out, files, r.at)
	})
}

// startRegistry starts a registry on loopback that forgets everything when it stops.
func (r *release) startRegistry() (address string, stop func(), err error) {
	cmd := exec.Command(filepath.Join(r.tools, "crane"), "registry", "serve", "--address", "127.0.0.1:0")
	said, err := cmd.StderrPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill() // it has nothing to keep
		_ = cmd.Wait()
	}
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if _, port, found := strings.Cut(lines.Text(), "serving on port "); found {
			go io.Copy(io.Discard, said) //nolint:errcheck // ends with the process
			return "127.0.0.1:" + port, stop, nil
		}
	}
	stop()
	return "", nil, fmt.Errorf("crane's registry does not start")
}
