package e2e_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha1"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server"
	"github.com/ledgerd/ledgerd/store"
)

// A stage is an org with some days of history, for the web interface to show: it
// has repos with commits in every state, some of which overlap.
type stage struct {
	*webhookOrg
	now     time.Time                     // the ledger's clock while the history is recorded
	keys    map[string]ed25519.PrivateKey // by common name
	pending []step
	admin   string // a token with scope admin

	shown       string // branch of the commit whose page is shown
	attestation string // ID of an attestation of this commit
	identity    string // ID of an identity
	webhook     string // ID of the failing webhook
	delivery    string // ID of one of its deliveries
}

// A step is an action of the history.
type step struct {
	at time.Time
	do func()
}

// newStage records the history with an in-process server, whose clock it sets,
// and then starts the real server on the same database. The functions in more add
// to the history.
func newStage(t *testing.T, more ...func(*stage)) *stage {
	t.Helper()
	o := newEmptyLedger(t)
	o.env = append(o.env, "LEDGERD_WEBHOOKS_ALLOWED_NETWORKS=127.0.0.0/8,::1/128", "LEDGERD_WEBHOOKS_SCHEDULE=1s,10m",
		"LEDGERD_BASE_URL=https://ledger.acme.example")
	s := &stage{webhookOrg: &webhookOrg{org: o}, now: time.Now().Add(-80 * time.Hour),
		keys: map[string]ed25519.PrivateKey{"ci": o.key}, shown: "refund-currency"}
	db, err := store.Open(t.Context(), o.database, store.Options{
		Now: func() time.Time { return s.now }, ParseRoot: sigstore.ParseRoot,
	})
	must.OK(t, err)

	host := server.New(server.Config{Store: db, Now: func() time.Time { return s.now }}).Host()
	s.api, err = client.New("http://host", client.Options{HTTPClient: &http.Client{Transport: client.InProcess(host)}})
	must.OK(t, err)

	s.createOrg()
	for _, push := range append(more, (*stage).pushAll) {
		push(s)
	}
	slices.SortStableFunc(s.pending, func(a, b step) int { return a.at.Compare(b.at) })
	for _, step := range s.pending {
		s.now = step.at
		step.do()
	}
	must.OK(t, db.Settle(t.Context()))
	must.OK(t, db.Close())

	o.start()
	s.api = must.Get(client.New(o.url, client.Options{Token: s.admin}))(t)
	waitFor(t, "the checkpoint of the log", 10*time.Second, func() bool {
		l, err := s.api.Log(t.Context(), "acme")
		return err == nil && l.Size == l.Events
	})
	return s
}

// newBusyStage returns a stage that has webhooks, too.
func newBusyStage(t *testing.T, more ...func(*stage)) *stage {
	t.Helper()
	s := newStage(t, more...)
	s.addWebhooks("Tickets", "upstream unavailable: try again\n")
	return s
}

// createOrg creates acme with its repos, tokens, identities and policy.
func (s *stage) createOrg() {
	t, ctx := s.t, s.t.Context()
	_, err := s.api.CreateOrg(ctx, ledger.NewOrg{Name: "acme"})
	must.OK(t, err)
	for _, repo := range []string{"api", "billing", "handbook", "web"} {
		_, err := s.api.CreateRepo(ctx, "acme", ledger.NewRepo{Name: repo})
		must.OK(t, err)
	}

	for _, n := range []ledger.NewToken{
		{Name: "Grace Okafor", Scope: ledger.Admin},
		{Name: "ci", Scope: ledger.Write, ExpiresAt: ledger.TimeOf(s.now.AddDate(0, 3, 0))},
		{Name: "wall screen", Scope: ledger.Read},
		{Name: "old laptop", Scope: ledger.Write},
	} {
		token, err := s.api.CreateToken(ctx, "acme", n)
		must.OK(t, err)
		switch n.Name {
		case "Grace Okafor":
			s.admin = token.Secret
		case "ci":
			s.token = token.Secret
		case "old laptop":
			must.OK(t, s.api.RevokeToken(ctx, "acme", token.ID))
		}
	}

	for _, dn := range []string{"cn=ci,ou=build,o=acme", "cn=rita,ou=review,o=acme", "cn=sam,ou=review,o=acme",
		"cn=pilot,ou=platform,o=acme"} {
		s.trust(dn)
	}
	root, err := s.api.AddIdentity(ctx, "acme",
		identity.NewIdentity{Kind: identity.RootIdentity, PEM: s.rootCertificate()})
	must.OK(t, err)
	s.identity = root.ID
	s.trustKeyless()
	s.admitPeople()

	for _, contract := range []string{firstContract, secondContract} {
		_, etag, err := s.api.Policy(ctx, "acme", "api")
		must.OK(t, err)
		s.now = s.now.Add(3 * time.Hour)
		_, err = s.api.SetPolicy(ctx, "acme", "api", jsontext.Value(contract), etag)
		must.OK(t, err)
	}
}

