package config

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger/proof/receipt"
)

func TestValidityOfReceipts(t *testing.T) {
	for valid, want := range map[time.Duration]bool{
		-time.Hour: false, 0: false, time.Minute - 1: false, time.Minute: true, 24 * time.Hour: true,
		receipt.MaxValidity: true, receipt.MaxValidity + 1: false,
	} {
		s := Default()
		s.Receipts.ValidFor = duration(valid)
		if why := s.check()["receipts.valid_for"]; (why == "") != want {
			t.Errorf("%s: refused: %q", valid, why)
		}
	}
}
