// Container writes the container image with a binary, as an archive that 'docker load' reads:
//
//	go run ./deploy/container BINARY ARCHITECTURE VERSION UNIX_TIME ARCHIVE
//
// The image has the binary and an empty folder for data. Equal arguments give equal bytes.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// user is the user and the group of the server, who have no name and no rights.
const user = 65532

func main() {
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: go run ./deploy/container BINARY ARCHITECTURE VERSION UNIX_TIME ARCHIVE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]); err != nil {
		fmt.Fprintln(os.Stderr, "container:", err)
		os.Exit(1)
	}
}

// write writes the archive with the image.
func write(binary, architecture, version, unixTime, archive string) error {
	seconds, err := strconv.ParseInt(unixTime, 10, 64)
	if err != nil {
		return err
	}
	tag, err := name.NewTag("ghcr.io/ledgerd/ledgerd:" + version + "-" + architecture)
	if err != nil {
		return err
	}
	created := v1.Time{Time: time.Unix(seconds, 0).UTC()}
	layer, err := newLayer(binary, created.Time)
	if err != nil {
		return fmt.Errorf("write the layer: %w", err)
	}

	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS:           "linux",
		Architecture: architecture,
		Created:      created,
		RootFS:       v1.RootFS{Type: "layers"},
		Config:       configure(version),
	})
	if err != nil {
		return err
	}
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer,
		History: v1.History{Created: created, CreatedBy: "deploy/container"}})
	if err != nil {
		return err
	}
	return tarball.WriteToFile(archive, tag, image)
}

// newLayer returns the layer with the files of the image.
func newLayer(binary string, created time.Time) (v1.Layer, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	folder := &tar.Header{Name: "data/", Typeflag: tar.TypeDir, Mode: 0o700, Uid: user, Gid: user, ModTime: created}
	program := &tar.Header{Name: "ledgerd", Mode: 0o755, Size: int64(len(content)), ModTime: created}

	var files bytes.Buffer
	w := tar.NewWriter(&files)
	err = errors.Join(w.WriteHeader(folder), w.WriteHeader(program))
	if err != nil {
		return nil, err
	}
	_, err = w.Write(content)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files.Bytes())), nil
	})
}

// configure returns how the image is run.
func configure(version string) v1.Config {
	return v1.Config{
		User:         fmt.Sprintf("%[1]d:%[1]d", user),
		WorkingDir:   "/data",
		Volumes:      map[string]struct{}{"/data": {}},
		Env:          []string{"LEDGERD_LISTEN=:8080", "LEDGERD_DATABASE=/data/ledger.db"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Entrypoint:   []string{"/ledgerd"},
		Cmd:          []string{"serve"},
		Healthcheck: &v1.HealthConfig{
			Test:        []string{"CMD", "/ledgerd", "ready"},
			Interval:    10 * time.Second,
			Timeout:     5 * time.Second,
			StartPeriod: time.Hour, // a new release may migrate a large database first
		},
		Labels: map[string]string{
			"org.opencontainers.image.source":   "https://github.com/ledgerd/ledgerd",
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.version":  version,
		},
	}
}
