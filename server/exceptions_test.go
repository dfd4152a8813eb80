package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

const (
	exceptionsPath = "/v1/orgs/acme/repos/api/exceptions"

	// withExceptions is a contract whose requirements have names, and whose exceptions the
	// security team signs, for at most 3 days.
	withExceptions = `{"requirements":[
		{"name":"tests","state":"ATTESTED","predicate":"test:*"},
		{"name":"review","state":"PROMOTABLE","predicate":"review:*","threshold":%d},
		{"name":"deploy","state":"DEPLOYED","predicate":"deploy:prod"}],
		"exceptions":{"signers":["ou=security"],"max_duration":"72h"}}`
)

// except records an exception for a requirement of commit n, which ends after the given
// time; with 0, it ends those before it.
func (b *backend) except(s *signer, n int, requirement string, lasts time.Duration) response {
	b.t.Helper()
	now := b.clock.time()
	payload, err := attestation.NewExceptionStatement(commitID(n), attestation.Exception{Repo: "acme/api",
		Requirement: requirement, Reason: "it is on fire", Until: now.Add(lasts), IssuedOn: now})
	must.OK(b.t, err)
	return b.attest(s.sign(b.t, payload))
}

// exceptionsOf returns the list of exceptions for a query.
func (b *backend) exceptionsOf(query string) []ledger.ExceptionRecord {
	b.t.Helper()
	return decode[ledger.Page[ledger.ExceptionRecord]](b.get(exceptionsPath + query).want(200)).Data
}

// wantState checks the state of commit n.
func (b *backend) wantState(n int, want ledger.State) {
	b.t.Helper()
	if got := b.state(commitID(n)); got != want {
		b.t.Errorf("commit %d is %s, want %s", n, got, want)
	}
}

// wantInactive checks that the newest exception of the repo does not count, and why.
func (b *backend) wantInactive(reason string) {
	b.t.Helper()
	newest := b.exceptionsOf("")[0]
	if newest.Active || !strings.Contains(newest.Inactive, reason) {
		b.t.Errorf("exception with active=%v, %q; want inactive, %q", newest.Active, newest.Inactive, reason)
	}
}

// An exceptional backend has a contract with exceptions, and commit 1 is ATTESTED.
type exceptional struct {
	*backend
	ci, ann, security, boss *signer
}

func newExceptional(t *testing.T, reviews int, changes ...func(*Config)) exceptional {
	t.Helper()
	b := newBackend(t, changes...)
	x := exceptional{b, b.signer("cn=ci,ou=build,o=acme"), b.signer("cn=ann,ou=dev,o=acme"),
		b.signer("cn=sue,ou=security,o=acme"), b.signer("cn=bob,ou=security,o=acme")}
	b.putPolicy("*", fmt.Sprintf(withExceptions, reviews)).want(200)
	b.attest(x.ci.statement(t, commitID(1), "test:go", ledger.Pass, 1)).want(201)
	b.wantState(1, ledger.Attested)
	return x
}

