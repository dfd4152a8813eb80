package commits

import (
	"cmp"
	"encoding/base64"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/review"
	"github.com/ledgerd/ledgerd/server/web/format"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// A reviewer is a visitor who can review the commit in the page. static/review.js makes the key, and
// signs with it.
type reviewer struct {
	// Member is the ID of the member, and DN the name that the certificate will have.
	Member, DN string
	MaxComment int
}

// A nonReviewer is a visitor who cannot review the commit in the page.
type nonReviewer struct {
	Why string
	// CanSign reports whether a review of the visitor can be recorded from a terminal.
	CanSign bool
}

// reviewerOf returns the visitor as a reviewer of a commit, or the reason why the visitor cannot review
// it. Both are nil if nobody can review the commit, or the page is for several visitors.
func reviewerOf(v *page.Visit, c ledger.Commit, repo ledger.Repo) (*reviewer, *nonReviewer, error) {
	t := v.Session
	if v.Anonymous || t == nil || c.Withdrawn || repo.ArchivedAt != 0 {
		return nil, nil, nil
	}
	org, err := v.API.Org(v.Ctx(), v.Org)
	if err != nil || org.ArchivedAt != 0 {
		return nil, nil, err
	}
	switch {
	case (!t.IsSignIn || t.Member == "") && !v.May(ledger.Write):
		const why = "You are signed in with an API token that may only read: sign in as a member to review here."
		return nil, &nonReviewer{why, false}, nil
	case !t.IsSignIn || t.Member == "":
		return nil, &nonReviewer{"You are signed in with an API token: sign in as a member to review here.", true}, nil
	case !v.May(ledger.Write):
		return nil, &nonReviewer{"Your role cannot review commits: ask an admin of the org for another role.", false}, nil
	}

	root, err := v.API.CA(v.Ctx(), v.Org, ca.People)
	if page.CodeOf(err) == ledger.CodeNotFound {
		return nil, &nonReviewer{"The org has no CA for people: ask an admin to create one.", true}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if _, err := ca.People.Certified(root, t.DN); err != nil || !root.May.Match(review.Predicate) {
		const why = "The CA for people does not certify you for reviews: ask an admin to change that."
		return nil, &nonReviewer{why, true}, nil
	}
	return &reviewer{t.Member, t.DN, review.MaxComment}, nil, nil
}

// checkMember returns an error if the visitor is not the member as whom the page says that the visitor
// signs: another person has signed in since.
func checkMember(v *page.Visit, id string) error {
	if id == v.Session.Member {
		return nil
	}
	return ledger.Errorf(ledger.CodeInvalidField, "you have signed in as %s since this page was loaded: reload it",
		cmp.Or(format.PlainName(v.Session.DN), v.Session.Name))
}

// draftReview returns a statement for the script to sign.
func draftReview(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	if err := checkMember(v, f.Get("member")); err != nil {
		return page.Answer(nil, err)
	}
	d, err := v.API.DraftReview(v.Ctx(), v.Org, v.Repo, v.Value("sha"), review.NewDraft{
		Verdict: review.Verdict(f.Get("verdict")), Predicate: f.Get("predicate"), Comment: f.Get("comment"),
	})
	return page.Answer(d, err)
}

// recordReview records a statement that the script has signed.
func recordReview(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	if err := checkMember(v, f.Get("member")); err != nil {
		return page.Answer(nil, err)
	}
	n, err := signedIn(f)
	if err != nil {
		return page.Answer(nil, err)
	}
	record, err := v.API.RecordReview(v.Ctx(), v.Org, v.Repo, v.Value("sha"), n)
	return page.Answer(record, err)
}

// signedIn returns the review that the script has signed, in a form.
func signedIn(f *page.Form) (n review.NewReview, err error) {
	fields := map[string]*[]byte{"payload": &n.Payload, "public_key": &n.PublicKey, "signature": &n.Signature}
	for field, to := range fields {
		if *to, err = base64.StdEncoding.DecodeString(f.Get(field)); err != nil {
			return n, ledger.FieldErrorf(ledger.CodeInvalidField, field, "not base64")
		}
	}
	if text := f.Get("confirmation"); text != "" {
		if err := json.Unmarshal([]byte(text), &n.Confirmation); err != nil {
			return n, ledger.FieldErrorf(ledger.CodeInvalidField, "confirmation", "%v", err)
		}
	}
	return n, nil
}
