package access

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// reviewers is a fixture whose org has a CA for people, and in which ann is signed in.
type reviewers struct {
	*people
	root string // ID of the CA
	ann  ledger.Token
}

func (s suite) newReviewers(t *testing.T) *reviewers {
	t.Helper()
	fx := &reviewers{people: s.newPeople(t)}
	fx.newCA(false)
	_, err := fx.add("ann", member.Contributor)
	must.OK(t, err)
	fx.ann, _ = fx.signedIn(account("ann"))
	return fx
}

// newCA creates a CA for people, in the place of the one in use if replace is set.
func (fx *reviewers) newCA(replace bool) {
	fx.T.Helper()
	root, err := fx.CreateCA(fx.T.Context(), "acme", ca.People, storetest.NewRoot(fx.T, ca.People, fx.Now()), replace)
	must.OK(fx.T, err)
	fx.root = root.ID
}

// draft creates a draft of a sign-in, which ends in 10 minutes.
func (fx *reviewers) draft(number byte, token ledger.Token) store.ReviewDraft {
	fx.T.Helper()
	fx.Turn()
	d := store.ReviewDraft{Digest: [32]byte{number}, Token: token.ID, Until: fx.Now().Add(10 * time.Minute)}
	must.OK(fx.T, fx.CreateReviewDraft(fx.T.Context(), "acme", "api", d))
	return d
}

// log uses up a draft for a certificate of a member's DN.
func (fx *reviewers) log(d store.ReviewDraft, subject string) error {
	fx.T.Helper()
	fx.Turn()
	return fx.LogReview(fx.T.Context(), "acme", "api", d, fx.certificate(subject))
}

func (fx *reviewers) certificate(subject string) store.Certificate {
	return store.Certificate{CA: fx.root, Serial: "01", Key: "k", DN: "cn=" + subject + ",ou=people-dev,o=acme",
		NotAfter: fx.Now().Add(10 * time.Minute)}
}

func (s suite) TestDraftsOfReviewsCountOnce(t *testing.T) {
	fx := s.newReviewers(t)
	d := fx.draft(1, fx.ann)
	must.OK(t, fx.log(d, "ann"))
	storetest.WantCode(t, fx.log(d, "ann"), ledger.CodeNotFound)

	// So they do for requests at the same time, also to different replicas.
	d = fx.draft(2, fx.ann)
	errs := make([]error, 8)
	var all sync.WaitGroup
	certificate := fx.certificate("ann")
	for i := range errs {
		fx.Turn()
		server := fx.Store
		all.Go(func() { errs[i] = server.LogReview(t.Context(), "acme", "api", d, certificate) })
	}
	all.Wait()
	used := 0
	for _, err := range errs {
		if err == nil {
			used++
			continue
		}
		storetest.WantCode(t, err, ledger.CodeNotFound)
	}
	if used != 1 {
		t.Errorf("the draft counts %d times", used)
	}
}

// A draft is of one sign-in and one repo, until it ends.
func (s suite) TestDraftsOfReviewsAreOfOneSignIn(t *testing.T) {
	fx := s.newReviewers(t)
	ctx := t.Context()
	_, err := fx.CreateRepo(ctx, "acme", ledger.NewRepo{Name: "other"}, "host")
	must.OK(t, err)
	_, err = fx.add("bob", member.Contributor)
	must.OK(t, err)
	bob, _ := fx.signedIn(account("bob"))
	again, _ := fx.signedIn(account("ann"))
	d := fx.draft(1, fx.ann)
	with := func(token ledger.Token, digest byte) store.ReviewDraft {
		return store.ReviewDraft{Digest: [32]byte{digest}, Token: token.ID}
	}
	for name, test := range map[string]struct {
		draft   store.ReviewDraft
		subject string
		want    ledger.Code
	}{
		"another person's":          {with(bob, 1), "bob", ledger.CodeNotFound},
		"another sign-in's":         {with(again, 1), "ann", ledger.CodeNotFound},
		"another statement":         {with(fx.ann, 2), "ann", ledger.CodeNotFound},
		"another person's name":     {with(fx.ann, 1), "bob", ledger.CodeForbidden},
		"a sign-in that is unknown": {store.ReviewDraft{Digest: d.Digest, Token: "tok_none"}, "ann", ledger.CodeForbidden},
	} {
		t.Log(name)
		storetest.WantCode(t, fx.log(test.draft, test.subject), test.want)
	}
	storetest.WantCode(t, fx.LogReview(ctx, "acme", "other", d, fx.certificate("ann")), ledger.CodeNotFound)
	storetest.WantCode(t, fx.LogReview(ctx, "acme", "none", d, fx.certificate("ann")), ledger.CodeNotFound)

	// The CA must be the one in use.
	former := fx.certificate("ann")
	fx.newCA(true)
	storetest.WantCode(t, fx.LogReview(ctx, "acme", "api", d, former), ledger.CodeRevokedIdentity)
	must.OK(t, fx.RetireCA(ctx, "acme", ca.People))
	storetest.WantCode(t, fx.log(d, "ann"), ledger.CodeNotFound)
	fx.newCA(false)
	must.OK(t, fx.log(d, "ann")) // what was refused has not used it up

	d = fx.draft(3, fx.ann)
	fx.Clock.Advance(10 * time.Minute)
	storetest.WantCode(t, fx.log(d, "ann"), ledger.CodeNotFound)
}

