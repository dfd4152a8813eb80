package check_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/sigstoretest"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// newAcme returns a new ledger with the org acme and its repo api, and the path of its file.
func newAcme(t *testing.T, o store.Options) (s *store.Store, path string) {
	t.Helper()
	ctx, path := t.Context(), storetest.NewFile(t)
	s, err := store.Open(ctx, path, o)
	must.OK(t, err)
	must.OK(t, s.Settle(ctx))
	storetest.CreateAcme(t, s)
	return s, path
}

// newKeylessDatabase returns a database with a keyless attestation, whose trusted root was replaced
// and removed after it was recorded, with two CAs, of which one is in use, and with a root that is
// no CA.
func newKeylessDatabase(t *testing.T) database {
	t.Helper()
	ctx := t.Context()
	s, path := newAcme(t, store.Options{ParseRoot: sigstore.ParseRoot})
	storetest.RecordKeyless(t, s)
	_, err := s.SetTrustedRoot(ctx, "acme", "public-good", nil)
	must.OK(t, err)
	_, err = s.AddIdentity(ctx, "acme", storetest.NewRoot(t, ca.Jobs, s.Now()))
	must.OK(t, err)
	for range 2 { // the second replaces the first
		_, err = s.CreateCA(ctx, "acme", ca.Jobs, storetest.NewRoot(t, ca.Jobs, s.Now()), true)
		must.OK(t, err)
	}
	must.OK(t, s.Settle(ctx))
	must.OK(t, s.Close())
	return database{path: path}
}

// A keyless attestation is checked with the trusted roots of its time, and these with their events.
func TestKeylessAttestations(t *testing.T) {
	d, options := newKeylessDatabase(t), check.Options{ParseRoot: sigstore.ParseRoot}
	d.wantProblem(t, options)
	report, err := check.Run(t.Context(), d.path, options)
	must.OK(t, err)
	if report.Attestations != 1 {
		t.Errorf("checked %d attestations, want 1", report.Attestations)
	}

	for name, test := range map[string]struct{ change, want string }{
		"the document of a trusted root": {`UPDATE trusted_roots
			SET document = CAST(CAST(document AS TEXT) || ' ' AS BLOB) WHERE version = 1`,
			"identity acme version 1 of public-good: its document has the digest "},
		"a trusted root with its digest": {`UPDATE trusted_roots SET document = CAST('x' AS BLOB),
			digest = '2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881' WHERE version = 1`,
			`identity acme version 1 of public-good: key: the ledger lists "2d711642`},
		"a trusted root that seems to be removed": {`UPDATE trusted_roots SET digest = 'x', document = x'' WHERE version = 1`,
			`identity acme version 1 of public-good: action: the ledger lists "revoked", and event evt_`},
		"the event of a trusted root": {`UPDATE trusted_roots SET event_id = 'evt_x' WHERE version = 2`,
			`identity acme version 2 of public-good: the row has the event "evt_x", and the event about it is "evt_`},
		"a deleted trusted root": {`DELETE FROM trusted_roots WHERE version = 1`,
			"identity acme version 1 of public-good: there is the event evt_"},
		"the signature, without its trusted root": {`DELETE FROM trusted_roots WHERE version = 1`,
			"signature acme attestation att_"},
		"a trusted root without an event": {`INSERT INTO trusted_roots (org_id, name, version, digest, document, created_at)
			SELECT org_id, 'other', 1, digest, document, 1 FROM trusted_roots WHERE version = 1`,
			`identity acme version 1 of other: there is no event about it, and the row has ""`},
		"the entry of an identity": {`UPDATE identities
			SET sigstore = replace(sigstore, 'github.com/sigstore/', 'github.com/x/')`,
			`: key: the ledger lists "`},
		"a CA that the org does not have": {`UPDATE cas SET identity_id = 'idn_x' WHERE retired_at = 0`,
			"CA acme CA idn_x: the org has no such identity"},
		"a CA that is no root": {`UPDATE cas SET identity_id = (SELECT identity_id FROM identities WHERE kind = 'sigstore')`,
			": the identity is of the kind sigstore, and must be a root"},
		"a retired CA in use": {`DROP INDEX cas_in_use; UPDATE cas SET retired_at = 0;
			CREATE INDEX cas_in_use ON cas (org_id, purpose) WHERE retired_at = 0; PRAGMA writable_schema = ON;
			UPDATE sqlite_schema SET sql = replace(sql, 'CREATE INDEX', 'CREATE UNIQUE INDEX') WHERE name = 'cas_in_use'`,
			"CA acme: 2 CAs for the purpose \"ci\" are in use, and at most one may be"},
		"a retired CA in use again": {`DELETE FROM cas WHERE retired_at = 0; UPDATE cas SET retired_at = 0`,
			`: the row says "added", and event evt_`},
		"a CA that was retired without an event": {`UPDATE cas SET retired_at = 1`,
			`: the row says "revoked", and event evt_`},
		"a deleted CA": {`DELETE FROM cas WHERE retired_at > 0`,
			": there are events about it, the last is evt_"},
		"a CA without an event": {`UPDATE cas SET identity_id = (SELECT identity_id FROM identities
			WHERE kind = 'root' AND identity_id NOT IN (SELECT identity_id FROM cas)) WHERE retired_at = 0`,
			": there is no event about it"},
	} {
		t.Run(name, func(t *testing.T) {
			d.copy(t, run(test.change)).wantProblem(t, options, test.want)
		})
	}
}

// An interrupted source calls change before one of its reads.
type interrupted struct {
	store.Source
	change func()
	before int64 // the number of the read
	reads  atomic.Int64
}

func (i *interrupted) Read(ctx context.Context, r sqldb.Reader, fn func(*sqldb.Conn) error) error {
	if i.reads.Add(1) == i.before {
		i.change()
	}
	return i.Source.Read(ctx, r, fn)
}

// A trusted root that is set, or a CA that is replaced, at any time of a check is no problem.
func TestSignersChangeDuringACheck(t *testing.T) {
	ctx, path := t.Context(), newKeylessDatabase(t).path
	s := must.Get(store.Open(ctx, path, store.Options{ParseRoot: sigstore.ParseRoot}))(t)
	defer s.Close()
	change := func() {
		for _, document := range [][]byte{sigstoretest.File(t, sigstoretest.PublicGood), nil} {
			_, err := s.SetTrustedRoot(ctx, "acme", "public-good", document)
			must.OK(t, err)
		}
		_, err := s.CreateCA(ctx, "acme", ca.Jobs, storetest.NewRoot(t, ca.Jobs, s.Now()), true)
		must.OK(t, err)
	}

	for n, isDone := int64(1), false; !isDone; n++ {
		db, err := store.OpenSource(ctx, path)
		must.OK(t, err)
		source := &interrupted{Source: db, change: change, before: n}
		report, err := check.RunOn(ctx, source)
		must.OK(t, err)
		for _, problem := range report.Problems {
			t.Errorf("before read %d: %s", n, problem)
		}
		must.OK(t, db.Close())
		isDone = source.reads.Load() < n
	}
}
