package store_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/recheck"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// exercise opens the fixture and calls all methods of the store, the lists with all
// filters that change their SQL. It returns the plans of the statements that have run,
// without those of migrations. opening contains the statements that the engine runs to
// open a database.
func exercise(t *testing.T) (plans, opening map[string][]string) {
	t.Helper()
	path, now := store.UnpackV5(t), store.WhenV5(t)
	migrated, err := store.Open(t.Context(), path, store.Options{NoCopy: true})
	must.OK(t, err)
	must.OK(t, migrated.Close())

	e := &exerciser{t: t, path: path, now: now, plans: make(map[string][]string)}
	e.Store, err = store.Open(t.Context(), path, store.Options{
		Now: func() time.Time { return e.now }, Monotonic: func() time.Duration { return e.now.Sub(now) - e.jumped },
		SecretKeys: secretKeys(t, 1), Providers: storetest.Providers(), ParseRoot: sigstore.ParseRoot,
	})
	must.OK(t, err)
	defer e.Close()
	e.addPlans()
	opening = maps.Clone(e.plans)

	must.OK(t, e.Run(t.Context(), "UPDATE envelopes SET body = randomblob(32), payload = NULL, payload_at = -1 "+
		"WHERE attestation_id = 1")) // pruned before it was mapped
	must.OK(t, e.Run(t.Context(), "UPDATE signers SET distinct_by = 3 WHERE id = 1")) // as at an upgrade
	must.OK(t, e.Settle(t.Context()))
	for _, step := range []func(){
		e.orgs, e.tokens, e.readTips, e.record, e.violations, e.register, e.carry, e.policies, e.webhooks, e.log,
		e.trustedRoots, e.exchanges, e.members, e.lists, e.retention, e.lifecycles, e.restored, e.distrust, e.fail,
		e.putClockRight,
	} {
		step()
		e.addPlans()
	}
	return e.plans, opening
}

// addPlans adds the plans of the statements that have run.
func (e *exerciser) addPlans() {
	e.t.Helper()
	must.OK(e.t, e.AddPlans(e.t.Context(), e.plans))
}

// An exerciser runs every statement of a store.
type exerciser struct {
	*store.Store
	t    *testing.T
	path string
	now  time.Time
	// jumped is the part of now that did not pass.
	jumped time.Duration
	n      int // number of generated statements
	plans  map[string][]string
}

// Commits, a webhook and a signer in the fixture.
const (
	deployedCommit = "5d3d360b2f13b13a539311878916bf8208301cd6" // release/2
	loginCommit    = "ca9cf449d836c5027b751fa7cd621b796c79de38" // feature/login, in flight
	everythingHook = "whk_01M80KN46FEEQMHDDMW3XG40BH"
	buildDN        = "cn=build,ou=ci,o=acme"
)

// ok fails the test if a call returned an error. It ignores the result.
func (e *exerciser) ok(_ any, err error) {
	e.t.Helper()
	must.OK(e.t, err)
}

// refused fails the test if err does not have the given code.
func (e *exerciser) refused(want ledger.Code, err error) {
	e.t.Helper()
	if got, _ := err.(*ledger.Error); got == nil || got.Code != want {
		e.t.Fatalf("error is %v, want code %s", err, want)
	}
}

