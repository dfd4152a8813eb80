package delivery

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/authors"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

const now = ledger.Time(1795424400000)

// contract asks for a review of each change by somebody who wrote none of it.
const contract = `{"requirements":[
	{"name":"tests","state":"ATTESTED","predicate":"test:*"},
	{"name":"review","state":"PROMOTABLE","predicate":"review:*","exclude_author":"proven","covers":"change",
		"distinct_from":["ATTESTED"],"carry":["tree","merge"],"carry_signers":["cn=queue"]},
	{"state":"DEPLOYED","predicate":"deploy:prod","delivery":true}],
	"exceptions":{"signers":["cn=boss"],"max_duration":"24h"}}`

// A story is a history, what was said of it, and which commits a deployment of the head ships uncovered.
type story struct {
	contract string // that of this file, if it is empty
	// history has a commit in each line: its author, its name and its parents. A commit in no line is not known.
	history []string
	// said has statements in the order in which they were recorded, such as "rita approves t2 since m0".
	said []string
	// ran has the commits that ran before.
	ran, head string
	want      string
}

// A teller records a story, statement by statement.
type teller struct {
	t       *testing.T
	story   story
	graph   lineage.Graph
	nodes   map[string]lineage.Node
	authors map[string]string
	facts   map[string]*policy.Facts
	number  int
}

func newTeller(t *testing.T, s story) *teller {
	k := &teller{t: t, story: s, nodes: make(map[string]lineage.Node), authors: make(map[string]string),
		facts: make(map[string]*policy.Facts)}
	for i, line := range s.history {
		words := strings.Fields(line)
		k.nodes[words[1]] = lineage.Node{Parents: words[2:], At: ledger.Time(i+1) * 1000}
		k.authors[words[1]] = words[0]
	}
	k.graph = func(sha string) (lineage.Node, bool, error) {
		n, ok := k.nodes[sha]
		return n, ok, nil
	}
	for _, said := range s.said {
		k.number++
		k.say(strings.Fields(said))
	}
	return k
}

// of returns what is known of a commit.
func (k *teller) of(sha string) *policy.Facts {
	if k.facts[sha] == nil {
		k.facts[sha] = &policy.Facts{Attested: true, Proven: true, Authors: k.named(sha).Authors, RegisteredAt: 1,
			Spans: make(map[string]*authors.Authorship)}
	}
	return k.facts[sha]
}

// named returns who wrote commits.
func (k *teller) named(commits ...string) *authors.Authorship {
	a := &authors.Authorship{Proven: true, Several: true}
	for _, sha := range commits {
		a.Authors = append(a.Authors, ledger.Author{Name: k.authors[sha]})
	}
	return a
}

// span returns who wrote the commits since a base, or nil if not all are known.
func (k *teller) span(base, head string) *authors.Authorship {
	list, known, err := lineage.Between(k.graph, base, head)
	must.OK(k.t, err)
	if !known {
		return nil
	}
	return k.named(list...)
}

func (k *teller) signer(name string) identity.DN {
	return must.Get(identity.ParseDN("cn=" + name))(k.t)
}

// say records a statement: who, what, a commit, and perhaps "since" and a base, "of" and a source, "on" and a commit of
// the mainline, or "from" and the requirement of an exception.
func (k *teller) say(words []string) {
	who, verb, sha := k.signer(words[0]), words[1], words[2]
	rest := make(map[string]string)
	for i := 3; i+1 < len(words); i += 2 {
		rest[words[i]] = words[i+1]
	}
	e := policy.Evidence{Attestation: fmt.Sprintf("att_%02d", k.number), Signer: who, Status: ledger.Pass,
		RecordedAt: now - 1000, WhilePromotable: true, Predicate: "review:code", Base: rest["since"]}
	f := k.of(sha)

	switch verb {
	case "tests":
		e.Predicate = "test:go"
	case "approves", "rejects":
		if verb == "rejects" {
			e.Status = ledger.Fail
		}
		if span := k.span(e.Base, sha); span != nil {
			f.Spans[e.Base] = span
		}
	case "excuses":
		f.Exceptions = append(f.Exceptions, policy.Exception{Attestation: e.Attestation,
			Requirement: cmp.Or(rest["from"], "review"), Signer: who, RecordedAt: now - 1000, Until: now + 1000})
		return
	default: // a claim, or "copies" for a commit with the same tree
		k.carry(f, sha, verb, rest, e)
		return
	}
	f.Evidence = append(f.Evidence, e)
}

