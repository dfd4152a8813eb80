package server

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/review"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

const (
	reviewCommit = "2222222222222222222222222222222222222222"
	annDN        = "cn=ann,ou=people-dev,o=acme"
)

// reviewers is a backend whose org acme has a CA for people, and members.
type reviewers struct{ *backend }

func newReviewers(t *testing.T, changes ...func(*Config)) *reviewers {
	t.Helper()
	r := &reviewers{backend: newBackend(t, changes...)}
	r.post("/v1/orgs/acme/people-ca", `{}`).want(201)
	r.host("PUT", "/v1/orgs/acme/repos/api/commits/"+reviewCommit, `{"branch":"feature"}`).want(201)
	for subject, role := range map[string]string{"ann": "contributor", "rob": "reader", "max": "maintainer"} {
		r.addMember(subject, role)
	}
	return r
}

// A person is a member with a session and a key in a browser.
type person struct {
	*reviewers
	url string // of a server on loopback for the session
	key *ecdsa.PrivateKey
}

// signIn signs a member in who was authenticated a while ago.
func (r *reviewers) signIn(subject string, ago time.Duration) *person {
	r.t.Helper()
	a := member.Account{Issuer: provider, Subject: subject}
	if ago >= 0 {
		a.AuthTime = r.clock.time().Add(-ago)
	}
	session := rand.Text()
	_, err := r.signInAccount(a, session)
	must.OK(r.t, err)
	return r.withSession(session)
}

// withSession returns a person with a session. The API for sessions is served on loopback.
func (r *reviewers) withSession(session string) *person {
	r.t.Helper()
	sessions := r.server.Sessions()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		sessions.ServeHTTP(w, q.WithContext(r.server.WithSession(q.Context(), session)))
	}))
	r.t.Cleanup(s.Close)
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(r.t)
	return &person{r, s.URL, key}
}

func (p *person) postTo(path, body string) response {
	p.t.Helper()
	return receive(p.t, p.client, p.url, request{method: "POST", path: path, body: body})
}

const (
	draftsURL  = "/v1/orgs/acme/repos/api/commits/" + reviewCommit + "/review-drafts"
	reviewsURL = "/v1/orgs/acme/repos/api/commits/" + reviewCommit + "/reviews"
)

// draft returns the payload of a new draft.
func (p *person) draft() []byte {
	p.t.Helper()
	d := decode[review.Draft](p.postTo(draftsURL, `{"verdict":"approve","comment":"Looks good"}`).want(201))
	return d.Payload
}

// sign signs a payload with a key, as the page does.
func sign(t testing.TB, key crypto.Signer, payload []byte) review.NewReview {
	t.Helper()
	public := must.Get(x509.MarshalPKIXPublicKey(key.Public()))(t)
	signature := must.Get(identity.Sign(key, attestation.PAE(attestation.StatementType, payload)))(t)
	return review.NewReview{Payload: payload, PublicKey: public, Signature: signature}
}

func TestMemberApprovesACommit(t *testing.T) {
	ann := newReviewers(t).signIn("ann", time.Minute)
	resp := ann.postTo(draftsURL, `{"verdict":"approve","comment":"Looks good"}`).want(201)
	if resp.header.Get("Cache-Control") != "no-store" {
		t.Errorf("the draft may be stored: %q", resp.header)
	}
	d := decode[review.Draft](resp)
	if want := ann.clock.time().Add(10 * time.Minute); d.ExpiresAt != want {
		t.Errorf("the draft expires at %s, want %s", d.ExpiresAt, want)
	}
	record := decode[ledger.AttestationRecord](ann.postTo(reviewsURL, toJSON(t, sign(t, ann.key, d.Payload))).want(201))
	if record.Predicate != "review:code" || record.Result.Status != ledger.Pass || record.Identity != annDN ||
		record.Commit != reviewCommit {
		t.Errorf("recorded %+v", record)
	}

	// The certificate was logged first, and belongs to the member.
	events := ann.send(request{method: "GET", path: "/v1/orgs/acme/audit?action=certificate.issued", token: ann.admin})
	last := string(events.want(200).body)
	for _, want := range []string{`"certificate.issued"`, annDN, fmt.Sprintf("sha256:%x", sha256.Sum256(d.Payload))} {
		if !strings.Contains(last, want) {
			t.Errorf("the audit event lacks %s: %s", want, last)
		}
	}
}

