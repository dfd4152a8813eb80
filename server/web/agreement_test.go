package web_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attention"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/storetest"
)

var (
	histories = flag.Int("agreement.histories", 0,
		"the `number` of histories in TestAllAgreeOnStates, instead of that of the level")
)

// TestAllAgreeOnStates runs random histories under random contracts. The stored record,
// what gate reads, a simulation of the same contract, the page, and the evaluation in the
// background give the same state and the same reasons, which follow from what the test
// itself knows of the history.
//
// To run a part of many histories, name the first and their number, as '.ci/run full' does:
//
//	LEDGERD_TEST_SEED=3000 go test ./server/web -run TestAllAgreeOnStates -agreement.histories 1000
func TestAllAgreeOnStates(t *testing.T) {
	t.Run("OnSQLite", func(t *testing.T) { testAgreement(t, storetest.NewFile(t)) })
	t.Run("OnPostgreSQL", func(t *testing.T) {
		testenv.From(t, testenv.Push, "starts a PostgreSQL server")
		testAgreement(t, pgtest.Start(t, pgtest.Fast()...).NewDatabase(t))
	})
}

// testAgreement runs random histories in a new database.
func testAgreement(t *testing.T, database string) {
	a := newAgreementIn(t, database)
	many := cmp.Or(*histories, testenv.Pick(15, 500, 500))
	first := testenv.Seed(t)
	for n := first; n < first+uint64(many); n++ {
		h := a.newHistory(n)
		for range 4 + h.rnd.IntN(12) {
			h.step()
		}
		h.compare()
		if t.Failed() {
			t.Fatalf("history %d, contract %s:\n%s", n, h.document, strings.Join(h.log, "\n"))
		}
	}
	t.Logf("%d states compared: %v; evidence carries %v; rolled back from %v; %d lapsed", a.compared, a.reached, a.carried,
		a.rolledBack, a.lapsed)
}

// An agreement is a server on which histories take place, each in a repo of its own.
type agreement struct {
	*env
	page    *browser
	signers []*signer
	// people numbers the people of signers, by DN.
	people   map[string]int64
	compared int
	reached  map[ledger.State]int
	carried  map[string]int // evidence of other commits, by how it carries
	// rolledBack counts commits by the environment whose gate is shut for them.
	rolledBack map[string]int
	lapsed     int
}

func newAgreement(t *testing.T) *agreement { return newAgreementIn(t, storetest.NewFile(t)) }

func newAgreementIn(t *testing.T, database string) *agreement {
	a := &agreement{env: newEnvIn(t, database), people: make(map[string]int64), reached: make(map[ledger.State]int),
		carried: make(map[string]int), rolledBack: make(map[string]int)}
	for i, dn := range []string{"cn=ci,ou=build,o=acme", "cn=ann,ou=dev,o=acme", "cn=bob,ou=dev,o=acme",
		"cn=ops,ou=platform,o=acme", "cn=sec,ou=platform,o=acme"} {
		a.signers = append(a.signers, a.signer(dn))
		a.people[dn] = int64(i + 1)
	}
	// Another key of bob, under a name that folds to the same.
	a.signers = append(a.signers, a.signer("cn=Bob,ou=Dev,o=acme"))
	a.people["cn=Bob,ou=Dev,o=acme"] = a.people["cn=bob,ou=dev,o=acme"]
	// A person with the name of another one, who count once.
	a.signers = append(a.signers, a.signer("cn=ops,ou=dev,o=acme"))
	a.people["cn=ops,ou=dev,o=acme"] = 6
	return a
}

// individual returns the number of those who count once with a person: it is that of the first of
// the people with the name.
func (a *agreement) individual(dn string) int64 {
	individual := a.people[dn]
	for other, person := range a.people {
		if nameOf(a.t, other) == nameOf(a.t, dn) {
			individual = min(individual, person)
		}
	}
	return individual
}

// nameOf returns the name of a DN, in the form in which names are compared.
func nameOf(t testing.TB, dn string) string {
	parsed := must.Get(identity.ParseDN(dn))(t)
	return identity.FoldName(parsed.CN)
}

