// Package commits has the pages of a commit and of its evidence.
package commits

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// Routes returns the routes of the package.
func Routes() []page.Route {
	return []page.Route{
		page.Get(page.ArtifactsPattern, ledger.Read, showArtifacts),
		page.Live(page.ArtifactsPattern+"/{digest}", ledger.Read, showArtifact),

		page.Live(page.CommitPattern, ledger.Read, showCommit),
		page.Get(page.CommitPattern+"/transitions", ledger.Read, showTransitions),
		page.Post(page.CommitPattern+"/review-draft", ledger.Write, draftReview),
		page.Post(page.CommitPattern+"/review", ledger.Write, recordReview),
		page.Get(page.AttestationsPattern, ledger.Read, listAttestations),
		page.Get(page.AttestationPattern, ledger.Read, showAttestation),
		page.Get(page.AttestationPattern+"/envelope", ledger.Read, downloadEnvelope),
		page.Get(page.AttestationPattern+"/assertion", ledger.Read, downloadAssertion),
		page.Get(page.AttestationPattern+"/event", ledger.Read, downloadEvent),
		page.Get(page.AttestationPattern+"/key", ledger.Read, downloadKey),
		page.Get(page.AttestationPattern+"/proof", ledger.Read, downloadProof),
	}
}
