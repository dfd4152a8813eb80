package lists

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/delivery"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Ships returns what a deployment of a commit, whose facts were gathered, ships to an environment. It is nil if the
// policy does not ask for that.
func (li *Lists) Ships(rd txn.Reader, s *facts.Commit, environment string) (*ledger.Delivery, error) {
	if environment == "" || !s.Deriver.Contract.DeliversTo(environment) {
		return nil, nil
	}
	repo := s.Deriver.Repo
	base, ran, err := li.ran(rd, Environment{OrgID: repo.OrgID, RepoID: repo.ID, Name: environment})
	if err != nil {
		return nil, err
	}
	d, err := li.shipping.Of(rd, s, delivery.Query{Environment: environment, Base: base.Commit, Ran: ran})
	if err != nil {
		return nil, err
	}
	if base.CommitID != 0 {
		d.Base = &ledger.DeliveryBase{Commit: base.Commit, Attestation: base.Attestation, IsBaseline: base.IsBaseline}
	}
	return d, nil
}
