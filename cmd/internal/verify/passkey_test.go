package verify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/evidence"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/ledger/passkey/passkeytest"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store/storetest"
)

const (
	annDN = "cn=ann,ou=people-dev,o=acme"
	bobDN = "cn=bob,ou=people-dev,o=acme"
)

// passkeyContract needs reviews that passkeys have confirmed.
const passkeyContract = `{"requirements":[{"state":"ATTESTED","predicate":"review:*","passkey":true}]}`

// reviewer adds a member with a passkey.
func (h *host) reviewer(dn string) *storetest.Reviewer {
	h.t.Helper()
	return storetest.NewReviewer(h.t, h.store, dn)
}

// confirm records a review with the assertion that assert returns, and signs the log.
func (h *host) confirm(r *storetest.Reviewer, commit string, assert func([]byte) []byte) ledger.AttestationRecord {
	h.t.Helper()
	record := r.Review(h.store, commit, assert)
	h.sign()
	return record
}

// subjects returns what a confirmed attestation of commit 2 is part of.
func subjects(t *testing.T, a ledger.AttestationRecord) map[string]func(*Session) (verify.Report, error) {
	return map[string]func(*Session) (verify.Report, error){
		"attestation": attested(t, a.ID), "commit": commit(t, 2), "repo": repo(t),
	}
}

// An attestation that a passkey has confirmed is verified with the passkeys in the log, and states are
// derived from it as the server does.
func TestPasskey(t *testing.T) {
	h := newHost(t)
	h.setPolicy(passkeyContract)
	h.register(commitID(2), ledger.Registration{Author: ledger.Author{Name: "eve"}})
	h.register(commitID(3), ledger.Registration{Author: ledger.Author{Name: "eve"}})
	ann := h.reviewer(annDN)
	a := h.confirm(ann, commitID(2), ann.Assert)
	h.confirm(ann, commitID(3), nil)
	for n, state := range map[int]ledger.State{2: ledger.Promotable, 3: ledger.Validating} {
		record, err := h.admin.Commit(t.Context(), "acme", "api", commitID(n))
		must.OK(t, err)
		if record.State != state {
			t.Fatalf("commit %d is %s, want %s", n, record.State, state)
		}
	}

	s := newSite(t, h)
	for name, subject := range subjects(t, a) {
		for _, p := range []*person{newPerson(t), rederiving(t)} {
			r := p.verify(s, subject)
			wantVerified(t, r)
			want(t, r, verify.CheckPasskey, verify.OK, map[string]string{"attestation": "of " + annDN}[name])
		}
	}
	want(t, rederiving(t).verify(s, repo(t)), verify.CheckDerivation, verify.OK, "3 commits")
	for _, c := range newPerson(t).verify(s, commit(t, 3)).Checks {
		if c.Name == verify.CheckPasskey {
			t.Errorf("commit 3 was confirmed by no passkey: %+v", c)
		}
	}

	// What is enrolled and removed later changes nothing.
	must.OK(t, h.store.RemovePasskey(t.Context(), "acme", "", ann.Passkey.ID))
	h.reviewer(bobDN)
	h.sign()
	for _, subject := range subjects(t, a) {
		r := newPerson(t).verify(s, subject)
		wantVerified(t, r)
		want(t, r, verify.CheckPasskey, verify.OK, "")
	}
}