func TestExceptionIsGrantedAndEnded(t *testing.T) {
	b := newExceptional(t, 1)
	granted := decode[ledger.AttestationRecord](b.except(b.security, 1, "review", time.Hour).want(201))
	if granted.Predicate != "exception:review" || granted.Result.Status != ledger.Recorded || granted.Slot != "" {
		t.Errorf("recorded as %+v", granted)
	}
	b.wantState(1, ledger.Promotable)

	c := decode[ledger.Commit](b.get(commitPath(commitID(1))).want(200))
	x := c.Requirements[1].Exception
	want := ledger.ExceptionStatus{Attestation: granted.ID, Identity: "cn=sue,ou=security,o=acme", Reason: "it is on fire",
		Until: granted.RecordedAt.Add(time.Hour)}
	if x == nil || *x != want {
		t.Errorf("the requirement has the exception %+v, want %+v", x, want)
	}
	cause := c.Transitions[len(c.Transitions)-1].Cause
	if cause != (ledger.Cause{Type: ledger.CauseException, ID: granted.ID}) {
		t.Errorf("PROMOTABLE because of %+v", cause)
	}
	if list := b.exceptionsOf("?active=true"); len(list) != 1 || list[0].Attestation != granted.ID || !list[0].Active {
		t.Errorf("active exceptions: %+v", list)
	}

	// The other signer ends it, although it was not his.
	b.clock.advance(time.Minute)
	ended := decode[ledger.AttestationRecord](b.except(b.boss, 1, "review", 0).want(201))
	b.wantState(1, ledger.Attested)
	b.wantInactive("it ends the exceptions before it")
	if list := b.exceptionsOf(""); !strings.Contains(list[1].Inactive, "ended by "+ended.ID) {
		t.Errorf("ended exception: %+v", list[1])
	}
	if list := b.exceptionsOf("?active=true"); len(list) != 0 {
		t.Errorf("active exceptions: %+v", list)
	}
	c = decode[ledger.Commit](b.get(commitPath(commitID(1))).want(200))
	if cause := c.Transitions[len(c.Transitions)-1].Cause; cause.Type != ledger.CauseException || cause.ID != ended.ID {
		t.Errorf("ATTESTED because of %+v", cause)
	}

	// A new statement grants it again, and a copy of the first one does not.
	b.clock.advance(time.Minute)
	b.except(b.security, 1, "review", time.Hour).want(201)
	b.wantState(1, ledger.Promotable)
}

// An exception that was ended does not come back if its statement is sent again.
func TestExceptionIsNotReplayed(t *testing.T) {
	b := newExceptional(t, 1)
	now := b.clock.time()
	payload, err := attestation.NewExceptionStatement(commitID(1), attestation.Exception{Repo: "acme/api",
		Requirement: "review", Reason: "urgent", Until: now.Add(time.Hour)})
	must.OK(t, err)
	b.attest(b.security.sign(t, payload)).want(201)
	b.except(b.boss, 1, "review", 0).want(201)
	b.attest(b.security.sign(t, payload)).want(200) // recorded already
	b.wantState(1, ledger.Attested)
	b.except(b.security, 1, "review", 0).want(201)
	b.attest(b.security.sign(t, payload)).wantProblem(409, ledger.CodeStaleStatement)
	b.wantState(1, ledger.Attested)
}

func TestExceptionExpires(t *testing.T) {
	b := newExceptional(t, 1)
	granted := decode[ledger.AttestationRecord](b.except(b.security, 1, "review", time.Hour).want(201))
	b.clock.advance(time.Hour - time.Millisecond)
	must.OK(t, b.store.Settle(t.Context()))
	b.wantState(1, ledger.Promotable)

	b.clock.advance(time.Millisecond)
	must.OK(t, b.store.Settle(t.Context()))
	b.wantState(1, ledger.Attested)
	b.wantInactive("it ended at ")
	c := decode[ledger.Commit](b.get(commitPath(commitID(1))).want(200))
	cause := c.Transitions[len(c.Transitions)-1].Cause
	if cause != (ledger.Cause{Type: ledger.CauseException, ID: granted.ID}) {
		t.Errorf("ATTESTED because of %+v", cause)
	}
}

