package attention

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// How soon something must end to need attention.
const (
	EvidenceSoon  = 24 * time.Hour
	ExceptionSoon = 24 * time.Hour
	TokenSoon     = 7 * 24 * time.Hour
	IdentitySoon  = 14 * 24 * time.Hour
	// IdentityEnded is how long an identity that has expired still needs attention.
	IdentityEnded = 14 * 24 * time.Hour
)

// ends is the severity of what ends: that it ends within a day is more urgent.
func ends(until, now ledger.Time) Severity {
	if until.Sub(now) <= 24*time.Hour {
		return Medium
	}
	return Low
}

// WebhookItem returns the item of a webhook with a number of failures since the last
// success. ok is false if it needs no attention.
func WebhookItem(w outbound.Webhook, failures int64) (i Item, ok bool) {
	i = Item{Kind: Webhook, Repo: w.Repo, Subject: cmp.Or(w.Description, w.URL), Object: Object{WebhookObject, w.ID}}
	switch {
	case !w.Active && w.DisabledReason != "":
		i.Severity, i.At, i.Reason = High, w.DisabledAt, "disabled: "+w.DisabledReason
	case !w.Active:
		i.Severity, i.At, i.Reason = Low, cmp.Or(w.DisabledAt, w.CreatedAt), "inactive: an admin turned it off"
	case w.FailingSince != 0 && failures >= outbound.FailuresBeforePause:
		i.Severity, i.At, i.Reason = Medium, w.FailingSince, "paused after "+attempts(failures)
	case w.FailingSince != 0:
		i.Severity, i.At, i.Reason = Medium, w.FailingSince, "failing: "+attempts(failures)
	default:
		return Item{}, false
	}
	return i, true
}

func attempts(n int64) string {
	if n == 1 {
		return "1 failed attempt"
	}
	return fmt.Sprintf("%d failed attempts", n)
}

// IdentityItem returns the item of an identity that expires soon, or has expired.
func IdentityItem(n identity.Identity, now ledger.Time) (i Item, ok bool) {
	if n.RevokedAt != 0 || n.NotAfter == 0 || n.NotAfter > now.Add(IdentitySoon) || n.NotAfter < now.Add(-IdentityEnded) {
		return Item{}, false
	}
	what := "key"
	if n.Kind == identity.RootIdentity {
		what = "root"
	}
	i = Item{Kind: Expiring, Severity: ends(n.NotAfter, now), Subject: n.DN, Reason: what + " expires",
		Until: n.NotAfter, At: n.CreatedAt, Object: Object{IdentityObject, n.ID}}
	if n.NotAfter <= now {
		i.Severity, i.Reason = High, what+" expired"
	}
	return i, true
}

// TokenItem returns the item of a token that expires soon.
func TokenItem(t ledger.Token, now ledger.Time) (i Item, ok bool) {
	if t.RevokedAt != 0 || t.ExpiresAt <= now || t.ExpiresAt > now.Add(TokenSoon) {
		return Item{}, false
	}
	return Item{Kind: Expiring, Severity: ends(t.ExpiresAt, now), Subject: t.Name, Reason: "token expires",
		Until: t.ExpiresAt, At: t.CreatedAt, Object: Object{TokenObject, t.ID}}, true
}

// ExceptionItem returns the item of an exception that counts and ends soon.
func ExceptionItem(x ledger.ExceptionRecord, now ledger.Time) (i Item, ok bool) {
	if !x.Active || x.Until <= now || x.Until > now.Add(ExceptionSoon) {
		return Item{}, false
	}
	return Item{Kind: Expiring, Severity: Medium, Repo: x.Repo, Commit: x.Commit, Identity: x.Identity,
		Reason: fmt.Sprintf("exception for %s ends: %s", x.Requirement, x.Reason), Until: x.Until, At: x.RecordedAt,
		Object: Object{CommitObject, x.Commit}}, true
}

// EvidenceItem returns the item of a commit in flight, or of one that runs, whose standing ends
// soon, because evidence that counts expires.
func EvidenceItem(standing ledger.State, until, now ledger.Time) (i Item, ok bool) {
	if standing != ledger.Attested && standing != ledger.Promotable || until <= now || until > now.Add(EvidenceSoon) {
		return Item{}, false
	}
	return Item{Kind: Expiring, Severity: Medium, Reason: fmt.Sprintf("evidence for %s expires", standing),
		Until: until}, true
}