// A host that says that a passkey has confirmed an attestation, and records it so, is found.
func TestForgedAssertions(t *testing.T) {
	for name, test := range map[string]struct {
		forge func(h *host, ann, bob *storetest.Reviewer, payload []byte) []byte
		want  string
	}{
		"another statement": {func(h *host, ann, _ *storetest.Reviewer, _ []byte) []byte { return ann.Assert([]byte("{}")) },
			"the assertion of the passkey is invalid"},
		"not enrolled": {func(h *host, ann, _ *storetest.Reviewer, payload []byte) []byte {
			other := *ann
			other.Device = passkeytest.New(h.t, passkey.Party{ID: ann.RPID, Origin: ann.Origin})
			return other.Assert(payload)
		}, "the log has no enrolment of the passkey"},
		"another's": {func(h *host, _, bob *storetest.Reviewer, payload []byte) []byte { return bob.Assert(payload) },
			"is enrolled for " + bobDN},
		"removed": {func(h *host, ann, _ *storetest.Reviewer, payload []byte) []byte {
			must.OK(h.t, h.store.RemovePasskey(h.t.Context(), "acme", "", ann.Passkey.ID))
			return ann.Assert(payload)
		}, "was removed before the attestation"},
		"not an assertion": {func(*host, *storetest.Reviewer, *storetest.Reviewer, []byte) []byte { return []byte("yes") },
			"parse it"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.setPolicy(passkeyContract)
			h.register(commitID(2), ledger.Registration{Author: ledger.Author{Name: "eve"}})
			ann, bob := h.reviewer(annDN), h.reviewer(bobDN)
			a := h.confirm(ann, commitID(2), func(payload []byte) []byte { return test.forge(h, ann, bob, payload) })
			s := newSite(t, h)
			for _, subject := range subjects(t, a) {
				want(t, newPerson(t).verify(s, subject), verify.CheckPasskey, verify.Failed, test.want)
			}
			r := rederiving(t).verify(s, repo(t))
			want(t, r, verify.CheckDerivation, verify.Failed, "it is PROMOTABLE, and its evidence makes it VALIDATING")
		})
	}
}

// What a server changes in its responses about passkeys, or leaves out, is found.
func TestChangedResponsesAboutPasskeys(t *testing.T) {
	h := newHost(t)
	ann, bob := h.reviewer(annDN), h.reviewer(bobDN)
	must.OK(t, h.store.RemovePasskey(t.Context(), "acme", "", bob.Passkey.ID))
	a := h.confirm(ann, commitID(2), ann.Assert)
	b := h.confirm(bob, commitID(3), bob.Assert)
	var other ledger.IdentityEvent
	for body, err := range h.admin.Events(t.Context(), "acme", identityEvents()) {
		must.OK(t, err)
		var e ledger.IdentityEvent
		must.OK(t, json.Unmarshal(body, &e))
		if e.IdentityID == bob.Passkey.ID && e.Action == ledger.IdentityRevoked {
			other = e
		}
	}

	replace := func(part string, old, now string) func(string, []byte) []byte {
		return func(path string, body []byte) []byte {
			if strings.HasSuffix(path, part) {
				return bytes.ReplaceAll(body, []byte(old), []byte(now))
			}
			return body
		}
	}
	for name, test := range map[string]struct {
		id          string
		change      func(string, []byte) []byte
		check, text string
	}{
		"an assertion": {a.ID, replace("/assertion", `"rp_id":"ledger`, `"rp_id":"lodger`), verify.CheckPasskey,
			"and the event says "},
		"the digest in the record": {a.ID, replace(a.ID, a.AssertionDigest, "sha256:00"), verify.CheckRecord,
			"assertion digest"},
		"no digest in the record": {a.ID, replace(a.ID, `"assertion_digest"`, `"x"`), verify.CheckRecord, "assertion digest"},
		"the removal of a passkey": {b.ID, replace("/events", `"action":"revoked"`, `"action":"changed"`),
			verify.CheckPasskey, "the event " + other.ID + " of an identity"},
		"a removal that passes for another": {b.ID, replace("/events", `"action":"revoked","identity_id":"pas_`,
			`"action":"revoked","identity_id":"idn_`), verify.CheckPasskey, "the event " + other.ID + " of an identity"},
		"a removal that is not listed": {b.ID, func(path string, body []byte) []byte {
			if !strings.HasSuffix(path, "/events") {
				return body
			}
			var page ledger.Page[json.RawMessage]
			must.OK(t, json.Unmarshal(body, &page))
			for i, e := range page.Data {
				if bytes.Contains(e, []byte(other.ID)) {
					page.Data = append(page.Data[:i], page.Data[i+1:]...)
					break
				}
			}
			return must.Get(json.Marshal(page))(t)
		}, verify.CheckPasskey, "is " + other.ID + ", and the ledger does not list it"},
	} {
		s := newSite(t, h)
		s.change = test.change
		r := newPerson(t).verify(s, attested(t, test.id))
		if r.Verified {
			t.Errorf("%s: verified", name)
		}
		want(t, r, test.check, verify.Failed, test.text)
	}

	// An assertion that the server does not have any more.
	h.change(fmt.Sprintf("UPDATE envelopes SET assertion = NULL WHERE attestation_id = "+
		"(SELECT id FROM attestations WHERE attestation_id = '%s')", a.ID))
	for _, subject := range subjects(t, a) {
		want(t, newPerson(t).verify(newSite(t, h), subject), verify.CheckPasskey, verify.Failed, "the assertion is missing")
	}
}

