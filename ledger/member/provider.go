package member

import "slices"

// AnyOrg stands for every org in the list of the orgs of a provider.
const AnyOrg = "*"

// Providers has, for the issuer of each provider of the host, the names of the orgs that may use it. It
// is nil if the host has no providers, and a list is nil if the host names no orgs.
type Providers map[string][]string

// MayUse reports whether an org may use the provider with an issuer. If the host names no orgs for it,
// isListed decides: whether the org used the provider when the host was upgraded to a release in which
// the host names them.
func (p Providers) MayUse(issuer, org string, isListed bool) bool {
	orgs := p[issuer]
	if orgs == nil {
		return isListed
	}
	return slices.Contains(orgs, org) || slices.Contains(orgs, AnyOrg)
}

// Check returns a field error if an org must not have members or rules of an issuer. Without providers,
// any issuer will do: nobody can sign in before the host has named the org.
func (p Providers) Check(issuer, org string, isListed bool) error {
	if len(p) == 0 || p.MayUse(issuer, org, isListed) {
		return nil
	}
	return invalidField("issuer", "org %s may not use the provider %s (the administrator of the host adds the org to "+
		"orgs of this provider, in the file that sign_in.providers names, and restarts the server)", org, issuer)
}
