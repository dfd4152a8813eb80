package check_test

import (
	"crypto/ed25519"
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/oidc/oidctest"
	"github.com/ledgerd/ledgerd/internal/parallel"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// A history is a ledger that is used in all ways, for four days until now.
type history struct {
	*writer
	file   database
	start  time.Time
	passed atomic.Int64
	n      int // statements
}

// newHistory returns the settled database of a history.
func newHistory(t testing.TB) database {
	t.Helper()
	ctx := t.Context()
	path := storetest.NewFile(t)
	h := &history{writer: &writer{t: t, keys: make(map[string]ed25519.PrivateKey)},
		file: database{path: path, keys: path + "-keys"}, start: time.Now().Add(-96 * time.Hour)}
	h.open()
	h.setUp()
	h.attest(12)
	h.change("web", ledger.RepoChange{Retention: &ledger.RetentionChange{Envelopes: new(ledger.MinRetention),
		Events: new(ledger.MinRetention), Deliveries: new(ledger.MinRetention)}})

	h.pass(48 * time.Hour)
	must.OK(t, h.Close())
	h.upgrade()
	h.open()
	must.OK(t, h.BuildLogsOnce(ctx))
	must.OK(t, h.Settle(ctx))
	must.OK(t, h.Prune(ctx))
	for _, step := range []func(){
		h.people, h.tokens, h.exchanges, h.signers, h.policies, h.deployments, h.carry, h.reviews,
		h.flights, h.hooks, h.lifecycles,
		h.logs,
	} {
		h.pass(time.Minute)
		step()
	}

	h.pass(48*time.Hour - time.Duration(h.passed.Load()%int64(48*time.Hour)))
	_, _, err := h.AcceptClock(ctx)
	must.OK(t, err)
	must.OK(t, h.Settle(ctx))
	h.file.sign(t, h.Store)
	must.OK(t, h.Close())
	return h.file
}

// upgrade makes the closed database one of the release before, with what only migrations insert.
func (h *history) upgrade() {
	h.t.Helper()
	db := must.Get(sql.Open("sqlite", h.file.path))(h.t)
	asBefore(h.t, db)
	run("INSERT INTO provider_orgs (issuer, org_id) SELECT '"+idp+"', id FROM orgs")(h.t, db)
	must.OK(h.t, db.Close())
}

func (h *history) open() {
	h.t.Helper()
	passed := func() time.Duration { return time.Duration(h.passed.Load()) }
	h.Store = must.Get(store.Open(h.t.Context(), h.file.path, store.Options{
		Now: func() time.Time { return h.start.Add(passed()) }, Monotonic: passed,
		Providers: storetest.Providers(), ParseRoot: sigstore.ParseRoot,
	}))(h.t)
}

// pass has time pass.
func (h *history) pass(d time.Duration) { h.passed.Add(int64(d)) }

// ok ends the test if a call returned an error. It ignores the other results.
func (h *history) ok(results ...any) {
	h.t.Helper()
	if err, ok := results[len(results)-1].(error); ok {
		h.t.Fatal(err)
	}
}

// change changes a repo of acme.
func (h *history) change(repo string, c ledger.RepoChange) {
	h.t.Helper()
	h.ok(h.ChangeRepo(h.t.Context(), "acme", repo, c))
}

// send records a statement in a repo of acme.
func (h *history) send(repo, dn string, payload []byte, err error) {
	h.t.Helper()
	must.OK(h.t, err)
	h.pass(time.Second)
	keyring, version, err := h.Keyring(h.t.Context(), "acme")
	must.OK(h.t, err)
	a, err := attestation.Verify(must.Get(attestation.SignDSSE(h.keys[dn], payload))(h.t), keyring, h.Now())
	must.OK(h.t, err)
	h.ok(h.Record(h.t.Context(), "acme", repo, a, version))
}

// says records a result in a repo of acme, which change completes.
func (h *history) says(
	repo, dn, commit, predicate string, status ledger.Status, change ...func(*attestation.ResultPredicate),
) {
	h.t.Helper()
	h.n++
	p := attestation.ResultPredicate{Predicate: predicate, Result: ledger.Result{Status: status, DurationMS: int64(h.n)},
		StartedOn: h.Now()}
	for _, c := range change {
		c(&p)
	}
	payload, err := attestation.NewStatement("acme/"+repo, commit, p)
	h.send(repo, dn, payload, err)
}

// apply applies a contract to a repo of acme.
func (h *history) apply(repo, contract string) {
	h.t.Helper()
	c := must.Get(policy.Parse([]byte(contract)))(h.t)
	h.ok(h.SetPolicy(h.t.Context(), "acme", repo, c, 0, "host"))
	must.OK(h.t, h.Settle(h.t.Context()))
}

// repo creates a repo in acme.
func (h *history) repo(name string) {
	h.t.Helper()
	h.ok(h.CreateRepo(h.t.Context(), "acme", ledger.NewRepo{Name: name}, "host"))
}

// push registers a commit in a repo of acme.
func (h *history) push(repo, commit string, r ledger.Registration) {
	h.t.Helper()
	h.pass(time.Second)
	h.ok(h.Register(h.t.Context(), "acme", repo, commit, r))
}

const idp = "https://idp.example"

// people enrol passkeys, review, and sign in by rules.
func (h *history) people() {
	ctx, ann := h.t.Context(), storetest.NewReviewer(h.t, h.Store, annDN)
	ann.Review(h.Store, sha(0), ann.Assert)
	must.OK(h.t, h.RemovePasskey(ctx, "acme", "", ann.Passkey.ID))
	ann.Enrol(h.Store)
	until := h.Now().Add(time.Minute)
	must.OK(h.t, h.CreatePasskeyChallenge(ctx, "acme", ann.SignIn, []byte{1}, until))
	must.OK(h.t, h.CreateReviewDraft(ctx, "acme", "api", store.ReviewDraft{Digest: [32]byte{1}, Token: ann.SignIn,
		Until: until}))

	var last member.Rule
	for _, group := range []string{"dev", "ops"} {
		last = must.Get(h.CreateMemberRule(ctx, "acme", member.NewRule{Issuer: idp, Claim: "groups", Value: group,
			Role: member.Maintainer, DN: "cn={login},ou=people-dev,o=acme"}))(h.t)
	}
	must.OK(h.t, h.RemoveMemberRule(ctx, "acme", last.ID))
	for n, login := range []string{"bob", "carl"} {
		token, err := h.SignInMember(ctx, "acme", member.Account{Issuer: idp, Subject: login, Name: login,
			Email: login + "@acme.example", AuthTime: h.Now(), Claims: map[string][]string{"groups": {"dev"}, "login": {login}}},
			[32]byte{3, byte(n)}, [32]byte{4, byte(n)}, h.Now().Add(100*time.Hour))
		must.OK(h.t, err)
		by := store.WithActor(ctx, ledger.Actor{Name: token.Name, Token: token.ID})
		h.ok(h.CreateToken(by, "acme", ledger.NewToken{Name: "mine", Scope: ledger.Write}, [32]byte{5, byte(n)}))
		if login == "carl" {
			h.ok(h.ChangeMember(ctx, "acme", token.Member, member.Change{Removed: new(true)}))
		}
	}
}

// tokens are limited to repos, expire, and are revoked.
func (h *history) tokens() {
	ctx := h.t.Context()
	for n, repos := range [][]string{nil, {"api", "web"}, {"api"}} {
		token, err := h.CreateToken(ctx, "acme", ledger.NewToken{Name: fmt.Sprint("ci-", n), Scope: ledger.Write,
			Repos: repos, ExpiresAt: h.Now().Add(time.Duration(n) * 1000 * time.Hour)}, [32]byte{6, byte(n)})
		must.OK(h.t, err)
		must.OK(h.t, h.CreateSession(ctx, token.ID, [32]byte{7, byte(n)}, h.Now().Add(100*time.Hour)))
		if h.TouchToken(token.ID, "v1.0.0"); n == 2 {
			must.OK(h.t, h.RevokeToken(ctx, "acme", token.ID))
		}
	}
}

// exchanges are those of tokens of CI jobs.
func (h *history) exchanges() {
	ctx, provider := h.t.Context(), oidctest.New(h.t)
	for n, url := range []string{provider.URL, "https://other.example"} {
		issuer, err := h.AddIssuer(ctx, "acme", exchange.NewIssuer{URL: url, JWKS: []string{"", provider.JWKS()}[n]})
		must.OK(h.t, err)
		var rules []exchange.Rule
		for _, scope := range []ledger.Scope{ledger.Read, ledger.Write} {
			r, err := exchange.NewRule{Name: "ci", Issuer: url, RepositoryID: fmt.Sprint(1234 + n), Scope: scope,
				Repos: []string{"api", "web"}, DN: "cn=api,ou=ci-build,o=acme", Refs: []string{"main"}}.Completed()
			must.OK(h.t, err)
			rules = append(rules, must.Get(h.CreateRule(ctx, "acme", r))(h.t))
		}

		token := must.Get(exchange.Parse(provider.Token(provider.GitHub("x", h.start.Add(time.Duration(h.passed.Load())),
			map[string]any{"jti": url}))))(h.t)
		claims := must.Get(token.Verify(must.Get(exchange.ParseKeys([]byte(provider.JWKS())))(h.t)))(h.t)
		h.ok(h.Exchange(ctx, "acme", store.Exchange{Rule: rules[0], Claims: claims, Scope: ledger.Read},
			[32]byte{8, byte(n)}))
		must.OK(h.t, h.RemoveRule(ctx, "acme", rules[1].ID))
		if n == 1 {
			must.OK(h.t, h.RemoveIssuer(ctx, "acme", issuer.ID))
		}
	}
}

// signers have names in common, share a key, are limited and revoked.
func (h *history) signers() {
	ctx := h.t.Context()
	storetest.RecordKeyless(h.t, h.Store)
	for range 2 { // the second replaces the first
		h.ok(h.CreateCA(ctx, "acme", ca.Jobs, storetest.NewRoot(h.t, ca.Jobs, h.Now()), true))
	}
	public, key, err := ed25519.GenerateKey(nil)
	must.OK(h.t, err)
	var last identity.Identity
	for _, name := range []string{"mallory", "mall", "mo"} {
		if name == "mo" {
			public, _, err = ed25519.GenerateKey(nil)
			must.OK(h.t, err)
		}
		n, err := identity.NewIdentity{Kind: identity.KeyIdentity, PEM: must.PublicPEM(h.t, public),
			DN: "cn=" + name + ",ou=x,o=acme", Emails: []string{"m@acme.example", name + "@home.example"},
			Logins: []string{"github:" + name}, May: identity.Predicates{"*", "merge:*"}}.Identity()
		must.OK(h.t, err)
		if name == "mall" { // the same key
			must.OK(h.t, h.RevokeIdentity(ctx, "acme", last.ID))
		}
		last = must.Get(h.AddIdentity(ctx, "acme", n))(h.t)
	}
	h.keys["cn=mall,ou=x,o=acme"] = key
	h.ok(h.ChangeIdentity(ctx, "acme", last.ID, identity.Change{Distinct: new(true)}))

	root := storetest.NewRoot(h.t, ca.People, h.Now())
	root.DNPattern = "ou=people"
	h.ok(h.AddIdentity(ctx, "acme", root))
}

// policies have expressions, and what they need.
func (h *history) policies() {
	h.apply("api", `{"requirements":[
		{"state":"ATTESTED","predicate":"test:*","max_age":"2160h","where":"predicate.result.status == 'pass'"},
		{"state":"PROMOTABLE","name":"review","predicate":"review:*"},
		{"state":"DEPLOYED","name":"live","predicate":"deploy:prod","signers":["ou=ci"]}],
		"exceptions":{"signers":["ou=ci"],"max_duration":"1000h"},"radar":{"block":"HIGH"}}`)
	h.repo("linted")
	h.apply("linted", `{"requirements":[{"state":"ATTESTED","predicate":"lint:*",
		"where":"predicate.annotations.note == 'good'"}]}`)
	for n, note := range []string{"good", "bad", ""} {
		h.says("linted", buildDN, sha(100+n), "lint:go", ledger.Pass, func(p *attestation.ResultPredicate) {
			if note != "" {
				p.Annotations = map[string]string{"note": note}
			}
		})
	}
}

// deployments count, are violations, and are rolled back.
func (h *history) deployments() {
	const mall = "cn=mall,ou=x,o=acme"
	for n := range 6 {
		h.says("api", buildDN, sha(200+n), "test:go", []ledger.Status{ledger.Pass, ledger.Fail}[n/5])
		h.says("api", reviewDN, sha(200+n), "review:code", ledger.Pass)
		h.says("api", mall, sha(200+n), "deploy:"+[]string{"prod", "eu"}[n%2], ledger.Pass)
	}
	until := h.Now().Add(900 * time.Hour)
	payload, err := attestation.NewExceptionStatement(sha(205), attestation.Exception{Repo: "acme/api",
		Requirement: "review", Reason: "it is urgent", Until: until})
	h.send("api", buildDN, payload, err)

	for _, n := range []int{0, 2} {
		h.says("api", buildDN, sha(200+n), "deploy:prod", ledger.Pass, func(p *attestation.ResultPredicate) {
			p.FinishedOn = h.Now()
		})
	}
	for _, n := range []int{0, 2} {
		payload, err = attestation.NewRollbackStatement(sha(200+n), attestation.Rollback{Repo: "acme/api",
			Environment: "prod", Reason: "it leaks", IssuedOn: h.Now()})
		h.send("api", buildDN, payload, err)
	}
	h.says("api", reviewDN, sha(200), "deploy:eu", ledger.Pass)
	for n, predicate := range []string{"build:image", "scan:image"} {
		payload, err := attestation.NewStatement("acme/api", sha(200), attestation.ResultPredicate{Predicate: predicate,
			Result: ledger.Result{Status: ledger.Pass}})
		image := fmt.Sprintf(`"subject":[{"name":"image","digest":{"sha256":"%064x"}},`, n)
		h.send("api", buildDN, []byte(strings.Replace(string(payload), `"subject":[`, image, 1)), err)
	}
}

// carry has evidence carry by trees and claims of merges.
func (h *history) carry() {
	h.repo("carried")
	h.apply("carried", `{"requirements":[
		{"state":"ATTESTED","predicate":"test:*","carry":["tree","merge"],"carry_signers":["ou=ci"]}]}`)
	var commits []string
	for n := range 4 {
		id, object := storetest.Object(1+n/2, "Dora", n)
		h.push("carried", id, ledger.Registration{Object: object, Branch: fmt.Sprint("b", n)})
		commits = append(commits, id)
	}
	for n, commit := range commits[1:] {
		payload, err := attestation.NewChangesStatement(commit, attestation.Changes{Repo: "acme/carried",
			Base: commits[0], Paths: []string{"api.go", "web.js"}[:n]})
		h.send("carried", buildDN, payload, err)
	}
	h.says("carried", buildDN, commits[0], "test:go", ledger.Pass)
	h.says("carried", buildDN, commits[2], "test:go", ledger.Pass)
	h.says("carried", buildDN, commits[1], "test:unit", ledger.Fail)
	h.says("carried", buildDN, commits[1], "test:unit", ledger.Pass)
	h.says("carried", buildDN, commits[3], "lint:go", ledger.Fail)

	for n := range 2 {
		merged, object := storetest.ObjectOn(commits[2], 9, "Dora", 9+n)
		h.push("carried", merged, ledger.Registration{Object: object})
		payload, err := attestation.NewMergeStatement(merged, attestation.Merge{Repo: "acme/carried",
			Kind: attestation.Squashed, Source: attestation.MergedCommit{SHA: commits[n]},
			Parent: attestation.MergedCommit{SHA: commits[2]}, Tree: fmt.Sprintf("%040x", 9+n)}) // the second is wrong
		h.send("carried", buildDN, payload, err)
	}
	h.says("carried", buildDN, commits[0], "test:go", ledger.Pass)
	must.OK(h.t, h.Settle(h.t.Context()))
}

// reviews are about the changes since a base, and carry by a claim: not if the base is unknown, or if the reviewer has
// signed a commit in between.
func (h *history) reviews() {
	h.repo("reviewed")
	h.apply("reviewed", `{"requirements":[
		{"state":"ATTESTED","predicate":"test:*","carry":["merge"],"carry_signers":["ou=ci"]},
		{"state":"PROMOTABLE","predicate":"review:*","covers":"change","exclude_author":true,"carry":["merge"],
		"carry_signers":["ou=ci"]}]}`)
	for n, signer := range []string{buildDN, buildDN, reviewDN} {
		commit := func(parent string, n int) lineage.Object {
			id, object := storetest.ObjectOn(parent, 50+n, "Dora", n)
			return lineage.Object{Commit: id, Object: object}
		}
		base := commit(sha(600+n), 4*n)
		inner := commit(base.Commit, 4*n+1)
		inner.Commit, inner.Object = storetest.SignObject(h.t, h.keys[signer], "git", inner.Object)
		head, squash := commit(inner.Commit, 4*n+2), commit(base.Commit, 4*n+3)
		for _, o := range []lineage.Object{base, head, squash} {
			h.push("reviewed", o.Commit, ledger.Registration{Object: o.Object})
		}

		know := func() {
			h.ok(h.AddObjects(h.t.Context(), "acme", "reviewed", lineage.Objects{Objects: []lineage.Object{inner}}))
		}
		if n > 0 {
			know()
		}
		for _, c := range []struct{ id, base string }{
			{base.Commit, ""}, {head.Commit, []string{base.Commit, sha(699), base.Commit}[n]},
		} {
			h.says("reviewed", buildDN, c.id, "test:go", ledger.Pass)
			h.says("reviewed", reviewDN, c.id, "review:code", ledger.Pass,
				func(p *attestation.ResultPredicate) { p.Base = c.base })
		}

		payload, err := attestation.NewMergeStatement(squash.Commit, attestation.Merge{Repo: "acme/reviewed",
			Kind: attestation.Squashed, Source: attestation.MergedCommit{SHA: head.Commit},
			Parent: attestation.MergedCommit{SHA: base.Commit}, Tree: fmt.Sprintf("%040x", 50+4*n+3)})
		h.send("reviewed", buildDN, payload, err)
		if n == 0 {
			know()
		}
	}
	must.OK(h.t, h.Settle(h.t.Context()))
}

// flights of tips begin, overlap and end.
func (h *history) flights() {
	edit := func(path string, line int) []radar.Change {
		hash := func(kind string, gap int) string { return fmt.Sprintf("%s%014x", kind, gap) }
		return []radar.Change{{Path: path, Status: "M", OldMode: "100644", Mode: "100644", OldBlob: sha(1), Blob: sha(line),
			Hunks: []radar.Hunk{{Start: line, Lines: 1, Added: 1, Text: hash("e1", line),
				Near: []string{hash("aa", line-1), hash("aa", line)}, Far: []string{hash("bb", line-1), hash("bb", line)}}}}}
	}
	for n := range 6 {
		h.push("api", sha(300+n), ledger.Registration{Branch: fmt.Sprint("b", n%5), Target: "main", Base: sha(290),
			Parents: []string{sha(299)}, Ancestors: []string{sha(299)}, Contained: []string{sha(400)}, Message: "Change p",
			Author: ledger.Author{Name: "Dora", Email: "dora@acme.example"}, Committer: ledger.Author{Name: "Bob"},
			CommittedAt: h.Now(), SigningKey: strings.Repeat("ab", 32), Changes: edit("p.go", 10+n)})
	}
	h.push("api", sha(305), ledger.Registration{Changes: edit("q.go", 1)})
	h.ok(h.Correct(h.t.Context(), "acme", "api", sha(301), ledger.CommitCorrection{Targets: &[]string{"main", "next"},
		Changes: new(edit("p.go", 30))}, "host"))
	must.OK(h.t, h.Withdraw(h.t.Context(), "acme", "api", sha(302)))
	for n := range 2 { // the second is blocked by the first
		h.says("api", buildDN, sha(303+n), "test:go", ledger.Pass)
		h.says("api", reviewDN, sha(303+n), "review:code", ledger.Pass)
	}
	h.says("api", buildDN, sha(305), "deploy:prod", ledger.Pass)
}

// hooks get deliveries, which succeed, are tried again, and fail.
func (h *history) hooks() {
	ctx := h.t.Context()
	n := outbound.NewWebhook{URL: "https://hooks.example.com/2", Events: ledger.EventTypes(), Description: "all"}
	deleted := must.Get(h.CreateWebhook(ctx, "acme", "api", n, outbound.NewWebhookSecret()))(h.t)
	must.OK(h.t, h.DeleteWebhook(ctx, "acme", "api", deleted.ID))
	created := must.Get(h.CreateWebhook(ctx, "acme", "api", n, outbound.NewWebhookSecret()))(h.t)
	h.says("api", buildDN, sha(200), "test:go", ledger.Pass)

	hooks := must.Get(h.Webhooks(ctx, "acme", "api", store.Query{Limit: 10}))(h.t)
	for _, hook := range hooks.Data {
		h.ok(h.RotateWebhook(ctx, "acme", "api", hook.ID, outbound.NewWebhookSecret(), time.Hour))
		_, due, err := h.Claim(ctx, hook.ID, 4, time.Hour)
		must.OK(h.t, err)
		for n, d := range due[:min(3, len(due))] { // the fourth stays leased
			o := outbound.Outcome{Webhook: hook.ID, Delivery: d.ID, Tries: d.Tries, Lease: d.Lease,
				Status: []outbound.DeliveryStatus{outbound.DeliverySucceeded, outbound.DeliveryFailed, outbound.DeliveryPending}[n],
				Attempt: outbound.Attempt{At: h.Now(), DurationMS: 12, Request: outbound.AttemptRequest{URL: hook.URL},
					Response: outbound.AttemptResponse{Status: 200 + n}}}
			if n > 0 {
				o.Attempt.Error, o.RetryAt = "refused", h.Now().Add(time.Hour)
			}
			if hook.ID == created.ID && n == 2 {
				o.Disable = "it is gone"
			}
			must.OK(h.t, h.RecordOutcomes(ctx, []outbound.Outcome{o}, time.Hour))
		}
	}
}

// lifecycles of repos and orgs are all that there are.
func (h *history) lifecycles() {
	ctx := h.t.Context()
	page := "https://github.com/acme/api"
	h.change("api", ledger.RepoChange{WebURL: &page})
	for _, name := range []string{"kept", "gone", "lost"} {
		h.repo(name)
		h.says(name, buildDN, sha(500), "test:go", ledger.Pass)
	}
	h.change("kept", ledger.RepoChange{Name: new("archive")})
	h.change("archive", ledger.RepoChange{Archived: new(true)})
	for _, name := range []string{"gone", "lost"} {
		must.OK(h.t, h.DeleteRepo(ctx, "acme", name))
	}
	deleted := must.Get(h.DeletedRepos(ctx, "acme", store.Query{Limit: 1}))(h.t)
	must.OK(h.t, h.PurgeRepo(ctx, "acme", deleted.Data[0].Name))
	h.ok(h.ChangeOrg(ctx, "acme", ledger.OrgChange{LogPublic: new(true)}))

	for _, name := range []string{"globex", "initech"} {
		h.ok(h.CreateOrg(ctx, name))
		h.ok(h.CreateRepo(ctx, name, ledger.NewRepo{Name: "web"}, "host"))
		h.ok(h.Register(ctx, name, "web", sha(1), ledger.Registration{Branch: "main"}))
	}
	h.ok(h.ChangeOrg(ctx, "globex", ledger.OrgChange{Name: new("umbrella")}))
	h.ok(h.ChangeOrg(ctx, "umbrella", ledger.OrgChange{Archived: new(true)}))
	must.OK(h.t, h.DeleteOrg(ctx, "initech"))
	orgs := must.Get(h.DeletedOrgs(ctx, store.Query{Limit: 1}))(h.t)
	must.OK(h.t, h.PurgeOrg(ctx, orgs.Data[0].Name))
	h.ok(h.NoteRestore(ctx))
}

// logs have a tile, and the one of acme is replaced.
func (h *history) logs() {
	ctx := h.t.Context()
	parallel.Each(64, make([]int, 256), func(int) {
		_, err := h.LogKey(ctx, "acme", ledger.KeyEvent{Action: ledger.KeyAdded, Purpose: ledger.KeyOfReceipts, Key: "ab"})
		if err != nil {
			h.t.Error(err)
		}
	})
	h.file.sign(h.t, h.Store)
	l := must.Get(h.Log(ctx, "acme", 0))(h.t)
	h.ok(h.BeginEpoch(ctx, l, 2, ledger.KeyEvent{Action: ledger.KeyAdded, Purpose: ledger.KeyOfLog,
		Previous: &ledger.PreviousLog{Origin: l.Origin}}))
	h.file.sign(h.t, h.Store)
	for n := range 2 {
		must.OK(h.t, h.AnnounceReceiptKey(ctx, "acme", 2, store.ReceiptKey{Key: fmt.Sprint("k", n),
			PublicKey: []byte{byte(n)}, NotBefore: h.Now(), NotAfter: h.Now().Add(100 * time.Hour)}))
	}
	h.says("api", buildDN, sha(200), "test:go", ledger.Pass)
}
