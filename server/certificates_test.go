package server

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/oidc/oidctest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store"
)

const (
	certificatesURL = "/v1/orgs/acme/certificates"
	jobDN           = "cn=api,ou=ci-build,o=acme"
	jobCommit       = "1111111111111111111111111111111111111111"
)

// jobs is a backend whose org acme has a CA, and a rule for jobs of a provider.
type jobs struct {
	*backend
	provider *oidctest.Provider
	rule     exchange.Rule
	key      *ecdsa.PrivateKey // of the jobs
	tokens   int
}

func newJobs(t *testing.T, changes ...func(*Config)) *jobs {
	t.Helper()
	b := newBackend(t, append(changes, func(c *Config) { c.BaseURL = "https://ledger.example" })...)
	j := &jobs{backend: b, provider: oidctest.New(t), key: oidctest.NewKey(t)}
	b.post(caURL, `{"may":["test:*"]}`).want(201)
	// Its keys are pasted, so that nothing is read from the provider.
	_, err := b.store.AddIssuer(t.Context(), "acme", exchange.NewIssuer{URL: j.provider.URL, JWKS: j.provider.JWKS()})
	must.OK(t, err)
	j.rule = j.newRule(jobDN)
	return j
}

// newRule creates a rule that gives a name to the jobs of the provider.
func (j *jobs) newRule(dn string) exchange.Rule {
	j.t.Helper()
	claims := j.provider.GitHub("x", j.clock.now())
	n, err := exchange.NewRule{Name: "api main", Issuer: j.provider.URL, RepositoryID: fmt.Sprint(claims["repository_id"]),
		Scope: ledger.Write, Repos: []string{"api"}, DN: dn}.Completed()
	must.OK(j.t, err)
	r, err := j.store.CreateRule(j.t.Context(), "acme", n)
	must.OK(j.t, err)
	return r
}

// token returns a new token of a job.
func (j *jobs) token(changes ...map[string]any) string {
	j.tokens++
	changes = append([]map[string]any{{"jti": fmt.Sprint(j.tokens)}}, changes...)
	return j.provider.Token(j.provider.GitHub("https://ledger.example/v1/orgs/acme", j.clock.now(), changes...))
}

func (j *jobs) request(token string, scope ledger.Scope) ca.NewCertificate {
	j.t.Helper()
	der := must.Get(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, j.key))(j.t)
	csr := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return ca.NewCertificate{CSR: string(csr), Token: token, Scope: scope}
}

// certify requests a certificate, without an API token.
func (j *jobs) certify(n ca.NewCertificate) response {
	j.t.Helper()
	return j.send(request{method: "POST", path: certificatesURL, body: toJSON(j.t, n)})
}

// sign returns a bundle with a certificate.
func (j *jobs) sign(c ca.Certificate, commit, predicate string) []byte {
	j.t.Helper()
	chain, err := identity.ParseCertificates([]byte(c.Certificate))
	must.OK(j.t, err)
	statement, err := attestation.NewStatement("git+https://git.example/acme/api", commit, attestation.ResultPredicate{
		Predicate: predicate, Result: ledger.Result{Status: ledger.Pass}})
	must.OK(j.t, err)
	return must.Get(attestation.SignBundle(j.key, chain, statement))(j.t)
}

// record records a bundle with the API token of a job.
func (j *jobs) record(c ca.Certificate, bundle []byte) response {
	j.t.Helper()
	return j.send(request{method: "POST", path: "/v1/orgs/acme/repos/api/attestations", token: c.APIToken,
		body: string(bundle)})
}

func TestJobRecordsWithItsTokenAlone(t *testing.T) {
	j := newJobs(t)
	resp := j.certify(j.request(j.token(), ledger.Write)).want(201)
	if resp.header.Get("Cache-Control") != "no-store" {
		t.Errorf("the response may be stored: %q", resp.header)
	}
	c := decode[ca.Certificate](resp)
	if c.DN != jobDN || c.NotAfter > j.clock.time().Add(ca.Lifetime) {
		t.Errorf("certified %+v", c)
	}
	record := decode[ledger.AttestationRecord](j.record(c, j.sign(c, jobCommit, "test:go")).want(201))
	record = decode[ledger.AttestationRecord](j.get("/v1/orgs/acme/repos/api/attestations/" + record.ID).want(200))
	if record.Identity != jobDN || record.Verification == nil || record.Verification.IdentityID != c.Identity {
		t.Errorf("recorded %+v", record)
	}
	j.record(c, j.sign(c, jobCommit, "review:code")).wantProblem(422, ledger.CodePredicateNotAllowed)

	// Each issuance is logged.
	page, err := j.store.Events(t.Context(), "acme", store.EventFilter{Query: store.Query{Limit: 500},
		Types: []ledger.EventType{ledger.EventAudit}})
	must.OK(t, err)
	var last ledger.AuditEvent
	must.OK(t, ledger.DecodeStrict(page.Data[len(page.Data)-1], &last))
	if last.Action != ledger.AuditCertificateIssued || last.Target != c.Serial || last.By.Name != "api main" ||
		last.By.Via != ledger.ViaAPI || last.By.Address != "127.0.0.1" {
		t.Errorf("the last audit event is %+v", last)
	}
}