// A draft is about all commits since the merge base with the branch that the commit is meant for, as soon as the
// objects of all of them are known. They are listed, and the base is signed.
func TestADraftHasTheCommitsSinceItsBase(t *testing.T) {
	r := newReviewers(t)
	base, baseObject := storetest.Object(1, "Max", 1)
	inner, innerObject := storetest.ObjectOn(base, 2, "Tom", 2)
	head, headObject := storetest.ObjectOn(inner, 3, "Tom", 3)
	mainline, mainlineObject := storetest.ObjectOn(base, 4, "Max", 4)
	commits := "/v1/orgs/acme/repos/api/commits/"
	r.host("PUT", commits+mainline, toJSON(t, ledger.Registration{Branch: "main", Object: mainlineObject})).want(201)
	r.host("PUT", commits+head, toJSON(t, ledger.Registration{Branch: "feature", Object: headObject})).want(201)

	ann := r.signIn("ann", 0)
	draft := func() review.Draft {
		t.Helper()
		return decode[review.Draft](ann.postTo(commits+head+"/review-drafts", `{"verdict":"approve"}`).want(201))
	}
	if d := draft(); d.Base != "" || d.Commits != nil || strings.Contains(string(d.Payload), `"base"`) {
		t.Errorf("without the objects between: %+v", d)
	}
	for _, object := range []lineage.Object{{Commit: inner, Object: innerObject}, {Commit: base, Object: baseObject}} {
		r.host("POST", "/v1/orgs/acme/repos/api/objects", toJSON(t, lineage.Objects{Objects: []lineage.Object{object}})).
			want(200)
	}

	d := draft()
	tom := ledger.Author{Name: "Tom", Email: "tom@example.org"}
	want := []review.Covered{{SHA: head, Subject: "commit 3", Author: tom}, {SHA: inner, Subject: "commit 2", Author: tom}}
	since := review.Covered{SHA: base, Subject: "commit 1", Author: ledger.Author{Name: "Max", Email: "max@example.org"}}
	if d.Branch != "main" || d.Since == nil || *d.Since != since {
		t.Errorf("the base is %+v on %q, want %+v on main", d.Since, d.Branch, since)
	}
	if d.Base != base || !slices.Equal(d.Commits, want) {
		t.Errorf("the draft is about %+v since %s, want %+v since %s", d.Commits, d.Base, want, base)
	}
	signed := toJSON(t, sign(t, ann.key, d.Payload))
	record := decode[ledger.AttestationRecord](ann.postTo(commits+head+"/reviews", signed).want(201))
	if !strings.Contains(string(d.Payload), `"base":"`+base+`"`) || record.Commit != head {
		t.Errorf("signed %s, recorded %+v", d.Payload, record)
	}
}

func TestRequestForChangesIsAFailure(t *testing.T) {
	ann := newReviewers(t).signIn("ann", 0)
	resp := ann.postTo(draftsURL, `{"verdict":"request_changes","predicate":"review:security"}`)
	d := decode[review.Draft](resp.want(201))
	record := decode[ledger.AttestationRecord](ann.postTo(reviewsURL, toJSON(t, sign(t, ann.key, d.Payload))).want(201))
	if record.Predicate != "review:security" || record.Result.Status != ledger.Fail {
		t.Errorf("recorded %+v", record)
	}
}

// Only a member who has signed in lately, and may write, can review a commit in the web interface.
func TestWhoMayReview(t *testing.T) {
	r := newReviewers(t)
	payload := r.signIn("ann", 0).draft()
	session, _, err := r.server.SignIn(t.Context(), r.admin)
	must.OK(t, err)
	for name, test := range map[string]struct {
		person *person
		code   ledger.Code // empty: may
	}{
		"contributor, 15 minutes ago": {r.signIn("ann", 15*time.Minute), ""},
		"maintainer":                  {r.signIn("max", 0), ""},
		"a second too late":           {r.signIn("ann", 15*time.Minute+time.Second), ledger.CodeSignInAgain},
		"at an unknown time":          {r.signIn("ann", -1), ledger.CodeSignInAgain},
		"reader":                      {r.signIn("rob", 0), ledger.CodeForbidden},
		"session of an admin's token": {r.withSession(session), ledger.CodeForbidden},
	} {
		draft := test.person.postTo(draftsURL, `{"verdict":"approve"}`)
		if test.code == "" {
			own := decode[review.Draft](draft.want(201)).Payload
			test.person.postTo(reviewsURL, toJSON(t, sign(t, test.person.key, own))).want(201)
			continue
		}
		t.Log(name)
		draft.wantProblem(403, test.code)
		test.person.postTo(reviewsURL, toJSON(t, sign(t, test.person.key, payload))).wantProblem(403, test.code)
	}
	r.post(draftsURL, `{"verdict":"approve"}`).wantProblem(403, ledger.CodeForbidden) // with an API token
	r.post(reviewsURL, toJSON(t, sign(t, r.signIn("ann", 0).key, payload))).wantProblem(403, ledger.CodeForbidden)
}

