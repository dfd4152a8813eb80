//go:build unix

package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// A follower is a client of the live stream. It should receive every event of
// the org.
type follower interface {
	ids() []string // of the events received so far
}

// The browser, the npm package and the examples in docs receive every event
// once and in order, although the server is killed and stopped while writers
// continue.
func TestClientsMissNothingThroughRestarts(t *testing.T) {
	testenv.Need(t, "bash", "chromium", "curl", "go", "nginx", "node", "python3")
	o := newOrg(t)
	o.start()
	followers := o.followers()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writers sync.WaitGroup
	for range 2 {
		writers.Go(func() { o.write(ctx, 30*time.Millisecond) })
	}

	for i, restart := range []struct {
		signal os.Signal
		down   time.Duration
	}{
		{syscall.SIGKILL, 0},
		{syscall.SIGTERM, 0},
		{syscall.SIGTERM, 4 * time.Second}, // longer than the retry delay, so connections are refused
		{syscall.SIGKILL, 200 * time.Millisecond},
	} {
		o.waitForAll(followers) // so that the restart disconnects all of them
		began := time.Now()
		o.signal(restart.signal)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("restart %d: the server took %s to stop", i, took)
		}
		time.Sleep(restart.down)
		o.start()
	}
	o.waitForAll(followers)
	stop()
	writers.Wait()

	want := o.history()
	t.Logf("%d events", len(want))
	for name, f := range followers {
		t.Run(name, func(t *testing.T) {
			waitFor(t, "all events", 10*time.Second, func() bool { return len(f.ids()) >= len(want) })
			if got := f.ids(); !slices.Equal(got, want) {
				t.Errorf("received %d events, the history has %d; they first differ at %d", len(got), len(want),
					firstDifference(got, want))
			}
		})
	}
}

// followers starts every kind of client. The plain EventSource is disconnected
// before its first event, and still resumes at the right position.
func (o *org) followers() map[string]follower {
	o.t.Helper()
	examples := readExamples(o.t, "stream.md")
	browser := newBrowser(o.t)
	plain := browser.open(o.plainPage(), "ids")
	waitFor(o.t, "the EventSource to connect", 10*time.Second, plain.connected)
	time.Sleep(200 * time.Millisecond) // for the first lines, which follow the header
	o.kill()
	o.start()
	_, err := o.attest()
	must.OK(o.t, err)
	return map[string]follower{
		"EventSource": plain,
		"docs/stream: page": browser.open(
			o.nginxPage(examples), "[...document.querySelectorAll('li')].map(line => line.textContent.split(' ')[0])"),
		"docs/stream: sh":   o.program("bash", "-c", examples.pick("sh", "while :")),
		"docs/stream: node": o.node(examples.pick("js", "eventsource")),
		"docs/stream: go":   o.goProgram(examples.pick("go", "Follow")),
		"docs/stream: py":   o.program("python3", "-c", examples.pick("python", "follow")),
	}
}

// The shortest example in docs prints events.
func TestDocumentedCurl(t *testing.T) {
	testenv.Need(t, "bash", "curl")
	t.Parallel()
	o := newOrg(t)
	o.start()
	curl := o.program("bash", "-c", readExamples(t, "stream.md").pick("sh", "curl -N"))
	waitFor(t, "the first line", 10*time.Second, func() bool { return slices.Contains(curl.ids(), "retry:") })
	_, err := o.attest()
	must.OK(t, err)
	waitFor(t, "an event", time.Second, func() bool { return slices.Contains(curl.ids(), "data:") })
}

// firstDifference returns the first index at which a and b differ.
func firstDifference(a, b []string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return i
}

// waitForAll records an attestation and waits until every follower has received
// its event.
func (o *org) waitForAll(followers map[string]follower) {
	o.t.Helper()
	record, err := o.attest()
	must.OK(o.t, err)
	for name, f := range followers {
		waitFor(o.t, name, 20*time.Second, func() bool { return slices.Contains(f.ids(), record.Event) })
	}
}

// A process is a running program that prints one line per event, starting with
// the event's ID.
type process struct {
	ended chan struct{} // closed at the end of its output

	mu  sync.Mutex
	got []string
}

func (p *process) ids() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

// program starts a program with LEDGERD_URL and LEDGERD_TOKEN set.
func (o *org) program(name string, args ...string) *process {
	o.t.Helper()
	return startProgram(o.t, []string{"LEDGERD_URL=" + o.url, "LEDGERD_TOKEN=" + o.token}, name, args...)
}

// startProgram starts a program with additional environment variables.
func startProgram(t *testing.T, variables []string, name string, args ...string) *process {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), variables...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that its children can be killed too
	stdout, err := command.StdoutPipe()
	must.OK(t, err)
	must.OK(t, command.Start())
	t.Cleanup(func() {
		syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		command.Wait()
	})

	p := &process{ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			id, _, _ := strings.Cut(lines.Text(), " ")
			p.mu.Lock()
			p.got = append(p.got, id)
			p.mu.Unlock()
		}
	}()
	return p
}