// carry has the evidence of a source carry to a commit.
func (k *teller) carry(f *policy.Facts, sha, verb string, rest map[string]string, claim policy.Evidence) {
	from := k.of(rest["of"])
	s := policy.Source{Commit: rest["of"], Authorship: *k.named(rest["of"]), Spans: from.Spans,
		SameTree: verb == "copies", Bases: make(map[string]bool)}
	side := &policy.Side{Commit: rest["on"], Bases: make(map[string]bool), Wrote: k.named(sha)}
	for base := range s.Spans {
		s.Bases[base], side.Bases[base] = k.leads(base, sha), k.leads(base, side.Commit)
		if span := k.span(base, sha); span != nil {
			f.Spans[base] = span
		}
	}
	switch verb {
	case "rebase":
		side.Wrote = k.span(side.Commit, sha)
	case "merge", "update":
		side.Wrote = nil
	}
	if verb != "copies" {
		s.Claims = []policy.MergeClaim{{Attestation: claim.Attestation, Kind: verb, Signer: claim.Signer, Side: side}}
	}

	f.Sources = append(f.Sources, s)
	for _, e := range from.Evidence {
		e.Source = len(f.Sources)
		f.Carried = append(f.Carried, e)
	}
}

// leads reports whether a commit is another one, or an ancestor of it.
func (k *teller) leads(a, b string) bool {
	is, _, err := lineage.IsAncestor(k.graph, a, b)
	must.OK(k.t, err)
	return is
}

// gaps returns the gaps of the delivery, as "m1 m2?", where a commit that is not known has a "?".
func (k *teller) gaps() string {
	text := k.story.contract
	if text == "" {
		text = contract
	}
	c := must.Get(policy.Parse([]byte(text)))(k.t)
	ran := make(map[string]bool)
	for sha := range strings.FieldsSeq(k.story.ran) {
		ran[sha] = true
	}
	list, complete, err := lineage.Delivery(k.graph, k.story.head, ran)
	if err != nil || !complete {
		k.t.Fatalf("%t, %v", complete, err)
	}
	commits := make([]Commit, len(list))
	for i, shipped := range list {
		commits[i] = Commit{shipped, k.facts[shipped.SHA]}
	}
	commits[0].Facts = k.of(k.story.head)

	var names []string
	_, gaps := Judge(&c, commits, Base{Follows: true}, now)
	for _, gap := range gaps {
		if gap.Lacking == nil {
			gap.Commit += "?"
		}
		names = append(names, gap.Commit)
	}
	return strings.Join(names, " ")
}

// branch is a branch of three commits that was squashed, merged or rebased, on a mainline.
var branch = []string{
	"max m0", "max m1 m0", "tom t1 m1", "tom t2 t1", "max m2 m1", "max c m2",
}

