package record

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// TestStatesFollowFromEvidence runs random operations on a repo. It checks that the
// state of every commit follows from its evidence and is the end of its transitions,
// and that the counts are right.
func (s suite) TestStatesFollowFromEvidence(t *testing.T) {
	testenv.Check(t, func(r *rapid.T) {
		fx := s.newFixture(t)
		defer fx.CloseAll()
		m := &model{fx: fx, r: r, evidence: make(map[string][]policy.Evidence), author: make(map[string]string)}
		for _, dn := range []string{"cn=ci,ou=build,o=acme", "cn=ann,ou=dev,o=acme", "cn=bob,ou=dev,o=acme"} {
			m.signers = append(m.signers, fx.NewSigner(dn))
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

// A model is the test's own record of its operations.
type model struct {
	fx       *fixture
	r        *rapid.T
	signers  []*storetest.Signer
	evidence map[string][]policy.Evidence // by commit
	author   map[string]string            // by commit
}

func (m *model) commit() string { return sha(rapid.IntRange(0, 3).Draw(m.r, "commit")) }

func (m *model) attest() {
	signer := rapid.SampledFrom(m.signers).Draw(m.r, "signer")
	commit := m.commit()
	predicate := rapid.SampledFrom([]string{"test:go", "review:code", "deploy:prod"}).Draw(m.r, "predicate")
	status := rapid.SampledFrom([]ledger.Status{ledger.Pass, ledger.Pass, ledger.Fail, ledger.Skip}).Draw(m.r, "status")
	promotable := m.isPromotable(commit)
	rec := signer.Attest(commit, predicate, status)
	dn, err := identity.ParseDN(signer.DN)
	must.OK(m.fx.T, err)
	m.evidence[commit] = append(m.evidence[commit], policy.Evidence{
		Attestation: rec.ID, Predicate: predicate, Signer: dn, Status: status, RecordedAt: rec.RecordedAt,
		WhilePromotable: promotable,
	})
}

// isPromotable reports whether the commit's evidence makes it PROMOTABLE.
func (m *model) isPromotable(commit string) bool {
	policy, err := m.fx.Policy(m.fx.T.Context(), "acme", "api", 0)
	must.OK(m.fx.T, err)
	return policy.Contract.Derive(m.facts(commit), m.fx.Now()).State >= ledger.Promotable
}

func (m *model) register() {
	commit := m.commit()
	author := m.author[commit]
	if author == "" {
		author = rapid.SampledFrom([]string{"ann", "bob", "eve"}).Draw(m.r, "author")
	}
	_, _, err := m.fx.Register(m.fx.T.Context(), "acme", "api", commit,
		ledger.Registration{Author: ledger.Author{Name: author}})
	must.OK(m.fx.T, err)
	m.author[commit] = author
}

func (m *model) changePolicy() {
	text := rapid.SampledFrom([]string{
		`{"requirements":[{"state":"ATTESTED","predicate":"test:*","max_age":"1h"},{"state":"DEPLOYED",` +
			`"predicate":"deploy:*"}]}`,
		`{"requirements":[{"state":"PROMOTABLE","predicate":"review:*","threshold":2,"exclude_author":true},` +
			`{"state":"DEPLOYED","predicate":"deploy:*"}]}`,
		`{"requirements":[{"state":"ATTESTED","predicate":"test:*","accept":["pass","skip"]}]}`,
		`{"requirements":[{"state":"ATTESTED","predicate":"review:*","exclude_author":"known"}]}`,
		string(policy.Default().Canonical()),
	}).Draw(m.r, "policy")

	contract, err := policy.Parse([]byte(text))
	must.OK(m.fx.T, err)
	simulated, err := m.fx.Simulate(m.fx.T.Context(), "acme", "api", contract)
	must.OK(m.fx.T, err)
	_, err = m.fx.SetPolicy(m.fx.T.Context(), "acme", "api", contract, 0, "host")
	must.OK(m.fx.T, err)

	if rapid.Bool().Draw(m.r, "write before it is settled") {
		m.attest()
		m.register()
		must.OK(m.fx.T, m.fx.Settle(m.fx.T.Context()))
		return
	}
	must.OK(m.fx.T, m.fx.Settle(m.fx.T.Context()))
	for _, move := range simulated.Moves {
		if c := m.fx.ReadCommit(move.Commit); c.State != move.To {
			m.r.Fatalf("commit %s is %s, simulated %s", move.Commit, c.State, move.To)
		}
	}
}

func (m *model) wait() {
	m.fx.Clock.Advance(rapid.SampledFrom([]time.Duration{time.Minute, time.Hour}).Draw(m.r, "wait"))
	if rapid.Bool().Draw(m.r, "write before it is settled") {
		m.attest()
	}
	must.OK(m.fx.T, m.fx.Settle(m.fx.T.Context()))
}

func (m *model) check() {
	policy, err := m.fx.Policy(m.fx.T.Context(), "acme", "api", 0)
	must.OK(m.fx.T, err)
	list, err := m.fx.Commits(m.fx.T.Context(), "acme", "api", store.CommitFilter{Query: store.Query{Limit: 100}})
	must.OK(m.fx.T, err)

	counts, attestations := make(map[ledger.State]int64), int64(0)
	for _, c := range list.Data {
		m.checkCommit(policy.Contract, m.fx.ReadCommit(c.SHA))
		counts[c.State]++
		attestations += c.Attested
	}
	repo, err := m.fx.Repo(m.fx.T.Context(), "acme", "api")
	must.OK(m.fx.T, err)
	for _, state := range ledger.States() {
		if repo.Commits[state] != counts[state] {
			m.r.Fatalf("the repo counts %d commits in %s, want %d", repo.Commits[state], state, counts[state])
		}
	}
	if repo.Attestations != attestations {
		m.r.Fatalf("the repo counts %d attestations, want %d", repo.Attestations, attestations)
	}
}

func (m *model) checkCommit(contract policy.Contract, c ledger.Commit) {
	state := ledger.Draft
	for _, step := range c.Transitions {
		if step.From != state {
			m.r.Fatalf("commit %s: a transition from %s, want from %s", c.SHA, step.From, state)
		}
		state = step.To
	}
	if state != c.State {
		m.r.Fatalf("commit %s is %s, its transitions lead to %s", c.SHA, c.State, state)
	}

	if c.State == ledger.Deployed {
		return // only a rollback takes it out, which other tests check
	}
	want := contract.Derive(m.facts(c.SHA), m.fx.Now())
	if c.State != want.State || fmt.Sprint(c.Requirements) != fmt.Sprint(want.Requirements) {
		m.r.Fatalf("commit %s is %s %+v\nwant by its evidence %s %+v", c.SHA, c.State, c.Requirements, want.State,
			want.Requirements)
	}
}

// facts returns the latest evidence of each predicate and signer for a commit.
func (m *model) facts(sha string) policy.Facts {
	f := policy.Facts{Authors: []ledger.Author{{Name: m.author[sha]}}, Targets: []string{"main"}, Target: "main",
		Attested: len(m.evidence[sha]) > 0}
	if author := m.author[sha]; author != "eve" { // nobody of the org has this name
		f.KnownAuthors = []string{author}
	}
	latest := make(map[string]int)
	for _, s := range m.evidence[sha] {
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
