package facts_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

func record() ledger.Commit {
	var c ledger.Commit
	c.SHA, c.Branch = "c0ffee", "fix"
	c.Author, c.Writers = ledger.Author{Name: "Ann", Email: "ann@acme.example"}, []ledger.Author{{Name: "Bob"}}
	c.Targets, c.Target = []string{"main", "release"}, "release"
	c.Changes = []radar.Change{{Path: "b.go", OldPath: "a.go", Status: "R"}, {Path: "c.go", Status: "M"}}
	return c
}

// The digest is the one that docs/proof.md describes, so that others can compute it.
func TestDigest(t *testing.T) {
	paths := sha256.Sum256([]byte("b.go\x00a.go\x00c.go\x00"))
	text := `{"commit":"c0ffee","tree":"7ee","author":{"name":"Ann","email":"ann@acme.example"},` +
		`"writers":[{"name":"Bob","email":""}],"signing_keys":["ab"],"branch":"fix","targets":["main","release"],` +
		`"changes":"` + hex.EncodeToString(paths[:]) + `"}`
	c := record()
	c.Tree, c.SigningKeys = "7ee", []string{"ab"}
	f := facts.Of(&c)
	if got, want := f.Digest(), fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))); got != want {
		t.Errorf("%s, want %s, that of %s", got, want, text)
	}
}

// Each field that states depend on changes the digest. What they do not depend on does not.
func TestDigestCoversEachField(t *testing.T) {
	c := record()
	f := facts.Of(&c)
	before := f.Digest()
	for name, test := range map[string]struct {
		change func(c *ledger.Commit)
		is     bool
	}{
		"commit":       {func(c *ledger.Commit) { c.SHA = "beef" }, true},
		"tree":         {func(c *ledger.Commit) { c.Tree = "7ee" }, true},
		"author":       {func(c *ledger.Commit) { c.Author.Name = "Eve" }, true},
		"email":        {func(c *ledger.Commit) { c.Author.Email = "" }, true},
		"writers":      {func(c *ledger.Commit) { c.Writers = nil }, true},
		"signing keys": {func(c *ledger.Commit) { c.SigningKeys = []string{"ab"} }, true},
		"branch":       {func(c *ledger.Commit) { c.Branch = "" }, true},
		"targets":      {func(c *ledger.Commit) { c.Targets = c.Targets[:1] }, true},
		"path":         {func(c *ledger.Commit) { c.Changes[1].Path = "d.go" }, true},
		"old path":     {func(c *ledger.Commit) { c.Changes[0].OldPath = "" }, true},
		"no changes":   {func(c *ledger.Commit) { c.Changes = c.Changes[:0] }, true},
		"no record":    {func(c *ledger.Commit) { c.Changes = nil }, true},
		"all paths":    {func(c *ledger.Commit) { c.Paths = []string{"a.go"} }, true},
		"status":       {func(c *ledger.Commit) { c.Changes[1].Status = "A" }, false},
		"message":      {func(c *ledger.Commit) { c.Message = "Fix" }, false},
		"target":       {func(c *ledger.Commit) { c.Target = "main" }, false}, // it follows from the targets
	} {
		c := record()
		test.change(&c)
		f := facts.Of(&c)
		if (f.Digest() != before) != test.is {
			t.Errorf("%s: the digest changes: %t, want %t", name, !test.is, test.is)
		}
	}
}

func TestIsRegistered(t *testing.T) {
	var c ledger.Commit
	c.SHA = "c0ffee"
	if f := facts.Of(&c); f.IsRegistered() {
		t.Error("a commit of which nothing is known is registered")
	}
	c.Branch = "fix"
	if f := facts.Of(&c); !f.IsRegistered() {
		t.Error("a commit with a branch is not registered")
	}
}

func TestPolicyFacts(t *testing.T) {
	c := record()
	f := facts.Of(&c)
	p := f.Policy(policy.AllTargets, "trunk")
	got := fmt.Sprintf("%v %t %s %v %s %t", p.Authors, p.Proven, p.Branch, p.Targets, p.Target, p.HasChanges)
	if want := "[{Ann ann@acme.example} {Bob }] false fix [trunk main release] release true"; got != want {
		t.Errorf("the facts are %s, want %s", got, want)
	}

	f.Targets, f.Tree, f.Changes = []string{"main"}, "7ee", ""
	if p := f.Policy(policy.ClaimedTargets, "trunk"); !slices.Equal(p.Targets, []string{"main"}) || p.Target != "main" ||
		!p.Proven || p.HasChanges {
		t.Errorf("with one target and a tree: %+v", p)
	}
	f.Targets, f.Author = nil, ledger.Author{}
	if p := f.Policy(policy.AllTargets, "trunk"); len(p.Authors) > 0 || p.Target != "trunk" {
		t.Errorf("without an author, the committers are not the authors: %+v", p)
	}
}