// admitPeople adds a member and a former one, and a rule that admits others.
func (s *stage) admitPeople() {
	ctx := s.t.Context()
	for subject, dn := range map[string]string{"00u1a2b3": "cn=Ada Lovelace,ou=people-dev,o=acme",
		"00u4c5d6": "cn=Charles,ou=people-dev,o=acme"} {
		m, err := s.api.AddMember(ctx, "acme",
			member.NewMember{Issuer: "https://acme.okta.com", Subject: subject, DN: dn, Role: member.Maintainer})
		must.OK(s.t, err)
		if strings.Contains(dn, "Charles") {
			must.OK(s.t, s.api.RemoveMember(ctx, "acme", m.ID))
		}
	}
	_, err := s.api.CreateMemberRule(ctx, "acme", member.NewRule{Issuer: "https://acme.okta.com", Claim: "groups",
		Value: "developers", Role: member.Contributor, DN: "cn={login},ou=people-dev,o=acme"})
	must.OK(s.t, err)
}

// trustKeyless admits the keyless signers of releases.
func (s *stage) trustKeyless() {
	ctx := s.t.Context()
	document, err := os.ReadFile(filepath.Join("..", "ledger", "testdata", "sigstore", "public-good-trusted_root.json"))
	must.OK(s.t, err)
	_, err = s.api.SetTrustedRoot(ctx, "acme", "public-good", document)
	must.OK(s.t, err)
	_, err = s.api.AddIdentity(ctx, "acme", identity.NewIdentity{Kind: identity.SigstoreIdentity,
		DN: "cn=release,ou=build,o=acme", May: identity.Predicates{"build:*"}, Sigstore: &ledger.SigstoreEntry{
			TrustedRoot: "public-good", Issuer: "https://token.actions.githubusercontent.com", RepositoryID: "495574555",
			Subject: "https://github.com/acme/api/.github/workflows/release.yml@*", Ref: "refs/heads/main",
		}})
	must.OK(s.t, err)
}

const firstContract = `{"requirements": [
	{"state": "ATTESTED", "predicate": "test:*", "signers": ["ou=build,o=acme"]},
	{"state": "PROMOTABLE", "predicate": "review:code", "signers": ["ou=review,o=acme"]},
	{"state": "DEPLOYED", "predicate": "deploy:prod", "signers": ["ou=platform,o=acme"]}]}`

const secondContract = `{"requirements": [
	{"state": "ATTESTED", "predicate": "test:*", "signers": ["ou=build,o=acme"]},
	{"state": "ATTESTED", "predicate": "lint:go", "signers": ["ou=build,o=acme"], "accept": ["pass", "warn"]},
	{"state": "PROMOTABLE", "predicate": "review:code", "signers": ["ou=review,o=acme"], "threshold": 2, ` +
	`"exclude_author": true},
	{"state": "PROMOTABLE", "predicate": "scan:dependencies", "max_age": "7d", "branches": ["release/*"]},
	{"state": "DEPLOYED", "predicate": "deploy:prod", "signers": ["ou=platform,o=acme"]}]}`

// trust adds a key with a DN to acme's keyring. It generates the key unless
// s.keys has one for the common name.
func (s *stage) trust(dn string) {
	name, err := identity.ParseDN(dn)
	must.OK(s.t, err)
	key, ok := s.keys[name.CN]
	if !ok {
		_, key, err = ed25519.GenerateKey(nil)
		must.OK(s.t, err)
		s.keys[name.CN] = key
	}
	text := must.PublicPEM(s.t, key.Public())
	_, err = s.api.AddIdentity(s.t.Context(), "acme", identity.NewIdentity{Kind: identity.KeyIdentity, PEM: text, DN: dn})
	must.OK(s.t, err)
}

// rootCertificate returns a root certificate that expires ten days after s.now,
// as PEM.
func (s *stage) rootCertificate() string {
	public, private, err := ed25519.GenerateKey(nil)
	must.OK(s.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Build Root", OrganizationalUnit: []string{"security"},
			Organization: []string{"acme"}},
		NotBefore: s.now.Add(-time.Hour), NotAfter: s.now.AddDate(0, 0, 10),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, public, private))(s.t)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// commitOf returns the SHA of the tip of a branch.
func commitOf(branch string) string {
	sum := sha1.Sum([]byte(branch))
	return hex.EncodeToString(sum[:])
}

// An act is an attestation to record.
type act struct {
	after     time.Duration // since the push
	signer    string
	predicate string
	status    ledger.Status
	took      time.Duration // the duration in its result
}

