package cmd

import (
	"compress/gzip"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

func TestMain(m *testing.M) {
	// Parallel tests mostly wait for processes. The flag -parallel takes precedence.
	_ = flag.Set("test.parallel", "4")
	// Tests in this process are in no CI job. Scripts have their own environment.
	if filepath.Base(os.Args[0]) != "ledgerd" {
		_ = os.Setenv("LEDGERD_CI", "off")
		testenv.UseMemory()
	}
	testscript.Main(m, map[string]func(){
		"ledgerd": func() { os.Exit(Execute()) },
		"worker":  work,
	})
}

// TestScript runs the scripts in testdata/script, each in its own folder, with the real
// binary and the machine's git.
//
// In addition to the commands of testscript there are:
//   - call ledgerd… is like exec, without standard input, in the one process that a script has for such
//     commands (worker_test.go).
//   - exits STATUS COMMAND… runs a command and checks its exit status. The command may begin with call.
//   - await URL [STATUS] waits until a server responds, or responds with a status.
//   - get URL prints the response to a GET request with the token in the file $TOKEN.
//   - grab NAME FILE REGEXP sets a variable to the match of the first group.
//   - unpack FILE DEST decompresses a gzip file.
//   - sql DATABASE FILE runs the statement in a file on a database file, as another program does.
//   - refuse NAME FROM WHAT URL starts a proxy that answers not_found to some requests (see scriptRefuse).
//   - job NAME sets the variables of a recorded CI job, job alone removes them.
//
// The condition [sqlite] is false when TestOnPostgreSQL runs the scripts, and [push] and [full] at lower levels than
// those.
func TestScript(t *testing.T) {
	testenv.Need(t, "git")
	runScripts(t, "testdata/script", setUpScript)
}

// TestScriptsNeedOnlyGit checks that no script of the lowest level starts a program that a machine with Go and
// git may lack.
func TestScriptsNeedOnlyGit(t *testing.T) {
	have := strings.Fields("bash cat chmod cp echo git ledgerd ls mkdir mv rm sed sh sleep stat tar")
	started := regexp.MustCompile(`(?m)^[^#\n>]*\bexec ([\w-]+)`)
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}

	for _, file := range files {
		text := must.Read(t, file)
		script, _, _ := strings.Cut(string(text), "\n-- ")
		if strings.Contains("\n"+script, "\n[!push] skip") {
			continue
		}
		for _, match := range started.FindAllStringSubmatch(script, -1) {
			if !slices.Contains(have, match[1]) {
				t.Errorf("%s starts %s: use what scripts have, or begin it with [!push] skip", file, match[1])
			}
		}
	}
}

// TestOnPostgreSQL runs the tests again, with ledgers in databases of PostgreSQL instead of files.
func TestOnPostgreSQL(t *testing.T) {
	pgtest.RunAgain(t, map[string]string{
		"it uses both engines":       "TestPostgresScript",
		"it does not run the binary": "TestRadarAgainstGit|TestExamine.*|TestDatabaseOnAServer",
		"it is about CI jobs, which use the API as the scripts do, and takes half a minute": "TestCIDocs",
	})
}

// runScripts runs the scripts in a folder. setUp prepares the environment of each.
func runScripts(t *testing.T, dir string, setUp func(*testscript.Env) error) {
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		Setup:               setUp,
		Condition:           scriptCondition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   scriptExits,
			"call":    scriptCall,
			"await":   scriptAwait,
			"get":     scriptGet,
			"grab":    scriptGrab,
			"unpack":  scriptUnpack,
			"sql":     scriptSQL,
			"job":     scriptJob,
			"proxy":   scriptProxy,
			"refuse":  scriptRefuse,
			"idtoken": scriptIDToken,
		},
	})
}

// setUpScript prepares the environment of a script.
func setUpScript(env *testscript.Env) error {
	if err := setVariables(env); err != nil {
		return err
	}
	if err := setLedgers(env); err != nil {
		return err
	}
	return setWorker(env)
}

// setVariables sets variables with three free addresses and with the paths of fixtures.
// It isolates git from the configuration of the machine and user.
func setVariables(env *testscript.Env) error {
	var addresses [3]string
	for i := range addresses {
		var err error
		if addresses[i], err = testenv.FreeAddress(); err != nil {
			return err
		}
	}

	fixtures, err := filepath.Abs(filepath.Join("..", "ledger", "testdata", "cosign"))
	if err != nil {
		return err
	}
	v5, err := filepath.Abs(filepath.Join("..", "store", "testdata", "v5.db.gz"))
	if err != nil {
		return err
	}

	env.Vars = append(env.Vars,
		"HOME="+env.WorkDir,
		"GOGC=off", // most commands end before a collection pays
		"XDG_CONFIG_HOME="+env.WorkDir,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CEILING_DIRECTORIES="+filepath.Dir(env.WorkDir),
		"GIT_AUTHOR_NAME=Ada",
		"GIT_AUTHOR_EMAIL=ada@example.org",
		"GIT_COMMITTER_NAME=Ada",
		"GIT_COMMITTER_EMAIL=ada@example.org",
		"LISTEN="+addresses[0],
		"RECEIVER="+addresses[1],
		"OTHER_RECEIVER="+addresses[2],
		"FIXTURES="+fixtures,
		"V5="+v5,
	)
	return nil
}

