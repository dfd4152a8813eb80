package delivery

import (
	"fmt"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// A teller reports what happens in a repo to a ledger and to its model.
type teller struct {
	*model
	fx      *storetest.Fixture
	signers map[string]*storetest.Signer
	repo    string
	ids     map[string]string // of commits, by name
	names   map[string]string // by id
	objects map[string][]byte
	log     []string
}

func newTeller(fx *storetest.Fixture, signers map[string]*storetest.Signer, repo string, r rules) *teller {
	fx.T.Helper()
	t := &teller{&model{rules: r, commits: make(map[string]*commit)}, fx, signers, repo, make(map[string]string),
		make(map[string]string), make(map[string][]byte), nil}
	_, err := fx.CreateRepo(fx.T.Context(), "acme", ledger.NewRepo{Name: repo}, "host")
	must.OK(fx.T, err)
	contract := must.Get(policy.Parse([]byte(r.contract())))(fx.T)
	if !r.signed {
		contract.Rules = 3
	}
	_, err = fx.SetPolicy(fx.T.Context(), "acme", repo, contract, 0, "host")
	must.OK(fx.T, err)
	t.note("contract %s by the rules %d", r.contract(), contract.Rules)
	return t
}

// note adds a line to what a test that fails prints.
func (t *teller) note(format string, args ...any) {
	t.log = append(t.log, fmt.Sprintf(format, args...))
}

// commit makes a commit, which the ledger does not know yet. If tree is 0, it has a tree of its own.
func (t *teller) commit(author string, tree int, parents ...string) *commit {
	n := len(t.commits) + 1
	if tree == 0 {
		tree = n
	}
	c := &commit{name: fmt.Sprint("c", n), author: author, parents: parents, tree: tree}
	t.commits[c.name] = c

	list := make([]string, len(parents))
	for i, parent := range parents {
		list[i] = t.ids[parent]
	}
	id, object := storetest.ObjectOn(strings.Join(list, "\nparent "), tree, author, n)
	t.ids[c.name], t.objects[c.name], t.names[id] = id, object, c.name
	t.note("%s is by %s, on %s, with the tree %d", c.name, author, strings.Join(parents, " "), tree)
	return c
}

// register registers a commit, with its object or without.
func (t *teller) register(c *commit, isKnown bool) {
	t.fx.T.Helper()
	t.fx.Turn()
	t.fx.Clock.Tick()
	n := ledger.Registration{Author: ledger.Author{Name: c.author}}
	if isKnown {
		n = ledger.Registration{Object: t.objects[c.name]}
	}
	if c.hasPaths {
		n.Changes = []radar.Change{}
		for _, path := range c.paths {
			n.Changes = append(n.Changes, radar.Change{Path: path, Status: "M"})
		}
	}
	_, _, err := t.fx.Register(t.fx.T.Context(), "acme", t.repo, t.ids[c.name], n)
	must.OK(t.fx.T, err)
	c.registered, c.isNamed = true, true
	c.known = c.known || isKnown
	c.isProven = c.known // what was sent before proves it, too
	t.note("%s is registered, with its object: %t, changes: %t %q", c.name, isKnown, c.hasPaths, c.paths)
}

// send sends the object of a commit alone.
func (t *teller) send(c *commit) {
	t.fx.T.Helper()
	t.fx.Turn()
	_, err := t.fx.AddObjects(t.fx.T.Context(), "acme", t.repo,
		lineage.Objects{Objects: []lineage.Object{{Commit: t.ids[c.name], Object: t.objects[c.name]}}})
	must.OK(t.fx.T, err)
	c.known, c.isNamed, c.isProven = true, c.registered, c.registered
	t.note("the object of %s is sent", c.name)
}

// say records a statement, and compares what comes of a deployment with the model.
func (t *teller) say(s statement) {
	t.fx.T.Helper()
	switch s.verb {
	case claims:
		s.counts = t.isValid(&s)
	case deploys, redeploys: // which depend on what claims carry
		must.OK(t.fx.T, t.fx.Settle(t.fx.T.Context()))
		s.counts = t.deploymentCounts(&s)
	}
	t.note("%s %s %s%s", s.by, s.verb, s.commit, s.details())
	t.said = append(t.said, &s)
	t.commits[s.commit].registered = true
	if s.verb == claims { // which registers the objects of its source and its parent
		t.commits[s.of].registered = true
		for _, c := range []*commit{t.commits[s.of], t.commits[s.on]} {
			c.registered, c.isNamed, c.isProven = c.registered || c.known, c.isNamed || c.known, c.isProven || c.known
		}
	}

	rec, created, err := t.signers[s.by].SendTo(t.repo, t.payload(&s))
	must.OK(t.fx.T, err)
	isDeployment := s.verb == deploys || s.verb == redeploys
	if !created || isDeployment && s.counts != (rec.Violation == nil) {
		t.fx.T.Errorf("it is new: %t, and a violation: %+v; want that it counts: %t", created, rec.Violation, s.counts)
	}
}

func (s *statement) details() (text string) {
	for _, d := range [][2]string{{"as", s.kind}, {"of", s.of}, {"on", s.on}, {"for", s.env}} {
		if d[1] != "" {
			text += " " + d[0] + " " + d[1]
		}
	}
	if s.verb == compares {
		text += fmt.Sprintf(", and finds %q", s.paths)
	}
	return text
}

// payload returns the text of a statement.
func (t *teller) payload(s *statement) []byte {
	t.fx.T.Helper()
	id, repo, now := t.ids[s.commit], "acme/"+t.repo, ledger.Time(t.fx.Clock.Tick())
	var payload []byte
	var err error
	switch s.verb {
	case claims:
		payload, err = attestation.NewMergeStatement(id, attestation.Merge{Repo: repo, Kind: attestation.MergeKind(s.kind),
			Source: attestation.MergedCommit{SHA: t.ids[s.of]}, Parent: attestation.MergedCommit{SHA: t.ids[s.on]},
			Tree: fmt.Sprintf("%040x", t.commits[s.commit].tree), StartedOn: now})
	case excuses:
		payload, err = attestation.NewExceptionStatement(id, attestation.Exception{Repo: repo, Requirement: s.of,
			Reason: "urgent", IssuedOn: now, Until: now.Add(time.Hour)})
	case rollsBack:
		payload, err = attestation.NewRollbackStatement(id, attestation.Rollback{Repo: repo, Environment: s.env,
			Reason: "it leaks", To: attestation.RunningCommit{SHA: t.ids[s.on]}, IssuedOn: now})
	case bases:
		payload, err = attestation.NewBaselineStatement(id, attestation.Baseline{Repo: repo, Environment: s.env,
			IssuedOn: now})
	case compares:
		payload, err = attestation.NewChangesStatement(id, attestation.Changes{Repo: repo, Base: t.ids[s.on],
			Paths: s.paths})
	default:
		payload, err = attestation.NewStatement("", id, t.result(s, now))
	}
	must.OK(t.fx.T, err)
	return payload
}

// result returns the result that a statement signs.
func (t *teller) result(s *statement, now ledger.Time) attestation.ResultPredicate {
	p := attestation.ResultPredicate{Repo: "acme/" + t.repo, StartedOn: now, Result: ledger.Result{Status: ledger.Pass}}
	switch s.verb {
	case passes, fails:
		p.Predicate = "test:" + s.of
	case approves, rejects:
		p.Predicate, p.Base = "review:code", t.ids[s.on]
	default:
		p.Predicate = ledger.EnvironmentPredicate(s.env)
	}
	switch s.verb {
	case fails, rejects:
		p.Result.Status = ledger.Fail
	case redeploys:
		p.Again = "it was the database"
	}
	return p
}
