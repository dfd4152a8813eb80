package member

import (
	"cmp"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
)

// A Standing is what an org knows about an account before a sign-in.
type Standing struct {
	Org string
	// Member is the member or former member with the account, or zero.
	Member Member
	// Rules are the rules of the org for the issuer of the account.
	Rules []Rule
	// MayUse reports whether the org may use the provider; see [Providers.MayUse].
	MayUse bool
}

// An Offer is an org that an account can sign in to.
type Offer struct {
	Org string
	// Member is the member after the sign-in. The DN is empty if a rule admits the account but gives
	// it none: the sign-in says why.
	Member Member
	// Joins reports whether the person must agree first: it would be the first sign-in to the org, and
	// the account is a member of another org, or could become one.
	Joins bool
}

// Offers returns the orgs that an account can sign in to at a time: first those that need no consent,
// in the order of their names. standings are those of all orgs that know the account, or have rules for
// its issuer.
//
// Anyone who may write a rule, or add an account by its subject, could otherwise read names and addresses
// of other orgs' people, and a link would take them to that org. So the first sign-in to an org needs no
// consent only if no other org knows the account or would admit it.
func Offers(standings []Standing, a Account, now ledger.Time) []Offer {
	var offers []Offer
	memberships := make(map[string]bool)
	for _, s := range standings {
		if s.Member.isCurrent() {
			memberships[s.Org] = true
		}
		if !s.MayUse {
			continue
		}
		after, err := Admit(s.Member, s.Rules, a, now)
		if err != nil || after.RemovedAt == 0 {
			offers = append(offers, Offer{Org: s.Org, Member: after, Joins: !s.Member.HasJoined()})
		}
	}

	if len(offers) == 1 {
		delete(memberships, offers[0].Org)
		offers[0].Joins = offers[0].Joins && len(memberships) > 0
	}
	slices.SortFunc(offers, func(a, b Offer) int {
		if a.Joins != b.Joins {
			return map[bool]int{false: -1, true: 1}[a.Joins]
		}
		return cmp.Compare(a.Org, b.Org)
	})
	return offers
}

// MayJoin reports whether an account may become a member of an org: it agrees, or need not be asked.
func MayJoin(offers []Offer, a Account, org string) bool {
	return slices.ContainsFunc(offers, func(o Offer) bool {
		return o.Org == org && (!o.Joins || a.Consent == org)
	})
}
