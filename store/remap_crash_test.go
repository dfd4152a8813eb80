package store

import (
	"crypto/ed25519"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A process is a store of its own on the file of an upgrade, as another process has.
type process struct {
	*Store
	t *testing.T
	u *upgrade
}

// An upgrade is a database whose statements are still mapped by the rules of the release
// before: all passed or failed under their type.
type upgrade struct {
	path string
	at   ledger.Time
	key  ed25519.PrivateKey // of cn=ci,ou=build,o=acme
}

const (
	testResults = "https://in-toto.io/attestation/test-result/v0.1"
	links       = "https://in-toto.io/attestation/link/v0.3"
)

// newUpgrade returns an upgrade whose contract requires test results or links for ATTESTED.
// Each commit from 1 to n has a failed unit test, which a passed e2e test hides by the rules
// of the release before, and a failed link, which passes by them: it is PROMOTABLE. Commit 0
// was deployed before its unit test failed.
func newUpgrade(t *testing.T, n int) *upgrade {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	must.OK(t, err)
	u := &upgrade{path: filepath.Join(t.TempDir(), "ledger.db"), key: key}
	u.at = ledger.TimeOf(time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC))

	p := u.open(t)
	createAcme(t, p.Store)
	contract, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"https://in-toto.io/*"},
		{"state":"PROMOTABLE","predicate":"review:*","branches":["release"]},
		{"state":"DEPLOYED","predicate":"deploy:prod"}]}`))
	must.OK(t, err)
	_, err = p.SetPolicy(t.Context(), "acme", "api", contract, 0, "host")
	must.OK(t, err)
	must.OK(t, p.Settle(t.Context()))
	p.trust("cn=ci,ou=build,o=acme", key)

	p.attest(0, "e2e", "PASSED")
	p.attest(0, "", "pass")
	p.attest(0, "unit", "FAILED")
	for i := range n {
		p.attest(i+1, "unit", "FAILED")
		p.attest(i+1, "e2e", "PASSED")
		p.attest(i+1, "make", "1")
	}
	must.OK(t, p.Close())
	u.downgrade(t)
	return u
}

// downgrade maps the statements by the rules of the release before.
func (u *upgrade) downgrade(t *testing.T) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+u.path)
	must.OK(t, err)
	defer db.Close()

	_, err = db.Exec(`
INSERT INTO predicates (org_id, name) SELECT org_id, uri FROM predicate_types
WHERE uri NOT LIKE '%/predicate/result/v1';
UPDATE attestations SET predicate_id =
  (SELECT p.id FROM predicates p JOIN predicate_types y ON y.uri = p.name WHERE y.id = type_id)
