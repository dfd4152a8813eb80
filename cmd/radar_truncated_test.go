package cmd

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// crowd is more overlaps than the radar stores for one commit.
const crowd = radar.MaxPairs + 10

// adding returns a change that adds a file with content that depends on n.
func adding(path string, n int) radar.Change {
	return radar.Change{Path: path, Status: "A", Mode: "100644", Blob: fmt.Sprintf("%040x", n+1)}
}

// fill creates a repo with crowd branches in flight, each with one change.
func (r *radarEnv) fill(repo string, change func(n int) radar.Change) {
	r.t.Helper()
	if _, err := r.api.CreateRepo(r.t.Context(), "acme", ledger.NewRepo{Name: repo}); err != nil {
		r.t.Fatal(err)
	}
	var lanes sync.WaitGroup
	for lane := range 8 {
		lanes.Go(func() {
			for n := lane; n < crowd; n += 8 {
				_, _, err := r.api.Register(r.t.Context(), "acme", repo, fmt.Sprintf("%08x%032x", n, n), ledger.Registration{
					Branch: fmt.Sprint("topic-", n), Changes: []radar.Change{change(n)},
				})
				if err != nil {
					r.t.Error(err)
				}
			}
		})
	}
	lanes.Wait()
}

// output runs the command and returns its output.
func (r *radarEnv) output(args ...string) string {
	r.t.Helper()
	var stdout, stderr bytes.Buffer
	if status := Main(r.t.Context(), append(args, "--server", r.url, "--token", r.token), strings.NewReader(""), &stdout,
		&stderr); status != 0 {
		r.t.Fatalf("%s: exit status %d: %s", strings.Join(args, " "), status, &stderr)
	}
	return stdout.String()
}

// prints fails the test unless the command prints lines that match the patterns, in this
// order. The last pattern must match the last line.
func (r *radarEnv) prints(command string, lines ...string) {
	r.t.Helper()
	out := r.output(strings.Fields(command)...)
	if !regexp.MustCompile("(?s)^(.*\n)?" + strings.Join(lines, "\n(.*\n)?") + "\n$").MatchString(out) {
		r.t.Errorf("ledgerd %s printed\n%s\nwant\n%s", command, out, strings.Join(lines, "\n…\n"))
	}
}

// TestRadarTruncated checks that commands which count or list the overlaps of a commit
// say so if it has more than are stored.
func TestRadarTruncated(t *testing.T) {
	testenv.From(t, testenv.Push, "takes seconds")
	if testing.Short() {
		t.Skip("takes minutes with the race detector")
	}
	f := gitrepotest.NewForest(t)
	f.Commit("README", "the beginning\n")
	r := newRadarEnv(t)
	t.Chdir(f.Dir)
	const stored = "only the 200 strongest per registration are stored"

	r.fill("low", func(n int) radar.Change { return adding(fmt.Sprintf("crowd/file-%d", n), n) })
	f.Git("checkout", "--quiet", "-b", "last")
	last := f.Commit("crowd/last", "last\n")[:12]
	r.prints("radar acme/low --dry-run", "If registered now, acme/low@"+last+" would overlap with:",
		"There are more: these are the 200 strongest.")
	r.prints("radar acme/low --dry-run --limit 7", "There are more: these are the 7 strongest.")
	r.prints("radar acme/low --dry-run --level LOW", "There are more: these are the 200 strongest.")
	r.prints("radar acme/low --dry-run --level HIGH", "acme/low@"+last+" has no HIGH overlap")
	r.prints("commit register acme/low",
		"Overlaps with commits in flight: 0 HIGH, 0 MEDIUM, 200 LOW, and more \\("+stored+"\\)",
		"To list all stored overlaps, run 'ledgerd radar acme/low --commit "+last+"'.")
	r.prints("commit show acme/low", "radar +in flight, overlaps: 0 HIGH, 0 MEDIUM, 200 LOW, and more \\("+stored+"\\)",
		"0 transitions")
	r.prints("radar acme/low --commit HEAD", "LOW .*", "There are more of "+last+": "+stored)
	r.prints("radar acme/low --branch last --limit 1", "LOW .*", "There are more of "+last+": "+stored)
	r.prints("radar acme/low", "LOW .*",
		"There are more of "+last+", [0-9a-f]{12}, [0-9a-f]{12}, [0-9]+ other commits: "+stored)
	r.prints("radar acme/low --branch topic-0", "LOW .* topic-0 .*") // all its overlaps are stored
	r.prints("radar acme/low --branch topic-0 --level HIGH", "No open overlaps in acme/low")
	r.prints("radar acme/low --commit HEAD --level HIGH", "No open overlaps in acme/low", "There may be more: "+stored)

	// The overlaps that are left out are at most as severe as the last stored one.
	r.fill("high", func(n int) radar.Change { return adding(fmt.Sprintf("crowd-%d/file", n), n) })
	f.Git("checkout", "--quiet", "-b", "all", "main")
	for n := range crowd {
		gitrepotest.WriteFile(t, fmt.Sprintf("crowd-%d/file", n), "mine\n")
	}
	all := f.Commit("all", "all\n")[:12]
	r.prints("radar acme/high --dry-run --level HIGH", "There are more: these are the 200 strongest.")
	r.prints("radar acme/high --dry-run --level LOW", "acme/high@"+all+
		" has no LOW overlap among its 200 strongest, but it has more")
	r.prints("commit register acme/high",
		"Overlaps with commits in flight: 200 HIGH, 0 MEDIUM, 0 LOW, and more \\("+stored+"\\)",
		"To list all stored overlaps, run .*")
	r.prints("radar acme/high --branch all --level LOW", "No open overlaps in acme/high", "There may be more: "+stored)
}