// setLedgers sets LEDGER and OTHER_LEDGER to the locations of ledgers that do not exist yet. The
// first is the default of commands. A script on PostgreSQL that creates a file instead fails.
func setLedgers(env *testscript.Env) error {
	ledger, err := pgtest.NewLocation(env.Defer, env.WorkDir, "ledger.db")
	if err != nil {
		return err
	}
	other, err := pgtest.NewLocation(env.Defer, env.WorkDir, "other.db")
	if err != nil {
		return err
	}
	keys, err := pgtest.NewKeys(env.WorkDir)
	if err != nil {
		return err
	}
	env.Vars = append(append(env.Vars, keys...), "LEDGER="+ledger, "OTHER_LEDGER="+other)

	if pgtest.OnPostgreSQL() {
		env.Vars = append(env.Vars, "LEDGERD_DATABASE="+ledger)
		env.Defer(func() {
			if _, err := os.Stat(filepath.Join(env.WorkDir, "ledger.db")); err == nil {
				env.T().Fatal("the script created a file instead of a database")
			}
		})
	}
	return nil
}

func scriptCondition(condition string) (bool, error) {
	switch condition {
	case "sqlite":
		return !pgtest.OnPostgreSQL(), nil
	case "push":
		return testenv.CurrentLevel() >= testenv.Push, nil
	case "full":
		return testenv.CurrentLevel() == testenv.Full, nil
	}
	return false, fmt.Errorf("unknown condition %q", condition)
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARG]...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if args[1] == "call" {
		got = call(ts, args[2:])
	} else if err := ts.Exec(args[1], args[2:]...); err != nil {
		e, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = e.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

func scriptAwait(ts *testscript.TestScript, _ bool, args []string) {
	for range 200 {
		resp, err := http.Get(args[0])
		if err == nil {
			resp.Body.Close()
			if len(args) < 2 || strconv.Itoa(resp.StatusCode) == args[1] {
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("no such response: %s", strings.Join(args, " "))
}

func scriptGet(ts *testscript.TestScript, _ bool, args []string) {
	req, err := http.NewRequest(http.MethodGet, args[0], nil)
	ts.Check(err)
	req.Header.Set("Accept", "application/json")
	if token := ts.Getenv("TOKEN"); token != "" {
		text, err := os.ReadFile(ts.MkAbs(token))
		ts.Check(err)
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(text)))
	}
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d\n%s\n", resp.StatusCode, body)
}

func scriptGrab(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: grab NAME FILE REGEXP")
	}
	text := ts.ReadFile(args[1])
	match := regexp.MustCompile("(?m)" + args[2]).FindStringSubmatch(text)
	if len(match) < 2 {
		ts.Fatalf("%s does not match:\n%s", args[2], text)
	}
	ts.Setenv(args[0], match[1])
}

// scriptProxy starts a reverse proxy, with a server below one of its paths, and sets a variable
// to the URL of this path. The proxy strips the path from requests, or leaves it in them.
func scriptProxy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 || args[1] != "strip" && args[1] != "leave" {
		ts.Fatalf("usage: proxy NAME strip|leave PATH URL")
	}
	path := args[2]
	handler := forwardTo(ts, args[3])
	if args[1] == "strip" {
		handler = http.StripPrefix(path, handler)
	}
	mux := http.NewServeMux()
	mux.Handle(path+"/", handler)
	proxy := httptest.NewServer(mux)
	ts.Defer(proxy.Close)
	ts.Setenv(args[0], proxy.URL+path)
}

// forwardTo returns a reverse proxy of a server.
func forwardTo(ts *testscript.TestScript, address string) http.Handler {
	target, err := url.Parse(address)
	ts.Check(err)
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
}

// scriptRefuse starts a reverse proxy, and sets a variable to its URL. The proxy answers that there is nothing to
// requests whose method and path match WHAT, from the first request on that matches FROM.
func scriptRefuse(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: refuse NAME FROM WHAT URL")
	}

	from, what := regexp.MustCompile(args[1]), regexp.MustCompile(args[2])
	forward := forwardTo(ts, args[3])
	var begun atomic.Bool
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := r.Method + " " + r.URL.Path
		if from.MatchString(request) {
			begun.Store(true)
		}
		if !begun.Load() || !what.MatchString(request) {
			forward.ServeHTTP(w, r)
			return
		}

		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"status":404,"code":"not_found","title":"Not found","detail":"not found"}`)
	}))
	ts.Defer(proxy.Close)
	ts.Setenv(args[0], proxy.URL)
}

func scriptUnpack(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: unpack FILE DEST")
	}
	packed, err := os.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer packed.Close()
	text, err := gzip.NewReader(packed)
	ts.Check(err)
	data, err := io.ReadAll(text)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), data, 0o600))
}

func scriptSQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sql DATABASE FILE")
	}
	db, err := sql.Open("sqlite", ts.MkAbs(args[0])+"?_pragma=busy_timeout(5000)")
	ts.Check(err)
	defer db.Close()
	_, err = db.Exec(ts.ReadFile(args[1]))
	ts.Check(err)
}

// TestMainlineDocsAreRun checks that the contract for a mainline in the docs is the one that a script runs.
func TestMainlineDocsAreRun(t *testing.T) {
	docs := must.Read(t, filepath.Join("..", "docs", "evidence.md"))
	script := must.Read(t, filepath.Join("testdata", "script", "carry_mainline.txtar"))

	_, text, _ := strings.Cut(string(docs), "\n# mainline.yaml\n")
	text, _, found := strings.Cut(text, "```\n")
	if !found || !strings.Contains(string(script), text) {
		t.Error("docs/evidence.md has another mainline.yaml than the script")
	}
}
