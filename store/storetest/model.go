package storetest

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
)

// TestStatesFollowFromTheEvidence does at random what can be done to a repo,
// and checks that every commit is where its recorded evidence puts it, that
// each is where its transitions lead, and that the counts are right.
func (s suite) TestStatesFollowFromTheEvidence(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := s.newBench(t)
		defer b.Close()
		m := &model{b: b, r: r, said: make(map[string][]policy.Evidence), author: make(map[string]string)}
		for _, dn := range []string{"cn=ci,ou=build,o=acme", "cn=ann,ou=dev,o=acme", "cn=bob,ou=dev,o=acme"} {
			m.signers = append(m.signers, b.signer(dn))
		}
		r.Repeat(map[string]func(*rapid.T){
			"attest":        func(r *rapid.T) { m.r = r; m.attest() },
			"register":      func(r *rapid.T) { m.r = r; m.register() },
			"change policy": func(r *rapid.T) { m.r = r; m.changePolicy() },
			"wait":          func(r *rapid.T) { m.r = r; m.wait() },
			"":              func(r *rapid.T) { m.check() },
		})
	})
}

// A model is what the test itself remembers of what it did.
type model struct {
	b       *bench
	r       *rapid.T
	signers []*signer
	said    map[string][]policy.Evidence // by commit
	author  map[string]string
}

func (m *model) commit() string { return sha(rapid.IntRange(0, 3).Draw(m.r, "commit")) }

func (m *model) attest() {
	signer := rapid.SampledFrom(m.signers).Draw(m.r, "signer")
	commit := m.commit()
	predicate := rapid.SampledFrom([]string{"test:go", "review:code", "deploy:prod"}).Draw(m.r, "predicate")
	status := rapid.SampledFrom([]ledger.Status{ledger.Pass, ledger.Pass, ledger.Fail, ledger.Skip}).Draw(m.r, "status")
	promotable := m.isPromotable(commit)
	rec := signer.attests(commit, predicate, status)
	dn, err := identity.ParseDN(signer.dn)
	check(m.b.t, err)
	m.said[commit] = append(m.said[commit], policy.Evidence{
		Attestation: rec.ID, Predicate: predicate, Signer: dn, Status: status, RecordedAt: rec.RecordedAt,
		WhilePromotable: promotable,
	})
}

// isPromotable derives whether the commit has all that PROMOTABLE needs.
func (m *model) isPromotable(commit string) bool {
	policy, err := m.b.Policy(m.b.t.Context(), "acme", "api", 0)
	check(m.b.t, err)
	return policy.Contract.Derive(m.facts(commit), m.b.Now()).State >= ledger.Promotable
}

func (m *model) register() {
	commit := m.commit()
	author := m.author[commit]
	if author == "" {
		author = rapid.SampledFrom([]string{"ann", "bob"}).Draw(m.r, "author")
	}
	_, _, err := m.b.Register(m.b.t.Context(), "acme", "api", commit,
		ledger.Registration{Author: ledger.Author{Name: author}})
	check(m.b.t, err)
	m.author[commit] = author
}

func (m *model) changePolicy() {
	text := rapid.SampledFrom([]string{
		`{"requirements":[{"state":"ATTESTED","predicate":"test:*","max_age":"1h"},{"state":"DEPLOYED",` +
			`"predicate":"deploy:*"}]}`,
		`{"requirements":[{"state":"PROMOTABLE","predicate":"review:*","threshold":2,"exclude_author":true},` +
			`{"state":"DEPLOYED","predicate":"deploy:*"}]}`,
		`{"requirements":[{"state":"ATTESTED","predicate":"test:*","accept":["pass","skip"]}]}`,
	}).Draw(m.r, "policy")
	contract, err := policy.Parse([]byte(text))
	check(m.b.t, err)
	foretold, err := m.b.Simulate(m.b.t.Context(), "acme", "api", contract)
	check(m.b.t, err)
	_, err = m.b.SetPolicy(m.b.t.Context(), "acme", "api", contract, 0, "host")
	check(m.b.t, err)
	if rapid.Bool().Draw(m.r, "something comes before the evaluation") {
		m.attest()
		m.register()
		check(m.b.t, m.b.Settle(m.b.t.Context()))
		return
	}
	check(m.b.t, m.b.Settle(m.b.t.Context()))
	for _, move := range foretold.Moves {
		if c := m.b.commit(move.Commit); c.State != move.To {
			m.r.Fatalf("commit %s is %s, simulate foretold %s", move.Commit, c.State, move.To)
		}
	}
}

func (m *model) wait() {
	m.b.clock.advance(rapid.SampledFrom([]time.Duration{time.Minute, time.Hour}).Draw(m.r, "wait"))
	if rapid.Bool().Draw(m.r, "something comes before the evaluation") {
		m.attest()
	}
	check(m.b.t, m.b.Settle(m.b.t.Context()))
}

func (m *model) check() {
	policy, err := m.b.Policy(m.b.t.Context(), "acme", "api", 0)
	check(m.b.t, err)
	list, err := m.b.Commits(m.b.t.Context(), "acme", "api", store.CommitFilter{Query: store.Query{Limit: 100}})
	check(m.b.t, err)
	counts, attestations := make(map[ledger.State]int64), int64(0)
	for _, c := range list.Data {
		m.checkCommit(policy.Contract, m.b.commit(c.SHA))
		counts[c.State]++
		attestations += c.Attested
	}
	repo, err := m.b.Repo(m.b.t.Context(), "acme", "api")
	check(m.b.t, err)
	for _, state := range ledger.States() {
		if repo.Commits[state] != counts[state] {
			m.r.Fatalf("the repo counts %d commits in %s, there are %d", repo.Commits[state], state, counts[state])
		}
	}
	if repo.Attestations != attestations {
		m.r.Fatalf("the repo counts %d attestations, its commits have %d", repo.Attestations, attestations)
	}
}

func (m *model) checkCommit(contract policy.Contract, c ledger.Commit) {
	at := ledger.Draft
	for _, step := range c.Transitions {
		if step.From != at {
			m.r.Fatalf("commit %s: a transition from %s, but it was %s", c.SHA, step.From, at)
		}
		at = step.To
	}
	if at != c.State {
		m.r.Fatalf("commit %s is %s, its transitions lead to %s", c.SHA, c.State, at)
	}
	if c.State == ledger.Deployed {
		return // what keeps it there is checked where it is left
	}
	want := contract.Derive(m.facts(c.SHA), m.b.Now())
	if c.State != want.State || fmt.Sprint(c.Requirements) != fmt.Sprint(want.Requirements) {
		m.r.Fatalf("commit %s is %s %+v\nits evidence derives %s %+v", c.SHA, c.State, c.Requirements, want.State,
			want.Requirements)
	}
}

// facts gathers a commit's evidence from all that was ever said of it.
func (m *model) facts(sha string) policy.Facts {
	f := policy.Facts{Author: ledger.Author{Name: m.author[sha]}, Target: "main", Attested: len(m.said[sha]) > 0}
	latest := make(map[string]int)
	for _, s := range m.said[sha] {
		key := s.Predicate + " " + s.Signer.String()
		if i, ok := latest[key]; ok {
			f.Evidence[i] = s
			continue
		}
		latest[key] = len(f.Evidence)
		f.Evidence = append(f.Evidence, s)
	}
	return f
}