// The assertion of an attestation whose envelope or event was pruned is still looked at.
func TestPasskeyOfPrunedAttestation(t *testing.T) {
	h := newHostAgo(t, 48*time.Hour)
	ann := h.reviewer(annDN)
	a := h.confirm(ann, commitID(2), ann.Assert)
	h.prune(ledger.RetentionChange{Envelopes: new(ledger.MinRetention)})
	for _, subject := range subjects(t, a) {
		r := newPerson(t).verify(newSite(t, h), subject)
		wantVerified(t, r)
		want(t, r, verify.CheckPasskey, verify.NotChecked, "the ledger has pruned the envelope")
	}

	h = newHostAgo(t, 48*time.Hour)
	ann = h.reviewer(annDN)
	a = h.confirm(ann, commitID(2), ann.Assert)
	forged := h.confirm(ann, commitID(2), func([]byte) []byte { return ann.Assert([]byte("{}")) })
	h.prune(ledger.RetentionChange{Events: new(ledger.MinRetention)})
	s := newSite(t, h)
	r := newPerson(t).verify(s, attested(t, a.ID))
	wantVerified(t, r)
	want(t, r, verify.CheckPasskey, verify.NotChecked, verify.PrunedEvent)
	want(t, newPerson(t).verify(s, attested(t, forged.ID)), verify.CheckPasskey, verify.Failed, "is invalid")
	want(t, newPerson(t).verify(s, repo(t)), verify.CheckAttestations, verify.Failed, forged.ID)
}

func identityEvents() client.EventFilter {
	return client.EventFilter{Types: []ledger.EventType{ledger.EventIdentity}}
}

// A passkey of an earlier log confirms attestations in later ones.
func TestPasskeysInEarlierLogs(t *testing.T) {
	h := newHost(t)
	ann := h.reviewer(annDN)
	a := h.confirm(ann, commitID(2), ann.Assert)
	h.begin("moved")
	b := h.confirm(ann, commitID(2), ann.Assert)
	h.begin("moved again")
	must.OK(t, h.store.RemovePasskey(t.Context(), "acme", "", ann.Passkey.ID))
	forged := h.confirm(ann, commitID(3), ann.Assert)
	s := newSite(t, h)
	for _, subject := range []func(*Session) (verify.Report, error){attested(t, a.ID), attested(t, b.ID), commit(t, 2)} {
		r := newPerson(t).verify(s, subject)
		wantVerified(t, r)
		want(t, r, verify.CheckPasskey, verify.OK, "")
	}
	for _, subject := range []func(*Session) (verify.Report, error){attested(t, forged.ID), commit(t, 3), repo(t)} {
		want(t, newPerson(t).verify(s, subject), verify.CheckPasskey, verify.Failed, "was removed before")
	}
}

// Nothing shows whose a passkey is that was enrolled while the log was not signed.
func TestPasskeyThatWasEnrolledWhileTheLogWasNotSigned(t *testing.T) {
	testenv.From(t, testenv.Push, "takes many seconds")

	h := newHost(t)
	h.setPolicy(passkeyContract)
	h.register(commitID(2), ledger.Registration{Author: ledger.Author{Name: "eve"}})
	h.sign()
	backup := h.copied()
	h.attest(commitID(5), "test:go", ledger.Pass)
	again := restored(h, backup)
	ann := again.reviewer(annDN)
	again.begin("restored a backup")
	a := again.confirm(ann, commitID(2), ann.Assert)
	s := newSite(t, again)
	for _, subject := range subjects(t, a) {
		r := newPerson(t).verify(s, subject)
		wantVerified(t, r)
		want(t, r, verify.CheckPasskey, verify.NotChecked, "recorded while the log, which was replaced, was not signed")
	}
	r := rederiving(t).verify(s, repo(t))
	wantVerified(t, r)
	want(t, r, verify.CheckDerivation, verify.NotChecked, "but whose passkey has confirmed an attestation is not known")
}

