package server

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

const (
	typeTestResult = "https://in-toto.io/attestation/test-result/v0.1"
	typeLink       = "https://in-toto.io/attestation/link/v0.3"
	typeSummary    = "https://slsa.dev/verification_summary/v1"
	typeVulns      = "https://in-toto.io/attestation/vulns/v0.1"
)

// about returns a subject for a commit.
func about(n int) string { return fmt.Sprintf(`{"name":"x","digest":{"gitCommit":%q}}`, commitID(n)) }

// post posts a signed statement about commit 1.
func (b *backend) post1(s *signer, more, predicateType, predicate string) response {
	b.t.Helper()
	return b.attest(s.sign(b.t, statement(about(1)+more, predicateType, predicate)))
}

// own returns a predicate of the ledger's own type.
func own(predicate string, status ledger.Status, members string) string {
	return fmt.Sprintf(`{"predicate":%q,"result":{"status":%q,"duration_ms":1}%s}`, predicate, status, members)
}

// wantReason checks the state of commit 1 and the reason of its first requirement.
func (b *backend) wantReason(state ledger.State, reason string) {
	b.t.Helper()
	c := decode[ledger.Commit](b.get(commitPath(commitID(1))).want(200))
	if c.State != state || !strings.Contains(c.Requirements[0].Reason, reason) {
		b.t.Errorf("commit 1 is %s, %s; want %s, %s", c.State, c.Requirements[0].Reason, state, reason)
	}
}

// A statement of another tool counts for what it says, and for nothing else.
func TestStatementsCountForWhatTheySay(t *testing.T) {
	const image = `,{"name":"img","digest":{"sha256":"%064d"}}`
	imageA, imageB := fmt.Sprintf(image, 1), fmt.Sprintf(image, 2)
	configured := func(result, name string) string {
		return fmt.Sprintf(`{"result":%q,"configuration":[{"name":%q}]}`, result, name)
	}
	verified := func(result string) string {
		return fmt.Sprintf(`{"verifier":{"id":"https://v.example"},"verificationResult":%q}`, result)
	}
	type step struct{ more, predicateType, predicate string }

	for name, test := range map[string]struct {
		requirement string
		steps       []step
		met         bool
		reason      string
	}{
		"e2e does not hide unit": {`"predicate":"test:*"`, []step{{"", typeTestResult, configured("FAILED", "unit")},
			{"", typeTestResult, configured("PASSED", "e2e")}}, false, "test:unit failed"},
		"unit replaces unit": {`"predicate":"test:*"`, []step{{"", typeTestResult, configured("FAILED", "unit")},
			{"", typeTestResult, configured("PASSED", "unit")}}, true, "met by"},
		"image B does not hide image A": {`"predicate":"vsa:*"`, []step{{imageA, typeSummary, verified("FAILED")},
			{imageB, typeSummary, verified("PASSED")}}, false, "vsa:v.example failed for sha256:000000000000"},
		"both images": {`"predicate":"vsa:*"`, []step{{imageA, typeSummary, verified("FAILED")},
			{imageB, typeSummary, verified("PASSED")}, {imageA, typeSummary, verified("PASSED")}}, true, "met by"},
		"both images at once do not replace image A": {`"predicate":"vsa:*"`,
			[]step{{imageA, typeSummary, verified("FAILED")}, {imageA + imageB, typeSummary, verified("PASSED")}},
			false, "failed"},
		"a failed link": {`"predicate":"run:*"`, []step{{"", typeLink, `{"name":"make","byproducts":{"return-value":2}}`}},
			false, "run:make failed"},
		"a link by its type": {`"type":"` + typeLink + `"`,
			[]step{{"", typeLink, `{"name":"make","byproducts":{"return-value":2}}`}}, false, "run:make failed"},
		"a link by its type, as stored contracts have it": {`"predicate":"https://in-toto.io/attestation/link/*"`,
			[]step{{"", typeLink, `{"name":"make","byproducts":{"return-value":0}}`}}, true, "met by"},
		"a link without a return value does not hide a failure": {`"predicate":"run:*"`,
			[]step{{"", typeLink, `{"name":"make","byproducts":{"return-value":2}}`}, {"", typeLink, `{"name":"make"}`}},
			false, "run:make failed"},
		"a scan": {`"predicate":"scan:*"`, []step{{"", typeVulns, `{"scanner":{"uri":"https://s.example"}}`}},
			false, "scan:s.example recorded"},
		"a scan that is accepted": {`"predicate":"scan:*","accept":["recorded"]`,
			[]step{{"", typeVulns, `{"scanner":{"uri":"https://s.example"}}`}}, true, "met by"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t)
			ci := b.signer("cn=ci,ou=build,o=acme")
			b.setContract(`{"requirements":[{"state":"ATTESTED",` + test.requirement +
				`},{"state":"PROMOTABLE","predicate":"review:*"}]}`)
			for _, s := range test.steps {
				b.post1(ci, s.more, s.predicateType, s.predicate).want(201)
			}
			state := ledger.Validating
			if test.met {
				state = ledger.Attested
			}
			b.wantReason(state, test.reason)
		})
	}
}

