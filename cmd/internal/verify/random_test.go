package verify

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/check"
)

// What a ledger derives is what is derived again in a clone, whatever happens to a repo. Only some commits cannot
// always be: of what was known when one was deployed, the ledger has what is known since. Without a clone, those that
// rest on objects cannot be, either.
func TestRandomLedgersAreDerivedAgain(t *testing.T) {
	testRandom(t, newRandomHost)
}

// So are deliveries.
func TestRandomDeliveriesAreDerivedAgain(t *testing.T) {
	testRandom(t, newDeliveringHost)
}

func testRandom(t *testing.T, newHost func(*testing.T, *rand.Rand) *host) {
	first := testenv.Seed(t)
	for seed := first; seed < first+uint64(testenv.Pick(6, 20, 300)); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			h := newHost(t, rand.New(rand.NewPCG(seed, 0)))
			wantVerified(t, rederiving(t).verify(newSite(t, h), repo(t)))
			r := inClone(rederiving(t), h).verify(newSite(t, h), repo(t))
			wantVerified(t, r)
			inFile, err := check.Run(t.Context(), filepath.Join(h.folder, "ledger.db"),
				check.Options{ParseRoot: sigstore.ParseRoot})
			must.OK(t, err)
			if inFile.Found+inFile.Pending > 0 {
				t.Errorf("the check of the database: %+v", inFile)
			}
			all := h.admin.Commits(t.Context(), "acme", "api", client.CommitFilter{})
			commits := must.Get(client.Collect(all, 100))(t) // some are never mentioned

			deployed, skipped := 0, 0
			for _, c := range commits {
				if c.State == ledger.Deployed {
					deployed++
				}
			}
			for _, c := range r.Checks {
				if c.Name != verify.CheckDerivation || c.Status != verify.NotChecked {
					continue
				}
				n, most := must.Get(strconv.Atoi(strings.Fields(c.Detail)[0]))(t), 0
				switch {
				case strings.Contains(c.Detail, "has changed since it was deployed"),
					strings.Contains(c.Detail, "has changed since its standing did"):
					most = deployed
				case strings.Contains(c.Detail, "whose signer is distrusted now"),
					strings.Contains(c.Detail, "its signer is distrusted now"):
					most = n
				}
				if n > most {
					t.Errorf("not derived again: %s, want at most %d", c.Detail, most)
				}
				skipped += n
			}
			if n := len(commits) - skipped; n > 0 {
				want(t, r, verify.CheckDerivation, verify.OK, fmt.Sprintf("%d commit", n))
			}
		})
	}
}

