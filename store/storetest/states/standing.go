package states

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attention"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// live has what was deployed to prod, in the order of time, and what the ledger says of it.
type live struct {
	*fixture
	ci, reviewer, cd *storetest.Signer
	seen             int // events
}

const livePolicy = `{"requirements":[{"state":"ATTESTED","predicate":"scan:*","max_age":"24h"},
{"state":"PROMOTABLE","predicate":"review:*"},
{"state":"DEPLOYED","predicate":"deploy:prod","signers":["ou=cd"]}],"radar":{"enabled":false}}`

// commitOf returns the commit whose SHA ends with a digit.
func commitOf(digit int) string { return sha(digit - 1) }

// newLive deploys commit 1 to prod.
func (s suite) newLive(t *testing.T) *live {
	fx := s.newFixture(t)
	fx.SetContract(livePolicy)
	l := &live{fixture: fx, ci: fx.NewSigner("cn=ci,ou=build,o=acme"), reviewer: fx.NewSigner("cn=ann,ou=review,o=acme"),
		cd: fx.NewSigner("cn=cd,ou=cd,o=acme")}
	l.deploy(1)
	l.want(1, "")
	return l
}

// deploy tests, reviews and deploys a commit.
func (l *live) deploy(n int) {
	l.T.Helper()
	l.ci.Attest(commitOf(n), "scan:image", ledger.Pass)
	l.reviewer.Attest(commitOf(n), "review:code", ledger.Pass)
	l.cd.Attest(commitOf(n), "deploy:prod", ledger.Pass)
	l.WantState(commitOf(n), ledger.Deployed)
}

// want checks the reason for which a commit that runs needs attention, empty for none, and the new
// events of standings.
func (l *live) want(n int, reason string, events ...string) {
	l.T.Helper()
	must.OK(l.T, l.Settle(l.T.Context()))
	var got []string
	all := storetest.EventsOf[ledger.StandingEvent](l.Fixture)
	for _, e := range all[l.seen:] {
		got = append(got, fmt.Sprint(e.Commit[39:], " ", e.From, " ", e.To, " ", e.Cause.Type))
		if c := l.ReadCommit(e.Commit); e.To != c.Standing {
			l.T.Errorf("an event says that %s has the standing %s, and it has %s", e.Commit, e.To, c.Standing)
		}
	}
	if l.seen = len(all); !slices.Equal(got, events) {
		l.T.Errorf("events of standings: %q, want %q", got, events)
	}

	list, err := l.Attention(l.T.Context(), "acme", store.AttentionFilter{
		Query: store.Query{Limit: 10}, Kind: attention.Lapsed})
	must.OK(l.T, err)
	reasons := []string{}
	for _, i := range list.Data {
		reasons = append(reasons, i.Commit[39:]+" "+i.Reason)
	}
	page, err := l.Commits(l.T.Context(), "acme", "api", store.CommitFilter{
		Query: store.Query{Limit: 10}, State: new(ledger.Deployed), Standing: true})
	must.OK(l.T, err)
	for _, c := range page.Data {
		if (len(c.Missing) > 0) != (reason != "" && c.SHA == commitOf(n)) {
			l.T.Errorf("the list of commits says that %s misses %v", c.SHA, c.Missing)
		}
	}
	wanted := []string{}
	if reason != "" {
		wanted = []string{fmt.Sprint(n, " ", reason)}
	}
	if !slices.Equal(reasons, wanted) || list.Counts[1].Count != len(wanted) {
		l.T.Errorf("lapsed are %q, counted %d, want %q", reasons, list.Counts[1].Count, wanted)
	}
}

// A change of the standing of what runs is an event, whatever has changed it, and needs attention
// until it is made good. The state does not change.
func (s suite) TestStandingOfWhatRuns(t *testing.T) {
	for name, lapse := range map[string]struct {
		change func(l *live)
		reason string
		event  string
		mend   func(l *live)
		mended string
	}{
		"its scan fails": {
			func(l *live) { l.ci.Attest(commitOf(1), "scan:image", ledger.Fail) },
			"scan:image failed (cn=ci,ou=build,o=acme)", "1 PROMOTABLE VALIDATING attestation",
			func(l *live) { l.ci.Attest(commitOf(1), "scan:image", ledger.Pass) }, "1 VALIDATING PROMOTABLE attestation",
		},
		"its scan expires": {
			func(l *live) { l.Clock.Advance(25 * time.Hour) },
			"scan:*: 0 of 1 signatures; expired: scan:image passed (cn=ci,ou=build,o=acme)", "1 PROMOTABLE VALIDATING expiry",
			func(l *live) { l.ci.Attest(commitOf(1), "scan:image", ledger.Pass) }, "1 VALIDATING PROMOTABLE attestation",
		},
		"a key is revoked": {
			func(l *live) { l.distrust(l.reviewer, 1) },
			"review:*: 0 of 1 signatures", "1 PROMOTABLE ATTESTED identity",
			func(l *live) { l.NewSigner("cn=bob,ou=review,o=acme").Attest(commitOf(1), "review:code", ledger.Pass) },
			"1 ATTESTED PROMOTABLE attestation",
		},
		"the policy changes": {
			func(l *live) {
				l.SetContract(`{"requirements":[{"state":"ATTESTED","predicate":"fuzz:*"}],"radar":{"enabled":false}}`)
			},
			"fuzz:*: 0 of 1 signatures", "1 PROMOTABLE VALIDATING policy",
			func(l *live) { l.SetContract(livePolicy) }, "1 VALIDATING PROMOTABLE policy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := s.newLive(t)
			moved := len(storetest.EventsOf[ledger.StateEvent](l.Fixture))
			lapse.change(l)
			l.want(1, lapse.reason, lapse.event)
			l.WantState(commitOf(1), ledger.Deployed)
			lapse.mend(l)
			l.want(1, "", lapse.mended)
			if n := len(storetest.EventsOf[ledger.StateEvent](l.Fixture)); n != moved {
				t.Errorf("%d events of states, want %d", n, moved)
			}
		})
	}
}

