package verify

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// identityEvent returns the event of the identity that is listed last.
func (h *host) identityEvent() (event string) {
	h.t.Helper()
	for i, err := range h.admin.Identities(h.t.Context(), "acme") {
		must.OK(h.t, err)
		event = i.Event
	}
	return event
}

// The keys that the ledger lists are those that its log has.
func TestListedIdentitiesAreLogged(t *testing.T) {
	h := newHost(t)
	a := h.attest(commitID(2), "test:go", ledger.Pass)
	s, p := newSite(t, h), newPerson(t)
	attestation := func(s *Session) (verify.Report, error) { return s.Attestation(t.Context(), "api", a.ID) }
	for _, subject := range []func(*Session) (verify.Report, error){attestation, commit(t, 2), repo(t)} {
		r := p.verify(s, subject)
		wantVerified(t, r)
		want(t, r, verify.CheckIdentity, verify.OK, "the log has the 1 identity that has signed")
	}
	for _, c := range p.verify(s, event(t, a.Event)).Checks {
		if c.Name == verify.CheckIdentity {
			t.Errorf("an event rests on no key: %+v", c)
		}
	}

	logged := h.identityEvent()
	const identities = "/identities"
	for name, test := range map[string]struct {
		file, old, now string
		status         verify.Status
		text           string
	}{
		"another event": {identities, logged, a.Event, verify.Failed, "has the type attestation"},
		"other terms": {identities, `"may":["*","merge:*","baseline:*","changes:*"]`, `"may":["test:*"]`, verify.Failed,
			`may: the ledger lists ["test:*"], and event evt_`},
		"another ID": {identities, `"id":"idn_`, `"id":"idn_0`, verify.Failed, `identity_id: the ledger lists "idn_0`},
		"distrusted": {identities, `"kind":"key"`, `"kind":"key","distrusted_since":"2050-01-01T00:00:00.000Z"`,
			verify.Failed, `distrusted_since: the ledger lists "2050-01-01T00:00:00.000Z", and event evt_`},
		"not logged yet":   {identities, `"event":"` + logged + `"`, `"event":""`, verify.NotChecked, "has not logged"},
		"no proof in form": {"/" + logged + "/proof", "@v1", "@v0", verify.Failed, "inclusion: "},
	} {
		s.change = func(path string, body []byte) []byte {
			if strings.HasSuffix(path, test.file) {
				if !bytes.Contains(body, []byte(test.old)) {
					t.Errorf("%s: %s is not in %s", name, test.old, body)
				}
				return bytes.Replace(body, []byte(test.old), []byte(test.now), 1)
			}
			return body
		}
		r := p.verify(s, attestation)
		want(t, r, verify.CheckIdentity, test.status, test.text)
		if r.Verified != (test.status != verify.Failed) {
			t.Errorf("%s: verified %v", name, r.Verified)
		}
	}
}

// In a log that has replaced theirs, too, the event of an identity must verify.
func TestIdentityOfAnEarlierLog(t *testing.T) {
	h := newHost(t)
	a := h.attest(commitID(2), "test:go", ledger.Pass)
	logged := h.identityEvent()
	h.begin("a new key")
	s, p := newSite(t, h), newPerson(t)
	attestation := func(s *Session) (verify.Report, error) { return s.Attestation(t.Context(), "api", a.ID) }
	r := p.verify(s, attestation)
	wantVerified(t, r)
	want(t, r, verify.CheckIdentity, verify.OK, "the log has the 1 identity that has signed")

	s.change = func(path string, body []byte) []byte {
		if strings.HasSuffix(path, "/"+logged+"/proof") {
			return bytes.Replace(body, []byte("@v1"), []byte("@v0"), 1)
		}
		return body
	}
	r = p.verify(s, attestation)
	want(t, r, verify.CheckIdentity, verify.Failed, "inclusion: ")
}

// No checkpoint covers what was logged while the log, which was replaced, was not signed.
func TestIdentityLoggedWhileTheLogWasNotSigned(t *testing.T) {
	testenv.From(t, testenv.Push, "waits for a checkpoint")
	h := newHost(t)
	h.key, _ = storetest.AddSigner(t, h.store, "cn=late,ou=build,o=acme")
	h.begin("a new key")
	a := h.attest(commitID(2), "test:go", ledger.Pass)

	r := newPerson(t).verify(newSite(t, h), func(s *Session) (verify.Report, error) {
		return s.Attestation(t.Context(), "api", a.ID)
	})
	want(t, r, verify.CheckInclusion, verify.OK, "")
	want(t, r, verify.CheckIdentity, verify.NotChecked, "was logged while the log, which was replaced, was not signed")
}