// Statements and envelopes that could mean two things are refused, and leave nothing.
func TestDocumentsWithTwoMeanings(t *testing.T) {
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	good := own("test:go", ledger.Pass, "")
	sign := func(text string) string { return string(ci.sign(t, []byte(text))) }
	ours := func(predicate string) string {
		return sign(string(statement(about(1), attestation.ResultPredicateType, predicate)))
	}
	// member adds a member before another one of a statement.
	member := func(before, member string) string {
		text := string(statement(about(1), attestation.ResultPredicateType, good))
		return sign(strings.Replace(text, before, member+before, 1))
	}
	envelope := ours(good)
	inEnvelope := func(before, member string) string { return strings.Replace(envelope, before, member+before, 1) }
	at := func(d time.Duration) string {
		return `,"finishedOn":"` + b.clock.now().Add(d).Format(time.RFC3339Nano) + `"`
	}

	const statementCode, envelopeCode = ledger.CodeInvalidStatement, ledger.CodeInvalidEnvelope
	for name, test := range map[string]struct {
		body  string
		code  ledger.Code
		field string
	}{
		"the sha1 of a jar": {
			sign(string(statement(`{"name":"app.jar","digest":{"sha1":"`+commitID(1)+`"}}`, typeLink, `{}`))),
			ledger.CodeNoCommitSubject, ""},
		"a tree": {sign(string(statement(`{"digest":{"gitTree":"`+commitID(1)+`"}}`, typeLink, `{}`))),
			ledger.CodeNoCommitSubject, ""},
		"signed:":               {ours(own("signed:x", ledger.Pass, "")), statementCode, "predicate.predicate"},
		"Merge:":                {ours(own("Merge:x", ledger.Pass, "")), statementCode, "predicate.predicate"},
		"exception:":            {ours(own("exception:x", ledger.Pass, "")), statementCode, "predicate.predicate"},
		"recorded":              {ours(own("test:go", ledger.Recorded, "")), statementCode, "predicate.result.status"},
		"a future":              {ours(own("test:go", ledger.Pass, at(5*time.Minute+time.Millisecond))), statementCode, ""},
		"other repo":            {ours(own("go", ledger.Pass, `,"repo":"acme/web"`)), ledger.CodeWrongRepo, "predicate.repo"},
		"other org":             {ours(own("go", ledger.Pass, `,"repo":"acne/api"`)), ledger.CodeWrongRepo, "predicate.repo"},
		"Subject":               {member(`"subject"`, `"Subject":[],`), statementCode, "subject"},
		"long s":                {member(`"subject"`, `"ſubject":[],`), statementCode, "subject"},
		"GITCOMMIT":             {member(`"gitCommit"`, `"GITCOMMIT":"x",`), statementCode, "subject[0].digest.gitCommit"},
		"Digest":                {member(`"digest"`, `"Digest":{},`), statementCode, "subject[0].digest"},
		"Status":                {member(`"status"`, `"Status":"fail",`), statementCode, "predicate.result.status"},
		"ſtatus":                {member(`"status"`, `"ſtatus":"fail",`), statementCode, "predicate.result.status"},
		"Result":                {member(`"result":`, `"reſult":{},`), statementCode, "predicate.result"},
		"same member":           {member(`"status"`, `"status":"fail",`), statementCode, ""},
		"Kelvin sign":           {inEnvelope(`"keyid"`, "\"\u212aeyid\":\"\","), envelopeCode, "signatures[0].keyid"},
		"Payload":               {inEnvelope(`"payload"`, `"Payload":"e30=",`), envelopeCode, "payload"},
		"ſignatures":            {inEnvelope(`"signatures"`, `"ſignatures":[],`), envelopeCode, "signatures"},
		"64 KiB":                {inEnvelope(`"payload"`, `"x":"`+strings.Repeat("x", 64<<10)+`",`), envelopeCode, ""},
		"64 KiB in a signature": {inEnvelope(`"sig"`, `"x":"`+strings.Repeat("x", 64<<10)+`",`), envelopeCode, ""},
		"nearly a type":         {sign(string(statement(about(1), typeLink+"/", `{}`))), statementCode, "predicateType"},
	} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			p := decode[ledger.Problem](b.attest([]byte(test.body)))
			if p.Code != test.code && !(name == "same member" && p.Status == 422) {
				t.Fatalf("%d %s: %s; want %s", p.Status, p.Code, p.Detail, test.code)
			}
			if test.field != "" && (len(p.Errors) != 1 || p.Errors[0].Field != test.field) {
				t.Errorf("%s: errors %+v, want %s", p.Detail, p.Errors, test.field)
			}
		})
	}
	if attestations, events := b.count(); attestations+events != 0 {
		t.Errorf("recorded %d attestations and %d events", attestations, events)
	}

	b.attest([]byte(ours(own("test:go", ledger.Pass, at(5*time.Minute)+`,"repo":"acme/API"`)))).want(201)
	b.attest([]byte(inEnvelope(`"payload"`, `"x":"`+strings.Repeat("x", 60<<10)+`",`))).want(201)
}