// expiring returns the commits whose evidence needs attention because it expires.
func (l *live) expiring() (list []string) {
	l.T.Helper()
	page, err := l.Attention(l.T.Context(), "acme", store.AttentionFilter{
		Query: store.Query{Limit: 10}, Kind: attention.Expiring})
	must.OK(l.T, err)
	for _, i := range page.Data {
		list = append(list, i.Commit[39:]+" "+i.Reason)
	}
	return list
}

// Evidence of what runs needs attention before it expires.
func (s suite) TestEvidenceOfWhatRunsExpiresSoon(t *testing.T) {
	l := s.newLive(t)
	if got := l.expiring(); !slices.Equal(got, []string{"1 evidence for PROMOTABLE expires"}) {
		t.Errorf("%q expire", got)
	}
	l.deploy(2)
	if got := l.expiring(); !slices.Equal(got, []string{"2 evidence for PROMOTABLE expires"}) {
		t.Errorf("after another commit was deployed: %q expire", got)
	}
}

// The ledger follows the standing of a commit from when it comes to run until another one runs.
func (s suite) TestStandingIsKeptWhileACommitRuns(t *testing.T) {
	l := s.newLive(t)
	l.deploy(2)
	l.ci.Attest(commitOf(1), "scan:image", ledger.Fail)
	l.want(0, "")
	if c := l.ReadCommit(commitOf(1)); c.Standing != ledger.Validating {
		t.Errorf("a commit that does not run has the standing %s, want VALIDATING", c.Standing)
	}

	const reason = "scan:image failed (cn=ci,ou=build,o=acme)"
	l.cd.SendNoticed(l.rollback(commitOf(2), commitOf(1)), "")
	l.want(1, reason, "1 PROMOTABLE VALIDATING attestation")
	l.ci.Attest(commitOf(2), "scan:image", ledger.Fail) // not DEPLOYED any more
	l.want(1, reason)

	l.deploy(3)
	l.want(0, "")
	l.distrust(l.cd, 1) // nothing runs
	l.want(0, "")
	l.ci.Attest(commitOf(3), "scan:image", ledger.Fail)
	l.want(0, "")
}

// What does not run any more neither expires nor lapses. When it runs again, it lapses from then on.
func (s suite) TestWhatWasReplacedDoesNotLapse(t *testing.T) {
	l := s.newLive(t)
	l.Clock.Advance(12 * time.Hour)
	l.deploy(2)
	l.Clock.Advance(13 * time.Hour) // the scan of the first expires
	l.want(0, "")

	l.Clock.Advance(12 * time.Hour) // and that of the second
	const reason = "scan:*: 0 of 1 signatures; expired: scan:image passed (cn=ci,ou=build,o=acme)"
	l.want(2, reason, "2 PROMOTABLE VALIDATING expiry")
	l.deploy(3)
	l.want(0, "")
	l.Clock.Advance(time.Hour)
	l.cd.SendNoticed(l.rollback(commitOf(3), commitOf(2)), "")
	l.want(2, reason, "2 PROMOTABLE VALIDATING attestation")
	list, err := l.Attention(t.Context(), "acme", store.AttentionFilter{Query: store.Query{Limit: 1}})
	must.OK(t, err)
	if at := list.Data[0].At; at != l.Now() {
		t.Errorf("it has lapsed since %s, want %s, when it was resumed", at, l.Now())
	}
}

// What ran no longer does after a rollback of another commit that names what runs now.
func (s suite) TestStandingOfWhatARollbackReplaces(t *testing.T) {
	l := s.newLive(t)
	l.deploy(2)
	l.deploy(3)
	l.cd.SendNoticed(l.rollback(commitOf(2), commitOf(1)), "")
	l.ci.Attest(commitOf(3), "scan:image", ledger.Fail)
	l.want(0, "")
	l.ci.Attest(commitOf(1), "scan:image", ledger.Fail)
	l.want(1, "scan:image failed (cn=ci,ou=build,o=acme)", "1 PROMOTABLE VALIDATING attestation")
}

