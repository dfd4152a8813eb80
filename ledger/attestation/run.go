package attestation

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/forge"
)

// RunURL is the annotation of the ledger's own statements that says where people see the
// run of CI that made them.
const RunURL = "run_url"

// RunOf returns the address of the run that made a statement of the ledger's own type. It
// is empty if the payload has none, or one that no page may link to. What it leads to is
// what the signer says.
func RunOf(payload []byte) string {
	var st struct {
		PredicateType string `json:"predicateType"`
		Predicate     struct {
			Annotations struct {
				RunURL string       `json:"run_url"`
				Other  otherMembers `json:",embed"`
			} `json:"annotations"`
			Other otherMembers `json:",embed"`
		} `json:"predicate"`
		Other otherMembers `json:",embed"`
	}
	err := ledger.DecodeOpen(payload, &st)
	if err != nil || st.PredicateType != ResultPredicateType {
		return ""
	}
	return forge.Web(st.Predicate.Annotations.RunURL)
}
