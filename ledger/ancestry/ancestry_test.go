package ancestry

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// commits is a history whose lines name a commit with its author and its parents: "t1 ann m0".
type commits map[string]struct {
	author string
	lineage.Node
}

func historyOf(lines ...string) commits {
	h := make(commits)
	for i, line := range lines {
		words := strings.Fields(line)
		c := h[words[0]]
		c.author, c.Parents, c.At = words[1], words[2:], ledger.Time(i+1)
		h[words[0]] = c
	}
	return h
}

func (h commits) node(sha string) (lineage.Node, bool, error) {
	c, ok := h[sha]
	return c.Node, ok, nil
}

func (h commits) IsKnown(sha string) (bool, error) {
	_, ok := h[sha]
	return ok, nil
}

func (h commits) Commit(sha string) (Commit, bool, error) {
	c, ok := h[sha]
	a := ledger.Author{Name: c.author}
	return Commit{SHA: sha, Parents: c.Parents, Author: a, Committer: a}, ok, nil
}

func (h commits) Between(base, head string) (list []Commit, known bool, err error) {
	between, known, err := lineage.Between(h.node, base, head)
	for _, sha := range between {
		c, _, _ := h.Commit(sha)
		list = append(list, c)
	}
	return list, known, err
}

func (h commits) IsAncestor(a, b string) (is, sure bool, err error) {
	return lineage.IsAncestor(h.node, a, b)
}

func (h commits) IsFirstParent(a, b string, n int) (bool, error) {
	return lineage.IsFirstParent(h.node, a, b, n)
}

// A forge that has pressed the button wrote nothing, unless it is the author, too.
func TestAuthorship(t *testing.T) {
	type list = []ledger.Author
	ann, bob, forge := ledger.Author{Name: "ann"}, ledger.Author{Name: "bob"},
		ledger.Author{Name: "GitHub", Email: "noreply@github.com"}
	for name, test := range map[string]struct {
		commits []Commit
		want    list
	}{
		"an author who commits": {[]Commit{{Author: ann, Committer: ann}}, list{ann}},
		"another committer":     {[]Commit{{Author: ann, Committer: bob}}, list{ann, bob}},
		"a co-author": {
			[]Commit{{Author: ann, Committer: ann, CoAuthors: list{bob}}}, list{ann, bob}},
		"the button of a forge":      {[]Commit{{Author: ann, Committer: forge}}, list{ann}},
		"a commit by a forge itself": {[]Commit{{Author: forge, Committer: forge}}, list{forge}},
		"two commits": {
			[]Commit{{Author: ann, Committer: ann}, {Author: bob, Committer: ann}}, list{ann, bob}},
	} {
		if a, ok := authorship(test.commits); !ok || !slices.Equal(a.Authors, test.want) {
			t.Errorf("%s: %v, %t, want %v", name, a.Authors, ok, test.want)
		}
	}

	var many []Commit
	for i := range maxAuthors + 1 {
		many = append(many, Commit{Author: ledger.Author{Name: fmt.Sprint(i)}, Committer: ledger.Author{Name: "0"}})
	}
	if _, ok := authorship(many); ok {
		t.Error("it is known who wrote the commits of too many authors")
	}
}

