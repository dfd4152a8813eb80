package policy

import (
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

func (r *ExceptionRule) allowsEnd(x *Exception) bool {
	return x.Until <= x.RecordedAt.Add(r.MaxDuration.Std())
}

// IsOpen reports whether exceptions of anybody count. If so, Derive needs
// Facts.Exceptions.
func (r *ExceptionRule) IsOpen() bool { return len(r.Signers) > 0 }

// inForce returns the exception that decides about the named requirement at the time now:
// the latest one that the rule allows, unless it has ended. It returns nil if there is
// none.
func (r *ExceptionRule) inForce(list []Exception, requirement string, now ledger.Time) *Exception {
	if x := r.latest(list, requirement); x != nil && x.Until > now {
		return x
	}
	return nil
}

// latest returns the latest exception for a requirement that the rule allows, or nil.
func (r *ExceptionRule) latest(list []Exception, requirement string) (latest *Exception) {
	if requirement == "" {
		return nil
	}
	for i := range list {
		x := &list[i]
		if x.Requirement == requirement && (latest == nil || x.Attestation > latest.Attestation) &&
			r.allowsEnd(x) && matchesAny(r.Signers, x.Signer) {
			latest = x
		}
	}
	return latest
}

// WhyInactive returns, for each of the exceptions of one commit, why it is not in force
// now. It is empty for those that are.
func (c *Contract) WhyInactive(list []Exception, now ledger.Time) []string {
	latest := make(map[string]*Exception)
	reasons := make([]string, len(list))
	for i := range list {
		x := &list[i]
		if reasons[i] = c.whyNotAllowed(x); reasons[i] != "" {
			continue
		}
		if latest[x.Requirement] == nil {
			latest[x.Requirement] = c.Exceptions.latest(list, x.Requirement)
		}
		reasons[i] = x.whyOver(latest[x.Requirement], now)
	}
	return reasons
}

// whyNotAllowed returns why an exception counts at no time. It is empty if it is allowed.
func (c *Contract) whyNotAllowed(x *Exception) string {
	named := func(r Requirement) bool { return r.Name == x.Requirement }
	isRollback := !ledger.IsRequirementName(x.Requirement)
	switch rule := &c.Exceptions; {
	case !isRollback && !slices.ContainsFunc(c.Requirements, named):
		return fmt.Sprintf("the policy has no requirement with the name %s", x.Requirement)
	case !rule.IsOpen():
		return "the policy allows nobody's exceptions"
	case !matchesAny(rule.Signers, x.Signer):
		return fmt.Sprintf("the policy allows no exceptions by %s, only by %s", x.Signer, rule.signers())
	case !rule.allowsEnd(x):
		return fmt.Sprintf("too long: the policy allows exceptions of at most %s", rule.MaxDuration)
	}
	return ""
}

// signers names those whose exceptions count.
func (r *ExceptionRule) signers() string {
	var names []string
	for _, p := range r.Signers {
		names = append(names, p.String())
	}
	return text.JoinFirst(names, " or ")
}

// whyOver returns why an exception that is allowed is not in force now, given the latest
// one for its requirement. It is empty if it is.
func (x *Exception) whyOver(latest *Exception, now ledger.Time) string {
	switch {
	case latest.Attestation != x.Attestation && latest.Until <= latest.RecordedAt:
		return fmt.Sprintf("ended by %s (%s)", latest.Attestation, latest.Signer)
	case latest.Attestation != x.Attestation:
		return fmt.Sprintf("replaced by %s (%s)", latest.Attestation, latest.Signer)
	case x.Until <= x.RecordedAt:
		return "it ends the exceptions before it"
	case x.Until <= now:
		return fmt.Sprintf("it ended at %s", x.Until)
	}
	return ""
}