// compare compares what all parts say about each commit.
func (h *history) compare() {
	h.look()
	h.settle()
	for _, commit := range slices.Sorted(maps.Keys(h.facts)) {
		h.compareCommit(commit, h.facts[commit])
	}
	h.compareLapsed()
	h.compareSimulation()
	h.compareBackground()
	h.compareLapsed()
}

func (h *history) record(commit string) ledger.Commit {
	c, err := h.host.Commit(h.t.Context(), "acme", h.repo, commit)
	must.OK(h.t, err)
	return c
}

// compareCommit compares the record, which gate reads, and the page with what follows from
// the history.
func (h *history) compareCommit(commit string, k *known) {
	want := h.compareRecord(commit, k)
	h.comparePage(commit, want)
	h.compareTarget(commit, k)
}

// compareRecord compares the record with what follows from the history.
func (h *history) compareRecord(commit string, k *known) policy.Derivation {
	want := h.contract.Derive(k.Facts, h.clock.time())
	h.compared++
	h.reached[want.State]++
	for _, r := range want.Requirements {
		for _, c := range r.Carried {
			h.carried[c.By]++
		}
	}

	got := h.record(commit)
	h.compareGate(commit, &got)
	h.contract.NoteDistrusted(want.Requirements, got.Attestations)
	if got.State != want.State || got.Standing != want.Standing {
		h.t.Errorf("commit %s is %s, standing %s, want %s, standing %s", commit[36:], got.State, got.Standing, want.State,
			want.Standing)
	}
	if !reflect.DeepEqual(got.RolledBack, want.RolledBack) {
		h.t.Errorf("%s was rolled back: %+v, want %+v", commit[36:], got.RolledBack, want.RolledBack)
	}
	for _, r := range want.RolledBack {
		h.rolledBack[r.Environment]++
	}
	for i, r := range want.Requirements {
		if !reflect.DeepEqual(normal(got.Requirements[i]), normal(r)) {
			h.t.Errorf("requirement %d of %s is %+v\nwant %+v", i, commit[36:], got.Requirements[i], r)
		}
	}

	open := 0
	for v := range h.open {
		if v.commit == commit {
			open++
		}
	}
	if got.OpenViolations != open || len(got.Violations) != open {
		h.t.Errorf("%s has %d open violations, %+v, want %d", commit[36:], got.OpenViolations, got.Violations, open)
	}
	return want
}

// compareGate compares what the gate of a commit answers with its record.
func (h *history) compareGate(commit string, record *ledger.Commit) {
	required, environment := pick(h.rnd, ledger.States()...), pick(h.rnd, "", "prod", "staging")
	got, err := h.host.Gate(h.t.Context(), "acme", h.repo, commit, required, "", environment)
	must.OK(h.t, err)
	want := record.Gate(required, environment)
	got.Reasons, want.Reasons, got.More, want.More = nil, nil, 0, 0 // a record says what is distrusted, too
	if !reflect.DeepEqual(got, want) {
		h.t.Errorf("the gate of %s for %s to %q answers %+v, want %+v", commit[36:], required, environment, got, want)
	}
}

// compareTarget compares the answer for one branch, which gate --target reads.
func (h *history) compareTarget(commit string, k *known) {
	target := pick(h.rnd, "main", "topic", "release/1")
	f := k.Facts
	f.Targets = []string{target}
	want := h.contract.Derive(f, h.clock.time())

	got, err := h.host.CommitFor(h.t.Context(), "acme", h.repo, commit, target, "")
	must.OK(h.t, err)
	h.contract.NoteDistrusted(want.Requirements, got.Attestations)
	if got.TargetState == nil || *got.TargetState != want.State || got.Standing != want.Standing {
		h.t.Errorf("commit %s for %s is %v, standing %s, want %s, standing %s", commit[36:], target, got.TargetState,
			got.Standing, want.State, want.Standing)
	}
	for i, r := range want.Requirements {
		if !reflect.DeepEqual(normal(got.Requirements[i]), normal(r)) {
			h.t.Errorf("requirement %d of %s for %s is %+v\nwant %+v", i, commit[36:], target, got.Requirements[i], r)
		}
	}
}