func (e *exerciser) orgs() {
	ctx := e.t.Context()
	must.OK(e.t, e.Ready())
	e.ok(e.CreateOrg(ctx, "umbrella"))
	e.ok(e.ChangeOrg(ctx, "umbrella", ledger.OrgChange{LogPublic: new(true)}))
	e.ok(e.Org(ctx, "acme"))
	e.ok(e.CreateRepo(ctx, "umbrella", ledger.NewRepo{Name: "web"}, "host"))
	e.ok(e.Repo(ctx, "acme", "api"))

	public, _, err := ed25519.GenerateKey(nil)
	must.OK(e.t, err)
	identity := identityOf(e.t, public, "cn=zoe,ou=dev,o=umbrella")
	added, err := e.AddIdentity(ctx, "umbrella", identity)
	must.OK(e.t, err)
	e.ok(e.Identity(ctx, "umbrella", added.ID))
	e.ok(e.ChangeIdentity(ctx, "umbrella", added.ID, identityChange("test:*")))
	e.ok(e.ChangeIdentity(ctx, "umbrella", added.ID, distinctChange(true)))
	e.ok(e.ChangeIdentity(ctx, "umbrella", added.ID, distinctChange(false)))
	_, _, err = e.Keyring(ctx, "umbrella")
	must.OK(e.t, err)
	for _, email := range []string{"zoe@umbrella.example", ""} {
		e.ok(e.ChangeIdentity(ctx, "umbrella", added.ID, emailChange(email)))
	}
	must.OK(e.t, e.RevokeIdentity(ctx, "umbrella", added.ID))

	// The same key, then the same name: two people become one.
	_, _, err = e.Register(ctx, "umbrella", "web", deployedCommit, ledger.Registration{})
	must.OK(e.t, err)
	renamed := identity
	renamed.DN = "cn=zara,ou=dev,o=umbrella"
	e.ok(e.AddIdentity(ctx, "umbrella", renamed))
	public, _, err = ed25519.GenerateKey(nil)
	must.OK(e.t, err)
	other := identityOf(e.t, public, "cn=max,ou=dev,o=umbrella")
	added, err = e.AddIdentity(ctx, "umbrella", other)
	must.OK(e.t, err)
	must.OK(e.t, e.RevokeIdentity(ctx, "umbrella", added.ID))
	other.DN = renamed.DN
	e.ok(e.AddIdentity(ctx, "umbrella", other))
	must.OK(e.t, e.Settle(ctx))
}

func identityChange(may ...string) identity.Change {
	patterns := identity.Predicates(may)
	return identity.Change{May: &patterns}
}

func emailChange(email string) identity.Change { return identity.Change{Email: &email} }

func distinctChange(distinct bool) identity.Change { return identity.Change{Distinct: &distinct} }

// identityOf returns the identity of a key.
func identityOf(t *testing.T, public ed25519.PublicKey, dn string) identity.Identity {
	t.Helper()
	text := []byte(must.PublicPEM(t, public))
	id, err := identity.NewIdentity{Kind: identity.KeyIdentity, PEM: string(text), DN: dn}.Identity()
	must.OK(t, err)
	return id
}

func (e *exerciser) tokens() {
	ctx := e.t.Context()
	token, err := e.CreateToken(ctx, "acme", ledger.NewToken{Name: "me", Scope: ledger.Read}, [32]byte{1})
	must.OK(e.t, err)
	e.ok(e.TokenByHash(ctx, [32]byte{1}))
	e.TouchToken(token.ID, "v1.0.0")
	must.OK(e.t, e.CreateSession(ctx, token.ID, [32]byte{2}, e.Now().Add(time.Hour)))
	must.OK(e.t, e.CreateSession(ctx, token.ID, [32]byte{3}, e.Now().Add(time.Hour)))
	_, _, err = e.SessionToken(ctx, [32]byte{2})
	must.OK(e.t, err)
	must.OK(e.t, e.DeleteSession(ctx, [32]byte{2}))
	must.OK(e.t, e.RevokeToken(ctx, "acme", token.ID))
}

// attests records a new statement signed by cn=build.
func (e *exerciser) attests(repo, commit, predicate string, status ledger.Status) *attestation.Attestation {
	e.t.Helper()
	return e.attestsAs(repo, commit, predicate, status, buildDN)
}

func (e *exerciser) attestsAs(
	repo, commit, predicate string, status ledger.Status, signer string,
) *attestation.Attestation {
	e.t.Helper()
	a := e.attestation(commit, predicate, status, signer)
	e.post(repo, a)
	return a
}

// attestation returns a new attestation.
func (e *exerciser) attestation(
	commit, predicate string, status ledger.Status, signer string,
) *attestation.Attestation {
	e.t.Helper()
	e.n++
	dn := must.Get(identity.ParseDN(signer))(e.t)
	payload, kind := fmt.Appendf(nil, "statement %d", e.n), attestation.ResultPredicateType
	if strings.Contains(predicate, "://") {
		kind = predicate
	}
	return &attestation.Attestation{
		Outcome: attestation.Outcome{Predicate: predicate, Result: ledger.Result{Status: status}},
		Commit:  commit, PredicateType: kind,
		Signer:  identity.Signer{DN: dn, May: mayClaim(), Identity: "idn_made", Key: sha256.Sum256([]byte(dn.CN))},
		Payload: payload, PayloadDigest: sha256.Sum256(payload),
		Envelope: []byte(`{"payload":"` + base64.StdEncoding.EncodeToString(payload) + `"}`),
	}
}