// push adds to the history that a commit is registered and attested. The commit
// is the tip of r.Branch and was pushed the given time ago.
func (s *stage) push(repo string, ago time.Duration, r ledger.Registration, acts ...act) {
	pushed, sha := time.Now().Add(-ago), commitOf(r.Branch)
	r.CommittedAt = ledger.TimeOf(pushed.Add(-7 * time.Minute))
	s.pending = append(s.pending, step{pushed, func() {
		_, _, err := s.api.Register(s.t.Context(), "acme", repo, sha, r)
		must.OK(s.t, err)
	}})
	for _, a := range acts {
		s.pending = append(s.pending, step{pushed.Add(a.after), func() { s.record(repo, sha, a) }})
	}
}

// record records an attestation of a commit at s.now.
func (s *stage) record(repo, sha string, a act) {
	payload, err := attestation.NewStatement("git+https://git.acme.example/"+repo, sha, attestation.ResultPredicate{
		Predicate:   a.predicate,
		Result:      ledger.Result{Status: a.status, DurationMS: a.took.Milliseconds()},
		StartedOn:   ledger.TimeOf(s.now.Add(-a.took)),
		FinishedOn:  ledger.TimeOf(s.now),
		Annotations: map[string]string{"run": fmt.Sprintf("https://ci.acme.example/%s/%d", repo, 4000+s.serial.Add(1))},
	})
	must.OK(s.t, err)
	s.post(repo, a.signer, payload)
}

// post signs a statement with the signer's key and records it.
func (s *stage) post(repo, signer string, statement []byte) {
	envelope := must.Get(attestation.SignDSSE(s.keys[signer], statement))(s.t)
	record, _, err := s.api.Record(s.t.Context(), "acme", repo, envelope)
	must.OK(s.t, err)
	if record.Commit == commitOf(s.shown) {
		s.attestation = record.ID
	}
}

// edited returns a change that replaces lines of a file and adds others. Changes
// of a path have the same old blob.
func edited(path string, start, lines, added int) radar.Change {
	of := func(text string) string { return commitOf(path + text) }
	return radar.Change{
		Path: path, Status: "M", OldMode: "100644", Mode: "100644", OldBlob: of("before"), Blob: of(fmt.Sprint(start, lines)),
		Hunks: []radar.Hunk{{Start: start, Lines: lines, Added: added, Text: of(fmt.Sprint(start))[:16],
			Near: make([]string, lines+1), Far: make([]string, lines+1)}},
	}
}

// by returns an author whose address is at acme.example.
func by(name, mail string) ledger.Author {
	return ledger.Author{Name: name, Email: mail + "@acme.example"}
}