// Each forged request is refused, and the draft of the other person stays valid.
func TestForgedReviewsAreRefused(t *testing.T) {
	r := newReviewers(t)
	r.host("POST", "/v1/orgs/acme/repos", `{"name":"web"}`).want(201)
	r.host("PUT", "/v1/orgs/acme/repos/web/commits/"+reviewCommit, `{"branch":"main"}`).want(201)
	r.host("POST", "/v1/orgs", `{"name":"globex"}`).want(201)
	ann, max := r.signIn("ann", 0), r.signIn("max", 0)
	payload := ann.draft()
	good := sign(t, ann.key, payload)
	p384 := must.Get(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))(t)

	changed := func(old, replacement string) review.NewReview {
		text := strings.Replace(string(payload), old, replacement, 1)
		if text == string(payload) {
			t.Fatalf("the payload has no %s: %s", old, payload)
		}
		return sign(t, ann.key, []byte(text))
	}
	with := func(change func(*review.NewReview)) review.NewReview {
		n := good
		change(&n)
		return n
	}
	other := strings.Repeat("3", 40)
	for name, test := range map[string]struct {
		person *person
		path   string
		n      review.NewReview
		status int
		code   ledger.Code
	}{
		"of another session": {max, reviewsURL, sign(t, max.key, payload), 404, ledger.CodeNotFound},
		"of another sign-in": {r.signIn("ann", 0), reviewsURL, good, 404, ledger.CodeNotFound},
		"another verdict":    {ann, reviewsURL, changed(`"pass"`, `"fail"`), 404, ledger.CodeNotFound},
		"another comment":    {ann, reviewsURL, changed("Looks good", "Looks bad"), 404, ledger.CodeNotFound},
		"one more space":     {ann, reviewsURL, changed("{", "{ "), 404, ledger.CodeNotFound},
		"another commit": {ann, strings.Replace(reviewsURL, reviewCommit, other, 1), good, 422,
			ledger.CodeInvalidField},
		"about another commit": {ann, reviewsURL, changed(reviewCommit, other), 422, ledger.CodeInvalidField},
		"another repo":         {ann, strings.Replace(reviewsURL, "/api/", "/web/", 1), good, 404, ledger.CodeNotFound},
		"another org":          {ann, strings.Replace(reviewsURL, "/acme/", "/globex/", 1), good, 403, ledger.CodeForbidden},
		"no statement":         {ann, reviewsURL, sign(t, ann.key, []byte("{}")), 422, ledger.CodeInvalidField},
		"signed by another key": {ann, reviewsURL, with(func(n *review.NewReview) {
			n.PublicKey = sign(t, max.key, nil).PublicKey
		}), 422, ledger.CodeInvalidSignature},
		"signature of another payload": {ann, reviewsURL, with(func(n *review.NewReview) {
			n.Signature = sign(t, ann.key, []byte("other")).Signature
		}), 422, ledger.CodeInvalidSignature},
		"signature of the bare payload": {ann, reviewsURL, with(func(n *review.NewReview) {
			n.Signature = must.Get(identity.Sign(ann.key, payload))(t)
		}), 422, ledger.CodeInvalidSignature},
		"r and s": {ann, reviewsURL, with(func(n *review.NewReview) { n.Signature = rawOf(t, n.Signature) }), 422,
			ledger.CodeInvalidSignature},
		"no signature": {ann, reviewsURL, with(func(n *review.NewReview) { n.Signature = nil }), 422,
			ledger.CodeInvalidSignature},
		"key on P-384": {ann, reviewsURL, sign(t, p384, payload), 422, ledger.CodeInvalidField},
		"not a key": {ann, reviewsURL, with(func(n *review.NewReview) { n.PublicKey = []byte("key") }), 422,
			ledger.CodeInvalidField},
	} {
		t.Run(name, func(t *testing.T) {
			p := *test.person
			p.reviewers = &reviewers{backend: r.in(t)}
			p.postTo(test.path, toJSON(t, test.n)).wantProblem(test.status, test.code)
		})
	}
	ann.postTo(reviewsURL, toJSON(t, good)).want(201) // what was refused has not used it up
	ann.postTo(reviewsURL, toJSON(t, good)).wantProblem(404, ledger.CodeNotFound)
}

