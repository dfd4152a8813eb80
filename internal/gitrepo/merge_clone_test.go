package gitrepo

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// A shallow clone gives the same verdict as a full one, or none.
func TestMergeInShallowClone(t *testing.T) {
	f := newMergeForest(t)
	f.on("topic", f.top)
	f.on("topic", func() { f.write("b", "b") })
	f.on("main", f.end)
	f.on("main", func() { f.write("c", "c") })
	f.squash()
	for depth, want := range map[string]string{
		"1": "the parent, ", "2": "no common ancestor", "3": "no common ancestor", "4": ""} {
		dir := t.TempDir()
		f.Git("clone", "--quiet", "--bare", "--no-single-branch", "--depth", depth, "file://"+f.Dir(),
			filepath.Join(dir, ".git"))
		clone := mergeForest{forest{gitrepotest.Forest{Dir: dir}, Repo{Dir: dir}, t}}
		m, err := clone.CheckMerge(t.Context(), Merge{Kind: attestation.Squashed, Commit: "main", Source: "topic"})
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "--unshallow")) {
			t.Errorf("depth %s: %+v, %v; want %q", depth, m, err, want)
		}
	}
}

// A shallow clone can have a merge base that is not the best one: with it, the merge of two
// commits could be another.
func TestMergeInShallowCloneWithOldBase(t *testing.T) {
	f := newMergeForest(t)
	first := f.Git("rev-parse", "main")
	f.on("topic", f.top)
	merge := f.merge("--no-ff", "topic") // main has topic's change: the best base is topic
	f.Branch("side", first, "side", "x")
	f.merge("--no-ff", "side") // the way from main to the first commit that the clone has
	f.on("topic", func() { f.write("a", lines) })
	f.squash()
	f.wantClean(true)

	dir := t.TempDir()
	f.Git("clone", "--quiet", "--bare", "file://"+f.Dir(), filepath.Join(dir, ".git"))
	gitrepotest.WriteFile(t, filepath.Join(dir, ".git", "shallow"), merge+"\n"+first+"\n")
	clone := mergeForest{forest{gitrepotest.Forest{Dir: dir}, Repo{Dir: dir}, t}}
	clone.wantRefused("main", "topic", true, "so that the merge base is uncertain")
}

func TestCanMerge(t *testing.T) {
	for version, want := range map[string]bool{
		"2.38.0": true, "2.38": true, "2.39.5 (Apple Git-154)": true, "3.0.1": true, "2.51.rc1": true,
		"2.37.9": false, "1.99.1": false, "": false, "x": false,
	} {
		if got := canMerge(version); got != want {
			t.Errorf("git %q: %v, want %v", version, got, want)
		}
	}
}

// A check ends after some time, and takes only so much output from git.
func TestChecksAreBounded(t *testing.T) {
	f := newMergeForest(t)
	f.on("topic", f.top)
	f.on("main", f.end)
	claim := Merge{Kind: attestation.Squashed, Commit: f.squash(), Source: f.Git("rev-parse", "topic"),
		Parent: f.Git("rev-parse", "main^")}
	for want, limit := range map[string]func(c *MergeChecker){
		"git took longer than 1ns to merge ":     func(c *MergeChecker) { c.Timeout = 1 },
		"git cat-file printed more than 3 bytes": func(c *MergeChecker) { c.maxOutput = 3 },
	} {
		c, err := f.MergeChecker(t.Context())
		must.OK(t, err)
		if _, err := c.Check(t.Context(), claim); err != nil {
			t.Error(err)
		}
		limit(c)
		if _, err := c.Check(t.Context(), claim); err == nil || !strings.Contains(err.Error(), want) || IsNoMerge(err) {
			t.Errorf("error %v, want one with %q", err, want)
		}
		must.OK(t, c.Close())
	}
}

// A partial clone, which lacks files, says what to do.
func TestMergeInPartialClone(t *testing.T) {
	f := newMergeForest(t)
	f.on("topic", f.top)
	f.on("main", f.end)
	f.squash()
	f.Git("config", "uploadpack.allowFilter", "true")
	for _, filter := range []string{"blob:none", "tree:0"} {
		dir := t.TempDir()
		f.Git("clone", "--quiet", "--bare", "--filter="+filter, "file://"+f.Dir(), filepath.Join(dir, ".git"))
		_, err := Repo{Dir: dir}.CheckMerge(t.Context(),
			Merge{Kind: attestation.Squashed, Commit: "main", Source: "topic"})
		if !IsIncomplete(err) || !strings.Contains(err.Error(), "clone without --filter") {
			t.Errorf("%s: %v", filter, err)
		}
	}
}
