package web_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/member"
)

const (
	reviewed   = "6666666666666666666666666666666666666666"
	reviewPath = "/orgs/acme/repos/api/commits/" + reviewed
)

// newReviewEnv returns an env with a commit, a CA for people, and the members ann and rob.
func newReviewEnv(t *testing.T) *env {
	t.Helper()
	e := newEnv(t)
	e.push(reviewed, ledger.Registration{Branch: "feature"})
	_, err := e.host.CreateCA(t.Context(), "acme", ca.People, ca.NewAuthority{})
	must.OK(t, err)
	for subject, role := range map[string]member.Role{"ann": member.Contributor, "rob": member.Reader} {
		e.addMember(subject, role)
	}
	return e
}

// member returns the browser of a member who was authenticated a while ago.
func (e *env) member(subject string, ago time.Duration) *browser {
	e.t.Helper()
	w, _ := e.signInAccount(member.Account{Issuer: provider, Subject: subject, AuthTime: e.clock.time().Add(-ago)})
	return w
}

// Members with the scope write review a commit on its page. Others see no button.
func TestWhoSeesTheReview(t *testing.T) {
	e := newReviewEnv(t)
	const script = "/static/review-"
	ann := e.member("ann", 0)
	shown := ann.get(reviewPath).want(200)
	shown.has("Approve", "Request changes", "as cn=ann,ou=people-dev,o=acme",
		"ledgerd review approve acme/api --commit 666666666666 --key me.key")
	if n := len(shown.elements("script", "type", "module")); n != 1 || !strings.Contains(shown.body, script) {
		t.Errorf("%d modules, want that of the review", n)
	}
	ann.header = map[string]string{"X-Ledger-Refresh": "1"}
	ann.get(reviewPath).want(200).hasNot(script, "cn=ann") // visitors share it

	for name, w := range map[string]*browser{"a reader": e.member("rob", 0), "a token": e.signIn(e.admin)} {
		t.Log(name)
		w.get(reviewPath).want(200).hasNot(script, "Request changes")
	}
	must.OK(t, e.host.RetireCA(t.Context(), "acme", ca.People))
	e.member("ann", 0).get(reviewPath).want(200).hasNot(script, "Request changes")
}

// Those who cannot review here read why, and what to do.
func TestWhyAVisitorCannotReview(t *testing.T) {
	const command = "ledgerd review approve acme/api --commit 666666666666 --key me.key"
	e := newReviewEnv(t)
	e.signIn(e.admin).get(reviewPath).want(200).has("You are signed in with an API token", command)
	e.signIn(e.writer).get(reviewPath).want(200).has("You are signed in with an API token", command)
	e.signIn(e.reader).get(reviewPath).want(200).has("with an API token that may only read", "sign in as a member").
		hasNot(command, "In a terminal")
	e.member("rob", 0).get(reviewPath).want(200).has("Your role cannot review commits").hasNot(command)
	e.member("ann", 0).get(reviewPath).want(200).hasNot("with an API token", "Your role", "The CA for people", "No CA")

	shared := e.signIn(e.admin)
	shared.header = map[string]string{"X-Ledger-Refresh": "1"}
	shared.get(reviewPath).want(200).hasNot("with an API token", command)

	authority := ca.NewAuthority{May: []string{"review:security"}, Replace: true}
	_, err := e.host.CreateCA(t.Context(), "acme", ca.People, authority)
	must.OK(t, err)
	e.member("ann", 0).get(reviewPath).want(200).has("The CA for people does not certify you for reviews", command)
	must.OK(t, e.host.RetireCA(t.Context(), "acme", ca.People))
	e.member("ann", 0).get(reviewPath).want(200).has("The org has no CA for people", command)

	_, err = e.host.Withdraw(t.Context(), "acme", "api", reviewed)
	must.OK(t, err)
	e.signIn(e.admin).get(reviewPath).want(200).hasNot("with an API token", command)
}

