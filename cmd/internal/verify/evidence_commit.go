package verify

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/cmd/internal/evidence"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/proof/receipt"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// contracts verifies the versions of the contract, and returns the numbers of those that are what
// the log says.
func (x *exportAudit) contracts() (versions []int) {
	logged := make(map[int]*ledger.PolicyEvent)
	for _, e := range eventsOf[ledger.PolicyEvent](x, ledger.EventPolicy) {
		if e.Org == x.manifest.Org && x.names.had(e.Repo) {
			logged[e.Version] = &e
		}
	}
	for _, name := range x.archive.Names() {
		var version int
		if _, err := fmt.Sscanf(name, "policy/v%d.json", &version); err != nil || name != evidence.PolicyFile(version) {
			continue
		}
		versions = append(versions, version)
		x.ofVersions.Add(name, x.contract(version, logged[version]))
	}
	return versions
}

// contract verifies a version of the contract. logged is its event in the log, or nil if it has
// none: the first version comes with the repo, without an event.
func (x *exportAudit) contract(version int, logged *ledger.PolicyEvent) verify.Check {
	var p policy.Policy
	if err := x.archive.JSON(evidence.PolicyFile(version), &p); err != nil {
		return verify.Failure(verify.CheckPolicy, "%v", err)
	}
	digest := p.Contract.Digest()
	if err := verify.Digested(digest, p.Digest); err != nil {
		return verify.Failure(verify.CheckPolicy, "%v", err)
	}
	switch {
	case p.Org != x.manifest.Org || p.Repo != x.manifest.Repo || p.Version != version:
		return verify.Failure(verify.CheckPolicy, "it is version %d of %s/%s", p.Version, p.Org, p.Repo)
	case version == 1 && logged == nil && !p.IsDefault():
		return verify.Skipped(verify.CheckPolicy, "it is not the default one of this release, and in no event")
	case version > 1 && logged == nil:
		return verify.Failure(verify.CheckPolicy,
			"the contract has the digest %s, and the log has no event of this version", digest)
	}
	return verify.Result(verify.CheckPolicy, verify.Contract(digest, p.Rules, logged), "the log has its digest")
}

// commits verifies the commits, given the versions of the contract that there are, and returns the check
// of the page that shows them.
func (x *exportAudit) commits(contracts []int) verify.Check {
	page := evidence.Page{Manifest: x.manifest, Log: evidence.LogPage{Origin: x.newest.Origin, Size: x.newest.Size,
		Key: x.logs[x.newest.Origin].key.String()}}
	states, logged := x.states(), make(map[string]string)
	for _, e := range eventsOf[ledger.CommitEvent](x, ledger.EventCommit) {
		if e.Org == x.manifest.Org && x.names.had(e.Repo) {
			logged[e.Commit] = e.Facts
		}
	}
	attested := make(map[string]bool)
	done := make(map[string]bool)

	for _, sha := range x.manifest.Commits {
		c, err := x.commit(sha, done)
		if err != nil {
			x.ofCommits.Add(sha, verify.Failure(verify.CheckStates, "%v", err))
			continue
		}
		page.Add(c, x.archive.Has)
		x.ofCommits.Add(sha, x.attestations(c, attested), states.check(c), checkKnown(&c.Record, logged[sha]))
		x.receipt(sha)
		if !slices.Contains(contracts, c.Record.PolicyVersion) {
			x.ofVersions.Add(sha, verify.Failure(verify.CheckPolicy,
				"the export does not have version %d of the contract, which it follows", c.Record.PolicyVersion))
		}
	}

	for _, e := range eventsOf[ledger.AttestationEvent](x, ledger.EventAttestation) {
		if !attested[e.Attestation] {
			x.ofCommits.Add(e.ID, verify.Failure(verify.CheckAttestations, "the export does not have %s, whose event it has",
				e.Attestation))
		}
	}
	return x.checkPage(page)
}

// commit reads a commit, which must be another one than those that are done.
func (x *exportAudit) commit(sha string, done map[string]bool) (c evidence.Commit, err error) {
	if !ledger.IsCommit(sha) || done[sha] {
		return c, fmt.Errorf("%s lists the commit %.100q twice, or it is not valid", evidence.ManifestFile, sha)
	}
	done[sha] = true
	if c, err = x.archive.Commit(sha); err != nil {
		return c, err
	}
	if r := c.Record; r.SHA != sha || r.Org != x.manifest.Org || r.Repo != x.manifest.Repo {
		return c, fmt.Errorf("its record is of %s in %s/%s", r.SHA, r.Org, r.Repo)
	}
	if len(c.Record.Attestations)+len(c.Record.Transitions) > 0 {
		return c, errors.New("its record has a list that other files have")
	}
	return c, nil
}