// The attestation stays valid after the certificate has expired and the CA was retired.
func TestEvidenceOfAJobOutlivesItsCertificate(t *testing.T) {
	j := newJobs(t)
	c := decode[ca.Certificate](j.certify(j.request(j.token(), ledger.Write)).want(201))
	late, other := j.sign(c, jobCommit, "test:late"), j.sign(c, jobCommit, "test:other")
	record := decode[ledger.AttestationRecord](j.record(c, j.sign(c, jobCommit, "test:go")).want(201))
	at := c.NotAfter.Std().Sub(j.clock.now())
	j.clock.advance(at)
	j.record(c, other).want(201)
	j.clock.advance(time.Second)
	j.record(c, late).wantProblem(422, ledger.CodeExpiredCertificate)
	j.delete(caURL).want(204)

	url := "/v1/orgs/acme/repos/api/attestations/" + record.ID
	envelope := j.get(url + "/envelope").want(200).body
	root, err := j.store.Identity(t.Context(), "acme", c.Identity)
	must.OK(t, err)
	root.RevokedAt = 0
	ring, err := identity.NewKeyring([]identity.Identity{root}, nil)
	must.OK(t, err)
	if _, err := attestation.VerifyRecorded(envelope, jobCommit, ring, record.RecordedAt); err != nil {
		t.Errorf("the recorded attestation is not valid any more: %v", err)
	}
}

// The key in the certificate is that of the request, and no other signs with it.
func TestCertificateOfAJobIsForItsKey(t *testing.T) {
	j := newJobs(t)
	c := decode[ca.Certificate](j.certify(j.request(j.token(), ledger.Write)).want(201))
	j.key = oidctest.NewKey(t)
	other := decode[ca.Certificate](j.certify(j.request(j.token(), 0)).want(201))
	if other.APIToken != "" {
		t.Error("an API token was not asked for")
	}
	signed := string(j.sign(other, jobCommit, "test:go"))
	bundle := strings.Replace(signed, encodedCertificate(other), encodedCertificate(c), 1)
	j.record(c, []byte(bundle)).wantProblem(422, ledger.CodeInvalidSignature)
}

// encodedCertificate returns a certificate as bundles have it.
func encodedCertificate(c ca.Certificate) string {
	block, _ := pem.Decode([]byte(c.Certificate))
	return base64.StdEncoding.EncodeToString(block.Bytes)
}

func TestCertificatesAreRefused(t *testing.T) {
	j := newJobs(t)
	used := j.token()
	j.certify(j.request(used, 0)).want(201)
	hour := j.clock.now().Add(-time.Hour).Unix()
	for name, tc := range map[string]struct {
		request ca.NewCertificate
		status  int
		want    ledger.Code
	}{
		"a used token":          {j.request(used, 0), 400, ledger.CodeTokenUsed},
		"no token":              {j.request("", 0), 400, ledger.CodeInvalidToken},
		"an API token":          {j.request(j.admin, 0), 400, ledger.CodeInvalidToken},
		"a token of yesterday":  {j.request(j.token(map[string]any{"exp": hour}), 0), 400, ledger.CodeTokenExpired},
		"a token for others":    {j.request(j.token(map[string]any{"aud": "https://x"}), 0), 400, ledger.CodeWrongAudience},
		"a token without a jti": {j.request(j.token(map[string]any{"jti": nil}), 0), 400, ledger.CodeInvalidToken},
		"of another repository": {j.request(j.token(map[string]any{"repository_id": "9"}), 0), 400,
			ledger.CodeNoMatchingRule},
		"more than the rule gives": {j.request(j.token(), ledger.Admin), 400, ledger.CodeNoMatchingRule},
		"no CSR":                   {ca.NewCertificate{Token: j.token()}, 422, ledger.CodeInvalidField},
	} {
		t.Run(name, func(t *testing.T) {
			j := *j
			j.backend = j.in(t)
			j.certify(tc.request).wantProblem(tc.status, tc.want)
		})
	}

	// A request that was refused leaves the token for the next one.
	again := j.token()
	n := j.request(again, 0)
	n.CSR = "text"
	j.certify(n).wantProblem(422, ledger.CodeInvalidField)
	j.certify(j.request(again, 0)).want(201)

	// The exchanged token certifies nothing.
	exchanged := decode[ca.Certificate](j.certify(j.request(j.token(), ledger.Write)).want(201)).APIToken
	j.certify(j.request(exchanged, 0)).wantProblem(400, ledger.CodeInvalidToken)
	resp := j.send(request{method: "POST", path: certificatesURL, token: exchanged, body: toJSON(t, j.request("", 0))})
	resp.wantProblem(400, ledger.CodeInvalidToken)
}