// An early success does not replace a later failure. A worse result is always recorded.
func TestReplayedSuccesses(t *testing.T) {
	b := newBackend(t)
	ci, other := b.signer("cn=ci,ou=build,o=acme"), b.signer("cn=other,ou=build,o=acme")
	post := func(s *signer, status ledger.Status, ago time.Duration) response {
		t.Helper()
		at := b.clock.now().Add(-ago).Format(time.RFC3339Nano)
		return b.post1(s, "", attestation.ResultPredicateType, own("test:go", status, `,"finishedOn":"`+at+`"`))
	}

	failed := decode[ledger.AttestationRecord](post(ci, ledger.Fail, time.Minute).want(201))
	for _, status := range []ledger.Status{ledger.Pass, ledger.Warn, ledger.Skip} {
		p := post(ci, status, time.Hour).wantProblem(409, ledger.CodeStaleStatement)
		if !strings.Contains(p.Detail, failed.ID) {
			t.Errorf("%s: %q does not name %s", status, p.Detail, failed.ID)
		}
	}
	post(ci, ledger.Errored, 2*time.Hour).want(201)
	post(ci, ledger.Pass, time.Hour).wantProblem(409, ledger.CodeStaleStatement)
	post(other, ledger.Pass, time.Hour).want(201) // of another person
	b.wantReason(ledger.Validating, "errored")

	post(ci, ledger.Pass, 0).want(201)
	b.wantReason(ledger.Attested, "met by")
	post(ci, ledger.Fail, 3*time.Hour).want(201)
	b.wantReason(ledger.Validating, "failed")
}

// issued returns a signer's key and certificate for a DN, issued by the CA of the fixtures.
func (b *backend) issued(key crypto.Signer, cn, ou string) func(payload []byte) []byte {
	b.t.Helper()
	caKey, ca := cosignAuthority(b.t)
	now := b.clock.now()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: cn, OrganizationalUnit: []string{ou}, Organization: []string{"acme"}},
		NotBefore:    now.Add(-time.Hour), NotAfter: now.Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}, ca, key.Public(), caKey)
	must.OK(b.t, err)
	cert := must.Get(x509.ParseCertificate(der))(b.t)
	return func(payload []byte) []byte {
		return must.Get(attestation.SignBundle(key, []*x509.Certificate{cert}, payload))(b.t)
	}
}