// Members who were removed, or whose role was lowered, review nothing, and archived repos are only
// read.
func (s suite) TestDraftsOfReviewsEndWithTheSignIn(t *testing.T) {
	for name, end := range map[string]func(fx *reviewers, id string) error{
		"removed": func(fx *reviewers, id string) error {
			_, err := fx.ChangeMember(t.Context(), "acme", id, member.Change{Removed: new(true)})
			return err
		},
		"a lower role": func(fx *reviewers, id string) error {
			_, err := fx.ChangeMember(t.Context(), "acme", id, member.Change{Role: new(member.Reader)})
			return err
		},
		"signed out": func(fx *reviewers, _ string) error {
			return fx.EndSignIn(t.Context(), "acme", "", fx.ann.ID)
		},
	} {
		t.Log(name)
		fx := s.newReviewers(t)
		d := fx.draft(1, fx.ann)
		must.OK(t, end(fx, fx.ann.Member))
		storetest.WantCode(t, fx.log(d, "ann"), ledger.CodeForbidden)
		d.Digest = [32]byte{2}
		storetest.WantCode(t, fx.CreateReviewDraft(t.Context(), "acme", "api", d), ledger.CodeForbidden)
	}

	fx := s.newReviewers(t)
	d := fx.draft(1, fx.ann)
	_, err := fx.ChangeRepo(t.Context(), "acme", "api", ledger.RepoChange{Archived: new(true)})
	must.OK(t, err)
	storetest.WantCode(t, fx.log(d, "ann"), ledger.CodeArchived)
	d.Digest = [32]byte{2}
	storetest.WantCode(t, fx.CreateReviewDraft(t.Context(), "acme", "api", d), ledger.CodeArchived)
}

// A sign-in has at most 20 drafts: the oldest are deleted. Pruning keeps those that count.
func (s suite) TestDraftsOfReviewsAreBounded(t *testing.T) {
	fx := s.newReviewers(t)
	_, err := fx.add("bob", member.Contributor)
	must.OK(t, err)
	bob, _ := fx.signedIn(account("bob"))
	ofBob := fx.draft(100, bob)
	var drafts []store.ReviewDraft
	for i := range byte(21) {
		fx.Clock.Advance(time.Millisecond)
		drafts = append(drafts, fx.draft(i+1, fx.ann))
	}
	for i, want := range map[int]ledger.Code{0: ledger.CodeNotFound, 1: "", 20: ""} {
		if err := fx.log(drafts[i], "ann"); want == "" {
			must.OK(t, err)
		} else {
			storetest.WantCode(t, err, want)
		}
	}
	must.OK(t, fx.log(ofBob, "bob"))

	fx.Clock.Advance(10 * time.Minute)
	last := fx.draft(101, fx.ann)
	must.OK(t, fx.Prune(t.Context()))
	must.OK(t, fx.log(last, "ann"))
}

// Each certificate of a review is in the audit, with the digest of the statement that it is for.
func (s suite) TestCertificatesOfReviewsAreLogged(t *testing.T) {
	fx := s.newReviewers(t)
	must.OK(t, fx.log(fx.draft(7, fx.ann), "ann"))
	want := "01, dn: cn=ann,ou=people-dev,o=acme, key: k, not_after: " + fx.Now().Add(10*time.Minute).String() + ", ca: " +
		fx.root + ", payload_digest: sha256:07" + strings.Repeat("0", 62)
	if got := fx.certificates(); len(got) != 1 || !strings.HasSuffix(got[0], want) {
		t.Errorf("logged %q, want %q", got, want)
	}
}
