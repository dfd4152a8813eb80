package verify

import (
	"bytes"
	"crypto/sha1"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/check"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// rederiving returns a person who has states derived again.
func rederiving(t *testing.T) *person {
	p := newPerson(t)
	p.change = func(o *Options) {
		// Derivations in the background have ended by then.
		o.Rederive, o.Now = true, ledger.TimeOf(time.Now().Add(time.Hour))
	}
	return p
}

// inClone has a person verify in a clone of the repo of a host.
func inClone(p *person, h *host) *person {
	change := p.change
	p.change = func(o *Options) {
		change(o)
		o.Objects = h.clone
	}
	return p
}

// addSigner adds a signer, and returns a function that signs as it from now on.
func (h *host) addSigner(dn string) (id string, use func()) {
	h.t.Helper()
	key, i := storetest.AddSigner(h.t, h.store, dn)
	return i.ID, func() { h.key, h.dn = key, dn }
}

// register registers a commit.
func (h *host) register(sha string, n ledger.Registration) {
	h.t.Helper()
	if n.Object != nil {
		h.objects[sha] = n.Object
	}
	_, _, err := h.admin.Register(h.t.Context(), "acme", "api", sha, n)
	must.OK(h.t, err)
}

// setPolicy makes a contract the next version.
func (h *host) setPolicy(contract string) {
	h.t.Helper()
	_, etag, err := h.admin.Policy(h.t.Context(), "acme", "api")
	must.OK(h.t, err)
	_, err = h.admin.SetPolicy(h.t.Context(), "acme", "api", []byte(contract), etag)
	must.OK(h.t, err)
	must.OK(h.t, h.store.Settle(h.t.Context()))
}

// objectOf returns a commit object with a tree and an author, and its ID.
func objectOf(tree, author string) (object []byte, sha string) {
	text := fmt.Sprintf("tree %s\nauthor %[2]s <%[2]s@acme.example> 1700000000 +0000\n"+
		"committer %[2]s <%[2]s@acme.example> 1700000000 +0000\n\nChange %d.\n", tree, author, rand.Int64())
	sum := sha1.Sum(fmt.Appendf(nil, "commit %d\x00%s", len(text), text))
	return []byte(text), hex.EncodeToString(sum[:])
}

// promote brings a commit to DEPLOYED under the default policy: tests, a review and a deployment
// by different people.
func (h *host) promote(sha string, signers ...func()) {
	h.t.Helper()
	for i, predicate := range []string{"test:go", "review:code", "deploy:prod"} {
		signers[i]()
		h.record(sha, predicate, ledger.Pass)
	}
}

func TestStatesAreDerivedAgain(t *testing.T) {
	h := newHost(t)
	_, ci := h.addSigner("cn=build,ou=ci,o=acme")
	_, ann := h.addSigner("cn=ann,ou=dev,o=acme")
	_, ops := h.addSigner("cn=ops,ou=ops,o=acme")
	deployed, own := commitID(2), commitID(3)
	h.register(deployed, ledger.Registration{Author: ledger.Author{Name: "bob"}})
	h.promote(deployed, ci, ann, ops)
	h.register(own, ledger.Registration{Author: ledger.Author{Name: "ann"}})
	h.promote(own, ci, ann, ops)

	object, first := objectOf(strings.Repeat("ab", 20), "bob")
	h.register(first, ledger.Registration{Object: object})
	ci()
	h.record(first, "test:go", ledger.Pass)
	object, second := objectOf(strings.Repeat("ab", 20), "bob")
	h.register(second, ledger.Registration{Object: object}) // the tests carry to it
	h.sign()

	s := newSite(t, h)
	r := rederiving(t).verify(s, repo(t))
	wantVerified(t, r)
	if !r.Complete {
		t.Errorf("incomplete: %+v", r.Checks)
	}
	want(t, r, verify.CheckDerivation, verify.OK, "5 commits")
	for _, c := range r.Checks {
		if strings.Contains(c.Detail, "version 1, which is not the default policy") {
			t.Errorf("the default policy is not known: %+v", c)
		}
	}
	for sha, state := range map[string]ledger.State{
		deployed: ledger.Deployed, own: ledger.Attested, second: ledger.Attested,
	} {
		r = rederiving(t).verify(s, func(s *Session) (verify.Report, error) { return s.Commit(t.Context(), "api", sha) })
		wantVerified(t, r)
		want(t, r, verify.CheckDerivation, verify.OK, "1 commit")
		record, err := h.admin.Commit(t.Context(), "acme", "api", sha)
		must.OK(t, err)
		if record.State != state {
			t.Errorf("%s is %s, want %s", sha, record.State, state)
		}
	}
}

// A host that changes what a state rests on, and lets its own server derive the state, is found.
func TestStatesThatDoNotFollow(t *testing.T) {
	for name, test := range map[string]struct {
		before string // a statement that changes the database before the review
		after  string // the same, after the review
		check  string
		want   string
	}{
		"an author who did not review": {
			before: "UPDATE commits SET author_name = 'bob' WHERE author_name = 'ann'",
			check:  verify.CheckFacts,
			want: commitID(2) + ": author, branch, targets, tree, changed paths or another part of the record are not " +
				"those in the log",
		},
		"an author, put back afterwards": {
			before: "UPDATE commits SET author_name = 'bob' WHERE author_name = 'ann'",
			after:  "UPDATE commits SET author_name = 'ann' WHERE author_name = 'bob'",
			check:  verify.CheckDerivation,
			want:   "it is PROMOTABLE, and its evidence makes it ATTESTED",
		},
		"a contract": {
			before: replaceContract(`"exclude_author":true`, `"exclude_author": false`),
			after:  replaceContract(`"exclude_author": false`, `"exclude_author":true`),
			check:  verify.CheckDerivation,
			want:   "it is PROMOTABLE, and its evidence makes it ATTESTED",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			_, ci := h.addSigner("cn=build,ou=ci,o=acme")
			_, ann := h.addSigner("cn=ann,ou=dev,o=acme")
			h.register(commitID(2), ledger.Registration{Author: ledger.Author{Name: "ann"}})
			ci()
			h.record(commitID(2), "test:go", ledger.Pass)
			h.change(test.before)
			ann()
			h.record(commitID(2), "review:code", ledger.Pass)
			h.change(test.after)
			h.sign()

			r := rederiving(t).verify(newSite(t, h), repo(t))
			want(t, r, test.check, verify.Failed, test.want)
			if plain := newPerson(t).verify(newSite(t, h), repo(t)); !plain.Verified {
				t.Error("it is not verified without deriving states again, either")
			}
		})
	}
}