// An export has assertions, and the events about their passkeys. What is missing or changed is found.
func TestPasskeyEvidence(t *testing.T) {
	h := newHost(t)
	ann, bob := h.reviewer(annDN), h.reviewer(bobDN)
	a := h.confirm(ann, commitID(2), ann.Assert)
	plain := h.confirm(ann, commitID(2), nil)
	text := h.export(evidence.Options{Commit: commitID(2)})
	r, err := pinned(h).evidence(text)
	must.OK(t, err)
	wantVerified(t, r)
	want(t, r, verify.CheckPasskey, verify.OK, "1 attestation")
	want(t, r, checkPage, verify.OK, "")

	enrolment := "" // the file of the event
	for name, content := range filesOf(t, text) {
		if bytes.Contains(content, []byte(bob.Passkey.ID)) {
			t.Errorf("%s is about a passkey that has confirmed nothing", name)
		}
		if strings.HasPrefix(name, "events/") && bytes.Contains(content, []byte(ann.Passkey.ID)) {
			enrolment = strings.TrimSuffix(name, ".json")
		}
	}
	file := evidence.AttestationFile(commitID(2), a.ID, "assertion.json")
	if page := filesOf(t, text)[evidence.PageFile]; bytes.Count(page, []byte("/assertion.json")) != 1 ||
		!bytes.Contains(page, []byte(file)) {
		t.Errorf("%s has no link to %s, or another one", evidence.PageFile, file)
	}
	for name, test := range map[string]struct {
		change      func(f files)
		check, text string
	}{
		"no assertion": {func(f files) { delete(f, file) }, verify.CheckPasskey, "the assertion is missing"},
		"another assertion": {func(f files) { f[file] = append(f[file], ' ') }, verify.CheckPasskey,
			"the assertion has the digest"},
		"an assertion of an attestation that no passkey has confirmed": {func(f files) {
			f[evidence.AttestationFile(commitID(2), plain.ID, "assertion.json")] = f[file]
		}, verify.CheckPasskey, "the event has no digest of one"},
		"no digest in the record": {func(f files) {
			record := evidence.AttestationFile(commitID(2), a.ID, "record.json")
			f[record] = bytes.Replace(f[record], []byte(`"assertion_digest"`), []byte(`"other"`), 1)
		}, verify.CheckRecord, "assertion digest"},
		"no enrolment": {func(f files) { delete(f, enrolment+".json"); delete(f, enrolment+".proof") },
			verify.CheckPasskey, "the log has no enrolment"},
		"an enrolment of another": {func(f files) {
			f[enrolment+".json"] = bytes.Replace(f[enrolment+".json"], []byte("cn=ann"), []byte("cn=bob"), 1)
		}, verify.CheckPasskey, "the log has no enrolment"},
	} {
		f := filesOf(t, text)
		test.change(f)
		r, err := pinned(h).evidence(f.pack(t))
		must.OK(t, err)
		if r.Verified {
			t.Errorf("%s: verified", name)
		}
		want(t, r, test.check, verify.Failed, test.text)
	}

	must.OK(t, h.store.RemovePasskey(t.Context(), "acme", "", ann.Passkey.ID))
	h.confirm(ann, commitID(3), ann.Assert)
	r, err = pinned(h).evidence(h.export(evidence.Options{Commit: commitID(2)}))
	must.OK(t, err)
	wantVerified(t, r)
	r, err = pinned(h).evidence(h.export(evidence.Options{Commit: commitID(3)}))
	must.OK(t, err)
	want(t, r, verify.CheckPasskey, verify.Failed, "was removed before the attestation")
}