// post records an attestation. It may be refused.
func (e *exerciser) post(repo string, a *attestation.Attestation) (ledger.AttestationRecord, error) {
	e.t.Helper()
	_, version, err := e.Keyring(e.t.Context(), "acme")
	must.OK(e.t, err)
	rec, _, err := e.Record(e.t.Context(), "acme", repo, a, version)
	if _, isRefused := err.(*ledger.Error); !isRefused {
		must.OK(e.t, err)
	}
	return rec, err
}

func (e *exerciser) record() {
	ctx := e.t.Context()
	first := e.attests("api", sha(1), "test:go", ledger.Pass) // a new commit
	rec, err := e.post("api", first)
	must.OK(e.t, err)
	e.ok(e.Attestation(ctx, "acme", "api", rec.ID))
	e.ok(e.Envelope(ctx, "acme", "api", rec.ID))
	e.attests("api", sha(1), "test:go", ledger.Fail)
	_, err = e.post("api", first)
	e.refused(ledger.CodeStaleStatement, err)
	e.attestsAs("api", sha(1), "https://example.com/new", ledger.Pass, "cn=new,ou=dev,o=acme")

	// Evidence that expires.
	for _, predicate := range []string{"test:go", "review:code"} {
		e.attests("web", sha(1), predicate, ledger.Pass)
		e.attestsAs("web", sha(1), predicate, ledger.Pass, "cn=new,ou=dev,o=acme")
	}
	e.now = e.now.Add(2 * time.Second)
	must.OK(e.t, e.Settle(ctx))

	e.artifacts()

	// So many of a commit that its evidence is counted.
	for range 202 {
		e.now = e.now.Add(time.Millisecond)
		e.attests("web", sha(2), "test:go", ledger.Pass)
	}
}

// artifacts records statements that name images, and reads these.
func (e *exerciser) artifacts() {
	digests := []string{"sha256:" + strings.Repeat("ab", 32), "sha512:" + strings.Repeat("cd", 64)}
	a := e.attestation(sha(1), "build:docker", ledger.Pass, buildDN)
	a.Artifacts.Digests = digests
	_, err := e.post("api", a)
	must.OK(e.t, err)
	e.ok(e.Artifacts(e.t.Context(), "acme", ledger.ArtifactQuery{Digests: digests}))
	e.ok(e.Artifacts(e.t.Context(), "acme", ledger.ArtifactQuery{Digests: digests[:1], Repo: "web"}))
}

// violations opens more violations than a deployment closes at once, and closes them.
func (e *exerciser) violations() {
	ctx := e.t.Context()
	e.ok(e.CreateRepo(ctx, "acme", ledger.NewRepo{Name: "deployed"}, "host"))
	page := "https://github.com/acme/deployed"
	e.ok(e.ChangeRepo(ctx, "acme", "deployed", ledger.RepoChange{WebURL: &page}))
	contract, err := policy.Parse([]byte(`{"requirements":[{"state":"DEPLOYED","predicate":"deploy:*","name":"x",` +
		`"signers":["cn=build"]}],"exceptions":{"signers":["cn=build"],"max_duration":"1h"}}`))
	must.OK(e.t, err)
	e.ok(e.SetPolicy(ctx, "acme", "deployed", contract, 0, "host"))
	const mallory = "cn=mallory,ou=x,o=acme"
	for n := range 60 {
		e.attestsAs("deployed", sha(n), "deploy:prod", ledger.Pass, mallory)
	}
	e.attestsAs("deployed", sha(1), "deploy:prod", ledger.Pass, mallory)
	e.attestsAs("deployed", sha(1), "deploy:eu", ledger.Pass, mallory)
	e.attests("deployed", sha(1), "exception:eu", ledger.Recorded)
	e.attestsAs("deployed", sha(3), "deploy:eu", ledger.Pass, mallory)
	e.excepts("deployed", sha(3))
	e.ok(e.Commit(ctx, "acme", "deployed", sha(1)))

	e.attests("deployed", sha(1), "test:go", ledger.Pass)
	e.attests("deployed", sha(1), "deploy:prod", ledger.Pass)
	must.OK(e.t, e.Settle(ctx))
	e.attests("deployed", sha(2), "deploy:eu", ledger.Fail) // of a commit without a violation of it
	e.rollsBack()
	e.ok(e.ViolationCounts(ctx))
	e.ok(e.Stats(ctx))
}