func TestWhyRefused(t *testing.T) {
	h := historyOf("m0 ann", "t1 bob m0", "m1 ann m0", "u bob t1 m1", "r bob m1", "s bob m1")
	claim := func(kind attestation.MergeKind, source, parent string) *attestation.Merge {
		return &attestation.Merge{Kind: kind, Source: attestation.MergedCommit{SHA: source},
			Parent: attestation.MergedCommit{SHA: parent}, Tree: "7ee"}
	}
	for name, test := range map[string]struct {
		commit string
		claim  *attestation.Merge
		want   string // a part; empty if something may carry
	}{
		"a squash":                       {"s", claim(attestation.Squashed, "t1", "m1"), ""},
		"a squash on another commit":     {"s", claim(attestation.Squashed, "t1", "m0"), "m0 is not a parent"},
		"a merge":                        {"u", claim(attestation.Merged, "t1", "m1"), ""},
		"an update":                      {"u", claim(attestation.Updated, "t1", "m1"), ""},
		"an update after an earlier one": {"u", claim(attestation.Updated, "m0", "m1"), ""},
		"an update of another branch":    {"u", claim(attestation.Updated, "s", "m1"), "s is not known to be t1"},
		"a rebase":                       {"r", claim(attestation.Rebased, "t1", "m1"), ""},
		"a rebase on a commit below":     {"r", claim(attestation.Rebased, "t1", "m0"), ""},
		"a rebase on another commit":     {"r", claim(attestation.Rebased, "m0", "t1"), "t1 is not known to be among"},
		"a commit without its object":    {"x", claim(attestation.Squashed, "t1", "m1"), "the commit's object was unknown"},
		"a mainline without its object":  {"y", claim(attestation.Squashed, "t1", "m9"), "the object of the parent, m9"},
	} {
		c := Proven{SHA: test.commit, Tree: "7ee", Parents: h[test.commit].Parents}
		switch test.commit {
		case "x":
			c = Proven{}
		case "y":
			c.Parents = []string{"m9"}
		}
		got := must.Get(WhyRefused(h, c, test.claim))(t)
		if !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Who wrote the commits of a review decides only if a contract excludes authors, or a claim names the mainline.
func TestComplete(t *testing.T) {
	h := historyOf("m0 ann", "t1 bob m0", "t2 eve t1", "s eve m0")
	excluding := must.Get(policy.Parse([]byte(
		`{"requirements":[{"state":"ATTESTED","predicate":"review:*","exclude_author":true}]}`)))(t)
	plain := must.Get(policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"review:*"}]}`)))(t)
	for name, test := range map[string]struct {
		contract policy.Contract
		base     string
		want     string
	}{
		"an ancestor":                      {excluding, "m0", "[{eve } {bob }]"},
		"no ancestor":                      {excluding, "s", ""},
		"a commit that is not known":       {excluding, "m9", ""},
		"a contract that excludes nobody":  {plain, "m0", ""},
		"a review of the commit alone":     {excluding, "", ""},
		"the parent, which leaves the tip": {excluding, "t1", "[{eve }]"},
	} {
		f := policy.Facts{Evidence: []policy.Evidence{{Predicate: "review:code", Base: test.base}}}
		found := must.Get(Complete(h, &test.contract, "t2", &f))(t)
		got := ""
		if a := f.Spans[test.base]; a != nil {
			got = fmt.Sprint(a.Authors)
		}
		if found.Gap {
			got += "gap"
		}
		if got != test.want || len(found.Wrote) != len(f.Spans) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}

	f := policy.Facts{
		Sources: []policy.Source{{Commit: "t2", Claims: []policy.MergeClaim{
			{Kind: string(attestation.Squashed), Side: &policy.Side{Commit: "m0"}},
			{Kind: string(attestation.Squashed), Side: &policy.Side{Commit: "m0", Refused: "the object was unknown"}},
		}}},
		Carried: []policy.Evidence{{Predicate: "review:code", Base: "m0", Source: 1}},
	}
	must.Get(Complete(h, &excluding, "s", &f))(t)
	side, refused := f.Sources[0].Claims[0].Side, f.Sources[0].Claims[1].Side
	if !side.Bases["m0"] || len(side.Wrote.Authors) != 1 || len(f.Sources[0].Spans) != 1 || refused.Bases != nil {
		t.Errorf("the squash: %+v, the refused one: %+v", side, refused)
	}
}

// More could follow from an object that is not known, unless the history says no already.
func TestGaps(t *testing.T) {
	contract := must.Get(policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"review:*",
		"exclude_author":true,"covers":"change","carry":["tree"]}]}`)))(t)
	for name, test := range map[string]struct {
		head, base string
		sameTree   bool
		bases      string
		gap        bool
	}{
		"a parent of the head is not known":       {"u", "m0", false, "map[]", true},
		"the base is not known":                   {"u", "x", false, "map[]", false},
		"the same tree on the base":               {"t2", "m0", true, "map[m0:true]", false},
		"the same tree on another one":            {"t2", "t1", true, "map[t1:false]", false},
		"a merge that contains the base, in part": {"t2", "t1", true, "map[t1:false]", false},
	} {
		h := historyOf("m0 ann", "t1 bob m0", "t2 eve t1", "s eve m0", "m eve m0 t2", "u eve x")
		f := policy.Facts{Evidence: []policy.Evidence{{Predicate: "review:code", Base: test.base}}}
		commit := test.head
		if test.sameTree {
			f = policy.Facts{Carried: []policy.Evidence{{Predicate: "review:code", Base: test.base, Source: 1}},
				Sources: []policy.Source{{Commit: test.head, SameTree: true}}}
			if commit = "s"; strings.Contains(name, "merge") {
				commit = "m"
			}
		}

		found := must.Get(Complete(h, &contract, commit, &f))(t)
		bases := "map[]"
		if test.sameTree {
			bases = fmt.Sprint(f.Sources[0].Bases)
		}
		if found.Gap != test.gap || bases != test.bases {
			t.Errorf("%s: gap %t, bases %s, want %t, %s", name, found.Gap, bases, test.gap, test.bases)
		}
	}
}

// Of a rebase, who wrote any of its commits has written it.
func TestWhoWroteARebase(t *testing.T) {
	contract := must.Get(policy.Parse([]byte(
		`{"requirements":[{"state":"ATTESTED","predicate":"review:*","exclude_author":true}]}`)))(t)
	for name, test := range map[string]struct {
		kind    attestation.MergeKind
		history []string
		want    string
	}{
		"a rebase": {attestation.Rebased, []string{"m0 max", "r1 eve m0", "r2 tom r1"}, "[{tom } {eve }]"},
		"a rebase of a merge with what is not known": {attestation.Rebased,
			[]string{"m0 max", "r1 eve m0 x", "r2 tom r1"}, "[]"},
		"a squash": {attestation.Squashed, []string{"m0 max", "r1 eve m0", "r2 tom r1"}, "[{tom }]"},
	} {
		f := policy.Facts{Sources: []policy.Source{{Commit: "t", Claims: []policy.MergeClaim{
			{Kind: string(test.kind), Side: &policy.Side{Commit: "m0"}},
		}}}}
		found := must.Get(Complete(historyOf(test.history...), &contract, "r2", &f))(t)
		got := fmt.Sprint(f.Sources[0].Claims[0].Side.Wrote.Authors)
		if got != test.want || found.Gap != (test.want == "[]") {
			t.Errorf("%s: %s, gap %t, want %s", name, got, found.Gap, test.want)
		}
	}
}

func TestLatest(t *testing.T) {
	claims := []Claim{{"a", 1}, {"b", 1}, {"a", 2}, {"a", 1}}
	got := Latest(claims, func(c *Claim) Claim { return *c })
	if !slices.Equal(got, []Claim{{"b", 1}, {"a", 2}, {"a", 1}}) {
		t.Errorf("%v", got)
	}
}