// newRandomHost returns a host to whose repo something random has happened.
func newRandomHost(t *testing.T, random *rand.Rand) *host {
	t.Helper()
	contracts := []string{
		`{"requirements":[{"state":"ATTESTED","predicate":"test:*","carry":["tree"]},
			{"state":"PROMOTABLE","predicate":"review:*","exclude_author":true,"distinct_from":["ATTESTED"]},
			{"state":"DEPLOYED","predicate":"deploy:prod"}]}`,
		`{"requirements":[{"state":"ATTESTED","predicate":"test:go","where":"predicate.durationMs > 10"},
			{"name":"paths","state":"ATTESTED","predicate":"lint:go","paths":["*.go"]},
			{"state":"PROMOTABLE","predicate":"review:code","threshold":2,"branches":["release"]},
			{"state":"DEPLOYED","predicate":"deploy:prod","distinct_from":["PROMOTABLE"]}],"targets":"claimed"}`,
		`{"requirements":[{"state":"ATTESTED","predicate":"test:go","accept":["pass","warn"]},
			{"state":"PROMOTABLE","predicate":"lint:*","carry":["tree"]},{"state":"DEPLOYED","predicate":"deploy:*"}]}`,
		`{"requirements":[{"state":"ATTESTED","predicate":"test:go","carry":["tree","merge"],"carry_signers":["cn=ci"]},
			{"state":"PROMOTABLE","predicate":"review:code","exclude_author":true,"covers":"change","carry":["merge"],
				"carry_signers":["cn=ci"]},
			{"state":"DEPLOYED","predicate":"deploy:prod"}]}`,
		`{"requirements":[{"state":"ATTESTED","predicate":"test:go","carry":["tree"]},
			{"state":"PROMOTABLE","predicate":"review:code","exclude_author":true,"carry":["tree"]},
			{"state":"DEPLOYED","predicate":"deploy:prod"}]}`,
		`{"requirements":[{"state":"ATTESTED","predicate":"test:go","carry":["tree"]},
			{"state":"PROMOTABLE","predicate":"review:code","covers":"change","carry":["tree"]},
			{"state":"DEPLOYED","predicate":"deploy:prod"}]}`,
	}
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	h := newHost(t)
	h.receipt() // exports need its key in the log
	var ids []string
	var signers []func()
	for _, name := range []string{"ann", "bob", "ci", "ops"} {
		id, use := h.addSigner("cn=" + name + ",ou=dev,o=acme")
		ids, signers = append(ids, id), append(signers, use)
	}
	shas := []string{commitID(1), commitID(2), commitID(3)}
	for range 4 {
		object, sha := objectOf(pick(strings.Repeat("ab", 20), strings.Repeat("cd", 20)), pick("ann", "bob", "eve"))
		h.register(sha, ledger.Registration{Object: object})
		shas = append(shas, sha)
	}

	b := newBranch(h, pick)
	shas = append(shas, b.commits()...)
	isMerging := random.IntN(2) == 0
	if isMerging {
		h.setPolicy(contracts[3])
		b.merge(signers, random)
	}

	for range 60 {
		sha := shas[random.IntN(len(shas))]
		switch random.IntN(14) {
		case 0:
			_, _, err := h.admin.Register(t.Context(), "acme", "api", sha, ledger.Registration{
				Branch: "fix", Target: pick("main", "release"), Author: ledger.Author{Name: pick("ann", "bob")},
				Changes: []radar.Change{{Path: pick("a.go", "b.md"), Status: "M"}},
			})
			_ = err // a proven or registered author cannot change
		case 1:
			h.setPolicy(contracts[random.IntN(len(contracts))])
		case 2:
			if n := random.IntN(40); n < len(ids) && ids[n] != "" {
				err := h.admin.DistrustIdentity(t.Context(), "acme", ids[n], ledger.TimeOf(time.Now()).Add(-time.Millisecond))
				must.OK(t, err)
				ids[n] = "" // a second time would have to be earlier
				must.OK(t, h.store.Settle(t.Context()))
			}
		case 3:
			signers[random.IntN(len(signers))]()
			_, err := h.send(prodStatement(t, sha, random.IntN(3)))
			_ = err // the signer may be distrusted
		case 4:
			signers[random.IntN(len(signers))]()
			_, err := h.send(b.review(pick(b.head, b.head, b.head2, b.squash2), pick(b.base, b.squash, commitID(9))))
			_ = err // the signer may be distrusted
			if random.IntN(2) == 0 {
				_, err = h.send(changesStatement(t, sha, commitID(9), pick("a.go", "b.md")))
			}
			_ = err // the same
		case 5:
			signers[random.IntN(len(signers))]()
			_, err := h.send(b.claim(random.IntN(4)))
			_ = err // the signer may be distrusted
			if random.IntN(2) == 0 {
				must.Get(h.store.AddObjects(t.Context(), "acme", "api", lineage.Objects{Objects: b.inner}))(t)
			}
		default:
			signers[random.IntN(len(signers))]()
			status := []ledger.Status{ledger.Pass, ledger.Pass, ledger.Pass, ledger.Fail, ledger.Warn}[random.IntN(5)]
			_, err := h.try(sha, pick("test:go", "test:js", "review:code", "lint:go", "deploy:prod"), status)
			_ = err // the signer may be distrusted
		}
	}
	if isMerging {
		h.setPolicy(contracts[3+random.IntN(3)])
	}
	must.OK(t, h.store.Settle(t.Context()))
	h.sign()
	return h
}