// putClockRight has time pass and the clock jump forward, records, puts it right and accepts it.
func (e *exerciser) putClockRight() {
	ctx := e.t.Context()
	e.now = e.now.Add(60 * 24 * time.Hour)
	must.OK(e.t, e.Prune(ctx))
	e.jump(160 * 24 * time.Hour)
	for _, predicate := range []string{"test:go", "review:code"} {
		e.attests("web", sha(1), predicate, ledger.Pass)
		e.attestsAs("web", sha(1), predicate, ledger.Pass, "cn=new,ou=dev,o=acme")
	}
	e.now = e.now.Add(2 * time.Second) // these expire
	must.OK(e.t, e.Settle(ctx))
	e.push(sha(20), ledger.Registration{Branch: "twenty", Changes: changeOf("p.go", 10)})

	e.jump(-160 * 24 * time.Hour)
	_, _, err := e.AcceptClock(ctx)
	must.OK(e.t, err)
	must.OK(e.t, e.Settle(ctx))
	e.now = e.now.Add(time.Hour)
	must.OK(e.t, e.Settle(ctx)) // saves the clock
}

// jump moves the clock until the store follows it, if it is ahead.
func (e *exerciser) jump(d time.Duration) {
	e.now, e.jumped = e.now.Add(d), e.jumped+d
	e.Now()
	e.now = e.now.Add(11 * time.Minute)
	e.Now()
}

// sha returns the id of the n-th new commit.
func sha(n int) string { return fmt.Sprintf("%040x", n) }

// changeOf returns a change record with one changed line of a file.
func changeOf(path string, line int) []radar.Change {
	hash := func(kind string, gap int) string { return fmt.Sprintf("%s%014x", kind, gap) }
	return []radar.Change{{
		Path: path, Status: "M", OldMode: "100644", Mode: "100644", OldBlob: sha(1000), Blob: sha(1000 + line),
		Hunks: []radar.Hunk{{
			Start: line, Lines: 1, Added: 1, Text: hash("e1", line),
			Near: []string{hash("aa", line-1), hash("aa", line)}, Far: []string{hash("bb", line-1), hash("bb", line)},
		}},
	}}
}

func (e *exerciser) push(commit string, n ledger.Registration) {
	e.t.Helper()
	_, _, err := e.Register(e.t.Context(), "acme", "api", commit, n)
	must.OK(e.t, err)
}

// register registers overlapping commits that block each other, and changes the flight of
// their tips in all ways.
func (e *exerciser) register() {
	ctx := e.t.Context()
	one, two, three := sha(11), sha(12), sha(13)
	e.push(one, ledger.Registration{Branch: "one", Changes: changeOf("p.go", 10), Author: ledger.Author{Name: "Ann"}})
	e.push(two, ledger.Registration{Branch: "two", Changes: changeOf("p.go", 11)})
	for _, commit := range []string{one, two} {
		e.attests("api", commit, "test:go", ledger.Pass)
		e.attests("api", commit, "review:code", ledger.Pass)
	}
	e.push(two, ledger.Registration{Changes: changeOf("q.go", 11)}) // no longer overlaps
	e.push(two, ledger.Registration{Changes: changeOf("p.go", 11)}) // overlaps again
	e.push(one, ledger.Registration{Changes: changeOf("p.go", 12)}) // a scan for the earlier commit
	e.recheckRadar()
	for _, commit := range []string{one, loginCommit, sha(99)} {
		e.ok(e.PreviewOverlaps(ctx, "acme", "api", ledger.RadarQuery{
			Commit: commit, Registration: ledger.Registration{Branch: "x", Changes: changeOf("p.go", 10)},
		}))
	}
	e.push(sha(14), ledger.Registration{Branch: "four", Changes: changeOf("p.go", 30)})
	e.push(three, ledger.Registration{Branch: "three", Contained: []string{sha(14)}, Changes: changeOf("p.go", 13)})
	e.push(sha(15), ledger.Registration{Branch: "three", Changes: changeOf("p.go", 13)}) // supersedes it

	// The change record of a deployed commit changes: the radar re-scans the tips that
	// overlap with it.
	e.attests("api", one, "deploy:prod", ledger.Pass)
	e.push(one, ledger.Registration{Changes: changeOf("p.go", 11)})
	must.OK(e.t, e.Settle(ctx))
	e.attests("api", one, "deploy:prod", ledger.Fail) // rolled back
	must.OK(e.t, e.Withdraw(ctx, "acme", "api", two))
	e.ok(e.Commit(ctx, "acme", "api", one[:39]+"b"))

	e.push(loginCommit, ledger.Registration{Target: "release/1", Committer: ledger.Author{Name: "Bob"},
		SigningKey: strings.Repeat("ab", 32)})
	e.ok(e.CommitFor(ctx, "acme", "api", loginCommit, "main", "prod"))
	_, _, err := e.Correct(ctx, "acme", "api", loginCommit, ledger.CommitCorrection{
		Targets: &[]string{"main"}, Changes: new([]radar.Change),
	}, "host")
	must.OK(e.t, err)
}