func TestGaps(t *testing.T) {
	tested := "ci tests c"
	for name, s := range map[string]story{
		"a commit that nobody has reviewed is below": {
			history: branch, said: []string{tested, "rita approves c since m2"}, ran: "m1", want: "m2"},
		"everything is reviewed": {
			history: branch, said: []string{"rita approves m2 since m1", tested, "rita approves c since m2"}, ran: "m1"},
		"the review of the tip is about all": {
			history: branch, said: []string{tested, "rita approves c since m1"}, ran: "m1"},
		"the review of the tip is about itself": {
			history: branch, said: []string{tested, "rita approves c"}, ran: "m1", want: "m2"},
		"a review without a base is about its commit": {
			history: branch, said: []string{"rita approves m2", tested, "rita approves c"}, ran: "m1"},
		"the range starts too early, at a commit of the reviewer": {
			history: []string{"max m0", "rita m1 m0", "max m2 m1", "max c m2"},
			said:    []string{tested, "sue approves c", "rita approves c since m0"}, ran: "m0", want: "m2 m1"},
		"the range starts before what runs": {
			history: branch, said: []string{tested, "rita approves c since m0"}, ran: "m1"},
		"the range of a later commit is of no help": {
			history: append(branch, "max d c"), said: []string{tested, "rita approves c since m2", "rita approves d since m1"},
			ran: "m1", want: "m2"},

		"a merge commit, claimed to be clean": {
			history: []string{"max m0", "tom t1 m0", "tom t2 t1", "max m1 m0", "max m2 m1 t2", "max c m2"},
			said: []string{"rita approves m1 since m0", "rita approves t2 since m0", "queue merge m2 of t2 on m1", tested,
				"rita approves c since m2"}, ran: "m0"},
		"a merge commit without a claim": {
			history: []string{"max m0", "tom t1 m0", "max m1 m0", "max m2 m1 t1", "max c m2"},
			said: []string{"rita approves m1 since m0", "rita approves t1 since m0", tested,
				"rita approves c since m2"}, ran: "m0", want: "m2"},
		"a merge commit, claimed by somebody": {
			history: []string{"max m0", "tom t1 m0", "max m1 m0", "max m2 m1 t1", "max c m2"},
			said: []string{"rita approves m1 since m0", "rita approves t1 since m0", "eve merge m2 of t1 on m1", tested,
				"rita approves c since m2"}, ran: "m0", want: "m2"},
		"a clean merge of what is not reviewed": {
			history: []string{"max m0", "tom t1 m0", "tom t2 t1", "max m1 m0", "max m2 m1 t2", "max c m2"},
			said: []string{"rita approves m1 since m0", "rita approves t2 since t1", "queue merge m2 of t2 on m1", tested,
				"rita approves c since m2"}, ran: "m0", want: "t1"},
		"a squash": {
			history: branch, said: []string{"rita approves t2 since m0", "queue squash m2 of t2 on m1", tested,
				"rita approves c since m2"}, ran: "m1"},
		"a squash on top of a gap is covered": {
			history: branch, said: []string{"rita approves t2 since m0", "queue squash m2 of t2 on m1", tested,
				"rita approves c since m2"}, ran: "m0", want: "m1"},
		"a squash of a branch on top of another one": {
			history: branch, said: []string{"rita approves t2 since t1", "queue squash m2 of t2 on m1", tested,
				"rita approves c since m2"}, ran: "m1", want: "m2"},
		"a rebase": {
			history: []string{"max m0", "tom t1 m0", "tom t2 t1", "max m1 m0", "tom r1 m1", "tom r2 r1", "max c r2"},
			said: []string{"rita approves m1 since m0", "rita approves t2 since m0", "queue rebase r2 of t2 on m1", tested,
				"rita approves c since r2"}, ran: "m0"},
		"a rebase that brought a commit of the reviewer": {
			history: []string{"max m0", "tom t1 m0", "tom t2 t1", "max m1 m0", "rita r1 m1", "tom r2 r1", "max c r2"},
			said: []string{"rita approves m1 since m0", "rita approves t2 since m0", "queue rebase r2 of t2 on m1", tested,
				"rita approves c since r2"}, ran: "m0", want: "r2 r1"},
		"tests that carry to the head, and reviewers of others": {
			history:  []string{"max m0", "max m1 m0", "max m2 m1", "max t m1", "max c m2"},
			said:     []string{"ci tests t", "x copies c of t", "rita approves m2 since m1", "rita approves c since m2"},
			ran:      "m1",
			contract: strings.Replace(contract, `"predicate":"test:*"`, `"predicate":"test:*","carry":["tree"]`, 1)},
		"a test of a commit below, which is later than that of the head": {
			history: branch, said: []string{tested, "rita approves c since m2", "rita approves m2 since m1", "ci tests m2"},
			ran: "m1"},
		"the head is not known": {
			history: branch[:5], said: []string{tested, "rita approves c"}, ran: "m1", want: "c?"},
		"a copy with the same tree covers what leads to it": {
			history: []string{"max m0", "tom t1 m0", "tom t2 t1", "tom r1 m0", "tom r2 r1", "max c r2"},
			said:    []string{"rita approves t2 since m0", "x copies r2 of t2", tested, "sue approves c since r2"}, ran: "m0"},
		"a copy with the same tree, with a commit of the reviewer": {
			history: []string{"max m0", "tom t1 m0", "tom t2 t1", "rita r1 m0", "tom r2 r1", "max c r2"},
			said:    []string{"rita approves t2 since m0", "x copies r2 of t2", tested, "sue approves c since r2"},
			ran:     "m0", want: "r1"},

		"a reviewer of their own inner commit": {
			history: []string{"max m0", "rita t1 m0", "tom t2 t1", "max c t2"},
			said:    []string{"rita approves t2 since m0", tested, "sue approves c since t2"}, ran: "m0", want: "t2 t1"},
		"a rejection of a commit below": {
			history: branch, said: []string{"sue rejects m2", "sue approves c since m2", tested,
				"rita approves m2 since m1", "sue rejects m2"}, ran: "m1", want: "m2"},
		"a rejection, and then a review of all by somebody else": {
			history: branch, said: []string{"sue rejects m2", tested, "rita approves c since m1"}, ran: "m1"},
		"a rejection, and then a review of all by the same person": {
			history: branch, said: []string{"sue rejects m2", tested, "sue approves c since m1"}, ran: "m1"},
		"a later review of the same person that does not count hides none": {
			history: []string{"max m0", "rita m1 m0", "max m2 m1", "max c m2"},
			said:    []string{tested, "rita approves c since m1", "rita approves m2 since m0"}, ran: "m1"},
		"a rejection of what was reviewed before": {
			history: branch, said: []string{tested, "rita approves c since m1", "sue rejects m2"}, ran: "m1", want: "m2"},
		"an exception covers its commit": {
			history: branch, said: []string{"boss excuses m2", tested, "rita approves c since m2"}, ran: "m1"},
		"an exception of the tip covers nothing else": {
			history: branch, said: []string{tested, "boss excuses c"}, ran: "m1", want: "m2"},
		"who has tested the tip is no reviewer": {
			history: branch, said: []string{tested, "ci approves m2 since m1", "rita approves c since m2"}, ran: "m1",
			want: "m2"},
		"who has tested the tip is no reviewer, also if the tests of a commit below are excused": {
			history: branch, said: []string{tested, "ci approves m2 since m1", "rita approves c since m2",
				"boss excuses m2 from tests"}, ran: "m1", want: "m2"},
		"two reviews of one commit, of which one is needed each": {
			contract: strings.Replace(contract, `"name":"review"`, `"name":"review","threshold":2`, 1),
			history:  branch, said: []string{tested, "rita approves m2 since m1", "sue approves c since m1",
				"rita approves c since m2"}, ran: "m1"},
		"one review where two are needed": {
			contract: strings.Replace(contract, `"name":"review"`, `"name":"review","threshold":2`, 1),
			history:  branch, said: []string{tested, "rita approves m2 since m1", "rita approves c since m1",
				"sue approves c since m2"}, ran: "m1", want: "m2"},

		"nothing runs": {
			history: branch, said: []string{tested, "rita approves c since m1"}, want: "m1 m0"},
		"a parent is not known": {
			history: branch[1:], said: []string{tested, "rita approves c since m1"}, want: "m1 m0?"},
		"a middle commit, whose harm a later one removes": {
			history: branch, said: []string{"ci tests m2", tested, "rita approves c since m1"}, ran: "m0", head: "m2",
			want: "m1"},
		"a middle commit, whose harm a later one has removed that runs": {
			history: branch, said: []string{"ci tests m2", "rita approves m2 since m1", "rita approves c since m0"},
			ran: "m0 c", head: "m2", want: "m1"},
		"an older commit that ran": {
			history: branch, said: []string{"ci tests m1", "rita approves m1 since m0"}, ran: "m1 c", head: "m1"},
		"a policy that asks nothing of changes": {
			contract: strings.Replace(contract, `"covers":"change",`, "", 1), history: branch, said: []string{tested},
			ran: "m0"},
	} {
		t.Run(name, func(t *testing.T) {
			if s.head == "" {
				s.head = "c"
			}
			if got := newTeller(t, s).gaps(); got != s.want {
				t.Errorf("gaps %q, want %q", got, s.want)
			}
		})
	}
}