// What does not count is recorded, and the list says why.
func TestExceptionsThatDoNotCount(t *testing.T) {
	for name, test := range map[string]struct {
		by          func(exceptional) *signer
		requirement string
		lasts       time.Duration
		reason      string
	}{
		"signer": {func(x exceptional) *signer { return x.ann }, "review", time.Hour,
			"the policy allows no exceptions by cn=ann,ou=dev,o=acme, only by ou=security"},
		"too long": {func(x exceptional) *signer { return x.security }, "review", 72*time.Hour + time.Millisecond,
			"too long: the policy allows exceptions of at most 72h"},
		"no such requirement": {func(x exceptional) *signer { return x.security }, "Review", time.Hour,
			"the policy has no requirement with the name Review"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newExceptional(t, 1)
			b.except(test.by(b), 1, test.requirement, test.lasts).want(201)
			b.wantState(1, ledger.Attested)
			b.wantInactive(test.reason)
			if list := b.exceptionsOf("?active=true"); len(list) != 0 {
				t.Errorf("active exceptions: %+v", list)
			}
		})
	}

	t.Run("longest", func(t *testing.T) {
		b := newExceptional(t, 1)
		b.except(b.security, 1, "review", 72*time.Hour).want(201)
		b.wantState(1, ledger.Promotable)
	})
	t.Run("a policy without exceptions", func(t *testing.T) {
		b := newExceptional(t, 1)
		b.except(b.security, 1, "review", time.Hour).want(201)
		b.wantState(1, ledger.Promotable)
		contract, _, _ := strings.Cut(fmt.Sprintf(withExceptions, 1), `,
		"exceptions"`)
		b.putPolicy("*", contract+"}").want(200)
		must.OK(t, b.store.Settle(t.Context()))
		b.wantState(1, ledger.Attested)
		b.wantInactive("the policy allows nobody's exceptions")
	})
}

func TestExceptionIsForOneCommit(t *testing.T) {
	b := newExceptional(t, 1)
	b.attest(b.ci.statement(t, commitID(2), "test:go", ledger.Pass, 2)).want(201)
	b.except(b.security, 1, "review", time.Hour).want(201)
	b.wantState(1, ledger.Promotable)
	b.wantState(2, ledger.Attested)
	for _, query := range []string{"", "&active=true"} {
		if list := b.exceptionsOf("?commit=" + commitID(2) + query); len(list) != 0 {
			t.Errorf("exceptions of commit 2%s: %+v", query, list)
		}
	}
	if list := b.exceptionsOf("?commit=" + commitID(1) + "&active=true"); len(list) != 1 {
		t.Errorf("active exceptions of commit 1: %+v", list)
	}
}

// The latest one that is allowed decides, no matter which of the signers it is by.
func TestExceptionIsReplaced(t *testing.T) {
	b := newExceptional(t, 1)
	b.except(b.security, 1, "review", 2*time.Hour).want(201)
	newer := decode[ledger.AttestationRecord](b.except(b.boss, 1, "review", time.Hour).want(201))
	if list := b.exceptionsOf(""); !list[0].Active || !strings.Contains(list[1].Inactive, "replaced by "+newer.ID) {
		t.Errorf("exceptions: %+v", list)
	}
	b.clock.advance(time.Hour)
	must.OK(t, b.store.Settle(t.Context()))
	b.wantState(1, ledger.Attested)
}

