// Package attention decides what needs somebody's attention, how urgently, and why.
package attention

import (
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/review"
)

// A Kind says what an Item is about.
type Kind string

// The kinds of items, in the order in which people read them.
const (
	Violation Kind = "violation" // an open violation
	Lapsed    Kind = "lapsed"    // a commit that runs, and would not be deployed now
	Failed    Kind = "failed"    // a commit with a fail or error that blocks a requirement
	Review    Kind = "review"    // a commit in ATTESTED that waits for what PROMOTABLE needs
	Conflict  Kind = "conflict"  // a commit that must rebase, because of overlaps at HIGH
	Webhook   Kind = "webhook"   // a webhook that is failing or inactive
	Expiring  Kind = "expiring"  // evidence, an exception, an identity or a token that ends soon
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Violation, Lapsed, Failed, Review, Conflict, Webhook, Expiring} }

// ParseKind returns the kind with this name.
func ParseKind(name string) (Kind, error) {
	if !slices.Contains(Kinds(), Kind(name)) {
		return "", ledger.Errorf(ledger.CodeInvalidParameter,
			"invalid kind %q: use violation, lapsed, failed, review, conflict, webhook or expiring", name)
	}
	return Kind(name), nil
}

// NeedsAdmin reports whether only admins may see items of the kind: the URL of a webhook is
// often a secret.
func (k Kind) NeedsAdmin() bool { return k == Webhook }

// A Severity says how urgent an item is.
type Severity string

// The severities, the most urgent first.
const (
	Critical Severity = "critical" // something unproven may run
	High     Severity = "high"     // something is broken
	Medium   Severity = "medium"   // something is blocked, or breaks within a day
	Low      Severity = "low"      // somebody's turn
)

func severities() []Severity { return []Severity{Critical, High, Medium, Low} }

// IsBad reports whether something is broken, and not just waiting.
func (s Severity) IsBad() bool { return s == Critical || s == High }

// An ObjectType says what an Object is.
type ObjectType string

// The types of objects.
const (
	CommitObject   ObjectType = "commit"
	WebhookObject  ObjectType = "webhook"
	IdentityObject ObjectType = "identity"
	TokenObject    ObjectType = "token"
)

// An Object is the resource that an item leads to.
type Object struct {
	Type ObjectType `json:"type"`
	ID   string     `json:"id"` // of a commit, its SHA
}

// An Item is something that needs attention.
type Item struct {
	Kind     Kind     `json:"kind"`
	Severity Severity `json:"severity"`
	Object   Object   `json:"object"`
	Repo     string   `json:"repo,omitzero"`
	Commit   string   `json:"commit,omitzero"`
	Branch   string   `json:"branch,omitzero"`
	// Subject says what needs attention: the subject of a commit's message, the URL of a
	// webhook, the DN of an identity, the name of a token.
	Subject string `json:"subject,omitzero"`
	// Reason says why, in a few words.
	Reason    string `json:"reason"`
	Predicate string `json:"predicate,omitzero"`
	Identity  string `json:"identity,omitzero"` // the DN of the signer
	// Review is the review that a commit waits for; nil if it waits for no review.
	Review *ReviewNeed `json:"review,omitzero"`
	// At is since when it needs attention. Of what ends, it is when it was created or
	// recorded; 0 if that is not known.
	At ledger.Time `json:"at,omitzero"`
	// Until is when something ends, or has ended.
	Until ledger.Time `json:"until,omitzero"`
}

// A ReviewNeed is a requirement for reviews that is not met.
type ReviewNeed struct {
	// Predicate begins with review:, and may end with *.
	Predicate string `json:"predicate"`
	// Have and Need count reviewers, as in [ledger.RequirementStatus].
	Have int `json:"have"`
	Need int `json:"need"`
	// Reviewers has the DNs of those who approved, and then of those who requested changes: at most 20.
	Reviewers []string `json:"reviewers"`
}

// maxReviewers limits the reviewers of a ReviewNeed.
const maxReviewers = 20

// reviewNeed returns the first unmet requirement for reviews, or nil.
func reviewNeed(unmet []ledger.RequirementStatus) *ReviewNeed {
	for _, r := range unmet {
		if strings.HasPrefix(r.Predicate, review.Prefix) {
			reviewers := slices.Concat([]string{}, r.SignersCounted, r.FailedBy)
			return &ReviewNeed{r.Predicate, r.Have, r.Need, reviewers[:min(len(reviewers), maxReviewers)]}
		}
	}
	return nil
}

// IsReviewedBy reports whether a signer is among the reviewers that the need names.
func (n *ReviewNeed) IsReviewedBy(dn string) bool {
	return slices.ContainsFunc(n.Reviewers, func(r string) bool { return strings.EqualFold(r, dn) })
}

// A Count is a number of items.
type Count struct {
	Kind  Kind `json:"kind"`
	Count int  `json:"count"`
	// More reports whether there may be more items.
	More bool `json:"more"`
}

// A List is a page of items, the most urgent first.
type List struct {
	Data []Item `json:"data"`
	// Counts has the number of items of each kind that the caller may see, on all pages. A
	// filter by kind does not change it.
	Counts     []Count `json:"counts"`
	NextCursor string  `json:"next_cursor,omitzero"`
}

// A Key orders items: by severity, kind, time and number. The number
// distinguishes items of the same time.
type Key [4]int64

// KeyOf returns the key of an item. The latest item comes first; of what ends, what ends
// first.
func KeyOf(i Item, number int64) Key {
	at := -int64(i.At)
	if i.Until != 0 {
		at = int64(i.Until)
	}
	return Key{
		int64(slices.Index(severities(), i.Severity)), int64(slices.Index(Kinds(), i.Kind)), at, number,
	}
}

// Compare returns a negative number if a comes before b, and a positive one if after.
func (k Key) Compare(other Key) int { return slices.Compare(k[:], other[:]) }