// The form is there only if a review would be recorded.
func TestWhenThereIsNoReview(t *testing.T) {
	ctx := t.Context()
	for name, change := range map[string]func(*env) error{
		"withdrawn commit": func(e *env) error {
			_, err := e.host.Withdraw(ctx, "acme", "api", reviewed)
			return err
		},
		"archived repo": func(e *env) error {
			_, err := e.host.ChangeRepo(ctx, "acme", "api", ledger.RepoChange{Archived: new(true)})
			return err
		},
		"archived org": func(e *env) error {
			_, err := e.host.ChangeOrg(ctx, "acme", ledger.OrgChange{Archived: new(true)})
			return err
		},
		"CA for others": func(e *env) error {
			_, err := e.host.CreateCA(ctx, "acme", ca.People, ca.NewAuthority{DNPattern: "ou=people-core,o=acme", Replace: true})
			return err
		},
		"CA for other reviews": func(e *env) error {
			_, err := e.host.CreateCA(ctx, "acme", ca.People, ca.NewAuthority{May: []string{"review:security"}, Replace: true})
			return err
		},
	} {
		t.Log(name)
		e := newReviewEnv(t)
		ann := e.member("ann", 0)
		ann.get(reviewPath).want(200).has("Request changes")
		must.OK(t, change(e))
		ann.get(reviewPath).want(200).hasNot("/static/review-", "Request changes")
	}

	// A commit that was registered again is no longer withdrawn.
	e := newReviewEnv(t)
	_, err := e.host.Withdraw(ctx, "acme", "api", reviewed)
	must.OK(t, err)
	e.push(reviewed, ledger.Registration{Branch: "feature"})
	e.member("ann", 0).get(reviewPath).want(200).has("Request changes")
}

// A page shows as whom the visitor signs. If another member has signed in since, in another tab,
// its forms record nothing.
func TestReviewIsByThePersonOfThePage(t *testing.T) {
	e := newReviewEnv(t)
	_, err := e.db.AddMember(t.Context(), "acme", member.NewMember{Issuer: "https://idp.example", Subject: "max",
		DN: "cn=max,ou=people-dev,o=acme", Role: member.Maintainer})
	must.OK(t, err)
	ann := e.member("ann", 0)
	form := url.Values{"member": {ann.id()}, "verdict": {"approve"}}
	ann.post(reviewPath+"/review-draft", form).want(200)

	max := e.member("max", 0)
	for _, path := range []string{"/review-draft", "/review"} {
		max.post(reviewPath+path, form).want(422).has("signed in as max since this page was loaded: reload it")
	}
}

// The start page of a member has the commits that wait for the member's review. Live parts do not:
// visitors share them.
func TestStartPageHasWhatWaitsForTheVisitor(t *testing.T) {
	const heading = "Waiting for your review"
	e := newReviewEnv(t)
	e.policy(`{"requirements":[{"state":"ATTESTED","predicate":"test:*"},
		{"state":"PROMOTABLE","predicate":"review:*","threshold":3}]}`)
	ann := e.member("ann", 0)
	ann.get("/orgs/acme").want(200).hasNot(heading) // it is not ATTESTED
	e.attest(e.signer("cn=ci,ou=build,o=acme"), reviewed, "test:go", ledger.Pass)
	ann.get("/orgs/acme").want(200).has(heading, "review:*: 0 of 3")
	for name, w := range map[string]*browser{"a reader": e.member("rob", 0), "a token": e.signIn(e.admin)} {
		t.Log(name)
		w.get("/orgs/acme").want(200).hasNot(heading)
	}
	live := e.member("ann", 0)
	live.header = map[string]string{"X-Ledger-Refresh": "1"}
	live.get("/orgs/acme").want(200).hasNot(heading)

	// It waits for others than those who have reviewed it.
	e.attest(e.signer("cn=bob,ou=people-dev,o=acme"), reviewed, "review:code", ledger.Pass)
	ann.get("/orgs/acme").want(200).has(heading, "review:*: 1 of 3")
	e.attest(e.signer("cn=Ann,ou=people-dev,o=acme"), reviewed, "review:security", ledger.Pass)
	ann.get("/orgs/acme").want(200).hasNot(heading)
}

// id returns the ID of the member that the page of the commit is for.
func (w *browser) id() string {
	w.t.Helper()
	for _, section := range w.get(reviewPath).want(200).elements("section", "id", "review") {
		return attribute(section, "data-member")
	}
	w.t.Fatal("the page has no form for a review")
	return ""
}