// newDeliveringHost returns a host to whose repo something random has happened, with a policy that asks, most of the
// time, what deployments ship.
func newDeliveringHost(t *testing.T, random *rand.Rand) *host {
	t.Helper()
	contracts := make([]string, 4)
	for i := range contracts {
		contracts[i] = fmt.Sprintf(`{"requirements":[
			{"name":"review","state":"PROMOTABLE","predicate":"review:*","exclude_author":%t,"covers":"change",
				"carry":["merge","tree"],"carry_signers":["cn=ci"],"paths":[%s]},
			{"state":"DEPLOYED","predicate":"deploy:prod","signers":["cn=ann","cn=ops"],"delivery":%t}],
			"exceptions":{"signers":["cn=bob"],"max_duration":"24h"}}`, i%2 == 0, []string{"", `"*.go"`}[i/2], i != 1)
	}
	h := newHost(t)
	h.receipt() // exports need its key in the log
	var signers []func()
	for _, name := range []string{"ann", "bob", "ci", "ops"} {
		_, use := h.addSigner("cn=" + name + ",ou=dev,o=acme")
		signers = append(signers, use)
	}
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	b := newBranch(h, pick)
	h.setPolicy(contracts[0])
	if random.IntN(4) > 0 {
		must.Get(h.store.AddObjects(t.Context(), "acme", "api", lineage.Objects{Objects: b.inner}))(t)
	}
	if random.IntN(4) > 0 {
		signers[0]()
		must.Get(h.send(prodStatement(t, b.base, 3)))(t)
	}

	for range 60 {
		signers[random.IntN(len(signers))]()
		sha, other := pick(b.commits()...), pick(append(b.commits(), commitID(8))...)
		if sha == other {
			other = commitID(8)
		}
		var err error
		switch random.IntN(14) {
		case 0:
			_, _, err = h.admin.Register(t.Context(), "acme", "api", sha, ledger.Registration{
				Changes: []radar.Change{{Path: pick("a.go", "b.md"), Status: "M"}},
			})
		case 12, 13:
			_, err = h.send(changesStatement(t, sha, other, pick("a.go", "b.md")))
		case 1:
			h.setPolicy(contracts[random.IntN(len(contracts))])
		case 2:
			_, err = h.send(prodStatement(t, sha, random.IntN(4)))
		case 3:
			_, err = h.send(rollbackTo(t, sha, other))
		case 4, 5, 6:
			_, err = h.send(b.review(sha, other))
		case 7:
			_, err = h.send(b.claim(random.IntN(4)))
		case 8:
			var payload []byte
			payload, err = attestation.NewExceptionStatement(sha, attestation.Exception{Repo: "acme/api",
				Requirement: "review", Reason: "it is urgent", Until: ledger.TimeOf(time.Now()).Add(3 * time.Hour)})
			must.OK(t, err)
			_, err = h.send(payload)
		case 9, 10:
			_, err = h.try(sha, "deploy:prod", ledger.Pass)
		default:
			_, err = h.try(sha, "review:code", []ledger.Status{ledger.Pass, ledger.Fail}[random.IntN(2)])
		}
		_ = err // the signer may not say that, or it does not change
	}
	must.OK(t, h.store.Settle(t.Context()))
	h.sign()
	return h
}

// changesStatement returns a statement that a commit differs from another one in a path.
func changesStatement(t *testing.T, commit, base, path string) []byte {
	t.Helper()
	payload, err := attestation.NewChangesStatement(commit, attestation.Changes{Repo: "acme/api", Base: base,
		Paths: []string{path}})
	must.OK(t, err)
	return payload
}

// rollbackTo returns a statement that a commit runs in prod in place of another one.
func rollbackTo(t *testing.T, commit, to string) []byte {
	t.Helper()
	payload, err := attestation.NewRollbackStatement(commit, attestation.Rollback{Repo: "acme/api", Environment: "prod",
		Reason: "it leaks", To: attestation.RunningCommit{SHA: to}, IssuedOn: ledger.TimeOf(time.Now())})
	must.OK(t, err)
	return payload
}

// prodStatement returns a statement about the environment prod: a rollback, a failed attempt, a deployment after a
// rollback or a baseline.
func prodStatement(t *testing.T, commit string, kind int) []byte {
	t.Helper()
	now := ledger.TimeOf(time.Now())
	p := attestation.ResultPredicate{Predicate: "deploy:prod", StartedOn: now}
	switch kind {
	case 0:
		payload, err := attestation.NewRollbackStatement(commit, attestation.Rollback{Repo: "acme/api", Environment: "prod",
			Reason: "it leaks", IssuedOn: now})
		must.OK(t, err)
		return payload
	case 1:
		p.Result.Status, p.Rollout = ledger.Fail, ledger.RolloutFailed
	case 3:
		payload, err := attestation.NewBaselineStatement(commit, attestation.Baseline{Repo: "acme/api", Environment: "prod",
			IssuedOn: now})
		must.OK(t, err)
		return payload
	default:
		p.Result.Status, p.Again = ledger.Pass, "it was the database"
	}
	payload, err := attestation.NewStatement("acme/api", commit, p)
	must.OK(t, err)
	return payload
}