WHERE type_id IN (SELECT y.id FROM predicate_types y JOIN predicates p ON p.name = y.uri);
UPDATE attestations SET status = 'pass' WHERE type_id IN (SELECT id FROM predicate_types WHERE uri LIKE '%/link/%');
UPDATE attestations SET slot = '', finished_at = 0, mapping_version = 1;
DELETE FROM latest;
INSERT INTO latest (commit_id, predicate_id, slot, signer_id, attestation_id)
SELECT commit_id, predicate_id, slot, signer_id, max(id) FROM attestations GROUP BY 1, 2, 3, 4;
UPDATE predicates SET attestations = (SELECT count(*) FROM attestations a WHERE a.predicate_id = predicates.id);
UPDATE commits SET state = 3 WHERE state = 1;
UPDATE repo_states SET commits = 0 WHERE state = 1;
INSERT INTO repo_states (repo_id, state, commits) SELECT repo_id, 3, count(*) FROM commits WHERE state = 3 GROUP BY 1
ON CONFLICT (repo_id, state) DO UPDATE SET commits = excluded.commits;
UPDATE repos SET mapping_version = 1`)
	must.OK(t, err)
}

// open opens the database as another process.
func (u *upgrade) open(t *testing.T) *process {
	t.Helper()
	s, err := Open(t.Context(), u.path, Options{NoCopy: true, Now: func() time.Time { return u.at.Std() }})
	must.OK(t, err)
	t.Cleanup(func() { s.Close() })
	return &process{s, t, u}
}

func (p *process) trust(dn string, key ed25519.PrivateKey) identity.Identity {
	p.t.Helper()
	text := must.PublicPEM(p.t, key.Public())
	i, err := identity.NewIdentity{Kind: identity.KeyIdentity, PEM: text, DN: dn}.Identity()
	must.OK(p.t, err)
	added, err := p.AddIdentity(p.t.Context(), "acme", i)
	must.OK(p.t, err)
	return added
}

// attest records a test result of ci for a configuration, the return value of make, or a
// deployment if the configuration is empty.
func (p *process) attest(commit int, config, result string) {
	p.t.Helper()
	p.attestBy(p.u.key, commit, config, result)
}

func (p *process) attestBy(key ed25519.PrivateKey, commit int, config, result string) {
	p.t.Helper()
	p.u.at += 1000 // the ids of two processes are in the order of their times
	kind := testResults
	body := fmt.Sprintf(`{"result":%q,"configuration":[{"name":%q}],"url":"%d"}`, result, config, p.u.at)
	switch config {
	case "make":
		kind = links
		body = fmt.Sprintf(`{"name":"make","byproducts":{"return-value":%s},"n":"%d"}`, result, p.u.at)
	case "":
		kind = attestation.ResultPredicateType
		body = fmt.Sprintf(`{"predicate":"deploy:prod","result":{"status":%q},"annotations":{"n":"%d"}}`, result, p.u.at)
	}
	payload := fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"gitCommit":"%040x"}}],`+
		`"predicateType":%q,"predicate":%s}`, commit, kind, body)

	envelope := must.Get(attestation.SignDSSE(key, payload))(p.t)
	keyring, version, err := p.Keyring(p.t.Context(), "acme")
	must.OK(p.t, err)
	a, err := attestation.Verify(envelope, keyring, p.Now())
	must.OK(p.t, err)
	_, created, err := p.Record(p.t.Context(), "acme", "api", a, version)
	must.OK(p.t, err)
	if !created {
		p.t.Fatal("the statement is a duplicate")
	}
}

// mapNext maps the next n statements, and reports whether there are more.
func (p *process) mapNext(n int) (more bool) {
	p.t.Helper()
	must.OK(p.t, p.Facts.PlanMapping(p.t.Context()))
	j, err := p.jobs.Next(p.t.Context(), 1, backlog.Map)
	must.OK(p.t, err)
	if j == nil {
		return false
	}
	must.OK(p.t, p.jobs.Advance(p.t.Context(), j, func(t *txn.Tx, j *backlog.Job) (bool,
		error) {
		return p.Facts.MapSome(t, j, n)
	}))
	return true
}

func (p *process) commit(n int) ledger.Commit {
	p.t.Helper()
	c, err := p.Commit(p.t.Context(), "acme", "api", fmt.Sprintf("%040x", n))
	must.OK(p.t, err)
	return c
}

func (p *process) wantState(commit int, want ledger.State) {
	p.t.Helper()
	if c := p.commit(commit); c.State != want {
		p.t.Errorf("commit %d is %s, want %s: %+v", commit, c.State, want, c.Requirements)
	}
}

// states returns the state of each commit, and the number of commits in each state.
func statesOf(t *testing.T, path string) []string {
	db := readRaw(t, path)
	defer db.Close()
	return append(texts(t, db, "SELECT concat_ws(' ', sha, state) FROM commits ORDER BY id"),
		texts(t, db, "SELECT concat_ws(' ', repo_id, state, commits) FROM repo_states WHERE commits <> 0 ORDER BY 1")...)
}