// Tests apply to what any commit of the delivery changes, and reviews to what each of them does. Contracts of before
// believe what registrations claim of that.
func TestPathsOfDeliveries(t *testing.T) {
	c := must.Get(policy.Parse([]byte(`{"requirements":[
		{"state":"ATTESTED","predicate":"test:billing","paths":["billing/**"]},
		{"state":"PROMOTABLE","predicate":"review:billing","covers":"change","paths":["billing/**"]},
		{"state":"PROMOTABLE","predicate":"review:web","covers":"change","paths":["web/**"]}]}`)))(t)
	c.Rules = 3
	for _, test := range []struct {
		name, path string // that b changes; empty if it is not known
		b, c       string // what is said of the commits
		elsewhere  bool   // whether what runs does not lead to c
		want       string
	}{
		{"both change web", "web/a", "review:web", "review:web", false, ""},
		{"each has the review of its team", "billing/a", "review:billing", "review:web test:billing", false, ""},
		{"nobody reviews billing", "billing/a", "", "review:web test:billing", false, "b"},
		{"nobody tests billing", "billing/a", "review:billing", "review:web", false, "c"},
		{"what b changes is not known", "", "review:billing", "review:web test:billing", false, "b"},
		{"the files differ elsewhere, too", "web/a", "review:web", "review:web", true, "c"},
	} {
		commits := []Commit{
			{lineage.Shipped{SHA: "c", Parents: []string{"b"}, Known: true}, changing("web/b", test.c)},
			{lineage.Shipped{SHA: "b", Known: true}, changing(test.path, test.b)},
		}
		_, gaps := Judge(&c, commits, Base{Follows: !test.elsewhere}, now)
		var names []string
		for _, gap := range gaps {
			names = append(names, gap.Commit)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%s: gaps %q, want %q: %+v", test.name, got, test.want, gaps)
		}
	}
}

// changing returns the facts of a commit that changes a path, and of which something was said.
func changing(path, said string) *policy.Facts {
	f := &policy.Facts{Attested: true, HasChanges: path != "", Changes: []string{path}}
	for predicate := range strings.FieldsSeq(said) {
		f.Evidence = append(f.Evidence, policy.Evidence{Predicate: predicate, Status: ledger.Pass, RecordedAt: now - 1000,
			Signer: identity.DN{CN: predicate}})
	}
	return f
}