// recheckRadar derives overlaps again whose rows name other paths.
func (e *exerciser) recheckRadar() {
	e.t.Helper()
	must.OK(e.t, e.Run(e.t.Context(), "UPDATE overlaps SET path = path || 'x'"))
	found := 0
	must.OK(e.t, e.RecheckRadar(e.t.Context(), 1, func(r recheck.RadarResult) { found += len(r.Differences) }))
	if found == 0 {
		e.t.Error("no overlap has another path than the change records")
	}
	must.OK(e.t, e.Run(e.t.Context(), "UPDATE overlaps SET path = substr(path, 1, length(path) - 1)"))
}

// readTips makes the radar's index read all tips, and then only new ones.
func (e *exerciser) readTips() {
	ctx := e.t.Context()
	q := ledger.RadarQuery{Registration: ledger.Registration{Branch: "x", Changes: changeOf("server/api.go", 10)}}
	e.ok(e.PreviewOverlaps(ctx, "acme", "api", q))
	e.push(sha(10), ledger.Registration{Branch: "ten", Changes: changeOf("server/api.go", 10)})
	e.ok(e.PreviewOverlaps(ctx, "acme", "api", q))
}

func (e *exerciser) webhooks() {
	t, ctx := e.t, e.t.Context()
	const url = "https://ci.example.com/ledger"
	n := outbound.NewWebhook{URL: url, Events: ledger.EventTypes()}
	hook, err := e.CreateWebhook(ctx, "acme", "api", n, outbound.NewWebhookSecret())
	must.OK(t, err)
	deleted, err := e.CreateWebhook(ctx, "acme", "api", n, outbound.NewWebhookSecret())
	must.OK(t, err)
	e.ok(e.EncryptSecrets(ctx)) // of the webhook in the fixture
	must.OK(t, e.CheckSecretKeys(ctx))
	e.ok(e.Webhook(ctx, "acme", "api", hook.ID))
	e.attests("api", sha(1), "test:go", ledger.Pass)
	e.attests("api", sha(1), "test:go", ledger.Skip)
	e.ok(e.RotateWebhook(ctx, "acme", "api", hook.ID, outbound.NewWebhookSecret(), time.Hour))
	e.ok(e.PingWebhook(ctx, "acme", "api", hook.ID))

	e.ok(e.DueWebhooks(ctx))
	_, due, err := e.Claim(ctx, hook.ID, 4, time.Minute)
	must.OK(t, err)
	if len(due) != 4 {
		t.Fatalf("claimed %d deliveries, want 4", len(due))
	}
	must.OK(t, e.Release(ctx, hook.ID, due[3:4]))
	outcome := func(d outbound.DueDelivery, status outbound.DeliveryStatus) outbound.Outcome {
		return outbound.Outcome{
			Webhook: hook.ID, Delivery: d.ID, Status: status, Tries: d.Tries, Lease: d.Lease,
			Attempt: outbound.Attempt{At: e.Now(), Error: "none", Request: outbound.AttemptRequest{URL: url}},
		}
	}
	late := outcome(due[2], outbound.DeliveryFailed)
	late.Lease = 1
	refusal := outcome(due[2], outbound.DeliveryFailed)
	refusal.Disable = "410"
	for _, o := range []outbound.Outcome{
		outcome(due[0], outbound.DeliverySucceeded), outcome(due[1], outbound.DeliveryFailed), late, refusal,
	} {
		must.OK(t, e.RecordOutcomes(ctx, []outbound.Outcome{o}, time.Hour))
	}
	e.ok(e.ChangeWebhook(ctx, "acme", "api", hook.ID, outbound.WebhookChange{Active: new(true)}))
	e.ok(e.Delivery(ctx, "acme", "api", hook.ID, due[1].ID))
	e.ok(e.Redeliver(ctx, "acme", "api", hook.ID, due[0].ID))
	e.ok(e.ReplayWebhook(ctx, "acme", "api", hook.ID, 0))
	e.TakeQueued()
	must.OK(t, e.DeleteWebhook(ctx, "acme", "api", deleted.ID))
}