// checkMapped checks that all statements are mapped, and what is computed from them.
func checkMapped(t *testing.T, path string) {
	t.Helper()
	outcomes, latest := mappedRows(t, path)
	for _, line := range outcomes {
		if !strings.HasSuffix(line, fmt.Sprint(" ", attestation.MappingVersion)) {
			t.Errorf("not mapped: %s", line)
		}
	}
	if want := latestOf(t, path); !slices.Equal(latest, want) {
		t.Errorf("latest is\n%s\nwant\n%s", strings.Join(latest, "\n"), strings.Join(want, "\n"))
	}
	checkCounters(t, path)
}

// A crash after any batch of the mapping, and any size of batches, changes nothing about
// its result.
func TestFaultMappingIsInterrupted(t *testing.T) {
	whole := newUpgrade(t, 4)
	p := whole.open(t)
	must.OK(t, p.Settle(t.Context()))
	must.OK(t, p.Close())
	want, _ := mappedRows(t, whole.path)

	for _, size := range []int{1, 2, 3} {
		u := newUpgrade(t, 4)
		batches := 0
		for more := true; more; batches++ {
			p := u.open(t)
			more = p.mapNext(size)
			must.OK(t, p.Close())
		}
		if least := 15 / size; batches < least {
			t.Errorf("%d batches of %d, want at least %d", batches, size, least)
		}
		p := u.open(t)
		must.OK(t, p.Settle(t.Context()))
		must.OK(t, p.Close())

		got, _ := mappedRows(t, u.path)
		if !slices.Equal(got, want) {
			t.Errorf("batches of %d: got\n%s\nwant\n%s", size, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		checkMapped(t, u.path)
		if got, want := statesOf(t, u.path), statesOf(t, whole.path); !slices.Equal(got, want) {
			t.Errorf("batches of %d: states %q, want %q", size, got, want)
		}
	}
}

// A state that the present rules change has an event with the cause upgrade. A deployed
// commit stays deployed, as after a change of policy: only a rollback ends it.
func TestMappingDerivesStates(t *testing.T) {
	u := newUpgrade(t, 2)
	p := u.open(t)
	p.wantState(1, ledger.Promotable)
	must.OK(t, p.Settle(t.Context()))

	cause := ledger.Cause{Type: ledger.CauseUpgrade, ID: fmt.Sprint(attestation.MappingVersion)}
	for commit := 1; commit <= 2; commit++ {
		p.wantState(commit, ledger.Validating)
		steps := p.commit(commit).Transitions
		if got := steps[len(steps)-1]; got.Cause != cause || got.From != ledger.Promotable {
			t.Errorf("commit %d: the last transition is %+v, want the cause %+v", commit, got, cause)
		}
	}
	p.wantState(0, ledger.Deployed)
	if c := p.commit(0); len(c.Requirements[0].FailedBy) != 1 {
		t.Errorf("the deployed commit's tests: %+v, want a failure", c.Requirements[0])
	}
	p.attest(0, "", "fail")
	p.wantState(0, ledger.Validating)
}

// Statements that are recorded while earlier ones are being mapped count as if they came
// after the mapping.
func TestStatementsAreRecordedDuringTheMapping(t *testing.T) {
	u := newUpgrade(t, 3)
	p := u.open(t)
	p.mapNext(1)
	for _, commit := range []int{1, 3} { // not yet mapped, and partly mapped
		p.attest(commit, "unit", "PASSED")
		p.attest(commit, "make", "0")
	}
	p.attest(2, "lint", "PASSED")
	p.mapNext(2)
	p.attest(2, "make", "0")
	p.attest(2, "e2e", "FAILED")
	must.OK(t, p.Settle(t.Context()))

	p.wantState(1, ledger.Promotable)
	p.wantState(2, ledger.Validating)
	p.wantState(3, ledger.Promotable)
	must.OK(t, p.Close())
	checkMapped(t, u.path)
}

// A process sees what another one has mapped, also in the evidence that it has read before.
func TestAnotherProcessMapsTheStatements(t *testing.T) {
	u := newUpgrade(t, 2)
	one, other := u.open(t), u.open(t)
	one.attest(1, "lint", "PASSED") // reads the evidence of commit 1
	one.wantState(1, ledger.Promotable)
	must.OK(t, other.Settle(t.Context()))

	one.wantState(1, ledger.Validating)
	const failed = "run:make failed (cn=ci,ou=build,o=acme) and test:unit failed (cn=ci,ou=build,o=acme)"
	if got := one.commit(1).Requirements[0].Reason; got != failed {
		t.Errorf("the process sees %s, want what the other one has mapped: %s", got, failed)
	}
	one.attest(1, "unit", "PASSED")
	one.wantState(1, ledger.Validating)
	must.OK(t, one.Settle(t.Context()))
	one.attest(1, "make", "0")
	one.wantState(1, ledger.Promotable)
	must.OK(t, one.Close())
	must.OK(t, other.Close())
	checkMapped(t, u.path)
}

// Two processes that map at the same time do each part once.
func TestTwoProcessesMapTheStatements(t *testing.T) {
	u := newUpgrade(t, 3)
	one, other := u.open(t), u.open(t)
	one.attest(1, "lint", "PASSED")
	for one.mapNext(1) {
		if !other.mapNext(2) {
			break
		}
		one.attest(2, "lint", "PASSED")
	}

	must.OK(t, other.Settle(t.Context()))
	must.OK(t, one.Settle(t.Context()))

	for _, p := range []*process{one, other} {
		p.wantState(0, ledger.Deployed)
		for commit := 1; commit <= 3; commit++ {
			p.wantState(commit, ledger.Validating)
			if got := p.commit(commit).Requirements[0].Reason; !strings.HasPrefix(got, "run:make failed") {
				t.Errorf("commit %d: %s, want the failures", commit, got)
			}
		}
		must.OK(t, p.Close())
	}
	checkMapped(t, u.path)
}

// A process counts two people as one after another process has joined them.
func TestAnotherProcessJoinsPeople(t *testing.T) {
	u := newUpgrade(t, 0)
	one, other := u.open(t), u.open(t)
	contract, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"test:*","threshold":2},
		{"state":"PROMOTABLE","predicate":"review:*"}]}`))
	must.OK(t, err)
	_, err = one.SetPolicy(t.Context(), "acme", "api", contract, 0, "host")
	must.OK(t, err)
	must.OK(t, one.Settle(t.Context()))
	_, key, err := ed25519.GenerateKey(nil)
	must.OK(t, err)
	bob := one.trust("cn=bob,ou=dev,o=acme", key)
	one.attest(1, "unit", "PASSED")
	one.attestBy(key, 1, "unit", "PASSED")
	one.wantState(1, ledger.Attested)
	other.wantState(1, ledger.Attested)

	must.OK(t, other.RevokeIdentity(t.Context(), "acme", bob.ID))
	renamed := other.trust("cn=CI,ou=Build,o=acme", key)
	one.attest(2, "unit", "PASSED") // the process has the person of ci in its cache
	one.attestBy(key, 2, "unit", "PASSED")
	one.wantState(2, ledger.Validating)
	must.OK(t, one.Settle(t.Context()))
	one.wantState(1, ledger.Validating)
	other.wantState(1, ledger.Validating)
	steps := one.commit(1).Transitions
	if got, want := steps[len(steps)-1].Cause, (ledger.Cause{Type: ledger.CauseIdentity, ID: renamed.ID}); got != want {
		t.Errorf("the cause is %+v, want %+v", got, want)
	}

	one.attestBy(key, 2, "unit", "FAILED")
	other.attest(2, "unit", "PASSED")
	if r := one.commit(2).Requirements[0]; r.Have != 1 || len(r.FailedBy) != 0 {
		t.Errorf("the requirement is %+v, want the failure replaced", r)
	}
}
