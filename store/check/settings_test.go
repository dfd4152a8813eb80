package check_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/oidc/oidctest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// An administrator has changed access and settings of acme.
type administrator struct {
	*store.Store
	t        testing.TB
	provider *oidctest.Provider
}

// newSettings returns a database with access and settings of all kinds, in force and ended.
func newSettings(t *testing.T) database {
	t.Helper()
	s, path := newAcme(t, store.Options{Providers: storetest.Providers()})
	a := &administrator{Store: s, t: t, provider: oidctest.New(t)}
	storetest.NewReviewer(t, s, annDN)
	a.tokens()
	a.exchanges()
	a.people()
	a.settings()
	must.OK(t, s.Close())
	return database{path: path}
}

// token creates a token.
func (a *administrator) token(ctx context.Context, n ledger.NewToken) ledger.Token {
	a.t.Helper()
	token, err := a.CreateToken(ctx, "acme", n, hash())
	must.OK(a.t, err)
	return token
}

// hash returns the hash of a new secret.
func hash() [32]byte { return sha256.Sum256([]byte(ledger.NewSecret())) }

// tokens creates tokens, with a session, and revokes one.
func (a *administrator) tokens() {
	a.t.Helper()
	ctx := a.t.Context()
	a.token(ctx, ledger.NewToken{Name: "reader", Scope: ledger.Read})
	admin := a.token(ctx, ledger.NewToken{Name: "admin", Scope: ledger.Admin})
	must.OK(a.t, a.CreateSession(ctx, admin.ID, hash(), a.Now().Add(time.Hour)))
	out := hash()
	must.OK(a.t, a.CreateSession(ctx, admin.ID, out, a.Now().Add(time.Hour)))
	must.OK(a.t, a.DeleteSession(ctx, out))
	a.token(ctx, ledger.NewToken{Name: "short", Scope: ledger.Write, ExpiresAt: a.Now().Add(time.Hour)})
	a.token(ctx, ledger.NewToken{Name: "limited", Scope: ledger.Write, Repos: []string{"api"}})
	revoked := a.token(ctx, ledger.NewToken{Name: "revoked", Scope: ledger.Admin})
	must.OK(a.t, a.RevokeToken(ctx, "acme", revoked.ID))
}

// exchanges adds issuers with rules, exchanges tokens, and removes one rule and one issuer.
func (a *administrator) exchanges() {
	a.t.Helper()
	ctx := a.t.Context()
	_, err := a.AddIssuer(ctx, "acme", exchange.NewIssuer{URL: a.provider.URL})
	must.OK(a.t, err)
	_, err = a.AddIssuer(ctx, "acme", exchange.NewIssuer{URL: "https://pasted.example", JWKS: a.provider.JWKS()})
	must.OK(a.t, err)
	removed, err := a.AddIssuer(ctx, "acme", exchange.NewIssuer{URL: "https://removed.example", JWKS: a.provider.JWKS()})
	must.OK(a.t, err)
	must.OK(a.t, a.RemoveIssuer(ctx, "acme", removed.ID))
	a.exchange("kept")
	must.OK(a.t, a.RemoveRule(ctx, "acme", a.exchange("removed").ID))
}

// exchange creates a rule and exchanges a token with it.
func (a *administrator) exchange(name string) exchange.Rule {
	a.t.Helper()
	n, err := exchange.NewRule{Name: name, Issuer: a.provider.URL, RepositoryID: "1", Scope: ledger.Write,
		Repos: []string{"api"}, DN: "cn=api,ou=ci-x,o=acme", Refs: []string{"main"}}.Completed()
	must.OK(a.t, err)
	rule, err := a.CreateRule(a.t.Context(), "acme", n)
	must.OK(a.t, err)

	raw := a.provider.Token(a.provider.GitHub("x", time.Now(), map[string]any{"jti": name}))
	keys := must.Get(exchange.ParseKeys([]byte(a.provider.JWKS())))(a.t)
	claims, err := must.Get(exchange.Parse(raw))(a.t).Verify(keys)
	must.OK(a.t, err)
	_, err = a.Exchange(a.t.Context(), "acme", store.Exchange{Rule: rule, Claims: claims, Scope: ledger.Write}, hash())
	must.OK(a.t, err)
	return rule
}

