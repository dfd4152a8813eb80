package orgs

import (
	"github.com/ledgerd/ledgerd/ledger"
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

func policyFields(version int, digest string) []ledger.Field {
	return []ledger.Field{{Name: "version", Value: version}, {Name: "digest", Value: digest}}
}
