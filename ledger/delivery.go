package ledger

import (
	"strconv"
	"strings"
)

// MaxGaps is the number of gaps that a Delivery lists.
const MaxGaps = 10

// MaxReviewed is the number of commits that a review can be about.
const MaxReviewed = 500

// MaxDeliveries is the number of environments that Commit.Deliveries has.
const MaxDeliveries = 3

// A Delivery is what a deployment of a commit to an environment ships: the commit, and all that leads to it and to no
// commit that ran there before.
type Delivery struct {
	Environment string `json:"environment"`
	// Base is what runs there. If it is nil, the ledger does not know, and all below the commit is shipped.
	Base *DeliveryBase `json:"base"`
	// ContainsBase reports whether what runs there leads to the commit. If not, it is another branch, or an older commit.
	ContainsBase bool `json:"contains_base"`
	// Commits is how many are shipped. If TooLong, there are more than are looked at, and none is covered.
	Commits int  `json:"commits"`
	TooLong bool `json:"too_long,omitzero"`
	// Standing is what the evidence gives the commit if each requirement about the tree applies that any of them needs.
	Standing State `json:"standing"`
	// Uncovered is how many are not covered by what the policy asks of each change. Gaps lists the first of them.
	Uncovered int   `json:"uncovered"`
	Gaps      []Gap `json:"gaps"`
}

// A DeliveryBase is the commit that runs in an environment.
type DeliveryBase struct {
	Commit string `json:"commit"`
	// Attestation says so: it is of a deployment that counts or, if IsBaseline, of a baseline.
	Attestation string `json:"attestation"`
	IsBaseline  bool   `json:"baseline"`
}

// A Gap is a commit of a delivery that is not covered.
type Gap struct {
	Commit  string   `json:"commit"`
	Subject string   `json:"subject"` // first line of the commit's message
	Author  Author   `json:"author"`
	Reasons []string `json:"reasons"`
	// Unknown reports whether its object is not known.
	Unknown bool `json:"unknown,omitzero"`
}

// Summary says how much of what a deployment ships is not covered, as a clause.
func (d *Delivery) Summary() string {
	what := strconv.Itoa(d.Uncovered) + " commits that are not covered"
	switch {
	case d.Uncovered == 1:
		what = "1 commit that is not covered"
	case d.TooLong:
		what = "more than " + what
	}
	return "a deployment to " + d.Environment + " would ship " + what
}

// Reasons says what is not covered.
func (d *Delivery) Reasons() (list []string) {
	if d.Uncovered == 0 {
		return nil
	}
	switch {
	case d.Base == nil:
		list = append(list, "it is not known what runs in "+d.Environment+", so all is shipped (to say what runs, use "+
			"ledgerd environment baseline "+d.Environment+")")
	case d.TooLong:
		list = append(list, "more is shipped to "+d.Environment+" than is looked at")
	}
	for i, g := range d.Gaps {
		reason := Short(g.Commit) + " is not covered: " + strings.Join(g.Reasons, "; ")
		if i == 0 && d.Uncovered > 1 {
			reason = "it ships " + strconv.Itoa(d.Uncovered) + " commits to " + d.Environment + " that are not covered; " +
				reason
		}
		list = append(list, reason)
	}
	return list
}
