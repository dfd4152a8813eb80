package policy

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// Allows reports whether an exception counts until it ends: its signer and its duration
// are within the rule. One that ends its predecessor has no duration.
func (r *ExceptionRule) Allows(x *Exception) bool {
	return r.allowsEnd(x) && r.isSigner(x.Signer)
}

func (r *ExceptionRule) isSigner(d identity.DN) bool { return matchesAny(r.Signers, d) }

func (r *ExceptionRule) allowsEnd(x *Exception) bool {
	return x.Until <= x.RecordedAt.Add(r.MaxDuration.Std())
}

// IsOpen reports whether exceptions of anybody count. If so, Derive needs
// Facts.Exceptions.
func (r *ExceptionRule) IsOpen() bool { return len(r.Signers) > 0 }

// InForce returns the exception that decides about the named requirement at the time now:
// the latest one that the rule allows, unless it has ended. It returns nil if there is
// none.
func (r *ExceptionRule) InForce(list []Exception, requirement string, now ledger.Time) *Exception {
	return r.inForce(list, requirement, now, r.isSigner)
}

// inForce is like InForce, with a faster isSigner.
func (r *ExceptionRule) inForce(
	list []Exception, requirement string, now ledger.Time, isSigner func(identity.DN) bool,
) *Exception {
	if x := r.latest(list, requirement, isSigner); x != nil && x.Until > now {
		return x
	}
	return nil
}

// latest returns the latest exception for a requirement that the rule allows, or nil.
func (r *ExceptionRule) latest(
	list []Exception, requirement string, isSigner func(identity.DN) bool,
) (latest *Exception) {
	if requirement == "" {
		return nil
	}
	for i := range list {
		x := &list[i]
		if x.Requirement == requirement && (latest == nil || x.Attestation > latest.Attestation) &&
			r.allowsEnd(x) && isSigner(x.Signer) {
			latest = x
		}
	}
	return latest
}