// A person counts once, with two keys, with two spellings of the name, and with two names
// that share a key.
func TestOnePersonWithSeveralIdentities(t *testing.T) {
	newKey := func() *ecdsa.PrivateKey {
		return must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	}
	key, second := newKey(), newKey()
	type sign = func([]byte) []byte
	for name, signers := range map[string]func(b *backend) (one, other sign){
		"two keys": func(b *backend) (one, other sign) {
			return b.issued(key, "ann", "dev"), b.issued(second, "ann", "dev")
		},
		"two spellings": func(b *backend) (one, other sign) {
			return b.issued(key, "ann", "dev"), b.issued(second, "ＡＮＮ", "Dev")
		},
		"one key": func(b *backend) (one, other sign) {
			return b.issued(key, "ann", "dev"), b.issued(key, "bob", "ops")
		},
		"a key and a certificate": func(b *backend) (one, other sign) {
			s := b.signer("cn=ann,ou=dev,o=acme")
			return func(p []byte) []byte { return s.sign(b.t, p) }, b.issued(key, "Ann", "DEV")
		},
		"by a third identity": func(b *backend) (one, other sign) {
			one, other = b.issued(key, "ann", "dev"), b.issued(second, "bob", "ops")
			joint := b.issued(second, "Ann", "dev")
			b.attest(one(statement(about(2), typeTestResult, `{"result":"PASSED"}`))).want(201)
			b.attest(other(statement(about(2), typeTestResult, `{"result":"PASSED","url":"x"}`))).want(201)
			b.attest(joint(statement(about(3), typeTestResult, `{"result":"PASSED"}`))).want(201)
			return one, other
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t)
			b.trust(identity.NewIdentity{Kind: identity.RootIdentity, PEM: string(cosignFile(t, "ca.crt"))})
			b.setContract(`{"requirements":[{"state":"ATTESTED","predicate":"test:*","threshold":2},` +
				`{"state":"PROMOTABLE","predicate":"review:*"}]}`)
			one, other := signers(b)
			result := func(result, url string) []byte {
				return statement(about(1), typeTestResult, fmt.Sprintf(`{"result":%q,"url":%q}`, result, url))
			}

			first := decode[ledger.AttestationRecord](b.attest(one(result("PASSED", "1"))).want(201))
			if again := decode[ledger.AttestationRecord](b.attest(other(result("PASSED", "1"))).want(200)); again != first {
				t.Errorf("the other identity's statement is %+v, want %+v", again, first)
			}
			b.attest(other(result("PASSED", "2"))).want(201)
			b.wantReason(ledger.Validating, "1 of 2")
			b.attest(one(result("PASSED", "1"))).wantProblem(409, ledger.CodeStaleStatement)

			b.attest(one(result("FAILED", "3"))).want(201)
			b.wantReason(ledger.Validating, "failed")
			b.attest(other(result("PASSED", "4"))).want(201)
			b.wantReason(ledger.Validating, "1 of 2")
			b.attest(one(result("FAILED", "3"))).wantProblem(409, ledger.CodeStaleStatement)

			third := b.signer("cn=carol,ou=dev,o=acme")
			b.attest(third.sign(t, result("PASSED", "5"))).want(201)
			b.wantReason(ledger.Attested, "met by")
		})
	}
}

// What people paste by mistake is refused with the sentence that helps.
func TestPastedDocuments(t *testing.T) {
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	unsigned := string(statement(about(1), attestation.ResultPredicateType, own("test:go", ledger.Pass, "")))
	good := string(ci.sign(t, []byte(unsigned)))
	const invalid = ledger.CodeInvalidEnvelope

	for name, test := range map[string]struct {
		body   string
		status int
		code   ledger.Code
		detail string
	}{
		"an unsigned statement":     {unsigned, 422, invalid, "a statement without a signature"},
		"half a file of JSON Lines": {good + "\n" + good[:80], 400, ledger.CodeInvalidJSON, "line 2"},
		"DSSE with cert": {strings.Replace(good, `"sig"`, `"cert":"-----BEGIN CERTIFICATE-----","sig"`, 1), 422, invalid,
			"put the certificate in certificate"},
		"cosign's old bundle": {`{"base64Signature":"MEUC","cert":"LS0t","rekorBundle":{"SignedEntryTimestamp":"MEUC"}}`, 422,
			invalid, "--new-bundle-format"},
	} {
		t.Run(name, func(t *testing.T) {
			p := b.in(t).attest([]byte(test.body)).wantProblem(test.status, test.code)
			if !strings.Contains(p.Detail+fmt.Sprint(p.Errors), test.detail) {
				t.Errorf("detail %q, want %q in it", p.Detail, test.detail)
			}
		})
	}
	if attestations, events := b.count(); attestations+events != 0 {
		t.Errorf("recorded %d attestations and %d events", attestations, events)
	}
}

// A commit has room for 1,000 combinations of predicate, person and slot. What is already
// there can still be replaced.
func TestTooMuchEvidence(t *testing.T) {
	testenv.From(t, testenv.Push, "fills a limit")
	if testing.Short() {
		t.Skip("records 1,000 attestations")
	}
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	attest := func(n, run int) response {
		b.t.Helper()
		return b.attest(ci.statement(t, commitID(1), fmt.Sprintf("test:%d", n), ledger.Pass, run))
	}
	for n := range policy.MaxTopics {
		attest(n, 1).want(201)
	}

	attest(policy.MaxTopics, 1).wantProblem(422, ledger.CodeTooMuchEvidence)
	attest(0, 2).want(201)
	b.attest(ci.statement(t, commitID(2), "test:go", ledger.Pass, 1)).want(201)
	if got := b.commit(commitID(1)).Attested; got != policy.MaxTopics+1 {
		t.Errorf("%d attestations, want %d", got, policy.MaxTopics+1)
	}
}
