//go:build linux

package e2e_test

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/e2e/internal/daemon"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

var dist = flag.String("dist", "", "`folder` with the files of a release, for TestRelease")

// released returns the only file of the release whose name matches a pattern, in which ARCH is
// the architecture of this machine.
func released(t *testing.T, pattern string) string {
	t.Helper()
	if *dist == "" {
		t.Skip("-dist is not set")
	}
	matches := must.Get(filepath.Glob(filepath.Join(*dist, strings.ReplaceAll(pattern, "ARCH", runtime.GOARCH))))(t)
	if len(matches) != 1 {
		t.Fatalf("%s matches %q, want one file", pattern, matches)
	}
	return matches[0]
}

// output runs a program and returns what it prints.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// The checksums are those of all files that are published.
func TestReleaseChecksums(t *testing.T) {
	text := must.Read(t, released(t, "checksums.txt"))
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[name] = sum
	}

	for _, kind := range []string{"linux_*.tar.gz", "*.deb", "*.rpm", "*_container.tar", "linux_*.cdx.json"} {
		files := must.Get(filepath.Glob(filepath.Join(*dist, "ledgerd_*"+kind)))(t)
		if len(files) != 2 {
			t.Errorf("%s are %q, want those of amd64 and arm64", kind, files)
		}
		for _, file := range files {
			content := must.Read(t, file)
			sum := sha256.Sum256(content)
			if got := hex.EncodeToString(sum[:]); sums[filepath.Base(file)] != got {
				t.Errorf("%s has the checksum %s, checksums.txt has %q", file, got, sums[filepath.Base(file)])
			}
		}
	}
}

// An archive has the binary with its documents, man pages and completions.
func TestReleaseArchive(t *testing.T) {
	folder := t.TempDir()
	output(t, "tar", "-xzf", released(t, "ledgerd_*_linux_ARCH.tar.gz"), "-C", folder)
	for _, name := range []string{"README.md", "LICENSE", "CHANGELOG.md", "config.example.yaml", "man/ledgerd.1.gz",
		"man/ledgerd-serve.1.gz", "completions/ledgerd.bash", "completions/ledgerd.zsh", "completions/ledgerd.fish",
		"completions/ledgerd.ps1", "systemd/ledgerd.service"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, want a file with content", name, err)
		}
	}
	if out := output(t, filepath.Join(folder, "ledgerd"), "version"); !strings.HasPrefix(out, "ledgerd ") {
		t.Errorf("the binary prints %q", out)
	}

	page := must.Get(os.Open(filepath.Join(folder, "man/ledgerd-serve.1.gz")))(t)
	defer page.Close()
	text := must.Get(gzip.NewReader(page))(t)
	content := must.Get(io.ReadAll(text))(t)
	if !strings.Contains(string(content), "--shutdown-delay") {
		t.Error("the man page of serve does not have its flags")
	}
}

// The bill of materials names the modules in the binary.
func TestReleaseSBOM(t *testing.T) {
	text := must.Read(t, released(t, "ledgerd_*_linux_ARCH.cdx.json"))
	type component struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	var bill struct {
		Format     string      `json:"bomFormat"`
		Components []component `json:"components"`
	}
	must.OK(t, json.Unmarshal(text, &bill))
	for _, module := range []string{"modernc.org/sqlite", "github.com/spf13/cobra", "std"} {
		isModule := func(c component) bool { return c.Name == module && c.Version != "" }
		if !slices.ContainsFunc(bill.Components, isModule) {
			t.Errorf("%s does not list %s", bill.Format, module)
		}
	}
}