// A host that changes an identity has a minute in which its states need not follow. A
// verification in this minute reports that they were not derived.
func TestStateThatMayStillBeDerivedLeavesTheReportIncomplete(t *testing.T) {
	h := newHost(t)
	_, ci := h.addSigner("cn=build,ou=ci,o=acme")
	_, ann := h.addSigner("cn=ann,ou=dev,o=acme")
	h.register(commitID(2), ledger.Registration{Author: ledger.Author{Name: "ann"}})
	ci()
	h.record(commitID(2), "test:go", ledger.Pass)
	h.change("UPDATE commits SET author_name = 'bob' WHERE author_name = 'ann'")
	ann()
	h.record(commitID(2), "review:code", ledger.Pass)
	h.change("UPDATE commits SET author_name = 'ann' WHERE author_name = 'bob'")
	h.addSigner("cn=new,ou=ci,o=acme")
	changed := ledger.TimeOf(time.Now())
	h.sign()

	s := newSite(t, h)
	at := func(now ledger.Time) verify.Report {
		p := newPerson(t)
		p.change = func(o *Options) { o.Rederive, o.Now = true, now }
		return p.verify(s, repo(t))
	}
	r := at(changed)
	want(t, r, verify.CheckDerivation, verify.NotChecked, "run it again in a minute")
	if !r.Verified || r.Complete {
		t.Errorf("after the change: verified %v, complete %v", r.Verified, r.Complete)
	}
	if r = at(changed.Add(time.Minute)); r.Verified || !r.Complete {
		t.Errorf("a minute later: verified %v, complete %v", r.Verified, r.Complete)
	}
}

// replaceContract returns a statement that replaces a text in all contracts.
func replaceContract(before, after string) string {
	return fmt.Sprintf("UPDATE policies SET contract = CAST(replace(CAST(contract AS TEXT), '%s', '%s') AS BLOB)",
		before, after)
}

// change stops the server, changes the database, and starts it again.
func (h *host) change(statement string) {
	h.t.Helper()
	h.edit(func(db *sql.DB) {
		_, err := db.Exec(statement)
		must.OK(h.t, err)
	})
}

// rewrite changes the body of the newest event of a type, which is in no checkpoint yet, and its leaf.
func (h *host) rewrite(kind ledger.EventType, before, after string) (id string) {
	h.t.Helper()
	h.edit(func(db *sql.DB) {
		var body []byte
		must.OK(h.t, db.QueryRow("SELECT event_id, body FROM events WHERE type = ? ORDER BY seq DESC LIMIT 1", kind).
			Scan(&id, &body))
		body = bytes.Replace(body, []byte(before), []byte(after), 1)
		salt := proof.Salt{1}
		leaf := proof.HashBody(salt, body)
		_, err := db.Exec("UPDATE events SET body = ?, salt = ?, leaf = ? WHERE event_id = ?", body, salt[:], leaf[:], id)
		must.OK(h.t, err)
	})
	return id
}

