package evidence

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// Export writes what the ledger has about commits to out, and returns the manifest. If it fails,
// what was written is of no use.
func Export(ctx context.Context, c *client.Client, o Options, out io.Writer) (Manifest, error) {
	e := &exporter{
		Options: o, reader: &reader{c, o.Org, o.Repo}, out: newWriter(out),
		manifest: Manifest{Format: Format, Org: o.Org, Repo: o.Repo, Server: o.Server, CreatedAt: o.Now,
			CreatedBy: o.Version, Page: pageVersion, Commits: []string{}},
		seen: make(map[string]bool), identities: make(map[string]bool), versions: make(map[int]bool),
		keys:        make(map[string]bool),
		transitions: make(map[string][]ledger.Transition), facts: make(map[string]string), earliest: o.Now,
	}
	if e.Progress == nil {
		e.Progress = func(string, int64, int64) {}
	}
	if o.Commit == "" {
		e.manifest.Since, e.manifest.Until = o.Since, cmp.Or(o.Until, o.Now)
	}
	for _, step := range []func(context.Context) error{
		e.names, e.checkLog, e.commits, e.policies, e.search, e.signers, e.passkeys, e.prove, e.finish,
	} {
		if err := step(ctx); err != nil {
			return e.manifest, err
		}
	}
	return e.manifest, nil
}

// names reads the names that the repo had.
func (e *exporter) names(ctx context.Context) error {
	r, err := again(ctx, func() (ledger.Repo, error) { return e.client.Repo(ctx, e.org, e.repo) })
	e.manifest.FormerNames = r.FormerNames
	return err
}

// checkLog checks that the log is signed: otherwise there are no proofs. A new log gets its first
// checkpoint within a second.
func (e *exporter) checkLog(ctx context.Context) error {
	err := e.await(ctx, checkpointTimeout, func() (signed bool, err error) {
		e.log, err = again(ctx, func() (ledger.Log, error) { return e.client.Log(ctx, e.org) })
		return e.log.Size > 0 || e.log.Events == 0, err
	})
	if err == nil && e.log.Size == 0 && e.log.Events > 0 {
		err = fmt.Errorf("the log of %s has no checkpoint, so nothing would be proved (the server signs one if "+
			"base_url is set)", e.org)
	}
	return err
}

// commits exports the commits.
func (e *exporter) commits(ctx context.Context) error {
	list := []string{e.Commit}
	if e.Commit == "" {
		var err error
		if list, err = e.attested(ctx, e.manifest.Since, e.manifest.Until); err != nil {
			return err
		}
	}
	if len(list) == 0 {
		return fmt.Errorf("%s/%s has no attestation between %s and %s", e.org, e.repo, e.manifest.Since, e.manifest.Until)
	}
	for i, sha := range list {
		e.Progress("exporting commits", int64(i), int64(len(list)))
		if err := e.commit(ctx, sha); err != nil {
			return fmt.Errorf("export the commit %.12s: %w", sha, err)
		}
	}
	return nil
}

// commit exports a commit.
func (e *exporter) commit(ctx context.Context, rev string) error {
	c, err := e.reader.commit(ctx, rev)
	if err != nil {
		return err
	}
	sha, at := c.Record.SHA, c.Record.RegisteredAt
	e.manifest.Commits = append(e.manifest.Commits, sha)
	e.versions[c.Record.PolicyVersion], e.transitions[sha] = true, c.Transitions
	e.earliest = min(e.earliest, at)
	known := facts.Of(&c.Record)
	e.facts[sha] = known.Digest()
	// Other files have all of these.
	c.Record.Attestations, c.Record.Transitions = []ledger.AttestationRecord{}, []ledger.Transition{}
	if err := e.out.addJSON(CommitFile(sha, recordFile), at, c.Record); err != nil {
		return err
	}
	if err := e.out.addJSON(CommitFile(sha, transitionsFile), at, c.Transitions); err != nil {
		return err
	}

	for part := range slices.Chunk(c.Attestations, chunk) {
		if err := e.attestations(ctx, part); err != nil {
			return err
		}
	}
	if err := e.receipt(ctx, c.Record); err != nil {
		return fmt.Errorf("get its receipt: %w", err)
	}
	e.page.Add(c, func(name string) bool { return e.out.names[name] })
	return nil
}

