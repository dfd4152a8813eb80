package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/sigstoretest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

const (
	githubIssuer  = "https://token.actions.githubusercontent.com"
	trustedPath   = "/v1/orgs/acme/trusted-roots/"
	sigstoreJS    = "https://github.com/sigstore/sigstore-js/*"
	conformance   = "https://github.com/sigstore-conformance/*"
	keylessSigner = "cn=release,ou=build,o=acme"
)

func (b *backend) setTrustedRoot(name, file string) identity.TrustedRoot {
	b.t.Helper()
	return decode[identity.TrustedRoot](b.put(trustedPath+name, string(sigstoretest.File(b.t, file))).want(200))
}

// admit adds an entry for keyless signers of GitHub.
func (b *backend) admit(e ledger.SigstoreEntry) identity.Identity {
	b.t.Helper()
	if e.TrustedRoot == "" {
		e.TrustedRoot = "public-good"
	}
	if e.Issuer == "" {
		e.Issuer = githubIssuer
	}
	return b.trust(identity.NewIdentity{Kind: identity.SigstoreIdentity, DN: keylessSigner, Sigstore: &e,
		May: identity.Predicates{"*"}})
}

// Every bundle of the fixtures is recorded or refused as their README says, without a network.
func TestKeylessBundles(t *testing.T) {
	for file, test := range map[string]struct {
		root  string // default: the public good instance's
		entry ledger.SigstoreEntry
		want  string // outcomes; if accepted, only with this entry
		why   string // in the detail of the first problem
	}{
		sigstoretest.Bundle:        {want: "201", entry: ledger.SigstoreEntry{Subject: sigstoreJS}},
		"github-two-bundles.jsonl": {want: "201, 200", entry: ledger.SigstoreEntry{Subject: sigstoreJS}},
		"npm-attestations.json": {want: "422 untrusted_identity, 201", entry: ledger.SigstoreEntry{Subject: sigstoreJS},
			why: "matches no trusted key"},
		"slsa-generator-v0.3.json": {want: "201",
			entry: ledger.SigstoreEntry{Subject: "https://github.com/slsa-framework/*"}},

		"happy-path-intoto-in-dsse-v3-bundle.sigstore.json": {want: "422 certificate_commit_mismatch",
			entry: ledger.SigstoreEntry{Subject: conformance}, why: "on commit 82a3bfe6dd50fe9c71d6315eae66da15307856cf"},
		"intoto-with-custom-trust-root-bundle.sigstore.json": {want: "422 certificate_commit_mismatch",
			root: sigstoretest.OtherRoot, entry: ledger.SigstoreEntry{Subject: conformance},
			why: "its certificate names no source commit"},
		"rekor2-dsse-happy-path-bundle.sigstore.json": {want: "422 no_commit_subject",
			root: "rekor2-dsse-happy-path-trusted_root.json", entry: ledger.SigstoreEntry{Subject: conformance}},

		"happy-path-v0.3-bundle.sigstore.json": {want: "422 invalid_envelope", why: "signs a blob",
			entry: ledger.SigstoreEntry{Subject: conformance}},
		"dsse-invalid-sig_fail-bundle.sigstore.json": {want: "422 invalid_signature",
			entry: ledger.SigstoreEntry{Subject: conformance}},
		"dsse-mismatch-envelope_fail-bundle.sigstore.json": {want: "422 untrusted_identity",
			entry: ledger.SigstoreEntry{Subject: conformance}, why: "log signature does not match"},
		"github-invalid-signature.json": {want: "422 unsupported_payload_type",
			entry: ledger.SigstoreEntry{Subject: "https://github.com/*", RepositoryID: "726345462"}},
		"intoto-expired-certificate_fail-bundle.sigstore.json": {want: "422 expired_certificate",
			root:  "intoto-expired-certificate_fail-trusted_root.json",
			entry: ledger.SigstoreEntry{Subject: conformance}, why: "was not valid when it signed"},
		"intoto-missing-inclusion-proof_fail-bundle.sigstore.json": {want: "422 invalid_envelope",
			root:  "intoto-missing-inclusion-proof_fail-trusted_root.json",
			entry: ledger.SigstoreEntry{Subject: conformance}, why: "inclusion proof missing"},
		"rekor2-dsse-mismatch-sig_fail-bundle.sigstore.json": {want: "422 untrusted_identity",
			root:  "rekor2-dsse-mismatch-sig_fail-trusted_root.json",
			entry: ledger.SigstoreEntry{Subject: conformance}, why: "verifying log entry"},
		"slsa-generator-dsse-cert.jsonl": {want: "422 invalid_envelope",
			entry: ledger.SigstoreEntry{Subject: "https://github.com/slsa-framework/*"}, why: "no log entry here proves"},
	} {
		t.Run(file, func(t *testing.T) {
			b := newBackend(t)
			root := test.root
			if root == "" {
				root = sigstoretest.PublicGood
			}
			b.setTrustedRoot("public-good", root)
			b.admit(test.entry)

			got, detail, recorded := b.outcomesOf(file)
			if got != test.want || !strings.Contains(detail, test.why) {
				t.Errorf("got %s (%s), want %s (%s)", got, detail, test.want, test.why)
			}
			for _, a := range recorded {
				if a.Identity != keylessSigner {
					t.Errorf("recorded as by %s", a.Identity)
				}
			}
		})
	}
}

