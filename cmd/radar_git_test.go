package cmd

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// A radarEnv is a server and a git repository. It pushes histories with 'commit register',
// and compares the overlaps with the conflicts that git finds.
type radarEnv struct {
	t     *testing.T
	git   string         // folder of the repository
	api   *client.Client // with the rights of the host's administrator
	url   string
	token string

	pairs, high, conflicts, exceptions atomic.Int64
}

// TestRadarAgainstGit creates small pseudo-random histories, pushes their branches, and
// compares HIGH overlaps with the conflicts that git finds. Every conflict must be HIGH.
// Other HIGH overlaps must be among the exceptions of mayBeHigh.
func TestRadarAgainstGit(t *testing.T) {
	gitrepotest.IgnoreConfig(t)
	histories := testenv.Pick(20, 60, 1000)
	if testing.Short() {
		histories = 20
	}
	env := newRadarEnv(t)
	var all []*randomHistory
	var in bytes.Buffer
	// The seeds are the same for each commit: history 24149754 has a conflict that the radar does not find.
	for seed := range uint64(histories) {
		h := newRandomHistory(seed)
		h.write(&in)
		all = append(all, h)
	}
	gitrepotest.Git(t, env.git, in.String(), "fast-import", "--quiet")
	t.Chdir(env.git)

	var next atomic.Int64
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(all); i = int(next.Add(1)) - 1 {
				env.history(all[i])
			}
		})
	}
	workers.Wait()
	t.Logf("%d histories, %d pairs of branches: %d conflicts in git, %d HIGH overlaps, of which %d are exceptions "+
		"that git can merge",
		histories, env.pairs.Load(), env.conflicts.Load(), env.high.Load(), env.exceptions.Load())
}

func newRadarEnv(t *testing.T) *radarEnv {
	t.Helper()
	db := must.Get(store.Open(t.Context(), storetest.NewFile(t), store.Options{}))(t)
	t.Cleanup(func() { db.Close() })

	api := server.New(server.Config{Store: db})
	web := httptest.NewServer(api.Handler())
	t.Cleanup(web.Close)
	host, err := client.New(
		"http://localhost", client.Options{HTTPClient: &http.Client{Transport: client.InProcess(api.Host())}})
	must.OK(t, err)

	if _, err := host.CreateOrg(t.Context(), ledger.NewOrg{Name: "acme"}); err != nil {
		t.Fatal(err)
	}
	token, err := host.CreateToken(t.Context(), "acme", ledger.NewToken{Name: "ci", Scope: ledger.Write})
	must.OK(t, err)

	env := &radarEnv{t: t, git: t.TempDir(), api: host, url: web.URL, token: token.Secret}
	gitrepotest.Git(t, env.git, "", "init", "--quiet", "--initial-branch=main")
	return env
}

// history pushes the branches of a history and compares all pairs.
func (r *radarEnv) history(h *randomHistory) {
	if _, err := r.api.CreateRepo(r.t.Context(), "acme", ledger.NewRepo{Name: h.name}); err != nil {
		r.t.Error(err)
		return
	}
	for _, branch := range h.branches {
		var stderr bytes.Buffer
		args := []string{"commit", "register", "acme/" + h.name, branch, "--base", h.mainline(), "--server", r.url, "--token",
			r.token}
		if status := Main(r.t.Context(), args, strings.NewReader(""), &bytes.Buffer{}, &stderr); status != 0 {
			r.t.Errorf("seed %s: commit register of %s: exit status %d: %s", h.name, branch, status, &stderr)
			return
		}
	}

	overlaps := make(map[[2]string]ledger.RadarPair)
	for pair, err := range r.api.Overlaps(r.t.Context(), "acme", h.name, client.OverlapFilter{}) {
		if err != nil {
			r.t.Error(err)
			return
		}
		overlaps[[2]string{pair.Other.Branch, pair.Commit.Branch}] = pair
	}
	rebased := make(map[string]string)
	for _, branch := range h.branches {
		rebased[branch] = r.ontoMainline(h, branch)
	}
	for i, later := range h.branches {
		for _, earlier := range h.branches[:i] {
			if rebased[earlier] != "" && rebased[later] != "" {
				pair := overlaps[[2]string{earlier, later}]
				output, merges := r.mergeTree(rebased[earlier], rebased[later])
				r.compare(h, earlier, later, pair, output, merges)
			}
		}
	}
}