// The deb is installed into a folder: its binary serves there with its configuration. A second
// installation keeps the configuration and the data, and so does the removal.
func TestReleaseDeb(t *testing.T) {
	testenv.Need(t, "dpkg", "systemd-sysusers", "systemd-analyze")
	deb := released(t, "ledgerd_*_linux_ARCH.deb")
	if os.Getuid() != 0 {
		t.Skip("only root can install a deb, even into a folder")
	}
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	dpkg := func(args ...string) {
		t.Helper()
		output(t, "dpkg", append([]string{"--root=" + root, "--force-script-chrootless", "--force-confold"}, args...)...)
	}
	for _, folder := range []string{"var/lib/dpkg/updates", "var/lib/dpkg/info", "var/lib/ledgerd"} {
		must.OK(t, os.MkdirAll(at(folder), 0o755))
	}
	must.OK(t, os.WriteFile(at("var/lib/dpkg/status"), nil, 0o644))

	dpkg("--install", deb)
	users := must.Read(t, at("etc/passwd"))
	groups := must.Read(t, at("etc/group"))
	if !strings.Contains(string(users), "ledgerd:") || !strings.Contains(string(groups), "ledgerd:") {
		t.Errorf("there is no user ledgerd: %s%s", users, groups)
	}
	info := must.Get(os.Stat(at("etc/ledgerd/config.yaml")))(t)
	group := info.Sys().(*syscall.Stat_t).Gid
	if info.Mode().Perm() != 0o640 || group == 0 {
		t.Errorf("the configuration has mode %v and the group %d, want 0640 and that of ledgerd", info.Mode(), group)
	}
	output(t, "systemd-analyze", "security", "--offline=true", "--threshold=25", "--no-pager",
		at("usr/lib/systemd/system/ledgerd.service"))
	output(t, "bash", "-n", at("usr/share/bash-completion/completions/ledgerd"))

	o := newEmptyLedger(t)
	serve := exec.Command(at("usr/bin/ledgerd"), "serve", "--config", at("etc/ledgerd/config.yaml"),
		"--listen", o.address, "--database", at("var/lib/ledgerd/ledger.db"))
	must.OK(t, daemon.Start(serve, &o.log))
	defer serve.Process.Kill()
	output(t, at("usr/bin/ledgerd"), "ready", "--server", o.url)
	must.OK(t, serve.Process.Signal(syscall.SIGTERM))
	must.OK(t, serve.Wait())

	changed := []byte("listen: 127.0.0.1:9999\n")
	must.OK(t, os.WriteFile(at("etc/ledgerd/config.yaml"), changed, 0o640))
	for _, args := range [][]string{{"--install", deb}, {"--remove", "ledgerd"}} {
		dpkg(args...)
		if got, err := os.ReadFile(at("etc/ledgerd/config.yaml")); err != nil || string(got) != string(changed) {
			t.Errorf("after %s the configuration is %q, %v", args[0], got, err)
		}
		if _, err := os.Stat(at("var/lib/ledgerd/ledger.db")); err != nil {
			t.Errorf("after %s: %v", args[0], err)
		}
	}
	if _, err := os.Stat(at("usr/bin/ledgerd")); err == nil {
		t.Error("the binary is left after --remove")
	}
}

// The rpm has the same files as the deb, and its scripts are valid.
func TestReleaseRPM(t *testing.T) {
	deb, rpm := released(t, "ledgerd_*_linux_ARCH.deb"), released(t, "ledgerd_*_linux_ARCH.rpm")
	testenv.Need(t, "rpm", "dpkg-deb")
	var inDeb []string
	for line := range strings.Lines(output(t, "dpkg-deb", "--contents", deb)) {
		if fields := strings.Fields(line); !strings.HasSuffix(fields[5], "/") {
			inDeb = append(inDeb, path.Clean("/"+fields[5]))
		}
	}
	inRPM := strings.Fields(output(t, "rpm", "--query", "--list", "--package", rpm))
	slices.Sort(inDeb)
	slices.Sort(inRPM)
	if !slices.Equal(inDeb, inRPM) {
		t.Errorf("the rpm has %q\nthe deb has %q", inRPM, inDeb)
	}
	if config := output(t, "rpm", "--query", "--configfiles", "--package", rpm); config != "/etc/ledgerd/config.yaml\n" {
		t.Errorf("the configuration files are %q", config)
	}
}