// outcomesOf sends a file of one bundle or several, and returns the outcomes, what was recorded, and the
// detail of the first problem.
func (b *backend) outcomesOf(file string) (outcome, detail string, recorded []ledger.AttestationRecord) {
	b.t.Helper()
	mediaType := typeJSON
	if strings.HasSuffix(file, ".jsonl") {
		mediaType = typeLinesX
	}
	a := b.attestAll(mediaType, string(sigstoretest.File(b.t, file)))
	items := []ledger.BulkItem{{Status: a.status}}
	switch {
	case a.status == 200 && strings.HasPrefix(string(a.body), `{"data"`):
		items = a.items()
	case a.status < 300:
		items[0].Attestation = new(decode[ledger.AttestationRecord](a))
	default:
		items[0].Problem = new(decode[ledger.Problem](a))
	}

	for _, item := range items {
		if item.Attestation != nil {
			recorded = append(recorded, *item.Attestation)
		} else if detail == "" {
			detail = item.Problem.Detail
		}
	}
	return outcomes(items), detail, recorded
}

// The record of an attestation says what the certificate says of its signer.
func TestKeylessRecord(t *testing.T) {
	b := newBackend(t)
	b.setTrustedRoot("public-good", sigstoretest.PublicGood)
	entry := b.admit(ledger.SigstoreEntry{Subject: sigstoreJS})
	_, _, recorded := b.outcomesOf(sigstoretest.Bundle)

	got := decode[ledger.AttestationRecord](b.get(attestationsPath + "/" + recorded[0].ID).want(200))
	want := ledger.SigstoreCertificate{
		Subject: "https://github.com/sigstore/sigstore-js/.github/workflows/release.yml@refs/heads/main",
		Issuer:  githubIssuer,
		RunURL:  "https://github.com/sigstore/sigstore-js/actions/runs/6014488666/attempts/1",
	}
	if v := got.Verification; v.Certificate == nil || *v.Certificate != want || v.IdentityID != entry.ID {
		t.Errorf("got %+v by %s, want %+v by %s", v.Certificate, v.IdentityID, want, entry.ID)
	}
	envelope := b.get(attestationsPath + "/" + recorded[0].ID + "/envelope").want(200).body
	if string(envelope) != string(sigstoretest.File(t, sigstoretest.Bundle)) {
		t.Error("the envelope is not the bundle that was sent, with its log entry")
	}
}

// Without an active entry or a trusted root, a keyless bundle is refused. The error says what to do.
func TestKeylessIsRefused(t *testing.T) {
	const file = sigstoretest.Bundle
	b := newBackend(t)
	refused := func(want, why string) {
		t.Helper()
		if got, detail, _ := b.outcomesOf(file); got != want || !strings.Contains(detail, why) {
			t.Errorf("got %s (%s), want %s (%s)", got, detail, want, why)
		}
	}
	const untrusted = "422 untrusted_identity"

	refused(untrusted, "identity add --sigstore")
	unknown := toJSON(t, identity.NewIdentity{Kind: identity.SigstoreIdentity, DN: keylessSigner,
		May: identity.Predicates{"*"}, Sigstore: &ledger.SigstoreEntry{TrustedRoot: "public-good", Issuer: githubIssuer,
			Subject: sigstoreJS}})
	b.setTrustedRoot("other", sigstoretest.PublicGood) // which the entry does not name
	b.post("/v1/orgs/acme/identities", unknown).wantFields(422, ledger.CodeInvalidField, "sigstore.trusted_root")
	b.setTrustedRoot("public-good", sigstoretest.PublicGood)
	entry := b.admit(ledger.SigstoreEntry{Subject: sigstoreJS})
	b.delete(trustedPath + "public-good").want(204)
	refused(untrusted, "no trusted root public-good (an admin sets it: ledgerd trusted-root set")
	b.post("/v1/orgs/acme/identities", unknown).wantFields(422, ledger.CodeInvalidField, "sigstore.trusted_root")

	b.setTrustedRoot("public-good", sigstoretest.OtherRoot)
	refused(untrusted, "trusted root public-good, version 3: the trusted root is stale, or of another Sigstore instance: "+
		"it has no key of the transparency log")

	b.setTrustedRoot("public-good", sigstoretest.PublicGood)
	b.delete(trustedPath + "public-good").want(204)
	refused(untrusted, "no trusted root public-good")
	b.setTrustedRoot("public-good", sigstoretest.PublicGood)
	b.delete("/v1/orgs/acme/identities/" + entry.ID).want(204)
	refused("422 revoked_identity", entry.ID)

	b.admit(ledger.SigstoreEntry{Subject: sigstoreJS, Ref: "refs/tags/*"})
	b.post("/v1/orgs/acme/identities", toJSON(t, identity.NewIdentity{Kind: identity.SigstoreIdentity, DN: keylessSigner,
		May: identity.Predicates{"test:*"}, Sigstore: &ledger.SigstoreEntry{TrustedRoot: "public-good", Issuer: githubIssuer,
			Subject: sigstoreJS}})).want(201)
	refused("422 predicate_not_allowed", "may attest only test:*")
	if attestations, _ := b.count(); attestations != 0 {
		t.Errorf("recorded %d attestations", attestations)
	}
}