// answer decodes the answer of a form that a script sends.
func answer[T any](p page) (value T) {
	p.t.Helper()
	if got := p.header.Get("Content-Type"); got != "application/json" {
		p.t.Errorf("%s: media type %s", p.what, got)
	}
	must.OK(p.t, json.Unmarshal([]byte(p.body), &value))
	return value
}

// signedForm returns a form with a payload that a new key has signed.
func signedForm(t testing.TB, payload []byte) url.Values {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	public := must.Get(x509.MarshalPKIXPublicKey(key.Public()))(t)
	signature := must.Get(identity.Sign(key, attestation.PAE(attestation.StatementType, payload)))(t)
	text := base64.StdEncoding.EncodeToString
	return url.Values{"payload": {text(payload)}, "public_key": {text(public)}, "signature": {text(signature)}}
}

// The forms do what the script asks for, with the session.
func TestReviewByTheForms(t *testing.T) {
	e := newReviewEnv(t)
	ann := e.member("ann", 0)
	draft := answer[struct{ Payload []byte }](ann.post(reviewPath+"/review-draft",
		url.Values{"member": {ann.id()}, "verdict": {"approve"}, "comment": {"Fine"}}).want(200))

	form := signedForm(t, draft.Payload)
	form.Set("member", ann.id())
	record := answer[ledger.AttestationRecord](ann.post(reviewPath+"/review", form).want(200))
	if record.Predicate != "review:code" || record.Identity != "cn=ann,ou=people-dev,o=acme" {
		t.Errorf("recorded %+v", record)
	}
	ann.get("/orgs/acme/repos/api/attestations/"+record.ID).want(200).has("review:code", "Fine")
	ann.post(reviewPath+"/review", form).want(404) // a draft counts once
}

func TestReviewFormsRefuse(t *testing.T) {
	e := newReviewEnv(t)
	approve := url.Values{"verdict": {"approve"}}
	id := e.member("ann", 0).id()
	byAnn := func(name, value string) url.Values { return url.Values{"member": {id}, name: {value}} }
	type problem struct {
		Code   ledger.Code
		Detail string
	}
	for name, test := range map[string]struct {
		w      *browser
		path   string
		form   url.Values
		status int
		code   ledger.Code
	}{
		"a stale sign-in": {e.member("ann", 16*time.Minute), "/review-draft", byAnn("verdict", "approve"), 403,
			ledger.CodeSignInAgain},
		"a stale signature": {e.member("ann", 16*time.Minute), "/review", byAnn("", ""), 403, ledger.CodeSignInAgain},
		"a token":           {e.signIn(e.admin), "/review-draft", approve, 403, ledger.CodeForbidden},
		"no verdict":        {e.member("ann", 0), "/review-draft", byAnn("", ""), 422, ledger.CodeInvalidField},
		"no base64":         {e.member("ann", 0), "/review", byAnn("payload", "*"), 422, ledger.CodeInvalidField},
	} {
		if got := answer[problem](test.w.post(reviewPath+test.path, test.form).want(test.status)); got.Code != test.code ||
			got.Detail == "" {
			t.Errorf("%s: %+v, want %s", name, got, test.code)
		}
	}
	e.member("rob", 0).post(reviewPath+"/review-draft", approve).want(403).has("role contributor required")
	e.browser().post(reviewPath+"/review-draft", approve).want(303)

	// Another site cannot make a visitor's browser send them.
	ann := e.member("ann", 0)
	ann.header = map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
	for _, path := range []string{"/review-draft", "/review"} {
		ann.post(reviewPath+path, approve).want(403).has("form sent from another site")
	}
}

// The page of a commit has a link to sign in again, which leads back to it.
func TestReviewLinksToSignIn(t *testing.T) {
	ann := newReviewEnv(t).member("ann", time.Hour)
	link := ann.get(reviewPath).want(200)
	again := "/login?again=1&next=" + url.QueryEscape(reviewPath)
	found := ""
	for _, a := range link.elements("a") {
		if attribute(a, "href") == again || strings.HasPrefix(attribute(a, "href"), "/login?again=1") {
			found = attribute(a, "href")
		}
	}
	u := must.Get(url.Parse(found))(t)
	if u.Query().Get("next") != reviewPath {
		t.Fatalf("the link is %q", found)
	}
}