// people adds members and rules for them. One was removed with the token that she has created, and came back.
func (a *administrator) people() {
	a.t.Helper()
	ctx := a.t.Context()
	for _, claim := range []string{"kept", "removed"} {
		rule, err := a.CreateMemberRule(ctx, "acme", member.NewRule{Issuer: "https://idp.example", Claim: "groups",
			Value: claim, Role: member.Reader, DN: "cn={sub},ou=people-dev,o=acme"})
		must.OK(a.t, err)
		if claim == "removed" {
			must.OK(a.t, a.RemoveMemberRule(ctx, "acme", rule.ID))
		}
	}

	eve, err := a.AddMember(ctx, "acme", member.NewMember{Issuer: "https://idp.example", Subject: "eve",
		DN: "cn=eve,ou=people-dev,o=acme", Role: member.Admin})
	must.OK(a.t, err)
	account := member.Account{Issuer: "https://idp.example", Subject: "eve"}
	signIn, err := a.SignInMember(ctx, "acme", account, hash(), hash(), a.Now().Add(time.Hour))
	must.OK(a.t, err)
	a.token(store.WithActor(ctx, ledger.Actor{Name: signIn.Name, Token: signIn.ID}),
		ledger.NewToken{Name: "eve's", Scope: ledger.Admin})
	for _, isRemoved := range []bool{true, false} {
		_, err = a.ChangeMember(ctx, "acme", eve.ID, member.Change{Removed: &isRemoved})
		must.OK(a.t, err)
	}
}

// settings changes the org, repos and webhooks. A repo with a webhook was deleted, and another one has its name.
func (a *administrator) settings() {
	a.t.Helper()
	ctx := a.t.Context()
	for _, repo := range []string{"old", "new"} {
		_, err := a.CreateRepo(ctx, "acme", ledger.NewRepo{Name: "web"}, "host")
		must.OK(a.t, err)
		hook := outbound.NewWebhook{URL: "https://hooks.example.com/" + repo, Events: ledger.DefaultEventTypes()}
		created, err := a.CreateWebhook(ctx, "acme", "web", hook, outbound.NewWebhookSecret())
		must.OK(a.t, err)
		if repo == "old" {
			must.OK(a.t, a.DeleteRepo(ctx, "acme", "web"))
			continue
		}
		for _, header := range []string{"Bearer first", "Bearer second", "", "Bearer third"} {
			_, err = a.ChangeWebhook(ctx, "acme", "web", created.ID, outbound.WebhookChange{Authorization: &header})
			must.OK(a.t, err)
		}
		_, err = a.RotateWebhook(ctx, "acme", "web", created.ID, outbound.NewWebhookSecret(), time.Hour)
		must.OK(a.t, err)

		hook.Authorization = "Bearer removed"
		plain, err := a.CreateWebhook(ctx, "acme", "web", hook, outbound.NewWebhookSecret())
		must.OK(a.t, err)
		_, err = a.ChangeWebhook(ctx, "acme", "web", plain.ID, outbound.WebhookChange{Authorization: new("")})
		must.OK(a.t, err)
	}

	keep := ledger.Duration(100 * 24 * time.Hour)
	_, err := a.ChangeRepo(ctx, "acme", "web", ledger.RepoChange{Retention: &ledger.RetentionChange{Events: &keep}})
	must.OK(a.t, err)
	renamed := ledger.RepoChange{Name: new("core"), WebURL: new("https://git.example/core")}
	_, err = a.ChangeRepo(ctx, "acme", "api", renamed)
	must.OK(a.t, err)
	_, err = a.ChangeOrg(ctx, "acme", ledger.OrgChange{LogPublic: new(true)})
	must.OK(a.t, err)
	_, err = a.ChangeOrg(ctx, "acme", ledger.OrgChange{LogPublic: new(false)})
	must.OK(a.t, err)
}