// A trusted root is set, replaced, listed and removed by admins; all versions are kept, and each is an
// event and an action.
func TestTrustedRoots(t *testing.T) {
	b := newBackend(t)
	first := b.setTrustedRoot("public-good", sigstoretest.PublicGood)
	if again := b.setTrustedRoot("public-good", sigstoretest.PublicGood); again != first || first.Version != 1 {
		t.Errorf("set again as %+v, want %+v", again, first)
	}
	second := b.setTrustedRoot("public-good", "rekor2-dsse-happy-path-trusted_root.json")

	get := func(query string) identity.TrustedRoot {
		t.Helper()
		return decode[identity.TrustedRoot](b.get(trustedPath + "public-good" + query).want(200))
	}
	if got := get(""); got != second || got.Version != 2 {
		t.Errorf("in effect is %+v, want %+v", got, second)
	}
	if got := get("?version=1"); got != first || got.Document != string(sigstoretest.File(t, sigstoretest.PublicGood)) {
		t.Errorf("version 1 is %+v, want %+v", got, first)
	}
	b.get(trustedPath+"public-good?version=3").wantProblem(404, ledger.CodeNotFound)
	b.get(trustedPath+"public-good?version=x").wantProblem(400, ledger.CodeInvalidParameter)
	b.get(trustedPath+"other").wantProblem(404, ledger.CodeNotFound)

	b.delete(trustedPath+"other").wantProblem(404, ledger.CodeNotFound)
	b.delete(trustedPath + "public-good").want(204)
	b.delete(trustedPath+"public-good").wantProblem(404, ledger.CodeNotFound)
	b.get(trustedPath+"public-good").wantProblem(404, ledger.CodeNotFound)
	list := decode[ledger.Page[identity.TrustedRoot]](b.get("/v1/orgs/acme/trusted-roots?limit=2").want(200))
	rest := decode[ledger.Page[identity.TrustedRoot]](b.get(
		"/v1/orgs/acme/trusted-roots?limit=2&cursor=" + list.NextCursor).want(200))
	if len(list.Data) != 2 || list.Data[0].Event != first.Event || list.Data[0].Document != "" || len(rest.Data) != 1 ||
		!rest.Data[0].Removed || rest.Data[0].Version != 3 {
		t.Errorf("listed %+v and %+v", list.Data, rest.Data)
	}

	for name, test := range map[string]struct {
		path, body string
		status     int
		code       ledger.Code
		fields     []string
	}{
		"no JSON":        {"x", "-----BEGIN", 422, ledger.CodeInvalidField, []string{"document"}},
		"another object": {"x", `{"mediaType":"x"}`, 422, ledger.CodeInvalidField, []string{"document"}},
		"an odd name":    {"X", "{}", 422, ledger.CodeInvalidField, []string{"name"}},
		"too large": {"x", `"` + strings.Repeat("x", identity.MaxTrustedRoot) + `"`, 413, ledger.CodePayloadTooLarge,
			nil},
	} {
		t.Run(name, func(t *testing.T) {
			b.in(t).put(trustedPath+test.path, test.body).wantFields(test.status, test.code, test.fields...)
		})
	}
	b.send(request{method: "PUT", path: trustedPath + "x", token: b.writer, body: first.Document}).
		wantProblem(403, ledger.CodeForbidden)
	if got := len(b.audited("&action=trusted_root")); got != 3 {
		t.Errorf("%d actions, want 3", got)
	}
}

// An org has at most 20 trusted roots, removed ones included, with 200 versions.
func TestTrustedRootsAreLimited(t *testing.T) {
	b := newBackend(t)
	mock := string(sigstoretest.File(t, sigstoretest.OtherRoot))
	for i := range 20 {
		b.put(fmt.Sprint(trustedPath, "root-", i), mock).want(200)
	}
	b.delete(trustedPath + "root-0").want(204)
	b.put(trustedPath+"root-20", mock).wantProblem(422, ledger.CodeLimitReached)

	for range 89 {
		b.put(trustedPath+"root-0", mock).want(200)
		b.delete(trustedPath + "root-0").want(204)
	}
	b.put(trustedPath+"root-0", mock).want(200) // the 200th
	b.put(trustedPath+"root-0", mock).want(200) // a no-op
	b.put(trustedPath+"root-0", mock+" ").wantProblem(422, ledger.CodeLimitReached)

	// A trusted root can be removed at any time: its Sigstore instance may have been taken over.
	b.delete(trustedPath + "root-0").want(204)
	b.delete(trustedPath+"root-0").wantProblem(404, ledger.CodeNotFound)
	b.put(trustedPath+"root-0", mock).wantProblem(422, ledger.CodeLimitReached)
}
