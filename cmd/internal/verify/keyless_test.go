package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/evidence"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// keyless records a keyless bundle, and then replaces the trusted root by one that does not verify it.
func (h *host) keyless() ledger.AttestationRecord {
	h.t.Helper()
	record := storetest.RecordKeyless(h.t, h.store)
	h.sign()
	return record
}

// A keyless attestation is verified with the version of the trusted root that was in effect when it was
// recorded, online and in an export. The log has the versions and the entry.
func TestKeylessAttestation(t *testing.T) {
	h := newHost(t)
	a := h.keyless()
	s, p := newSite(t, h), newPerson(t)
	attestation := func(s *Session) (verify.Report, error) { return s.Attestation(t.Context(), "api", a.ID) }
	commit := func(s *Session) (verify.Report, error) { return s.Commit(t.Context(), "api", a.Commit) }
	for _, subject := range []func(*Session) (verify.Report, error){attestation, commit, repo(t)} {
		wantVerified(t, p.verify(s, subject))
		wantVerified(t, rederiving(t).verify(s, subject))
	}

	r := p.verify(s, attestation)
	want(t, r, verify.CheckSignature, verify.OK, "by cn=release,ou=build,o=acme")
	want(t, r, verify.CheckIdentity, verify.OK, "the log has the 1 identity that has signed")

	list := must.Get(client.Collect(h.admin.Identities(t.Context(), "acme"), 10))(t)
	text := must.Get(json.Marshal(list))(t)
	keys, err := verify.ParseKeys(text)
	must.OK(t, err)
	p.change = func(o *Options) { o.Keys = &keys }
	want(t, p.verify(s, attestation), verify.CheckSignature, verify.Failed, "pinned keys verify no keyless signatures")
	p.change = nil

	for name, change := range map[string]struct{ path, old, now, check, text string }{
		"another document": {"/trusted-roots/public-good", "2022-10-20", "2022-10-21", verify.CheckIdentity,
			"version 1 of public"},
		"another entry": {"/identities", `github.com/sigstore/*`, `github.com/sigstore-js/*`, verify.CheckSignature,
			"wants the subject"},
		"a wider entry": {"/identities", `github.com/sigstore/*`, `github.com/sigstore/sigstore-js/*`, verify.CheckIdentity,
			`key: the ledger lists "`},
	} {
		s.change = func(path string, body []byte) []byte {
			if strings.HasSuffix(path, change.path) {
				return bytes.ReplaceAll(body, []byte(change.old), []byte(change.now))
			}
			return body
		}
		if r := p.verify(s, attestation); r.Verified {
			t.Errorf("%s: verified", name)
		} else {
			want(t, r, change.check, verify.Failed, change.text)
		}
	}

	s.change = func(path string, body []byte) []byte {
		if strings.HasSuffix(path, "/trusted-roots/public-good") {
			return bytes.ReplaceAll(body, []byte(`"version":1,`), []byte(`"version":4,`))
		}
		return body
	}
	_, err = p.try(s, attestation)
	if another, ok := errors.AsType[*client.AnotherError](err); !ok || another.Received != "4" {
		t.Errorf("another version of the trusted root: %v", err)
	}
}

// An export has what verifies a keyless attestation, and without it, or with another trusted root, the
// export is not verified.
func TestKeylessEvidence(t *testing.T) {
	h := newHost(t)
	a := h.keyless()
	text := h.export(evidence.Options{Commit: a.Commit})
	r, err := pinned(h).evidence(text)
	must.OK(t, err)
	wantVerified(t, r)

	for name, test := range map[string]struct {
		change func(files)
		check  string
	}{
		"no trusted roots": {func(f files) { delete(f, evidence.TrustedRootsFile) }, verify.CheckSignature},
		"another trusted root": {func(f files) {
			f[evidence.TrustedRootsFile] = bytes.ReplaceAll(f[evidence.TrustedRootsFile], []byte("2022-10-20"),
				[]byte("2022-10-21"))
		}, verify.CheckIdentity},
		"another event of the trusted root": {func(f files) {
			f[evidence.TrustedRootsFile] = bytes.ReplaceAll(f[evidence.TrustedRootsFile], []byte(`"event": "evt_`),
				[]byte(`"event": "evt_x`))
		}, verify.CheckIdentity},
	} {
		f := filesOf(t, text)
		test.change(f)
		r, err := pinned(h).evidence(f.pack(t))
		must.OK(t, err)
		if r.Verified {
			t.Errorf("%s: verified", name)
		}
		want(t, r, test.check, verify.Failed, "")
	}
}
