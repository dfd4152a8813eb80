package client

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/insights"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/proof/receipt"
)

// An AnotherError says that a server answered with another record than the one that was requested.
type AnotherError struct {
	// What is what the records are called in paths, such as commits.
	What string
	// Requested and Received name the record that was requested, and the one in the response.
	Requested, Received string
}

func (e *AnotherError) Error() string {
	return fmt.Sprintf("the server answered with %q of %s, but %q was requested (check the server URL, and proxies)",
		e.Received, e.What, e.Requested)
}

// A key names a record: by each collection in its path, and each parameter that selects one, what it is
// called there.
type key map[string]string

// keyIn returns the key of the record that a path and its parameters name.
func keyIn(path string, query url.Values) key {
	path, _, _ = strings.Cut(path, "?")
	segments := strings.Split(strings.TrimPrefix(path, "/v1/"), "/")
	k := key{}
	for i := 0; i+1 < len(segments); i += 2 {
		name, err := url.PathUnescape(segments[i+1])
		if err != nil {
			name = segments[i+1]
		}
		k[segments[i]] = name
	}
	for _, name := range []string{"version", "state"} {
		if query.Has(name) {
			k[name] = query.Get(name)
		}
	}
	return k
}

// keyOf returns the key of a record; nil if it has none.
func keyOf(record any) key {
	switch r := record.(type) {
	case ledger.Org:
		return key{"orgs": r.Name}
	case ledger.Repo:
		return key{"orgs": r.Org, "repos": r.Name}
	case ledger.CommitSummary:
		return key{"orgs": r.Org, "repos": r.Repo, "commits": r.SHA}
	case ledger.Commit:
		return keyOf(r.CommitSummary)
	case ledger.AttestationRecord:
		return key{"orgs": r.Org, "repos": r.Repo, "commits": r.Commit, "attestations": r.ID}
	case ledger.ExceptionRecord:
		return key{"orgs": r.Org, "repos": r.Repo}
	case receipt.Receipt:
		return key{"orgs": r.Org, "repos": r.Repo, "commits": r.Commit, "state": r.State.String()}

	case policy.Policy:
		return key{"orgs": r.Org, "policies": r.Repo, "version": strconv.Itoa(r.Version)}
	case policy.Summary:
		return key{"orgs": r.Org, "policies": r.Repo}

	case outbound.Webhook:
		return key{"orgs": r.Org, "repos": r.Repo, "webhooks": r.ID}
	case outbound.Delivery:
		return key{"webhooks": r.Webhook, "deliveries": r.ID}
	case outbound.DeliveryRecord:
		return keyOf(r.Delivery)
	case ledger.Artifact:
		return key{"artifacts": r.Digest}

	case ledger.Violation:
		return key{"orgs": r.Org}
	case ledger.Log:
		return key{"orgs": r.Org}
	case insights.Report:
		return key{"orgs": r.Org}

	case identity.Identity:
		return key{"orgs": r.Org, "identities": r.ID}
	case identity.TrustedRoot:
		return key{"orgs": r.Org, "trusted-roots": r.Name, "version": strconv.Itoa(r.Version)}
	case member.Member:
		return key{"orgs": r.Org, "members": r.ID}
	}
	return nil
}

// check returns an *AnotherError if a record is not the one of the key. isChange reports whether the
// request may have changed the record, and so its name.
func (k key) check(record any, isChange bool) error {
	_, isOrg := record.(ledger.Org)
	_, isRepo := record.(ledger.Repo)
	for what, received := range keyOf(record) {
		requested, isNamed := k[what]
		isRenamed := isChange && (isOrg && what == "orgs" || isRepo && what == "repos")
		if isNamed && !isRenamed && !isSame(what, requested, received) {
			return &AnotherError{What: what, Requested: requested, Received: received}
		}
	}
	return nil
}

// isSame reports whether a record has the name that was requested.
func isSame(what, requested, received string) bool {
	switch what {
	case "commits": // by a prefix
		return strings.HasPrefix(received, strings.ToLower(requested))
	case "orgs": // those in a deleted one have the name that it had
		return received == requested || ledger.IsDeletedName(requested)
	case "repos", "policies":
		return strings.EqualFold(received, requested) || ledger.IsDeletedName(requested)
	case "artifacts":
		return strings.EqualFold(received, requested)
	}
	return received == requested
}