func TestInvalidExceptions(t *testing.T) {
	b := newExceptional(t, 1)
	now := b.clock.time()
	body := func(repo, requirement, reason, until string) string {
		return fmt.Sprintf(`{"repo":%s,"requirement":%s,"reason":%s,"until":%s}`, repo, requirement, reason, until)
	}
	later := toJSON(t, now.Add(time.Hour))
	for name, test := range map[string]struct {
		predicate string
		field     string
		code      ledger.Code
	}{
		"another repo":   {body(`"acme/web"`, `"review"`, `"x"`, later), "predicate.repo", ledger.CodeWrongRepo},
		"no repo":        {body(`""`, `"review"`, `"x"`, later), "predicate.repo", ledger.CodeInvalidStatement},
		"not a repo":     {body(`"acme"`, `"review"`, `"x"`, later), "predicate.repo", ledger.CodeInvalidStatement},
		"no requirement": {body(`"acme/api"`, `""`, `"x"`, later), "predicate.requirement", ledger.CodeInvalidStatement},
		"a predicate": {body(`"acme/api"`, `"test:go"`, `"x"`, later), "predicate.requirement",
			ledger.CodeInvalidStatement},
		"long name": {body(`"acme/api"`, toJSON(t, strings.Repeat("x", 65)), `"x"`, later), "predicate.requirement",
			ledger.CodeInvalidStatement},
		"no reason": {body(`"acme/api"`, `"review"`, `""`, later), "predicate.reason", ledger.CodeInvalidStatement},
		"blank":     {body(`"acme/api"`, `"review"`, `" "`, later), "predicate.reason", ledger.CodeInvalidStatement},
		"newline":   {body(`"acme/api"`, `"review"`, `"a\nb"`, later), "predicate.reason", ledger.CodeInvalidStatement},
		"long reason": {body(`"acme/api"`, `"review"`, toJSON(t, strings.Repeat("ü", 1001)), later), "predicate.reason",
			ledger.CodeInvalidStatement},
		"no end": {`{"repo":"acme/api","requirement":"review","reason":"x"}`, "predicate.until",
			ledger.CodeInvalidStatement},
		"not a time": {body(`"acme/api"`, `"review"`, `"x"`, `"tomorrow"`), "predicate.until", ledger.CodeInvalidStatement},
		"far end": {body(`"acme/api"`, `"review"`, `"x"`, toJSON(t, now.Add(366*24*time.Hour+time.Millisecond))),
			"predicate.until", ledger.CodeInvalidStatement},
		"case": {`{"Until":` + later + `,"repo":"acme/api","requirement":"review","reason":"x"}`, "predicate.until",
			ledger.CodeInvalidStatement},
	} {
		t.Run(name, func(t *testing.T) {
			b.in(t).attest(b.security.sign(t, statement(about(1), attestation.ExceptionPredicateType, test.predicate))).
				wantFields(422, test.code, test.field)
		})
	}

	for _, predicateType := range []string{strings.ToUpper(attestation.ExceptionPredicateType),
		attestation.ExceptionPredicateType + "/", strings.TrimSuffix(attestation.ExceptionPredicateType, "/v1"),
		strings.Replace(attestation.ExceptionPredicateType, "v1", "v2", 1)} {
		b.attest(b.security.sign(t, statement(about(1), predicateType, body(`"acme/api"`, `"review"`, `"x"`, later)))).
			wantFields(422, ledger.CodeInvalidStatement, "predicateType")
	}
	if list := b.exceptionsOf(""); len(list) != 0 {
		t.Errorf("recorded %+v", list)
	}
	longest := toJSON(t, now.Add(366*24*time.Hour))
	b.attest(b.security.sign(t, statement(about(1), attestation.ExceptionPredicateType,
		body(`"Acme/API"`, `"review"`, toJSON(t, strings.Repeat("ü", 1000)), longest)))).wantProblem(422,
		ledger.CodeInvalidStatement) // org names are in lower case
	b.attest(b.security.sign(t, statement(about(1), attestation.ExceptionPredicateType,
		body(`"acme/API"`, `"review"`, toJSON(t, strings.Repeat("ü", 1000)), longest)))).want(201)
}

// Only the newest exceptions of a commit count, whether they were just recorded or are read
// again.
func TestNewestExceptionsCount(t *testing.T) {
	const most = 200
	b := newExceptional(t, 1)
	first := decode[ledger.AttestationRecord](b.except(b.security, 1, "review", time.Hour).want(201))
	for range most - 1 {
		b.clock.advance(time.Millisecond)
		b.except(b.ann, 1, "review", time.Hour).want(201)
	}
	b.wantState(1, ledger.Promotable)
	b.clock.advance(time.Millisecond)
	b.except(b.ann, 1, "review", time.Hour).want(201)
	b.wantState(1, ledger.Attested)
	for _, x := range b.exceptionsOf("?limit=500") {
		if x.Attestation == first.ID && (x.Active || x.Inactive != "only the newest 200 exceptions of a commit count") {
			t.Errorf("the first exception: %+v", x)
		}
	}
}
