package verify

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/cmd/internal/evidence"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// Evidence verifies an export of evidence, without a server: with the key of the log that the
// policy has, or that was seen before. It is an error if neither has it.
func Evidence(o Options, archive *evidence.Archive) (verify.Report, error) {
	m, err := archive.Manifest()
	if err != nil {
		return verify.Report{}, err
	}
	x := &exportAudit{Options: o, archive: archive, manifest: m, pruned: make(map[string]bool),
		names: names{org: m.Org, repo: m.Repo, former: m.FormerNames},
		isOf:  make(map[string]bool), logs: make(map[string]trustedLog), events: make(map[string][]byte),
		wrong:   make(map[string]ledger.EventType),
		numbers: make(map[string]int64)}
	for _, sha := range m.Commits {
		x.isOf[sha] = true
	}
	for _, name := range m.Pruned {
		x.pruned[name] = true
	}

	checks, err := x.run()
	if another, ok := errors.AsType[*anotherKeyError](err); ok {
		checks, err = []verify.Check{verify.Failure(verify.CheckConsistency, "%v", another)}, nil
	}
	return verify.NewReport("evidence", x.id(), checks), err
}

// id says what the export is of.
func (x *exportAudit) id() string {
	m := x.manifest
	if len(m.Commits) == 1 {
		return fmt.Sprintf("%s/%s@%.12s", m.Org, m.Repo, m.Commits[0])
	}
	return fmt.Sprintf("%s/%s (%d commits)", m.Org, m.Repo, len(m.Commits))
}

// run makes all checks.
func (x *exportAudit) run() (checks []verify.Check, err error) {
	wrong := x.archive.CheckSums()
	for _, err := range wrong {
		x.ofFiles.Add(x.id(), verify.Failure(checkFiles, "%v", err))
	}
	if len(wrong) == 0 {
		checks = append(checks, verify.Passed(checkFiles, "%d, as %s lists them", len(x.archive.Names())-1,
			evidence.SumsFile))
	}

	for _, name := range x.archive.Strays(x.manifest) {
		x.ofFiles.Add(name, verify.Failure(checkFiles, "it is not a file of an export of these commits"))
	}

	log, err := x.checkpoint()
	if err != nil {
		return nil, err
	}
	if err := x.identities(); err != nil {
		x.ofIdentities.Add(evidence.IdentitiesFile, verify.Failure(verify.CheckIdentity, "%v", err))
	}
	if err := x.readEvents(); err != nil {
		return nil, err
	}
	page := x.commits(x.contracts())
	x.usedSigners()
	checks = slices.Concat(checks, x.ofFiles.Checks("file"), x.ofEvents.Checks("event"),
		x.ofAttestations.Checks("attestation"), x.ofIdentities.Checks("signer"), x.ofCommits.Checks("commit"),
		x.ofVersions.Checks("version"))
	checks = append(checks, page, verify.Unasked(verify.CheckDerivation,
		"an export does not have all that a state follows from "+
			"('ledgerd verify commit --rederive' reads it from the server)"),
		verify.Unasked(verify.CheckComplete, "the log may have events of these commits that the export does not"))
	return append(append(checks, x.names.checks(0)...), log...), nil
}