// attestations exports attestations with their events.
func (e *exporter) attestations(ctx context.Context, list []ledger.AttestationRecord) error {
	bodies := concurrently(list, func(a ledger.AttestationRecord) (evidenceOf, error) { return e.evidence(ctx, a) })
	for i, a := range list {
		if bodies[i].err != nil {
			return fmt.Errorf("read the attestation %s: %w", a.ID, bodies[i].err)
		}
		if err := e.attestation(a, bodies[i].value); err != nil {
			return err
		}
	}
	return nil
}

func (e *exporter) attestation(a ledger.AttestationRecord, v evidenceOf) error {
	if a.Verification == nil {
		e.identities = nil
	} else if e.identities != nil {
		e.identities[a.Verification.IdentityID] = true
	}
	if err := e.out.addJSON(AttestationFile(a.Commit, a.ID, recordFile), a.RecordedAt, a); err != nil {
		return err
	}
	if err := e.assertion(a, v.assertion); err != nil {
		return err
	}
	name := AttestationFile(a.Commit, a.ID, v.name())
	if v.envelope == nil {
		e.manifest.Pruned = append(e.manifest.Pruned, name)
		return e.event(a.Event, a.RecordedAt, v.event)
	}

	if err := e.out.add(name, a.RecordedAt, v.envelope); err != nil {
		return err
	}
	if v.statement != nil {
		if err := e.out.add(AttestationFile(a.Commit, a.ID, statementFile), a.RecordedAt, v.statement); err != nil {
			return err
		}
	}
	return e.event(a.Event, a.RecordedAt, v.event)
}

// assertion exports the assertion of the passkey that has confirmed an attestation, if one has.
func (e *exporter) assertion(a ledger.AttestationRecord, text []byte) error {
	if text == nil {
		return nil
	}
	parsed, err := passkey.ParseAssertion(text)
	if err != nil {
		return fmt.Errorf("read the attestation %s: %w", a.ID, err)
	}
	e.keys[parsed.Key()] = true
	return e.out.add(AttestationFile(a.Commit, a.ID, assertionFile), a.RecordedAt, text)
}

// receipt exports a receipt of the present state of a commit, if there is one.
func (e *exporter) receipt(ctx context.Context, c ledger.Commit) (err error) {
	if c.State < ledger.Attested || e.noReceipts {
		return nil
	}

	var r ledger.Receipt
	waitErr := e.await(ctx, receiptTimeout, func() (bool, error) {
		r, err = again(ctx, func() (ledger.Receipt, error) {
			return e.client.Receipt(ctx, e.org, e.repo, c.SHA, &c.State, "")
		})
		return client.CodeOf(err) != ledger.CodeNotInCheckpoint, nil
	})
	if err = cmp.Or(waitErr, err); err == nil {
		return e.out.addJSON(CommitFile(c.SHA, receiptFile), c.RegisteredAt, r)
	}

	switch client.CodeOf(err) {
	case ledger.CodeStateNotReached: // evidence has expired since
		return nil
	case ledger.CodeNotInCheckpoint:
		e.noReceipts = true
		return nil
	}
	return err
}