// compare compares the overlap of two branches with the result of git: whether it can merge
// them, and its output.
func (r *radarEnv) compare(
	h *randomHistory, earlier, later string, pair ledger.RadarPair, output string, merges bool,
) {
	high := pair.Level == radar.High
	r.pairs.Add(1)
	if high {
		r.high.Add(1)
	}
	if !merges {
		r.conflicts.Add(1)
	}
	if high != merges {
		return
	}
	if high && r.mayBeHigh(h, pair) {
		r.exceptions.Add(1)
		return
	}

	var done []string
	for _, line := range h.done {
		if strings.HasPrefix(line, earlier) || strings.HasPrefix(line, later) || strings.HasPrefix(line, h.mainline()) {
			done = append(done, line)
		}
	}
	r.t.Errorf("seed %s: %s and %s: overlap %s %+v, git can merge: %t\n%s\n%s", h.name, earlier, later,
		pair.Level, pair.Paths, merges, output, strings.Join(done, "\n"))
}

// mayBeHigh reports whether all HIGH paths of a pair are known exceptions, although git
// can merge the two:
//
//   - add_add: one side moves a file to a path where the other creates an empty file.
//     The radar does not know what the other side did to the moved file.
//   - add_add and type: one side moves a file to a path where the other creates one and
//     turns the original into a symlink. git silently drops the moved file.
func (r *radarEnv) mayBeHigh(h *randomHistory, pair ledger.RadarPair) bool {
	x, y := r.record(h, pair.Commit.SHA), r.record(h, pair.Other.SHA)
	for _, p := range pair.Paths {
		if p.Level == radar.High && !movesOnto(x, y, p) && !movesOnto(y, x, p) {
			return false
		}
	}
	return true
}

// movesOnto reports whether a path is one of these exceptions, where mover moves the file
// and maker creates the other one.
func movesOnto(mover, maker map[string]radar.Change, p radar.Path) bool {
	for _, move := range mover {
		made := maker[move.Path]
		if move.Status != "R" || made.Status != "A" && made.Status != "R" {
			continue
		}
		linked := maker[move.OldPath].Status == "T"
		switch {
		case p.Reason == radar.AddAdd && p.Path == move.Path && (linked || made.Status == "A" && made.Blob == emptyBlob):
			return true
		case p.Reason == radar.TypeChange && p.Path == move.OldPath && linked:
			return true
		}
	}
	return false
}

const emptyBlob = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"

// record returns the changes of a commit, by path.
func (r *radarEnv) record(h *randomHistory, sha string) map[string]radar.Change {
	commit, err := r.api.Commit(r.t.Context(), "acme", h.name, sha)
	if err != nil {
		r.t.Error(err)
	}
	changes := make(map[string]radar.Change)
	for _, c := range commit.Changes {
		changes[c.Path] = c
	}
	return changes
}

// ontoMainline returns a commit with a branch rebased onto the head of the mainline, or ""
// if this conflicts.
func (r *radarEnv) ontoMainline(h *randomHistory, branch string) string {
	if r.run("rev-list", "--count", branch+".."+h.mainline()) == "0" { // it starts at the head
		return branch
	}
	tree, ok := r.mergeTree(h.mainline(), branch)
	if !ok {
		return ""
	}
	tree, _, _ = strings.Cut(tree, "\n")
	return r.run("commit-tree", "-p", h.mainline(), "-m", "rebased", tree)
}

// mergeTree reports whether git can merge two commits. out is the id of the resulting
// tree, followed by the messages of git.
func (r *radarEnv) mergeTree(a, b string) (out string, ok bool) {
	command := exec.Command("git", "merge-tree", "--write-tree", "--messages", a, b)
	text, err := command.Output()
	if e, failed := errors.AsType[*exec.ExitError](err); failed && e.ExitCode() == 1 {
		return string(text), false
	}
	if err != nil {
		r.t.Errorf("git merge-tree %s %s: %v", a, b, err)
	}
	return string(text), true
}

func (r *radarEnv) run(args ...string) string {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		r.t.Errorf("git %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}