// Ways to change access and settings of a stopped database, each with the parts of a line that must be reported.
var settingsChanges = []struct{ name, statement, want string }{
	{"a token that nobody created", `
		INSERT INTO tokens (token_id, org_id, name, permission, hash, created_at, expires_at)
		VALUES ('tok_x', 1, 'ci', 4, randomblob(32), 1, 0)`,
		"settings acme token tok_x: it is in force, and no event says that it was created"},
	{"a read token made admin", `UPDATE tokens SET permission = 4 WHERE name = 'reader'`,
		`: the row has scope "admin", and by the events, the last of which is `},
	{"a token that is active again", `UPDATE tokens SET revoked_at = 0 WHERE name = 'revoked'`,
		": it is in force, and it had ended: the last event about it is "},
	{"a token of a removed rule that is active again", `
		UPDATE tokens SET revoked_at = 0 WHERE rule_id = (SELECT id FROM exchange_rules WHERE removed_at > 0)`,
		": it is in force, and it had ended: the last event about it is "},
	{"a token of a member who came back that is active again", `UPDATE tokens SET revoked_at = 0 WHERE name = 'eve''s'`,
		": it is in force, and it had ended: the last event about it is "},
	{"a sign-in of a member who came back that is active again", `
		UPDATE tokens SET revoked_at = 0 WHERE is_sign_in = 1 AND name LIKE 'cn=eve%'`,
		": it is in force, and it had ended: the last event about it is "},
	{"a token that was revoked silently", `UPDATE tokens SET revoked_at = 1 WHERE name = 'reader'`,
		"settings acme token tok_"},
	{"a deleted token", `DELETE FROM tokens WHERE name = 'reader'`,
		": it is in force by the events about it, and not in the database"},
	{"the secret of a token", `UPDATE tokens SET hash = randomblob(32) WHERE name = 'reader'`,
		`: the row has secret_digest "sha256:`},
	{"the expiry of a token", `UPDATE tokens SET expires_at = 0 WHERE name = 'short'`,
		": the row has expires_at none, and by the events"},
	{"a later expiry of a token", `UPDATE tokens SET expires_at = expires_at + 1 WHERE name = 'short'`,
		": the row has expires_at \""},
	{"the name of a token", `UPDATE tokens SET name = 'ci' WHERE name = 'reader'`, `: the row has name "ci"`},
	{"the limit of a token", `UPDATE tokens SET is_limited = 0 WHERE name = 'limited'`,
		": the row has repos none, and by the events"},
	{"a repo of a token", `INSERT INTO token_repos SELECT token_id, 3 FROM token_repos`,
		": the row has repos core web, and by the events"},
	{"another repo of a token", `UPDATE token_repos SET repo_id = 2`, ": the row has repos ~2, and by the events"},
	{"the member of a token", `UPDATE tokens SET member_id = 1 WHERE name = 'admin'`, `: the row has member "mem_`},
	{"the rule of a token", `UPDATE tokens SET rule_id = 1 WHERE name = 'admin'`, `: the row has rule "rul_`},
	{"a token that is a sign-in", `UPDATE tokens SET is_sign_in = 1, expires_at = 1 << 45 WHERE name = 'admin'`,
		"settings acme session tok_"},
	{"a sign-in that is a token", `UPDATE tokens SET is_sign_in = 0 WHERE name LIKE 'cn=ann%'`,
		": it is in force, and no event says that it was created"},
	{"a secret for a sign-in", `UPDATE tokens SET hash = randomblob(32) WHERE name LIKE 'cn=ann%'`,
		`: the row has secret_digest "sha256:`},
	{"when a person authenticated", `UPDATE tokens SET auth_time = 1 << 40 WHERE name LIKE 'cn=ann%'`,
		": the row has auth_time "},

	{"a session that nobody has begun", `
		INSERT INTO sessions SELECT randomblob(32), token_id, created_at, expires_at FROM sessions
		WHERE token_id = (SELECT id FROM tokens WHERE name = 'admin')`,
		": it is in force, and no event says that it was created"},
	{"a later expiry of a session", `UPDATE sessions SET expires_at = expires_at + 1`, ": the row has expires_at \""},
	{"the token of a session", `UPDATE sessions SET token_id = (SELECT id FROM tokens WHERE name = 'admin')`,
		": it is in force, and no event says that it was created"},
	{"the secret of a session", `UPDATE sessions SET hash = randomblob(32)`,
		": it is in force, and no event says that it was created"},

	{"the keys of an issuer", `UPDATE issuers SET jwks = '{"keys":[]}' WHERE jwks <> ''`,
		`: the row has jwks_digest "sha256:`},
	{"keys for an issuer", `UPDATE issuers SET jwks = '{"keys":[]}' WHERE jwks = ''`,
		`: the row has jwks_digest "sha256:`},
	{"the URL of an issuer", `UPDATE issuers SET url = 'https://evil.example' WHERE jwks = ''`,
		`: the row has url "https://evil.example"`},
	{"an issuer that was removed", `UPDATE issuers SET removed_at = 0`, ": it is in force, and it had ended"},
	{"an issuer that nobody added", `
		INSERT INTO issuers (issuer_id, org_id, url, jwks, created_at) VALUES ('iss_x', 1, 'https://evil.example', '', 1)`,
		"settings acme issuer iss_x: it is in force, and no event says that it was created"},
	{"an issuer removed silently", `UPDATE issuers SET removed_at = 1 WHERE jwks <> ''`,
		": it is in force by the events about it, and not in the database"},

	{"the refs of a rule", `UPDATE exchange_rules SET rule = replace(rule, '["main"]', '["*"]')`,
		`: the row has refs ["*"], and by the events, the last of which is `},
	{"the scope of a rule", `UPDATE exchange_rules SET rule = replace(rule, '"write"', '"admin"')`,
		`: the row has scope "admin"`},
	{"the repository of a rule", `UPDATE exchange_rules SET subject = '2'`, `: the row has repository_id "1 and 2"`},
	{"the DN of a rule", `UPDATE exchange_rules SET dn = 'cn=eve,ou=ci-x,o=acme'`,
		`: the row has dn "cn=api,ou=ci-x,o=acme and cn=eve,ou=ci-x,o=acme"`},
	{"the DN of a rule, in its document", `UPDATE exchange_rules SET rule = replace(rule, 'cn=api', 'cn=eve')`,
		`: the row has dn "cn=eve,ou=ci-x,o=acme and cn=api,ou=ci-x,o=acme"`},
	{"the issuer of a rule", `UPDATE exchange_rules SET issuer_id = 2`, ` and https://pasted.example"`},
	{"the repos of a rule", `UPDATE exchange_rule_repos SET repo_id = 3`, ": the row has repos web, and by the events"},
	{"a rule that cannot be read", `UPDATE exchange_rules SET rule = '{'`,
		"settings acme: the rows after exchange_rule:0 cannot be read: "},
	{"a rule that was removed", `UPDATE exchange_rules SET removed_at = 0`, ": it is in force, and it had ended"},

	{"the role of a member", `UPDATE members SET role = 4 WHERE dn LIKE 'cn=ann%'`,
		`: the row has role "admin", and by the events`},
	{"the account of a member", `UPDATE members SET subject = 'mallory' WHERE dn LIKE 'cn=eve%'`,
		`: the row has subject "mallory"`},
	{"the provider of a member", `UPDATE members SET issuer = 'https://evil.example'`,
		`: the row has issuer "https://evil.example"`},
	{"the DN of a member", `
		UPDATE members SET dn = 'cn=bob,ou=people-dev,o=acme', folded = 'cn=bob,ou=people-dev,o=acme'
		WHERE dn LIKE 'cn=ann%'`,
		`: the row has dn "cn=bob,ou=people-dev,o=acme"`},
	{"who decides about a member", `UPDATE members SET by_rule = 1`, ": the row has by_rule true"},
	{"a removed member", `UPDATE members SET removed_at = 1`, ": the row has removed true"},
	{"a member whom nobody added", `
		INSERT INTO members (member_id, org_id, issuer, subject, dn, folded, name, email, role, by_rule, created_at)
		SELECT 'mem_x', 1, 'https://idp.example', 'x', dn, dn, '', '', 4, 0, 1
		FROM (SELECT 'cn=x,ou=people-dev,o=acme' AS dn)`,
		"settings acme member mem_x: it is in force, and no event says that it was created"},
	{"the role of a member rule", `UPDATE member_rules SET role = 4`, `: the row has role "admin"`},
	{"the value of a member rule", `UPDATE member_rules SET value = 'all'`, `: the row has value "all"`},
	{"a member rule that was removed", `UPDATE member_rules SET removed_at = 0`, ": it is in force, and it had ended"},
	{"the device of a passkey", `UPDATE passkeys SET credential_id = x'01'`, ": the row has credential_digest "},
	{"the key of a passkey", `UPDATE passkeys SET public_key = x'01'`, ": the row has key "},
	{"the member of a passkey", `UPDATE passkeys SET member_id = 2`, `: the row has member "mem_`},
	{"a provider for an org", `INSERT INTO provider_orgs VALUES ('https://evil.example', 1)`,
		`settings acme org acme: the row has providers ["https://evil.example"]`},

	{"the URL of a webhook", `UPDATE webhooks SET url = 'https://hooks.example.com/evil'`, ": the row has url_digest "},
	{"the host of a webhook", `UPDATE webhooks SET url = 'https://evil.example'`,
		`: the row has url "https://evil.example"`},
	{"the secret of a webhook", `UPDATE webhooks SET secret = 'whsec_x'`, ": the row has secret_digest "},
	{"the former secret of a webhook", `UPDATE webhooks SET secret = previous_secret`, ": the row has secret_digest "},
	{"a secret of a webhook that cannot be decrypted", `UPDATE webhooks SET secret = 'enc1:x'`,
		": the row has secret_digest "},
	{"the header of a webhook", `UPDATE webhooks SET auth_header = 'x Bearer y' WHERE auth_header <> ''`,
		": the row has authorization_digest "},
	{"a header for a webhook without one", `UPDATE webhooks SET auth_header = 'x Bearer y' WHERE auth_header = ''`,
		": the row has authorization_digest "},
	{"a webhook whose header was removed", `UPDATE webhooks SET auth_header = ''`,
		": the row has authorization_digest none"},
	{"a webhook turned off", `UPDATE webhooks SET active = 0, disabled_reason = 'it failed'`,
		": the row has active false"},
	{"a webhook turned on", `UPDATE webhooks SET active = 1`, ": the row has active true"},
	{"the repo of a webhook", `UPDATE webhooks SET repo_id = 1`, ": the row has repo core, and by the events"},
	{"the events of a webhook", `UPDATE webhooks SET events = 1`, `: the row has events ["attestation"]`},
	{"a deleted webhook", `UPDATE webhooks SET deleted_at = 1, active = 0 WHERE active = 1`,
		": it is in force by the events about it, and not in the database"},
	{"a webhook that nobody created", `
		INSERT INTO webhooks (webhook_id, repo_id, url, events, description, active, created_at, changed_at, secret)
		VALUES ('whk_x', 1, 'https://evil.example', 1, '', 1, 1, 1, 'x')`,
		"settings acme webhook whk_x: it is in force, and no event says that it was created"},

	{"retention", `UPDATE repos SET keep_events = 86400000 WHERE name = 'web'`,
		`: the row has retention {"events":"24h"}`},
	{"retention of another repo", `UPDATE repos SET keep_envelopes = 86400000 WHERE name = 'core'`,
		`: the row has retention {"envelopes":"24h"}, and by the events`},
	{"the web page of a repo", `UPDATE repos SET web_url = 'https://evil.example' WHERE name = 'core'`,
		`settings acme repo core: the row has web_url "https://evil.example"`},
	{"the forge of a repo", `UPDATE repos SET forge = 'gitlab' WHERE name = 'core'`, `: the row has forge "gitlab"`},
	{"the default branch of a repo", `UPDATE repos SET default_branch = 'evil'`, `: the row has default_branch "evil"`},
	{"an archived repo", `UPDATE repos SET archived_at = 1 WHERE name = 'core'`, ": the row has archived_at "},
	{"a deleted repo that is there again", `UPDATE repos SET deleted_at = 0`, ": the row has deleted_at none"},
	{"a purged repo", `UPDATE repos SET purged_at = 1 WHERE deleted_at > 0`, ": the row has purged_at "},
	{"the name of a repo", `UPDATE repos SET name = 'evil' WHERE name = 'core'`,
		"settings acme repo evil: it is in force, and no event says that it was created"},
	{"a public log", `UPDATE orgs SET log_public = 1`, "settings acme org acme: the row has log_public true"},
	{"an archived org", `UPDATE orgs SET archived_at = 1`, ": the row has archived_at "},
	{"a deleted org", `UPDATE orgs SET deleted_at = 1`, ": the row has deleted_at "},
}