// rawOf returns the two numbers of a signature, as WebCrypto has them.
func rawOf(t testing.TB, der []byte) []byte {
	t.Helper()
	var integers struct{ R, S asn1.RawValue }
	_, err := asn1.Unmarshal(der, &integers)
	must.OK(t, err)
	var raw []byte
	for _, v := range [][]byte{integers.R.Bytes, integers.S.Bytes} {
		padded := append(make([]byte, 32), v...)
		raw = append(raw, padded[len(padded)-32:]...)
	}
	return raw
}

func TestDraftsOfReviewsEnd(t *testing.T) {
	r := newReviewers(t)
	ann := r.signIn("ann", 0)
	record := func(payload []byte) response { return ann.postTo(reviewsURL, toJSON(t, sign(t, ann.key, payload))) }

	payload := ann.draft()
	r.clock.advance(10*time.Minute - time.Millisecond)
	late := ann.draft()
	record(payload).want(201)
	r.clock.advance(5 * time.Minute)
	must.OK(t, r.store.Prune(t.Context()))
	record(late).want(201) // the sign-in is almost 15 minutes old
	ann = r.signIn("ann", 0)
	expired := ann.draft()
	r.clock.advance(10 * time.Minute)
	record(expired).wantProblem(404, ledger.CodeNotFound)
}

func TestInvalidDraftsAreRefused(t *testing.T) {
	r := newReviewers(t)
	ann := r.signIn("ann", 0)
	for body, field := range map[string]string{
		`{}`:                    "verdict",
		`{"verdict":"maybe"}`:   "verdict",
		`{"verdict":"Approve"}`: "verdict",
		`{"verdict":"approve","predicate":"test:go"}`:                         "predicate",
		`{"verdict":"approve","predicate":"review:"}`:                         "predicate",
		`{"verdict":"approve","predicate":"https://x.example"}`:               "predicate",
		`{"verdict":"approve","comment":"a\u202eb"}`:                          "comment",
		`{"verdict":"approve","comment":"a\u0000"}`:                           "comment",
		`{"verdict":"approve","comment":"` + strings.Repeat("ä", 2001) + `"}`: "comment",
	} {
		p := ann.postTo(draftsURL, body).wantProblem(422, ledger.CodeInvalidField)
		if len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%.60s: %+v, want an error about %s", body, p, field)
		}
	}
	ann.postTo(draftsURL, `{"verdict":"approve","comment":"`+strings.Repeat("ä", 2000)+`"}`).want(201)
	ann.postTo(draftsURL, `{"verdict":"approve","comment":"two\nlines"}`).want(201)
	ann.postTo(draftsURL, `{"verdict":"approve","repo":"web"}`).wantProblem(400, ledger.CodeUnknownField)
	ann.postTo(strings.Replace(draftsURL, reviewCommit, strings.Repeat("4", 40), 1), `{"verdict":"approve"}`).
		wantProblem(404, ledger.CodeNotFound)
}

// Without a CA that certifies the member for the predicate, nothing can be reviewed in the web
// interface.
func TestReviewsNeedTheCA(t *testing.T) {
	const peopleURL = "/v1/orgs/acme/people-ca"
	r := newReviewers(t)
	ann := r.signIn("ann", 0)
	record := func(payload []byte) response { return ann.postTo(reviewsURL, toJSON(t, sign(t, ann.key, payload))) }

	payload := ann.draft()
	r.post(peopleURL, `{"may":["review:code"],"replace":true}`).want(201)
	record(payload).want(201) // by the new CA
	ann.postTo(draftsURL, `{"verdict":"approve","predicate":"review:security"}`).wantProblem(422,
		ledger.CodePredicateNotAllowed)
	r.post(peopleURL, `{"dn_pattern":"ou=people-core","replace":true}`).want(201)
	ann.postTo(draftsURL, `{"verdict":"approve"}`).wantProblem(403, ledger.CodeForbidden)

	r.post(peopleURL, `{"replace":true}`).want(201)
	payload = ann.draft()
	r.delete(peopleURL).want(204)
	ann.postTo(draftsURL, `{"verdict":"approve"}`).wantProblem(404, ledger.CodeNotFound)
	record(payload).wantProblem(404, ledger.CodeNotFound)
	r.post(peopleURL, `{}`).want(201)
	record(payload).want(201)
}

