package cmd

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// A crowd is more than the radar keeps of one registration.
const crowd = radar.MaxPairs + 10

// adding returns a change that adds a file with contents of its own.
func adding(path string, n int) radar.Change {
	return radar.Change{Path: path, Status: "A", Mode: "100644", Blob: fmt.Sprintf("%040x", n+1)}
}

// fill makes a repo in which a crowd of branches has registered that change.
func (r *radarTrial) fill(repo string, change func(n int) radar.Change) {
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

// output runs the command, and returns what it prints.
func (r *radarTrial) output(args ...string) string {
	r.t.Helper()
	var stdout, stderr bytes.Buffer
	if status := Main(r.t.Context(), append(args, "--url", r.url, "--token", r.token), strings.NewReader(""), &stdout,
		&stderr); status != 0 {
		r.t.Fatalf("%s: exit status %d: %s", strings.Join(args, " "), status, &stderr)
	}
	return stdout.String()
}

// prints fails the test unless the command prints lines that match, in that
// order, with nothing behind the last of them.
func (r *radarTrial) prints(command string, lines ...string) {
	r.t.Helper()
	out := r.output(strings.Fields(command)...)
	if !regexp.MustCompile("(?s)^(.*\n)?" + strings.Join(lines, "\n(.*\n)?") + "\n$").MatchString(out) {
		r.t.Errorf("ledgerd %s printed\n%s\nwant\n%s", command, out, strings.Join(lines, "\n…\n"))
	}
}

// Where a commit overlaps with more others than are kept, every command that
// counts or lists its overlaps says so.
func TestRadarOfACrowd(t *testing.T) {
	if testing.Short() {
		t.Skip("a crowd takes minutes under the race detector")
	}
	f := gitrepotest.NewForest(t)
	f.Commit("README", "the beginning\n")
	r := newRadarTrial(t)
	t.Chdir(f.Dir)
	const kept = "of one registration the strongest 200 are kept"

	r.fill("low", func(n int) radar.Change { return adding(fmt.Sprintf("crowd/file-%d", n), n) })
	f.Git("checkout", "--quiet", "-b", "last")
	last := f.Commit("crowd/last", "last\n")[:12]
	r.prints("radar acme/low --dry-run", "acme/low@"+last+", pushed now, would overlap with",
		"and more: these are the strongest 200")
	r.prints("radar acme/low --dry-run --limit 7", "and more: these are the strongest 7")
	r.prints("radar acme/low --dry-run --level LOW", "and more: these are the strongest 200")
	r.prints("radar acme/low --dry-run --level HIGH", "acme/low@"+last+" has no HIGH overlap")
	r.prints("commit push acme/low", "overlaps with commits in flight: 0 HIGH, 0 MEDIUM, 200 LOW, and more: "+kept,
		"those that are kept: ledgerd radar acme/low --commit "+last)
	r.prints("commit show acme/low", "radar +in flight, overlaps: 0 HIGH, 0 MEDIUM, 200 LOW, and more: "+kept,
		"0 transitions")
	r.prints("radar acme/low --commit HEAD", "LOW .*", "and more of "+last+": "+kept)
	r.prints("radar acme/low --branch last --limit 1", "LOW .*", "and more of "+last+": "+kept)
	r.prints("radar acme/low", "LOW .*", "and more of "+last+", [0-9a-f]{12}, [0-9a-f]{12}, [0-9]+ other commits: "+kept)
	r.prints("radar acme/low --branch topic-0", "LOW .* topic-0 .*") // of whose registration all are kept
	r.prints("radar acme/low --branch topic-0 --level HIGH", "no open overlaps in acme/low")
	r.prints("radar acme/low --commit HEAD --level HIGH", "no open overlaps in acme/low", "there were more: "+kept)

	// Of those left out none is stronger than the last that is kept.
	r.fill("high", func(n int) radar.Change { return adding(fmt.Sprintf("crowd-%d/file", n), n) })
	f.Git("checkout", "--quiet", "-b", "all", "main")
	for n := range crowd {
		gitrepotest.WriteFile(t, fmt.Sprintf("crowd-%d/file", n), "mine\n")
	}
	all := f.Commit("all", "all\n")[:12]
	r.prints("radar acme/high --dry-run --level HIGH", "and more: these are the strongest 200")
	r.prints("radar acme/high --dry-run --level LOW", "acme/high@"+all+
		" has no LOW overlap among its strongest 200, and has more")
	r.prints("commit push acme/high", "overlaps with commits in flight: 200 HIGH, 0 MEDIUM, 0 LOW, and more: "+kept,
		"those that are kept: .*")
	r.prints("radar acme/high --branch all --level LOW", "no open overlaps in acme/high", "there were more: "+kept)
}