// pushAll adds the commits of all repos to the history.
func (s *stage) pushAll() {
	const h, m = time.Hour, time.Minute
	ada, jonas, mei, priya := by("Ada Moreno", "ada"), by("Jonas Weber", "jonas"), by("Mei Tanaka", "mei"),
		by("Priya Nair", "priya")
	tested := act{4 * m, "ci", "test:go", ledger.Pass, 92 * time.Second}
	linted := act{2 * m, "ci", "lint:go", ledger.Pass, 11400 * time.Millisecond}
	rita, sam := act{50 * m, "rita", "review:code", ledger.Pass, 0}, act{95 * m, "sam", "review:code", ledger.Pass, 0}
	scanned := act{6 * m, "ci", "scan:dependencies", ledger.Pass, 38 * time.Second}
	deployed := act{150 * m, "pilot", "deploy:prod", ledger.Pass, 4 * m}

	for _, p := range []struct {
		ago     time.Duration
		branch  string
		author  ledger.Author
		message string
		changes []radar.Change
		acts    []act
	}{
		{70 * h, "health-check", ada, "Serve health checks without a token",
			[]radar.Change{edited("server/health.go", 12, 3, 9)}, []act{linted, tested, rita, sam, deployed}},
		{50 * h, "price-cache", jonas, "Cache prices for a minute", []radar.Change{edited("prices/cache.go", 40, 2, 31)},
			[]act{linted, tested, rita, sam, deployed}},
		{29 * h, "payment-retry", mei, "Retry payments that time out\n\nThe provider sometimes takes longer than " +
			"our ten seconds.\nPayments have an idempotency key, so a retry is safe.", []radar.Change{
			edited("payments/client.go", 88, 14, 22), edited("payments/retry.go", 5, 1, 40)}, []act{linted, tested, rita, sam}},
		{27 * h, "go-1.26", ada, "Build with Go 1.26", []radar.Change{
			edited("go.mod", 3, 1, 1), edited("payments/client.go", 12, 2, 2)}, []act{linted, tested, scanned, rita, sam}},
		{9 * h, "order-sort", priya, "Sort orders by date", []radar.Change{edited("orders/list.go", 30, 8, 15)},
			[]act{linted, tested, rita}},
		{7 * h, "refund-currency", jonas, "Refund in the currency of the order\n\nRefunds used the currency of the " +
			"account, which is wrong if the\ncustomer has moved since. Amounts are rounded as in the order.",
			[]radar.Change{edited("orders/refund.go", 21, 6, 19), edited("payments/client.go", 95, 4, 6)},
			[]act{{m, "ci", "lint:go", ledger.Warn, 12100 * time.Millisecond},
				{3 * m, "ci", "test:go", ledger.Fail, 71 * time.Second}, {22 * m, "ci", "test:go", ledger.Pass, 94 * time.Second},
				{24 * m, "ci", "test:e2e", ledger.Pass, 6*m + 12*time.Second}, rita,
				{80 * m, "sam", "review:code", ledger.Fail, 0}}},
		{5 * h, "order-pages", mei, "Paginate the list of orders", []radar.Change{edited("orders/list.go", 34, 12, 30),
			edited("orders/page.go", 1, 1, 60)}, []act{linted, {4 * m, "ci", "test:go", ledger.Fail, 85 * time.Second}}},
		{130 * m, "request-id", jonas, "Log the ID of every request", []radar.Change{edited("server/log.go", 14, 1, 4)},
			[]act{linted}},
		{41 * m, "login-limit", priya, "Limit sign-ins to five a minute",
			[]radar.Change{edited("server/login.go", 50, 3, 20)}, nil},
		{6 * m, "address-errors", ada, "Explain why an address is invalid",
			[]radar.Change{edited("orders/address.go", 9, 5, 18)}, nil},
	} {
		s.push("api", p.ago, ledger.Registration{Branch: p.branch, Author: p.author, Message: p.message, Changes: p.changes},
			p.acts...)
	}

	sbom := `{"_type":"https://in-toto.io/Statement/v1","predicateType":"https://spdx.dev/Document","predicate":{},` +
		`"subject":[{"digest":{"gitCommit":"` + commitOf("refund-currency") + `"}},{"name":"registry.acme.example/api",` +
		`"digest":{"sha256":"` + strings.Repeat("3fa9d2", 10) + `07c1"}}]}`
	s.pending = append(s.pending, step{time.Now().Add(-5 * h), func() { s.post("api", "ci", []byte(sbom)) }})

	s.push("web", 30*h, ledger.Registration{Branch: "dark-mode", Author: mei, Message: "Add a dark mode to the shop"},
		tested, rita, deployed)
	s.push("web", 4*h, ledger.Registration{Branch: "basket", Author: priya, Message: "Show the basket on every page"},
		tested)
	s.push("web", 25*m, ledger.Registration{Branch: "fonts", Author: jonas, Message: "Use system fonts"})
	s.push("billing", 20*h, ledger.Registration{Branch: "invoices", Author: ada, Message: "Export invoices as PDF"},
		tested, rita)
	s.push("billing", 3*h, ledger.Registration{Branch: "vat", Author: mei, Message: "Compute VAT by country"}, tested)
}

// addWebhooks creates a webhook that succeeds, one that fails and one that is
// disabled, and waits for the first deliveries. The failing one has the given
// description. All receivers respond with the given text.
func (s *stage) addWebhooks(description, response string) {
	ctx := s.t.Context()
	receiver := func(status int) string {
		return serve(s.t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("X-Served-By", "edge-3")
			w.WriteHeader(status)
			io.WriteString(w, response)
		})
	}
	add := func(url, description string) outbound.Webhook {
		w, err := s.api.CreateWebhook(ctx, "acme", "api", outbound.NewWebhook{URL: url, Description: description})
		must.OK(s.t, err)
		return w
	}

	succeeding := add(receiver(http.StatusOK)+"/hooks/ledger", "Deployments of the platform team")
	disabled := add(receiver(http.StatusOK)+"/old", "The old chat room")
	active := false
	_, err := s.api.ChangeWebhook(ctx, "acme", "api", disabled.ID, outbound.WebhookChange{Active: &active})
	must.OK(s.t, err)
	failing := add(receiver(http.StatusServiceUnavailable)+"/ledger", description)

	s.now = time.Now()
	s.record("api", commitOf("request-id"), act{0, "ci", "build:image", ledger.Pass, 48 * time.Second})
	for _, w := range []outbound.Webhook{succeeding, failing} {
		d, err := s.api.PingWebhook(ctx, "acme", "api", w.ID)
		must.OK(s.t, err)
		s.waitAttempts(s.t, w.ID, d.ID, 1)
		s.waitAttempts(s.t, w.ID, s.oldest(s.t, w.ID).ID, 1)
		s.webhook, s.delivery = w.ID, d.ID
	}
}
