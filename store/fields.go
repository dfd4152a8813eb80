package store

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/events"
)

// The functions below return the fields of resources that audit events have. Secrets are not
// among them.

// fieldsVersion is the version of the fields that audit events have. The event of the creation of an org says
// it, or else the last of the events about what there was before: see logSettings. From then on, a resource
// has no other fields than those in its events.
const fieldsVersion = 1

func orgFields(o ledger.Org) []ledger.Field {
	return []ledger.Field{{Name: "log_public", Value: o.LogPublic}}
}

func repoFields(r ledger.Repo) []ledger.Field {
	return []ledger.Field{
		{Name: "default_branch", Value: r.DefaultBranch},
		{Name: "web_url", Value: events.Optional(r.WebURL)},
		{Name: "forge", Value: events.Optional(r.Forge)},
		{Name: "retention", Value: events.Optional(r.Retention)},
	}
}

func tokenFields(t ledger.Token) []ledger.Field {
	return []ledger.Field{
		{Name: "name", Value: t.Name},
		{Name: "scope", Value: t.Scope},
		{Name: "expires_at", Value: events.Optional(t.ExpiresAt)},
		{Name: "repos", Value: events.OptionalList(t.Repos)},
	}
}

// grantFields returns tokenFields with what else decides about what a token may do. hash is the SHA-256 of its
// secret. The digest of it reveals nothing, since secrets are random.
func grantFields(t ledger.Token, hash []byte) []ledger.Field {
	return append(tokenFields(t),
		ledger.Field{Name: "rule", Value: events.Optional(t.Rule)},
		ledger.Field{Name: "member", Value: events.Optional(t.Member)},
		ledger.Field{Name: "secret_digest", Value: events.Digest(hash)},
	)
}

func identityFields(i identity.Identity) []ledger.Field {
	return []ledger.Field{
		{Name: "kind", Value: i.Kind},
		{Name: "dn", Value: i.DN},
		{Name: "email", Value: events.Optional(i.Email)},
		{Name: "emails", Value: events.OptionalList(i.Emails)},
		{Name: "logins", Value: events.OptionalList(i.Logins)},
		{Name: "may", Value: events.OptionalList(i.May)},
		{Name: "dn_pattern", Value: events.Optional(i.DNPattern)},
		{Name: "sigstore", Value: events.Optional(i.Sigstore)},
		{Name: "fingerprint", Value: i.Fingerprint},
		{Name: "revoked_at", Value: events.Optional(i.RevokedAt)},
		{Name: "distrusted_since", Value: events.Optional(i.DistrustedSince)},
		{Name: "distinct", Value: events.Optional(i.Distinct)},
	}
}

func trustedRootFields(r identity.TrustedRoot) []ledger.Field {
	return []ledger.Field{
		{Name: "version", Value: r.Version},
		{Name: "digest", Value: events.Optional(r.Digest)},
		{Name: "removed", Value: events.Optional(r.Removed)},
	}
}

func policyFields(version int, digest string) []ledger.Field {
	return []ledger.Field{{Name: "version", Value: version}, {Name: "digest", Value: digest}}
}