// An image is what 'docker load' reads of an archive.
type image struct {
	Config struct {
		User, WorkingDir      string
		Env, Entrypoint, Cmd  []string
		ExposedPorts, Volumes map[string]struct{}
		Healthcheck           struct{ Test []string }
	} `json:"config"`
	Architecture string `json:"architecture"`
}

// The container has the binary and an empty folder for data alone, in which the binary serves as
// a user without rights, and reports that it is ready.
func TestReleaseContainer(t *testing.T) {
	archive, root := released(t, "ledgerd_*_linux_ARCH_container.tar"), t.TempDir()
	files := readTar(t, archive)
	var manifest []struct {
		Config string
		Layers []string
	}
	must.OK(t, json.Unmarshal(files["manifest.json"], &manifest))
	var i image
	must.OK(t, json.Unmarshal(files[manifest[0].Config], &i, json.MatchCaseInsensitiveNames(true)))
	if i.Config.User != "65532:65532" || i.Architecture != runtime.GOARCH ||
		!slices.Equal(i.Config.Entrypoint, []string{"/ledgerd"}) || !slices.Equal(i.Config.Cmd, []string{"serve"}) ||
		!slices.Equal(i.Config.Healthcheck.Test, []string{"CMD", "/ledgerd", "ready"}) {
		t.Errorf("the image is %+v", i)
	}

	must.OK(t, os.Chmod(root, 0o755))
	for _, layer := range manifest[0].Layers {
		must.OK(t, os.WriteFile(filepath.Join(root, "layer.tar"), files[layer], 0o600))
		output(t, "tar", "-xpf", filepath.Join(root, "layer.tar"), "-C", root)
		must.OK(t, os.Remove(filepath.Join(root, "layer.tar")))
	}
	var names []string
	must.OK(t, filepath.WalkDir(root, func(name string, _ os.DirEntry, err error) error {
		names = append(names, strings.TrimPrefix(name, root))
		return err
	}))
	if !slices.Equal(names, []string{"", "/data", "/ledgerd"}) {
		t.Fatalf("the container has %q, want the folder data and the binary", names)
	}

	if os.Getuid() != 0 {
		t.Skip("only root can change the root folder of a program")
	}
	address := freeAddress(t)
	inside := func(args ...string) *exec.Cmd {
		command := exec.Command("/ledgerd", args...)
		command.Env = append(i.Config.Env, "LEDGERD_LISTEN="+address)
		command.Dir = i.Config.WorkingDir
		command.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		return command
	}
	var log testenv.Buffer
	serve := inside(i.Config.Cmd...)
	serve.Stderr = &log
	must.OK(t, serve.Start())
	defer serve.Process.Kill()
	waitFor(t, "the health check", 20*time.Second, func() bool {
		return inside(i.Config.Healthcheck.Test[2:]...).Run() == nil
	})
	must.OK(t, serve.Process.Signal(syscall.SIGTERM))
	if err := serve.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log.String())
	}
	if _, err := os.Stat(filepath.Join(root, "data/ledger.db")); err != nil {
		t.Error(err)
	}
}

// readTar returns the files in an archive, by name. Links have the content of their targets.
func readTar(t *testing.T, archive string) map[string][]byte {
	t.Helper()
	file := must.Get(os.Open(archive))(t)
	defer file.Close()

	files := map[string][]byte{}
	links := map[string]string{}
	for r := tar.NewReader(file); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must.OK(t, err)
		if h.Typeflag == tar.TypeSymlink {
			links[h.Name] = path.Join(path.Dir(h.Name), h.Linkname)
			continue
		}
		files[h.Name], err = io.ReadAll(r)
		must.OK(t, err)
	}

	for name, target := range links {
		files[name] = files[target]
	}
	return files
}
