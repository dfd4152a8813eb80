package web_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// A history is what happens to the commits of one repo, and what the test knows of it.
type history struct {
	*agreement
	repo     string
	rnd      *rand.Rand
	contract policy.Contract
	document string
	graph    []gitCommit
	// thief has a key, admitted at some time, that is distrusted later. It may be nil.
	thief *signer
	// isReplacing reports whether evidence of the thief was distrusted since the background has last
	// done its work.
	isReplacing bool
	admitted    ledger.Time
	merging     bool              // it is mostly about a merge, under plain contracts
	updating    bool              // it is about a branch that is updated
	deploys     bool              // it is mostly about what is deployed, under plain contracts
	facts       map[string]*known // by commit
	verdicts    policy.Verdicts
	open        map[violated]bool
	log         []string
}

// A violated is a commit and the predicate of a violation.
type violated struct{ commit, predicate string }

// A known is what the test knows of a commit.
type known struct {
	policy.Facts
	claimed []string // targets, oldest first
	author  ledger.Author
	others  []ledger.Author // committers and co-authors
	object  *gitCommit      // nil until it is registered
	claims  []mergeClaim    // oldest first
}

func (a *agreement) newHistory(seed uint64) *history {
	h := &history{agreement: a, repo: fmt.Sprintf("r%d", seed), rnd: rand.New(rand.NewPCG(seed, 1)),
		facts: make(map[string]*known), verdicts: make(policy.Verdicts), open: make(map[violated]bool)}
	_, err := a.host.CreateRepo(a.t.Context(), "acme", ledger.NewRepo{Name: h.repo})
	must.OK(a.t, err)
	a.page = a.signIn(a.admin)
	h.merging = one(h.rnd, 3)
	h.updating = h.merging && one(h.rnd, 2)
	h.deploys = !h.merging && one(h.rnd, 3)
	if one(h.rnd, 8) {
		h.admitThief(seed)
	}
	h.drawGraph()
	h.changePolicy(h.draft())

	if h.merging || one(h.rnd, 2) {
		for _, c := range h.graph {
			h.register(c.id, ledger.Registration{Object: c.object})
		}
	}
	if h.updating {
		h.reviewUpdates()
	}
	if h.merging || h.deploys {
		for range 2 {
			h.attest(h.graph[0].id, "test:go", ledger.Pass)
			h.attest(h.graph[0].id, "review:code", ledger.Pass)
		}
	}
	return h
}