// A sign-in that has ended reviews nothing, even if its request was authorized before.
func TestFormerMembersReviewNothing(t *testing.T) {
	r := newReviewers(t)
	ann := r.signIn("ann", 0)
	payload := ann.draft()
	page, err := r.store.Members(t.Context(), "acme", store.Query{Limit: 10})
	must.OK(t, err)
	for _, m := range page.Data {
		if m.Subject == "ann" {
			r.delete("/v1/orgs/acme/members/" + m.ID).want(204)
		}
	}
	ann.postTo(reviewsURL, toJSON(t, sign(t, ann.key, payload))).wantProblem(401, ledger.CodeUnauthenticated)
	err = r.store.CreateReviewDraft(t.Context(), "acme", "api", store.ReviewDraft{Token: "tok_1"})
	if !isCode(err, ledger.CodeForbidden) {
		t.Errorf("a draft for a sign-in that does not exist: %v", err)
	}
}

// The certificate of a review is worthless for any other statement, also if its holder, who has the
// key, posts an attestation directly.
func TestCertificateOfAReviewIsForOneStatement(t *testing.T) {
	r := newReviewers(t)
	ann := r.signIn("ann", 0)
	record := decode[ledger.AttestationRecord](ann.postTo(reviewsURL, toJSON(t, sign(t, ann.key, ann.draft()))).want(201))
	const attestationsURL = "/v1/orgs/acme/repos/api/attestations"
	envelope := r.get(attestationsURL + "/" + record.ID + "/envelope").want(200).body
	parsed, err := attestation.ParseEnvelope(envelope)
	must.OK(t, err)

	commits := map[string]string{"another commit": strings.Repeat("5", 40), "the same commit": reviewCommit}
	for name, commit := range commits {
		statement, err := attestation.NewStatement("acme/api", commit, attestation.ResultPredicate{
			Predicate: "review:code", Result: ledger.Result{Status: ledger.Pass}})
		must.OK(t, err)
		bundle := must.Get(attestation.SignBundle(ann.key, parsed.Certificates, statement))(t)
		t.Log(name)
		resp := r.send(request{method: "POST", path: attestationsURL, token: r.writer, body: string(bundle)})
		resp.wantProblem(422, ledger.CodeInvalidSignature)
		if !strings.Contains(string(resp.body), "is limited to another statement") {
			t.Errorf("%s: %s", name, resp.body)
		}
	}
	again := r.send(request{method: "POST", path: attestationsURL, token: r.writer, body: string(envelope)})
	mirrored, err := attestation.NewBundle(parsed.Certificates, parsed.Payload, mirrorOf(t, parsed.Signature))
	must.OK(t, err)
	twin := r.send(request{method: "POST", path: attestationsURL, token: r.writer, body: string(mirrored)})
	if got := decode[ledger.AttestationRecord](twin.want(200)); got.ID != record.ID {
		t.Errorf("with its other signature, it is recorded again as %s", got.ID)
	}
	if got := decode[ledger.AttestationRecord](again.want(200)); got.ID != record.ID {
		t.Errorf("recorded again as %s, want %s", got.ID, record.ID)
	}
}

// mirrorOf returns the second valid signature of an ECDSA signature, which anyone can compute. A
// review must not count again with it, such as after its author has requested changes.
func mirrorOf(t testing.TB, der []byte) []byte {
	t.Helper()
	var integers struct{ R, S *big.Int }
	_, err := asn1.Unmarshal(der, &integers)
	must.OK(t, err)
	integers.S.Sub(elliptic.P256().Params().N, integers.S)
	mirrored, err := asn1.Marshal(integers)
	must.OK(t, err)
	return mirrored
}