// The standing of the source of a claimed merge is kept, too. It needs no attention.
func (s suite) TestStandingOfAMergedCommit(t *testing.T) {
	l := s.newLive(t)
	l.deploy(2)
	payload, err := attestation.NewMergeStatement(commitOf(9), attestation.Merge{Repo: "acme/api",
		Kind: attestation.Squashed, Source: attestation.MergedCommit{SHA: commitOf(1)},
		Parent: attestation.MergedCommit{SHA: commitOf(2)}, Tree: commitOf(8)})
	must.OK(t, err)
	l.ci.SendNoticed(payload, "")
	if got := l.expiring(); !slices.Equal(got, []string{"2 evidence for PROMOTABLE expires"}) {
		t.Errorf("%q expire", got)
	}
	l.ci.Attest(commitOf(1), "scan:image", ledger.Fail)
	l.want(0, "", "1 PROMOTABLE VALIDATING attestation")
}

// A policy that evaluates statements is applied to what runs when they are evaluated.
func (s suite) TestStandingUnderAnExpression(t *testing.T) {
	l := s.newLive(t)
	l.SetContract(`{"requirements":[{"state":"ATTESTED","predicate":"scan:*",
"where":"predicate.result.duration_ms < 1000000"}],"radar":{"enabled":false}}`)
	l.ci.Attest(commitOf(1), "lint:go", ledger.Pass) // before it is evaluated
	l.want(1, "")
	l.SetContract(`{"requirements":[{"state":"ATTESTED","predicate":"scan:*",
"where":"predicate.result.duration_ms > 1000000"}],"radar":{"enabled":false}}`)
	l.want(1, "scan:*: 0 of 1 signatures; where is false: scan:image passed (cn=ci,ou=build,o=acme)",
		"1 PROMOTABLE VALIDATING policy")
	l.WantState(commitOf(1), ledger.Deployed)
}

// What expires while the statements are not evaluated yet is derived when they are.
func (s suite) TestStandingUnderAnExpressionAtAnExpiry(t *testing.T) {
	l := s.newLive(t)
	l.Clock.Advance(24 * time.Hour)
	l.SetContract(`{"requirements":[{"state":"ATTESTED","predicate":"scan:*",
"where":"predicate.result.duration_ms > 1000000"}],"radar":{"enabled":false}}`)
	l.want(1, "scan:*: 0 of 1 signatures; where is false: scan:image passed (cn=ci,ou=build,o=acme)",
		"1 PROMOTABLE VALIDATING policy")
}

// A commit that becomes DEPLOYED without an environment runs nowhere.
func (s suite) TestStandingWithoutAnEnvironment(t *testing.T) {
	l := s.newLive(t)
	l.SetContract(`{"requirements":[{"state":"ATTESTED","predicate":"scan:*"},
{"state":"DEPLOYED","predicate":"smoke:*"}],"radar":{"enabled":false}}`)
	l.ci.Attest(commitOf(2), "scan:image", ledger.Pass)
	l.ci.Attest(commitOf(2), "smoke:prod", ledger.Pass)
	l.WantState(commitOf(2), ledger.Deployed)
	l.ci.Attest(commitOf(2), "scan:image", ledger.Fail)
	l.want(0, "")
}

// A deployment that arrives late does not make its commit run.
func (s suite) TestStandingOfALateDeployment(t *testing.T) {
	l := s.newLive(t)
	for n := 2; n <= 3; n++ {
		l.ci.Attest(commitOf(n), "scan:image", ledger.Pass)
		l.reviewer.Attest(commitOf(n), "review:code", ledger.Pass)
	}
	l.cd.SendNoticed(l.deployment(commitOf(3), finished(l.Now())), "")
	late := l.deployment(commitOf(2), finished(l.Now().Add(-time.Minute)))
	l.cd.SendNoticed(late, "it does not change what runs in prod")
	l.WantState(commitOf(2), ledger.Deployed)
	l.ci.Attest(commitOf(2), "scan:image", ledger.Fail)
	l.want(0, "")
}

// What ran before runs again when the deployment after it is distrusted.
func (s suite) TestStandingAfterADistrustedDeployment(t *testing.T) {
	l := s.newLive(t)
	thief := l.NewSigner("cn=thief,ou=cd,o=acme")
	l.ci.Attest(commitOf(2), "scan:image", ledger.Pass)
	l.reviewer.Attest(commitOf(2), "review:code", ledger.Pass)
	thief.Attest(commitOf(2), "deploy:prod", ledger.Pass)
	l.distrust(thief, 1)
	l.want(0, "")
	l.ci.Attest(commitOf(2), "scan:image", ledger.Fail)
	l.ci.Attest(commitOf(1), "scan:image", ledger.Fail)
	l.want(1, "scan:image failed (cn=ci,ou=build,o=acme)", "1 PROMOTABLE VALIDATING attestation")
}