// policies exports the versions of the contract that have been in effect since the first of the
// commits became known, and those that commits name.
func (e *exporter) policies(ctx context.Context) error {
	list, err := all(ctx, maxVersions, func(q client.Query) (ledger.Page[policy.Summary], error) {
		return e.client.PolicyVersionsPage(ctx, e.org, e.repo, q)
	})
	if err != nil {
		return fmt.Errorf("list the versions of the contract: %w", err)
	}
	for _, s := range list { // newest first
		e.versions[s.Version] = true
		if s.CreatedAt <= e.earliest {
			break
		}
	}

	for _, s := range list {
		if !e.versions[s.Version] {
			continue
		}
		p, err := again(ctx, func() (policy.Policy, error) {
			return e.client.PolicyVersion(ctx, e.org, e.repo, s.Version)
		})
		if err != nil {
			return fmt.Errorf("read version %d of the contract: %w", s.Version, err)
		}
		if err := e.out.addJSON(PolicyFile(p.Version), p.CreatedAt, p); err != nil {
			return err
		}
	}
	return nil
}

// maxVersions bounds the versions of a contract that are listed.
const maxVersions = 100_000

// signers exports the identities that have signed, with their events.
func (e *exporter) signers(ctx context.Context) error {
	list, err := all(ctx, verify.MaxKeys, func(q client.Query) (ledger.Page[identity.Identity], error) {
		return e.client.IdentitiesPage(ctx, e.org, q)
	})
	if err != nil {
		return fmt.Errorf("list the identities: %w", err)
	}
	list = slices.DeleteFunc(list, func(i identity.Identity) bool { return e.identities != nil && !e.identities[i.ID] })
	slices.SortFunc(list, func(a, b identity.Identity) int { return cmp.Compare(a.ID, b.ID) })
	if err := e.out.addJSON(IdentitiesFile, e.Now, list); err != nil {
		return err
	}

	for _, i := range list {
		if err := e.logged(ctx, i.ID, i.Event, i.CreatedAt); err != nil {
			return err
		}
	}
	return e.trustedRoots(ctx, list)
}

// logged exports the event about an identity or a trusted root.
func (e *exporter) logged(ctx context.Context, id, event string, at ledger.Time) error {
	if event == "" {
		return nil // the server has not logged it yet
	}
	body, err := e.body(ctx, event)
	if err != nil {
		return fmt.Errorf("read the event of %s: %w", id, err)
	}
	return e.event(event, at, body)
}

// trustedRoots exports the trusted roots that vouch for identities, with their events.
func (e *exporter) trustedRoots(ctx context.Context, identities []identity.Identity) error {
	roots, err := again(ctx, func() ([]identity.TrustedRoot, error) {
		return e.client.TrustedRootDocuments(ctx, e.org, identities, verify.MaxRoots)
	})
	if err != nil {
		return fmt.Errorf("read the trusted roots: %w", err)
	}
	if len(roots) == 0 {
		return nil
	}
	if err := e.out.addJSON(TrustedRootsFile, e.Now, roots); err != nil {
		return err
	}
	for _, r := range roots {
		if err := e.logged(ctx, r.Name, r.Event, r.CreatedAt); err != nil {
			return err
		}
	}
	return nil
}

// passkeys exports the events about the passkeys that have confirmed attestations.
func (e *exporter) passkeys(ctx context.Context) error {
	if len(e.keys) == 0 {
		return nil
	}
	f := client.EventFilter{Types: []ledger.EventType{ledger.EventIdentity}}
	return each(ctx, func(q client.Query) (ledger.Page[json.RawMessage], error) {
		return e.client.EventsPage(ctx, e.org, f, q)
	}, func(body json.RawMessage) (enough bool, err error) {
		var event ledger.IdentityEvent
		if err := ledger.DecodeOpen(body, &event); err != nil {
			return false, fmt.Errorf("parse an event of an identity: %w", err)
		}
		if !e.keys[event.Key] {
			return false, nil
		}
		return false, e.event(event.ID, event.Timestamp, body)
	})
}

// finish exports the page and the manifest.
func (e *exporter) finish(context.Context) error {
	e.page.Manifest = e.manifest
	text, err := e.page.Render()
	if err != nil {
		return err
	}
	if err := e.out.add(PageFile, e.Now, text); err != nil {
		return err
	}
	if err := e.out.addJSON(ManifestFile, e.Now, e.manifest); err != nil {
		return err
	}
	return e.out.close(e.Now)
}