func TestChangesOfSettingsAreFound(t *testing.T) {
	d := newSettings(t)
	report, err := check.Run(t.Context(), d.path, check.Options{})
	must.OK(t, err)
	if report.Found > 0 || !report.Complete || len(report.Unchecked) > 1 {
		t.Fatalf("an intact database has the report %+v", report)
	}
	for _, test := range settingsChanges {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			lines := d.copy(t, run(test.statement)).problems(t)
			if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, test.want) }) {
				t.Errorf("got the problems\n%s\nwant %q", strings.Join(lines, "\n"), test.want)
			}
		})
	}
}

// What a server changes while its database is checked is no problem.
func TestSettingsOfALiveDatabase(t *testing.T) {
	d := newSettings(t)
	s := must.Get(store.Open(t.Context(), d.path, store.Options{Providers: storetest.Providers()}))(t)
	defer s.Close()

	steps := 0
	change := func() {
		ctx := t.Context()
		created, err := s.CreateToken(ctx, "acme", ledger.NewToken{Name: "new", Scope: ledger.Admin}, hash())
		must.OK(t, err)
		must.OK(t, s.CreateSession(ctx, created.ID, hash(), s.Now().Add(time.Hour)))
		tokens, err := s.Tokens(ctx, "acme", store.Query{Limit: 100})
		must.OK(t, err)
		must.OK(t, s.RevokeToken(ctx, "acme", tokens.Data[steps].ID))
		_, err = s.ChangeRepo(ctx, "acme", "web", ledger.RepoChange{WebURL: new(fmt.Sprint("https://git.example/", steps))})
		must.OK(t, err)
		steps++
	}
	report, err := check.Run(t.Context(), d.path, check.Options{Progress: func(string, int64, int64) { change() }})
	must.OK(t, err)
	if report.Found > 0 || !report.Complete || steps < 3 {
		t.Errorf("after %d changes, the report is %+v", steps, report)
	}
}

// A signing secret that is encrypted is compared with the key, and without it the report says so.
func TestEncryptedSecrets(t *testing.T) {
	d := newSettings(t)
	keys := must.Get(store.ReadSecretKeys(strings.NewReader("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")))(t)
	s := must.Get(store.Open(t.Context(), d.path, store.Options{SecretKeys: keys}))(t)
	_, err := s.EncryptSecrets(t.Context())
	must.OK(t, errors.Join(err, s.Close()))

	older := d.copy(t, run("UPDATE webhooks SET secret = previous_secret WHERE previous_secret <> ''"))
	for name, test := range map[string]struct {
		checked   database
		keys      store.SecretKeys
		found     int64
		unchecked int
	}{
		"intact, with the key":       {d, keys, 0, 1},
		"intact, without the key":    {d, store.SecretKeys{}, 0, 2},
		"an older one, with the key": {older, keys, 1, 1},
	} {
		report, err := check.Run(t.Context(), test.checked.path, check.Options{SecretKeys: test.keys})
		must.OK(t, err)
		if report.Found != test.found || len(report.Unchecked) != test.unchecked || !report.Complete {
			t.Errorf("%s: the report is %+v", name, report)
		}
	}
}
