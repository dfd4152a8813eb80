package settings

import (
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// entryIn returns the entry for keyless signers in a form; nil if all its fields are empty.
func entryIn(f *page.Form) *ledger.SigstoreEntry {
	field := func(name string) string { return strings.TrimSpace(f.Get("sigstore." + name)) }
	e := ledger.SigstoreEntry{
		TrustedRoot: field("trusted_root"), Issuer: field("issuer"), Subject: field("subject"),
		RepositoryID: field("repository_id"), Ref: field("ref"), Environment: field("environment"),
		Workflow: field("workflow"), Commit: field("commit"),
	}
	if e == (ledger.SigstoreEntry{}) {
		return nil
	}
	return &e
}

// trustedRoots returns the versions of the org's trusted roots that are in effect, by name.
func trustedRoots(v *page.Visit) ([]identity.TrustedRoot, error) {
	latest := make(map[string]identity.TrustedRoot)
	for r, err := range v.API.TrustedRoots(v.Ctx(), v.Org) {
		if err != nil {
			return nil, err
		}
		latest[r.Name] = r // they are in order
	}

	var list []identity.TrustedRoot
	for _, r := range latest {
		if !r.Removed {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b identity.TrustedRoot) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}