// node runs code as an ES module in Node.js. It may import eventsource.
func (o *org) node(code string) *process {
	o.t.Helper()
	file := filepath.Join(nodeDir(o.t, "eventsource"), "follow.mjs")
	must.OK(o.t, os.WriteFile(file, []byte(code), 0o600))
	return o.program("node", file)
}

// nodeDir creates a folder whose modules may import the packages in
// testdata/node, of which the test needs one.
func nodeDir(t *testing.T, module string) string {
	t.Helper()
	modules := must.Get(filepath.Abs("testdata/node/node_modules"))(t)
	if _, err := os.Stat(filepath.Join(modules, module)); err != nil {
		testenv.Missing(t, "the npm package "+module)
	}
	dir := t.TempDir()
	must.OK(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	return dir
}

// goProgram builds and starts a Go program, which may import packages of this
// module.
func (o *org) goProgram(code string) *process {
	o.t.Helper()
	return o.program(buildGo(o.t, code))
}

// buildGo builds a Go program from the text of its files and returns its path.
func buildGo(t *testing.T, files ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	args := []string{"build", "-o", program}
	for i, code := range files {
		file := fmt.Sprintf("%s%d.go", program, i)
		must.OK(t, os.WriteFile(file, []byte(code), 0o600))
		args = append(args, file)
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// A browser is the headless Chromium of all tests. Each visitor has cookies of its own.
type browser struct {
	t   *testing.T
	ctx context.Context
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	testenv.Need(t, "chromium")
	ctx, err := chromium.start()
	must.OK(t, err)
	return &browser{t, ctx}
}

// chromium starts once, which takes as long as a test, and is stopped after all tests.
var chromium = newProgram()

// A program is a browser that starts when the first test needs it.
type program struct {
	start func() (context.Context, error)
	stop  func()
}

func newProgram() *program {
	p := &program{stop: func() {}}
	p.start = sync.OnceValues(func() (context.Context, error) {
		options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
			chromedp.ExecPath("chromium"),
			chromedp.NoSandbox, // the sandbox does not work as root
			chromedp.DisableGPU,
			chromedp.Flag("disable-quic", true),
			chromedp.Flag("disable-component-update", true),
			chromedp.Flag("ignore-certificate-errors", true), // of the provider that people sign in with
		)
		ctx, _ := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, _ = chromedp.NewContext(ctx)
		p.stop = func() {
			_ = chromedp.Cancel(ctx) // the results of the tests do not depend on it
			chromedp.FromContext(ctx).Allocator.Wait()
		}
		return ctx, chromedp.Do(ctx)
	})
	return p
}

// A tab shows a page in a browser.
type tab struct {
	t          *testing.T
	ctx        context.Context
	expression string // JavaScript that evaluates to the received IDs
}

// open opens a URL in a new tab.
func (b *browser) open(url, expression string) *tab {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	b.t.Cleanup(cancel)
	must.OK(b.t, chromedp.Do(ctx, chromedp.Navigate(url)))
	return &tab{b.t, ctx, expression}
}

func (p *tab) ids() []string {
	p.t.Helper()
	ids, err := chromedp.Run(p.ctx, chromedp.Evaluate[[]string](p.expression))
	must.OK(p.t, err)
	return ids
}

// connected reports whether the page's EventSource is open.
func (p *tab) connected() bool {
	p.t.Helper()
	state, err := chromedp.Run(p.ctx, chromedp.Evaluate[int]("source.readyState"))
	must.OK(p.t, err)
	return state == 1 // EventSource.OPEN
}

// plainPage serves a page with a bare EventSource, behind a proxy that adds the
// token, and returns the page's URL. If the server is down, the proxy aborts the
// connection: a 502 response would make the EventSource give up.
func (o *org) plainPage() string {
	o.t.Helper()
	target := must.Get(url.Parse(o.url))(o.t)
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("Authorization", "Bearer "+o.token)
		},
		ErrorLog:     log.New(io.Discard, "", 0), // errors are expected
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}

	mux := http.NewServeMux()
	mux.Handle("/v1/", proxy)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<!doctype html><script>
			const ids = []
			const source = new EventSource("/v1/orgs/acme/events")
			for (const type of ["attestation", "state", "policy"])
				source.addEventListener(type, event => ids.push(event.lastEventId))
		</script>`)
	})

	web := httptest.NewServer(mux)
	o.t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL
}

// nginxPage serves the page from docs behind the nginx configuration from docs,
// and returns the page's URL.
func (o *org) nginxPage(e examples) string {
	o.t.Helper()
	dir := o.t.TempDir()
	must.OK(o.t, os.WriteFile(filepath.Join(dir, "index.html"), []byte(e.pick("html", "EventSource")), 0o644))
	location := strings.NewReplacer("http://127.0.0.1:8080/", o.url+"/", "ldg_…", o.token).Replace(
		e.pick("nginx", "proxy_pass"))
	return "http://" + o.nginx(location+"\nlocation / { root "+dir+"; }")
}
