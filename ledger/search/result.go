package search

import (
	"cmp"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
)

// A Kind is the type of what was found.
type Kind string

// The kinds, in the order in which groups that match equally well are listed.
const (
	Commit      Kind = "commit"
	Branch      Kind = "branch"
	Repo        Kind = "repo"
	Predicate   Kind = "predicate"
	Signer      Kind = "signer"
	Artifact    Kind = "artifact"
	Attestation Kind = "attestation"
	Event       Kind = "event"
	Identity    Kind = "identity"
	Webhook     Kind = "webhook"
)

// Kinds returns all kinds in their order.
func Kinds() []Kind {
	return []Kind{Commit, Branch, Repo, Predicate, Signer, Artifact, Attestation, Event, Identity, Webhook}
}

// A Hit is a record that matches a query.
type Hit struct {
	Type Kind `json:"type"`
	// Title is what people call it: a subject, a branch, a name or a digest. It is empty for
	// a commit without a message.
	Title string `json:"title"`
	// Detail says more in a few words: who wrote a commit, or the DN of a signer.
	Detail string `json:"detail,omitzero"`
	Repo   string `json:"repo,omitzero"`
	// Commit is the ID of the commit, or of the newest one of a branch.
	Commit string        `json:"commit,omitzero"`
	Branch string        `json:"branch,omitzero"`
	State  *ledger.State `json:"state,omitzero"`
	// ID is the ID of an attestation, an event, an identity or a webhook.
	ID string `json:"id,omitzero"`
	// At is when it was registered, recorded or created, or last used by an attestation.
	At ledger.Time `json:"at,omitzero"`

	// Rank says how well it matches. Order is greater for newer ones of the same type.
	Rank  Rank  `json:"-"`
	Order int64 `json:"-"`
}

// A Result is the response to a search.
type Result struct {
	// Data has the hits in groups by type, the group with the best hit first. Within a group,
	// the best come first, and of those the newest.
	Data []Hit `json:"data"`
	// More names the types of which there are more hits than the limit. A narrower query
	// finds them.
	More []Kind `json:"more"`
	// Examined is the number of commits or attestations that were compared with the query,
	// newest first.
	Examined int `json:"examined"`
	// Stopped says why not everything was compared. It is empty if everything was.
	Stopped string `json:"stopped,omitzero"`
	// NextCursor continues with older commits or attestations. It is empty on the last page.
	NextCursor string `json:"next_cursor,omitzero"`
}

// Ranked returns hits as a Result has them, at most limit of each type, and the types of
// which there were more.
func Ranked(hits []Hit, limit int) (list []Hit, more []Kind) {
	groups := make(map[Kind][]Hit)
	for _, h := range hits {
		groups[h.Type] = append(groups[h.Type], h)
	}
	kinds := slices.DeleteFunc(Kinds(), func(k Kind) bool { return len(groups[k]) == 0 })
	for _, k := range kinds {
		slices.SortStableFunc(groups[k], func(a, b Hit) int {
			return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(b.Order, a.Order), cmp.Compare(a.Title, b.Title))
		})
	}
	slices.SortStableFunc(kinds, func(a, b Kind) int { return cmp.Compare(groups[a][0].Rank, groups[b][0].Rank) })

	list, more = []Hit{}, []Kind{}
	for _, k := range kinds {
		group := groups[k]
		if len(group) > limit {
			group, more = group[:limit], append(more, k)
		}
		list = append(list, group...)
	}
	return list, more
}