// edit changes the database while no server uses it.
func (h *host) edit(change func(*sql.DB)) {
	h.t.Helper()
	must.OK(h.t, h.store.Close())
	db, err := sql.Open("sqlite", filepath.Join(h.folder, "ledger.db"))
	must.OK(h.t, err)
	change(db)
	must.OK(h.t, db.Close())
	h.open()
}

// What a ledger derives is what is derived again in a clone, whatever happens to a repo. Only some commits cannot
// always be: of what was known when one was deployed, the ledger has what is known since. Without a clone, those that
// rest on objects cannot be, either.
func TestRandomLedgersAreDerivedAgain(t *testing.T) {
	first := testenv.Seed(t)
	for seed := first; seed < first+uint64(testenv.Pick(6, 20, 300)); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			h := newRandomHost(t, rand.New(rand.NewPCG(seed, 0)))
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
				case strings.Contains(c.Detail, "has changed since it was deployed"):
					most = deployed
				case strings.Contains(c.Detail, "whose signer is distrusted now"):
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

// prodStatement returns a statement about the environment prod: a rollback, a failed attempt or a
// deployment after a rollback.
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
	default:
		p.Result.Status, p.Again = ledger.Pass, "it was the database"
	}
	payload, err := attestation.NewStatement("acme/api", commit, p)
	must.OK(t, err)
	return payload
}

// Names that identities of one person get and lose are those that are derived again.
func TestChangedNamesAreDerivedAgain(t *testing.T) {
	h := newHost(t)
	random := testenv.Rand(t)
	var ids []string
	var signers []func()
	for _, dn := range []string{
		"cn=Uma,ou=x,o=acme", "cn=Uma,ou=x,o=acme", "cn=UMA,ou=X,o=acme", "cn=github:uma,ou=x,o=acme",
	} {
		id, use := h.addSigner(dn)
		ids, signers = append(ids, id), append(signers, use)
	}
	_, ci := h.addSigner("cn=build,ou=ci,o=acme")
	authors := map[string]string{"u@x.example": "cafe", "1+uma@users.noreply.github.com": "beef"}
	logins := [][]string{nil, {"github:uma"}, {"github:uma", "gitlab:uma"}}
	emails := [][]string{nil, {"u@x.example"}, {"u@x.example", "v@x.example"}}

	for range 8 {
		for range 4 {
			n := random.IntN(len(ids))
			_, err := h.admin.ChangeIdentity(t.Context(), "acme", ids[n], identity.Change{
				Logins: &logins[random.IntN(3)], Emails: &emails[random.IntN(3)]})
			must.OK(t, err)
		}
		for email, prefix := range authors {
			sha := fmt.Sprintf("%s%036x", prefix, random.Int64())
			h.register(sha, ledger.Registration{Author: ledger.Author{Name: "Q", Email: email}})
			ci()
			h.record(sha, "test:go", ledger.Pass)
			signers[random.IntN(len(signers))]()
			h.record(sha, "review:code", ledger.Pass)
		}
		must.OK(t, h.store.Settle(t.Context()))
		h.sign()
		wantVerified(t, rederiving(t).verify(newSite(t, h), repo(t)))
	}
}

// What became known of a commit while it is verified is no forgery.
func TestCommitIsRegisteredWhileItIsVerified(t *testing.T) {
	h := newHost(t)
	h.register(commitID(1), ledger.Registration{Branch: "fix"})
	h.sign()
	s := newSite(t, h)
	var once sync.Once
	s.change = func(path string, body []byte) []byte {
		if strings.Contains(path, "/tile/entries/") {
			once.Do(func() { h.register(commitID(1), ledger.Registration{Branch: "main"}) })
		}
		return body
	}
	r := rederiving(t).verify(s, repo(t))
	wantVerified(t, r)
	if r.Complete {
		t.Error("the report is complete")
	}
	want(t, r, verify.CheckDerivation, verify.NotChecked, "registered again while")
}

// An attestation whose signature is not valid makes no state, and its check says so.
func TestUnsignedEvidenceMakesNoState(t *testing.T) {
	h := newHost(t)
	s := newSite(t, h)
	h.sign()
	s.change = func(path string, body []byte) []byte {
		if strings.HasSuffix(path, "/envelope") {
			return bytes.Replace(body, []byte(`"sig":"`), []byte(`"sig":"AAAA`), 1)
		}
		return body
	}
	r := rederiving(t).verify(s, repo(t))
	want(t, r, verify.CheckSignature, verify.Failed, "")
	want(t, r, verify.CheckDerivation, verify.Failed, "its evidence makes it DRAFT")
}