// normal returns a status without empty lists, which JSON does not distinguish from none.
func normal(s ledger.RequirementStatus) ledger.RequirementStatus {
	s.Carried = append([]ledger.CarriedEvidence(nil), s.Carried...)
	s.SignersCounted, s.FailedBy = append([]string(nil), s.SignersCounted...), append([]string(nil), s.FailedBy...)
	return s
}

// comparePage compares the page of a commit with its derivation.
func (h *history) comparePage(commit string, want policy.Derivation) {
	p := h.page.get("/orgs/acme/repos/" + h.repo + "/commits/" + commit).want(200)
	now := strings.ToUpper(want.State.String()[:1]) + strings.ToLower(want.State.String()[1:]) + " (now)"
	if !strings.Contains(p.text(), now) {
		h.t.Errorf("the page of %s does not show %q", commit[36:], now)
	}

	var items []string
	for _, mark := range []string{"met", "missing", "failed", "left-out"} {
		for _, item := range p.elements("li", "class", "check "+mark) {
			items = append(items, mark+" "+strings.Join(strings.Fields(textOf(item)), " "))
		}
	}
	for _, r := range want.Requirements {
		mark, reason := "missing", strings.TrimPrefix(r.Reason, r.Predicate+": ")
		switch {
		case !r.Applies:
			mark, reason = "left-out", strings.TrimPrefix(r.Reason, "does not apply: ")
		case r.Met:
			mark, reason = "met", fmt.Sprintf("%d of %d", r.Have, r.Need)
		case len(r.FailedBy)+len(r.RolledBack) > 0:
			mark = "failed"
		}
		isShown := func(item string) bool {
			return strings.HasPrefix(item, mark+" "+r.Predicate+" ") && strings.Contains(item, reason)
		}
		if !slices.ContainsFunc(items, isShown) {
			h.t.Errorf("the page of %s does not show %s %s %q, but %q", commit[36:], mark, r.Predicate, reason, items)
		}
	}
}

// compareLapsed compares what needs attention because it runs and has lapsed with what runs.
func (h *history) compareLapsed() {
	ctx := h.t.Context()
	var want, got []string
	for e, err := range h.host.Environments(ctx, "acme", client.EnvironmentFilter{Repo: h.repo}) {
		must.OK(h.t, err)
		if d := e.Deployment; d != nil && ledger.Lapsed(d.State, d.Standing) && !slices.Contains(want, d.Commit) {
			want = append(want, d.Commit)
		}
	}
	list, err := h.host.AttentionPage(ctx, "acme", client.AttentionFilter{Repo: h.repo, Kind: attention.Lapsed},
		client.Query{Limit: 100})
	must.OK(h.t, err)
	for _, i := range list.Data {
		got = append(got, i.Commit)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		h.t.Errorf("lapsed are %q, want %q", got, want)
	}
	h.lapsed += len(want)
}

// compareSimulation simulates the contract that is active: nothing may move.
func (h *history) compareSimulation() {
	sim, err := h.host.Simulate(h.t.Context(), "acme", h.repo, []byte(h.document))
	must.OK(h.t, err)
	if sim.Total() > 0 {
		h.t.Errorf("the same contract moves %+v", sim.Moves)
	}
}

// compareBackground has all commits evaluated again: nothing may move.
func (h *history) compareBackground() {
	before := make(map[string]ledger.Commit)
	for commit := range h.facts {
		before[commit] = h.record(commit)
	}
	_, etag, err := h.host.Policy(h.t.Context(), "acme", h.repo)
	must.OK(h.t, err)
	_, err = h.host.SetPolicy(h.t.Context(), "acme", h.repo, []byte(h.document), etag)
	must.OK(h.t, err)
	h.settle()
	for commit, old := range before {
		if now := h.record(commit); now.State != old.State || len(now.Transitions) != len(old.Transitions) {
			h.t.Errorf("the same contract moves %s from %s to %s", commit[36:], old.State, now.State)
		}
	}
}
