package verify

import (
	"bytes"
	"crypto/sha1"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
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