func TestRuleCannotMintAPerson(t *testing.T) {
	j := newJobs(t)
	_, err := exchange.NewRule{Name: "x", Issuer: j.provider.URL, RepositoryID: "1", Scope: ledger.Write,
		Repos: []string{"api"}, DN: "cn=alice,ou=dev,o=acme"}.Completed()
	if !isCode(err, ledger.CodeInvalidField) {
		t.Errorf("a rule for the name of a person: %v", err)
	}
	// The same is true if the database has such a rule.
	must.OK(t, j.store.RemoveRule(t.Context(), "acme", j.rule.ID))
	n := j.rule.NewRule
	for _, dn := range []string{"cn=alice,ou=dev,o=acme", "cn=api,ou=ci-build,o=globex"} {
		n.DN = dn
		r, err := j.store.CreateRule(t.Context(), "acme", n)
		must.OK(t, err)
		j.certify(j.request(j.token(), 0)).wantProblem(403, ledger.CodeForbidden)
		must.OK(t, j.store.RemoveRule(t.Context(), "acme", r.ID))
	}
}

func TestCertificatesNeedACA(t *testing.T) {
	j := newJobs(t)
	root := decode[identity.Identity](j.get(caURL).want(200))
	must.OK(t, j.store.RevokeIdentity(t.Context(), "acme", root.ID))
	token := j.token()
	j.certify(j.request(token, 0)).wantProblem(422, ledger.CodeRevokedIdentity)
	j.delete(caURL).want(204)
	j.certify(j.request(token, 0)).wantProblem(404, ledger.CodeNotFound)
	j.post(caURL, `{"may":["*"]}`).want(201)
	j.certify(j.request(token, 0)).want(201)
}

func TestRequestForACertificateIsBounded(t *testing.T) {
	j := newJobs(t)
	n := j.request(j.token(), 0)
	body := toJSON(t, n)
	full := body + strings.Repeat(" ", maxCertificateRequest-len(body))
	post := func(body string) response {
		return j.send(request{method: "POST", path: certificatesURL, body: body})
	}
	post(full+" ").wantProblem(413, ledger.CodePayloadTooLarge)
	post(full).want(201)
	n.CSR = strings.Repeat("x", maxCertificateRequest)
	post(toJSON(t, n)).wantProblem(413, ledger.CodePayloadTooLarge)
}

// The rule that counts is the oldest that gives a name.
func TestJobSignsByARuleWithAName(t *testing.T) {
	j := newJobs(t)
	must.OK(t, j.store.RemoveRule(t.Context(), "acme", j.rule.ID))
	j.certify(j.request(j.token(), 0)).wantProblem(400, ledger.CodeNoMatchingRule)
	j.newRule("")
	j.newRule(jobDN)
	if c := decode[ca.Certificate](j.certify(j.request(j.token(), ledger.Write)).want(201)); c.DN != jobDN {
		t.Errorf("certified %s", c.DN)
	}
}

func TestRequestsForCertificatesAreLimitedByAddress(t *testing.T) {
	j := newJobs(t, func(c *Config) { c.Limits.Requests = 1 })
	n := j.request("", 0)
	n.CSR = "text"
	for range 1000 {
		if resp := j.certify(n); resp.status != 422 {
			resp.wantProblem(429, ledger.CodeTooManyRequests)
			return
		}
	}
	t.Error("1000 requests are not too many for one per second")
}

// Guesses of tokens are limited, as with API tokens, and so are tokens that were used.
func TestRefusedTokensOfJobsAreLimited(t *testing.T) {
	limit := func(c *Config) { c.Limits.FailedSignIns = 2 }
	j := newJobs(t, limit)
	used := j.token()
	j.certify(j.request(used, 0)).want(201)
	for range 2 {
		j.certify(j.request(used, 0)).wantProblem(400, ledger.CodeTokenUsed)
	}
	j.certify(j.request(used, 0)).wantProblem(429, ledger.CodeTooManyRequests)
	j.certify(j.request(j.token(), 0)).want(201) // a right one is not affected

	j = newJobs(t, limit)
	for range 2 {
		j.certify(j.request("", 0)).wantProblem(400, ledger.CodeInvalidToken)
	}
	resp := j.certify(j.request("", 0))
	resp.wantProblem(429, ledger.CodeTooManyRequests)
	if resp.header.Get("Retry-After") == "" {
		t.Error("the response does not say when to try again")
	}
}