// checkKnown checks that the facts in the record of a commit, such as its author, have the digest
// in the log. logged is this digest, or empty if no event has one.
func checkKnown(record *ledger.Commit, logged string) verify.Check {
	known := facts.Of(record)
	err := verify.Facts(known, logged)
	switch {
	case errors.Is(err, verify.ErrNotLogged):
		return verify.Skipped(verify.CheckFacts,
			"the export has no event of what is known of the commit (register it again, and export it again)")
	case err == nil && logged == "":
		return verify.Passed(verify.CheckFacts, "nothing is known of it but its evidence")
	}
	return verify.Result(verify.CheckFacts, err, "the log has the digest of author, branch, targets and changes")
}

// attestations verifies the attestations of a commit, and adds them to those that the export has.
func (x *exportAudit) attestations(c evidence.Commit, attested map[string]bool) verify.Check {
	for i := range c.Attestations {
		record := &c.Attestations[i]
		attested[record.ID] = true
		if record.Commit != c.Record.SHA || record.Org != x.manifest.Org || record.Repo != x.manifest.Repo {
			x.ofAttestations.Add(record.ID, verify.Failure(verify.CheckRecord, "it is of %s in %s/%s", record.Commit, record.Org,
				record.Repo))
			continue
		}
		x.ofAttestations.Add(record.ID, x.attestation(record)...)
	}
	if n := len(c.Attestations); int64(n) != c.Record.Attested {
		return verify.Failure(verify.CheckAttestations, "the export has %d, and the record of the commit counts %d", n,
			c.Record.Attested)
	}
	return verify.Passed(verify.CheckAttestations, "the export has those that the record of the commit counts")
}

// attestation verifies an attestation.
func (x *exportAudit) attestation(record *ledger.AttestationRecord) []verify.Check {
	body, isProved := x.events[record.Event]
	_, isWrong := x.wrong[record.Event]
	switch {
	case isWrong:
		return []verify.Check{verify.Skipped(verify.CheckRecord, "the event of its recording is wrong")}
	case !isProved:
		return []verify.Check{verify.Failure(verify.CheckRecord, "the export does not prove its event, %.100q", record.Event)}
	}
	envelope, statement, err := x.archive.Envelope(record.Commit, record.ID)
	if err != nil {
		return []verify.Check{verify.Failure(verify.CheckDigests, "%v", err)}
	}
	if name := evidence.EnvelopeFile(record.Commit, record.ID); envelope == nil && !x.pruned[name] {
		return []verify.Check{verify.Failure(verify.CheckSignature, "%s is missing", name)}
	}

	assertion, err := x.archive.Assertion(record.Commit, record.ID)
	if err != nil {
		return []verify.Check{verify.Failure(verify.CheckPasskey, "%v", err)}
	}

	named := *record
	var e about
	if err := ledger.DecodeOpen(body, &e); err == nil { // the check of the body reports what is wrong with it
		x.names.align(&named, e)
	}
	checks, signed := verify.Attestation{
		Envelope: envelope, Event: body, Record: &named, Assertion: assertion, Passkeys: x.passkeys,
		Index: x.numbers[record.Event],
	}.Check(x.keys)
	if signed != nil && statement != nil && !bytes.Equal(signed.Payload, statement) {
		checks = append(checks, verify.Failure(verify.CheckRecord, "its statement.json is not what was signed"))
	}
	return checks
}

// receipt verifies the receipt of a commit, if there is one, as of the time when it was signed.
func (x *exportAudit) receipt(sha string) {
	text, err := x.archive.Receipt(sha)
	if err == nil && text == nil {
		return
	}
	var r verify.Receipt
	if err == nil {
		r, err = verify.ParseReceipt(text)
	}
	if err != nil {
		x.ofCommits.Add(sha, verify.Failure(checkReceipt, "%v", err))
		return
	}

	r.Want = receipt.Want{Org: x.manifest.Org, Repo: x.manifest.Repo, Commit: sha, State: r.Says.State,
		Target: r.Says.Target}
	log, err := x.trust(r.Says.Log.Origin)
	if err != nil {
		x.ofCommits.Add(sha, verify.Failure(checkReceipt, "%v", err))
		return
	}
	for _, c := range r.Verify(log.open, r.Says.CreatedAt) {
		if c.Status == verify.Failed {
			x.ofCommits.Add(sha, verify.Failure(checkReceipt, "%s: %s", c.Name, c.Detail))
			return
		}
	}
	x.ofCommits.Add(sha, verify.Passed(checkReceipt, "a key that the log announces has signed it"))
}

// checkPage checks that the page is the one that follows from the other files.
func (x *exportAudit) checkPage(page evidence.Page) verify.Check {
	if !x.manifest.IsCurrent() {
		return verify.Skipped(checkPage, "%s is of another version of ledgerd, which writes it in other words "+
			"(verify it with ledgerd %s)", evidence.PageFile, x.manifest.CreatedBy)
	}
	text, err := x.archive.File(evidence.PageFile)
	if err != nil {
		return verify.Failure(checkPage, "%v", err)
	}
	want, err := page.Render()
	if err == nil && !bytes.Equal(text, want) {
		err = fmt.Errorf("%s does not show what the other files have", evidence.PageFile)
	}
	return verify.Result(checkPage, err, "%s shows what the other files have", evidence.PageFile)
}