// reviewUpdates tests and reviews the commits of drawUpdates, but not the last one.
func (h *history) reviewUpdates() {
	for _, n := range []int{m0, m1, squash, branchTip, branchTip, branchTip, update} {
		h.attest(h.graph[n].id, "test:go", ledger.Pass)
		h.attest(h.graph[n].id, "review:code", ledger.Pass)
	}
	for range 3 {
		h.claimUpdate(h.anySigner(false))
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// one returns true once in n times.
func one(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

func (h *history) note(format string, args ...any) {
	h.log = append(h.log, h.clock.time().String()+" "+fmt.Sprintf(format, args...))
}

// step lets something happen.
func (h *history) step() {
	h.replace()
	switch r := h.rnd; {
	case one(r, 12):
		h.changePolicy(h.draft())
	case one(r, 6):
		h.wait()
	case one(r, 4):
		h.registerAny()
	case one(r, 6):
		h.claim()
	case one(r, 6):
		h.look()
	case one(r, 6):
		h.except()
	case h.thief != nil && one(r, 8):
		now := h.clock.time()
		h.distrust(pick(r, h.admitted, now, h.admitted+(now-h.admitted)/2))
	case h.merging && one(r, 3):
		h.claim()
	case one(r, 8):
		h.rollBack()
	case one(r, 3) && h.oneIn(ledger.Promotable) != "":
		h.attest(h.oneIn(ledger.Promotable), "deploy:prod", ledger.Pass)
	case one(r, 3) && h.oneIn(ledger.Deployed) != "":
		h.attestAny(h.oneIn(ledger.Deployed))

	default:
		h.attestAny(h.commit())
	}
}

// oneIn returns the first commit in a state; an empty text if none is.
func (h *history) oneIn(s ledger.State) string {
	for _, c := range h.graph {
		if k := h.facts[c.id]; k != nil && h.derive(c.id, k) == s {
			return c.id
		}
	}
	return ""
}

func (h *history) commit() string { return pick(h.rnd, h.graph...).id }

func (h *history) know(commit string) *known {
	k := h.facts[commit]
	if k == nil {
		k = &known{Facts: policy.Facts{Target: "main", Verdicts: h.verdicts}}
		h.facts[commit] = k
	}
	return k
}

func (h *history) settle() {
	must.OK(h.t, h.db.Settle(h.t.Context()))
	h.isReplacing = false
	for commit, k := range h.facts {
		h.derive(commit, k)
	}
}

// noteRegistered notes that the ledger learns of a commit now, if it does not know it.
func (h *history) noteRegistered(k *known) {
	if k.RegisteredAt == 0 {
		k.RegisteredAt = h.clock.time()
	}
}

// derive updates what the test knows after something has happened.
func (h *history) derive(commit string, k *known) ledger.State {
	if k.Attested {
		h.noteRegistered(k)
	}
	h.inherit(commit, k)
	k.Targets = h.contract.Targets.Targets("main", k.claimed)
	state, _ := h.contract.State(k.Facts, h.clock.time())
	k.Deployed = state == ledger.Deployed
	return state
}

func (h *history) changePolicy(document string) {
	h.document = document
	contract := must.Get(policy.Parse([]byte(h.document)))(h.t)
	_, etag, err := h.host.Policy(h.t.Context(), "acme", h.repo)
	must.OK(h.t, err)
	_, err = h.host.SetPolicy(h.t.Context(), "acme", h.repo, []byte(h.document), etag)
	must.OK(h.t, err)
	h.contract = contract
	h.note("contract %s", h.document)
	h.settle()
}

func (h *history) wait() {
	d := pick(h.rnd, time.Minute, time.Hour, 2*time.Hour)
	h.clock.advance(d)
	h.page = h.signIn(h.admin) // a session ends after 12 hours
	h.note("%s pass", d)
	if one(h.rnd, 2) {
		h.settle()
	}
}

// registerAny registers a commit with anything that a client may know.
func (h *history) registerAny() {
	r, commit := h.rnd, h.commit()
	k := h.know(commit)
	var n ledger.Registration
	if one(r, 2) {
		n.Object = h.git(commit).object
	}

	if n.Object == nil && !k.Proven {
		h.claimAuthors(k, &n)
	}
	if one(r, 3) {
		n.Target = pick(r, "topic", "release/1")
		k.Target = n.Target
		if !slices.Contains(k.claimed, n.Target) {
			k.claimed = append(k.claimed, n.Target)
		}
	}
	if one(r, 3) {
		n.Changes = []radar.Change{{Path: pick(r, "a/x.go", "b/y", "c"), Status: "M"}}
		k.HasChanges = true
		if !slices.Contains(k.Changes, n.Changes[0].Path) {
			k.Changes = append(k.Changes, n.Changes[0].Path)
		}
	}
	h.register(commit, n)
}

// claimAuthors lets a registration claim who wrote a commit.
func (h *history) claimAuthors(k *known, n *ledger.Registration) {
	r := h.rnd
	if one(r, 2) {
		n.Author = pick(r, ledger.Author{Name: "Ann", Email: "ann@acme.example"},
			ledger.Author{Name: "BOB", Email: "b@acme.example"})
		if k.author != (ledger.Author{}) {
			n.Author = k.author
		}
		k.author = n.Author
	}
	if one(r, 4) {
		n.Committer = ledger.Author{Name: pick(r, "ci", "Somebody"), Email: "x@acme.example"}
		k.others = append(k.others, n.Committer)
	}
	if one(r, 4) {
		n.Message = "Change it\n\nCo-authored-by: " + pick(r, "Ann <a@acme.example>", "SEC <s@acme.example>")
		k.others = append(k.others, ledger.CoAuthors(n.Message)...)
	}
}

func (h *history) register(commit string, n ledger.Registration) {
	k := h.know(commit)
	h.noteRegistered(k)
	_, _, err := h.host.Register(h.t.Context(), "acme", h.repo, commit, n)
	must.OK(h.t, err)
	h.note("register %s of the tree %s, object %t, %+v %+v %s %s %+v", commit[36:], h.git(commit).tree[:4],
		n.Object != nil, n.Author, n.Committer, n.Message, n.Target, n.Changes)
	if n.Object != nil {
		h.prove(commit, k)
	}
	k.Authors = nil
	if k.author != (ledger.Author{}) {
		k.Authors = append([]ledger.Author{k.author}, k.others...)
	}
	k.AuthorPeople, k.KnownAuthors = h.peopleNamed(k.Authors)
	h.derive(commit, k)
}

// peopleNamed returns the individuals with an identity that has the name of an author, and these
// names.
func (h *history) peopleNamed(authors []ledger.Author) (people []int64, known []string) {
	for dn := range h.people {
		name := nameOf(h.t, dn)
		isNamed := func(a ledger.Author) bool { return strings.EqualFold(a.Name, name) }
		if slices.ContainsFunc(authors, isNamed) {
			people, known = append(people, h.individual(dn)), append(known, name)
		}
	}
	return people, known
}

// attestAny records any attestation of a commit.
func (h *history) attestAny(commit string) {
	r := h.rnd
	predicate := pick(r, "test:go", "test:go", "review:code", "deploy:prod", "deploy:staging")
	if h.worth(commit, h.know(commit)) >= ledger.Promotable && one(r, 2) {
		predicate = "deploy:prod"
	}
	h.attest(commit, predicate,
		pick(r, ledger.Pass, ledger.Pass, ledger.Pass, ledger.Pass, ledger.Warn, ledger.Fail, ledger.Skip))
}

func (h *history) attest(commit, predicate string, status ledger.Status) {
	r, k := h.rnd, h.know(commit)
	before := h.worth(commit, k)
	h.clock.advance(time.Millisecond)
	p := attestation.ResultPredicate{Predicate: predicate, FinishedOn: h.clock.time(),
		Result: ledger.Result{Status: status, DurationMS: pick(r, int64(5), 50)}}
	if one(r, 2) {
		p.Annotations = map[string]string{"by": "hand"}
	}
	if bases := h.git(commit).parents; predicate == "review:code" && len(bases) > 0 && one(r, 2) {
		p.Base = pick(r, append(bases, h.commit())...)
		if p.Base == commit {
			p.Base = ""
		}
	}
	_, isDeployment := ledger.EnvironmentOf(predicate)
	switch {
	case isDeployment && status == ledger.Fail && one(r, 2):
		p.Rollout = ledger.RolloutFailed
	case isDeployment && status == ledger.Pass && one(r, 3):
		p.Again = "it was the database"
	}
	payload, err := attestation.NewStatement("git+https://git.example/acme/"+h.repo, commit, p)
	must.OK(h.t, err)
	rec := h.send(payload, h.anySigner(predicate != "deploy:prod"))
	h.note("%s %s of %s: %s by %s, %d ms, %v, %s%s", p.Base, predicate, commit[36:], status, rec.Identity,
		p.Result.DurationMS, p.Annotations, p.Rollout, p.Again)

	e := h.evidence(rec, before)
	e.Base = p.Base
	e.WhilePromotable = e.WhilePromotable && h.contract.MayDeploy(k.Facts, e, p.Again != "", h.clock.time())
	k.Evidence, k.Attested = append(k.Evidence, e), true
	h.learn(verdicts(rec.ID, p.Result.DurationMS == 5, p.Annotations != nil))
	h.judge(commit, predicate, rec, e)
}

// rollBack takes a commit out of an environment.
func (h *history) rollBack() {
	commit, environment := h.commit(), pick(h.rnd, "prod", "prod", "staging")
	k := h.know(commit)
	before := h.worth(commit, k)
	h.clock.advance(time.Millisecond)
	payload, err := attestation.NewRollbackStatement(commit, attestation.Rollback{Repo: "acme/" + h.repo,
		Environment: environment, Reason: "it leaks", IssuedOn: h.clock.time()})
	must.OK(h.t, err)
	rec := h.send(payload, h.anySigner(false))
	h.note("rollback of %s from %s by %s", commit[36:], environment, rec.Identity)

	e := h.evidence(rec, before)
	e.Reason = "it leaks"
	k.Evidence, k.Attested = append(k.Evidence, e), true
	h.judge(commit, ledger.EnvironmentPredicate(environment), rec, e)
}

// judge says what an attestation means for the violations of a predicate, and for the state.
func (h *history) judge(commit, predicate string, rec ledger.AttestationRecord, e policy.Evidence) {
	k := h.know(commit)
	wasDeployed := k.Deployed
	isRollback := h.contract.RollsBack(k.Facts, e)
	k.Deployed = k.Deployed && !isRollback

	missing, isViolation := h.contract.Violation(k.Facts, e, h.clock.time())
	if (rec.Violation != nil) != isViolation {
		h.t.Errorf("%s of %s: violation %v, want %q", predicate, commit[36:], rec.Violation, missing)
	}
	at := violated{commit, predicate}
	switch {
	case isViolation:
		h.open[at] = true
	case h.contract.IsDeployment(e), isRollback && (wasDeployed || h.open[at]):
		maps.DeleteFunc(h.open, func(v violated, _ bool) bool { return v.predicate == predicate })
	}
	h.derive(commit, k)
}

// worth returns the state that a commit has, or would have if it were not deployed.
func (h *history) worth(commit string, k *known) ledger.State {
	h.derive(commit, k)
	f := k.Facts
	f.Deployed = false
	state, _ := h.contract.State(f, h.clock.time())
	return state
}

// anySigner returns a signer.
func (h *history) anySigner(mayBeThief bool) *signer {
	if h.thief != nil && mayBeThief && one(h.rnd, 2) {
		return h.thief
	}
	return pick(h.rnd, h.signers...)
}

// send signs a statement, and records it.
func (h *history) send(payload []byte, by *signer) ledger.AttestationRecord {
	envelope := must.Get(attestation.SignDSSE(by.key, payload))(h.t)
	rec, _, err := h.host.Record(h.t.Context(), "acme", h.repo, envelope)
	must.OK(h.t, err)
	return rec
}

func (h *history) evidence(rec ledger.AttestationRecord, before ledger.State) policy.Evidence {
	dn := must.Get(identity.ParseDN(rec.Identity))(h.t)
	return policy.Evidence{Attestation: rec.ID, Predicate: rec.Predicate, PredicateType: rec.PredicateType, Signer: dn,
		Person: h.people[rec.Identity], Individual: h.individual(rec.Identity), Status: rec.Result.Status,
		RecordedAt:      rec.RecordedAt,
		WhilePromotable: before >= ledger.Promotable}
}

// except grants an exception, or ends one.
func (h *history) except() {
	r, commit := h.rnd, h.commit()
	k := h.know(commit)
	before := h.worth(commit, k)
	h.clock.advance(time.Millisecond)
	x := attestation.Exception{
		Repo: "acme/" + h.repo, Requirement: pick(r, "r0", "r0", "r1", "r2", "rollback:prod"), Reason: "it is urgent",
		Until: h.clock.time().Add(pick(r, 0, time.Hour, 3*time.Hour, 48*time.Hour)), IssuedOn: h.clock.time(),
	}
	payload, err := attestation.NewExceptionStatement(commit, x)
	must.OK(h.t, err)
	rec := h.send(payload, h.anySigner(false))
	h.note("exception of %s from %s by %s until %s", commit[36:], x.Requirement, rec.Identity, x.Until)

	e := h.evidence(rec, before)
	k.Evidence, k.Attested = append(k.Evidence, e), true
	k.Exceptions = append(k.Exceptions, policy.Exception{Attestation: rec.ID, Requirement: x.Requirement, Signer: e.Signer,
		Reason: x.Reason, RecordedAt: rec.RecordedAt, Until: x.Until})
	h.derive(commit, k)
	excused := h.contract.Excused(k.Facts, h.clock.time(), rec.ID)
	maps.DeleteFunc(h.open, func(v violated, _ bool) bool {
		d := policy.Evidence{Predicate: v.predicate, PredicateType: attestation.ResultPredicateType}
		return v.commit == commit && h.contract.Excuses(excused, k.Facts, d)
	})
}
