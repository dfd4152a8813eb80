package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// Somebody starts the demo, opens its link, and looks at what it recommends. A page moves
// while they watch. With -screenshots, this takes screenshots of these pages.
func TestWebDemo(t *testing.T) {
	testenv.From(t, testenv.Full, "takes half a minute")
	testenv.Need(t, "chromium", "git")
	t.Parallel()
	d := startDemo(t)
	v := newBrowser(t).visitor(t, d.url)
	d.visit(v, "link", d.link)
	v.sees("signs you in to the org demo")
	v.press("Sign in")
	v.sees("parcels", "parcels-web", "parcels-deploy")
	d.shoot(v, "org")

	v.open("/orgs/demo/repos/parcels")
	v.sees("Tracking mails: name the carrier") // the live part, which begins when the link is used
	d.visit(v, "repo", "/orgs/demo/repos/parcels")
	for i, look := range []struct {
		name string
		want []string
	}{
		{"violations", []string{"open", "closed by an exception"}},
		{"squash", []string{"Deployed", "carried"}},
		{"radar", []string{"HIGH", "MEDIUM", "LOW"}},
		{"waiting", []string{"ATTESTED", "review"}},
		{"webhooks", []string{"/chat", "/pager", "failing"}},
		{"log", []string{"ledgerd-demo.localhost/v1/orgs/demo/log", "checkpoint"}},
	} {
		d.visit(v, look.name, d.looks[i])
		for _, text := range look.want {
			if !strings.Contains(strings.ToLower(v.read()), strings.ToLower(text)) {
				t.Errorf("%s does not show %q: %s", v.path(), text, v.read())
			}
		}
	}
	d.visit(v, "attestations", "/orgs/demo/repos/parcels/attestations")
	v.follow(".what > a", "")
	newest, notChecked := v.path(), func(step string) bool { return strings.HasSuffix(step, "?") }
	failed, summary := v.runCheck()
	waitFor(t, "a checkpoint that covers the newest attestation", time.Minute, func() bool {
		if !slices.ContainsFunc(failed, notChecked) {
			return true
		}
		v.open(newest)
		failed, summary = v.runCheck()
		return false
	})
	if len(failed) > 0 {
		t.Errorf("the corruption check fails: %q, %s", failed, summary)
	}
	d.shoot(v, "attestation")
	d.visit(v, "failed", "/orgs/demo/repos/parcels/attestations?status=fail")
	v.follow("a.of", "")
	d.shoot(v, "failed-commit")
	v.checkConsole(t)

	other := newBrowser(t).visitor(t, d.url)
	other.open(d.link)
	other.sees("used or expired")
}

// A demo is a running 'ledgerd demo'.
type demo struct {
	t     *testing.T
	url   string
	link  string   // path of the link that signs in
	looks []string // paths of what to look at
}

// startDemo starts the demo outside a git work tree, and reads what it prints.
func startDemo(t *testing.T) *demo {
	t.Helper()
	var out testenv.Buffer
	command := exec.Command("ledgerd", "demo")
	command.Dir, command.Stdout, command.Stderr = t.TempDir(), &out, &out
	must.OK(t, command.Start())
	t.Cleanup(func() {
		must.OK(t, command.Process.Signal(syscall.SIGTERM))
		if err := command.Wait(); err != nil {
			t.Errorf("demo: %v\n%s", err, out.String())
		}
	})

	waitFor(t, "the demo", time.Minute, func() bool { return strings.Contains(out.String(), "Live: ") })
	links := regexp.MustCompile(`(http://[^/\s]+)(/\S+)`).FindAllStringSubmatch(out.String(), -1)
	if len(links) != 7 {
		t.Fatalf("the demo prints %d links:\n%s", len(links), out.String())
	}
	d := &demo{t: t, url: links[0][1], link: links[0][2]}
	for _, look := range links[1:] {
		d.looks = append(d.looks, look[2])
	}
	return d
}

func (d *demo) visit(v *visitor, name, path string) {
	d.t.Helper()
	v.window(wide, "light")
	v.open(path)
	d.shoot(v, name)
}

// shoot takes screenshots of the visitor's page if -screenshots is set.
func (d *demo) shoot(v *visitor, name string) {
	d.t.Helper()
	if *screenshots == "" {
		return
	}
	dir := *screenshots
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("..", dir)
	}
	must.OK(d.t, os.MkdirAll(dir, 0o755))
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{wide, narrow} {
			v.window(width, scheme)
			file := filepath.Join(dir, fmt.Sprintf("demo-%s-%d-%s.png", name, width, scheme))
			must.OK(d.t, os.WriteFile(file, v.screenshot(width), 0o644))
		}
	}
	v.window(wide, "light")
}
