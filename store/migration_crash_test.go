package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/sqlite"
	"github.com/ledgerd/ledgerd/store/sqlite/migrations"
)

// A tap is a connector to a database file. It calls the function after when an Exec is
// done.
type tap struct {
	driver driver.Driver
	name   string
	after  func()
}

func (d tap) Driver() driver.Driver { return d.driver }

func (d tap) Connect(context.Context) (driver.Conn, error) {
	c, err := d.driver.Open(d.name)
	return tappedConn{c, d.after}, err
}

type tappedConn struct {
	driver.Conn
	after func()
}

func (c tappedConn) Prepare(query string) (driver.Stmt, error) {
	stmt, err := c.Conn.Prepare(query)
	return tappedStmt{stmt, c.after}, err
}

type tappedStmt struct {
	driver.Stmt
	after func()
}

func (s tappedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	result, err := s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
	s.after()
	return result, err
}

// A crash is a copy of the database files as a process leaves them if it crashes during a
// migration. version is the schema version.
type crash struct{ path, version string }

// crashes migrates the database, and returns a crash for each statement that writes to the
// files.
func crashes(t *testing.T, path string) (copies []crash) {
	t.Helper()
	reader := readRaw(t, path)
	defer reader.Close()

	dir, last := t.TempDir(), [sha256.Size]byte{}
	copyFiles := func() {
		var files [][]byte
		for _, suffix := range []string{"", "-wal", "-shm"} {
			text := must.Read(t, path+suffix)
			files = append(files, text)
		}

		// Most statements only change pages in memory.
		sum := sha256.Sum256(bytes.Join(files[:2], nil))
		if sum == last {
			return
		}
		last = sum

		file := filepath.Join(dir, fmt.Sprint(len(copies)), "ledger.db")
		must.OK(t, os.Mkdir(filepath.Dir(file), 0o700))
		for i, suffix := range []string{"", "-wal", "-shm"} {
			must.OK(t, os.WriteFile(file+suffix, files[i], 0o600))
		}
		copies = append(copies, crash{file, texts(t, reader, "PRAGMA user_version")[0]})
	}

	// The page cache is much smaller than the engine's, so pages are written to the file
	// before the commit, as in a large database.
	tapped := sql.OpenDB(tap{readRaw(t, path).Driver(), "file:" + path +
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=foreign_keys(0)" +
		"&_pragma=temp_store(memory)&_pragma=cache_size(1)", copyFiles})
	defer tapped.Close()
	c, err := sqlite.Connect(t.Context(), tapped)
	must.OK(t, err)
	defer c.Close()

	steps := migrations.Steps()
	for version := 6; version <= 8; version++ {
		scripts := must.Get(filepath.Glob(fmt.Sprintf("sqlite/migrations/%04d_*.sql", version)))(t)
		script := must.Read(t, scripts[0])

		must.OK(t, c.Run("BEGIN IMMEDIATE"))
		for statement := range strings.SplitAfterSeq(string(script), ";\n") {
			must.OK(t, c.Run(statement))
		}
		if step := steps[version]; step != nil {
			must.OK(t, step(c))
		}
		must.OK(t, c.Run(fmt.Sprint("PRAGMA user_version = ", version)))
		must.OK(t, c.Run("COMMIT"))
	}
	return copies
}

func TestInterruptedMigration(t *testing.T) {
	testenv.From(t, testenv.Push, "takes seconds")
	path := UnpackV5(t)
	copies := crashes(t, path)
	migrate(t, path, Options{NoCopy: true}) // a no-op
	want := UnpackV5(t)
	migrate(t, want, Options{NoCopy: true})
	wantRows(t, rowsOf(t, path), rowsOf(t, want))

	before := make(map[string]int)
	for i, c := range copies {
		t.Run(fmt.Sprintf("interruption %d at version %s", i, c.version), func(t *testing.T) {
			before[c.version]++
			migrate(t, c.path, Options{NoCopy: true})
			wantIntact(t, c.path, latest)
			wantRows(t, rowsOf(t, c.path), rowsOf(t, want))
		})
	}
	if before["5"] < 10 || before["6"] < 3 || before["7"] == 0 {
		t.Errorf("interruptions by schema version are %v, want more of each", before)
	}
}

// keyOf returns the digest of the key in a PEM block of a key or a certificate.
func keyOf(t *testing.T, text string) string {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	if block.Type == "CERTIFICATE" {
		cert := must.Get(x509.ParseCertificate(block.Bytes))(t)
		return certifiedKey(cert)
	}
	return fmt.Sprintf("%X", sha256.Sum256(block.Bytes))
}

// certifiedKey returns the digest of a certificate's key.
func certifiedKey(cert *x509.Certificate) string {
	return fmt.Sprintf("%X", sha256.Sum256(cert.RawSubjectPublicKeyInfo))
}

// A posted is an attestation in the database of version 5.
type posted struct {
	id        int64
	name      string // attestation_id
	org, repo string
	predicate string
	own       bool   // has ledgerd's own predicate type
	kind      string // kind of the identity
	pem       string
	revoked   bool
	envelope  []byte
}

// postedToV5 reads the attestations of the database before its migration.
func postedToV5(t *testing.T, path string) (list []posted) {
	t.Helper()
	db := readRaw(t, path)
	defer db.Close()
	rows, err := db.Query(`
SELECT a.id, a.attestation_id, o.name, r.name, p.name, a.own_type, i.kind, i.pem, i.revoked_at > 0, e.body
FROM attestations a JOIN repos r ON r.id = a.repo_id JOIN orgs o ON o.id = r.org_id
JOIN predicates p ON p.id = a.predicate_id JOIN identities i ON i.identity_id = a.identity_id
JOIN envelopes e ON e.attestation_id = a.id ORDER BY a.id`)
	must.OK(t, err)
	defer rows.Close()
	for rows.Next() {
		var p posted
		must.OK(t, rows.Scan(&p.id, &p.name, &p.org, &p.repo, &p.predicate, &p.own, &p.kind, &p.pem, &p.revoked, &p.envelope))
		list = append(list, p)
	}
	must.OK(t, rows.Err())
	if len(list) < 30 {
		t.Fatalf("the database has %d attestations, want at least 30", len(list))
	}
	return list
}

func TestMigrationAddsSignatureKeys(t *testing.T) {
	path := UnpackV5(t)
	list := postedToV5(t, path)
	migrate(t, path, Options{NoCopy: true})

	db := readRaw(t, path)
	kinds := make(map[string]int)
	for _, p := range list {
		kinds[p.kind]++
		var want string
		if p.kind == "key" {
			want = keyOf(t, p.pem)
		} else {
			env, err := attestation.ParseEnvelope(p.envelope)
			must.OK(t, err)
			want = certifiedKey(env.Certificates[0])
		}

		var key int64
		var digest, org string
		must.OK(t, db.QueryRow(`
SELECT a.key_id, hex(k.digest), o.name FROM attestations a JOIN keys k ON k.id = a.key_id JOIN orgs o ON o.id = k.org_id
WHERE a.id = ?`, p.id).Scan(&key, &digest, &org))
		if key <= 0 || digest != want || org != p.org {
			t.Errorf("attestation %d: key is %d (%s, org %s), want %s, org %s", p.id, key, digest, org, want, p.org)
		}
	}

	if kinds["key"] == 0 || kinds["root"] == 0 {
		t.Errorf("attestations by kind of identity are %v, want keys and roots", kinds)
	}
	keyless := texts(t, db, "SELECT count(*) FROM attestations WHERE key_id NOT IN (SELECT id FROM keys)")
	if keyless[0] != "0" {
		t.Errorf("%s attestations have no key, want 0", keyless[0])
	}
}

func TestMigrationDistinguishesKeysOfOneSigner(t *testing.T) {
	path := UnpackV5(t)
	migrate(t, path, Options{NoCopy: true})
	db := readRaw(t, path)
	keys := func(dn string) []string {
		return texts(t, db, `
SELECT DISTINCT k.id FROM attestations a JOIN keys k ON k.id = a.key_id
JOIN signers s ON s.id = a.signer_id WHERE s.dn = ?`, dn)
	}
	if got := keys("cn=Mia,ou=web,o=acme"); len(got) != 2 {
		t.Errorf("keys of Mia are %q, want two", got)
	}
	if got := keys("cn=build,ou=ci,o=acme"); len(got) != 1 {
		t.Errorf("keys of build are %q, want one", got)
	}
	// A key that two orgs trust has a row for each.
	a, b := keys("cn=Ann,ou=web,o=acme"), keys("cn=Ann,ou=guests,o=globex")
	if len(a) != 1 || len(b) != 1 || a[0] == b[0] {
		t.Errorf("keys of Ann are %q in acme and %q in globex, want a different one in each", a, b)
	}
}

func TestMigrationFoldsSigners(t *testing.T) {
	path := UnpackV5(t)
	migrate(t, path, Options{NoCopy: true})
	db := readRaw(t, path)
	for _, dn := range texts(t, db, "SELECT dn FROM signers") {
		parsed := must.Get(identity.ParseDN(dn))(t)
		if got := texts(t, db, "SELECT folded FROM signers WHERE dn = ?", dn); !slices.Equal(got, []string{parsed.Fold()}) {
			t.Errorf("%s is folded to %q, want %q", dn, got, parsed.Fold())
		}
	}
	const mia = "cn=mia,ou=web,o=acme"
	for _, dn := range []string{"cn=Mia,ou=web,o=acme", `cn=MIA\ ,ou=Web,o=ACME`} {
		if got := texts(t, db, "SELECT folded FROM signers WHERE dn = ?", dn); !slices.Equal(got, []string{mia}) {
			t.Errorf("%s is folded to %q, want %q", dn, got, mia)
		}
	}
}

func TestMigrationPreservesAttestations(t *testing.T) {
	path := UnpackV5(t)
	list := postedToV5(t, path)
	s := openAgain(t, path, Options{NoCopy: true})

	foreign := 0
	for _, p := range list {
		envelope, err := s.Envelope(t.Context(), p.org, p.repo, p.name)
		must.OK(t, err)
		if !bytes.Equal(envelope, p.envelope) {
			t.Errorf("envelope of attestation %d is\n%s\nwant\n%s", p.id, envelope, p.envelope)
		}

		rec, err := s.Attestation(t.Context(), p.org, p.repo, p.name)
		must.OK(t, err)
		want := p.predicate
		if p.own {
			want = "https://github.com/ledgerd/ledgerd/predicate/result/v1"
		} else {
			foreign++
		}
		if rec.PredicateType != want {
			t.Errorf("attestation %d: predicate type is %s, want %s", p.id, rec.PredicateType, want)
		}
	}

	if foreign == 0 {
		t.Error("no attestation has a foreign predicate type")
	}
}

func TestStatementsAreDeduplicatedAfterMigration(t *testing.T) {
	path := UnpackV5(t)
	list := postedToV5(t, path)
	now := WhenV5(t)
	s := openAgain(t, path, Options{NoCopy: true, Now: func() time.Time { return now }})

	outcomes := make(map[string]int)
	for _, p := range list {
		keyring, version, err := s.Keyring(t.Context(), p.org)
		must.OK(t, err)
		a, err := attestation.Verify(p.envelope, keyring, ledger.TimeOf(now))
		if p.revoked {
			outcomes["revoked"]++
			continue
		}
		must.OK(t, err)

		rec, created, err := s.Record(t.Context(), p.org, p.repo, a, version)
		fault, _ := errors.AsType[*ledger.Error](err)
		switch {
		case created:
			t.Errorf("attestation %d was recorded again, as %s", p.id, rec.ID)
		case err == nil && rec.ID == p.name:
			outcomes["first record"]++
		case fault != nil && fault.Code == ledger.CodeStaleStatement && strings.Contains(fault.Error(), p.name):
			outcomes["stale"]++
		default:
			t.Errorf("attestation %d: got %s, %v", p.id, rec.ID, err)
		}
	}

	if outcomes["first record"] < 20 || outcomes["stale"] == 0 {
		t.Errorf("outcomes are %v, want more of each", outcomes)
	}
	if got := len(texts(t, readRaw(t, path), "SELECT id FROM attestations")); got != len(list) {
		t.Errorf("got %d attestations, want %d", got, len(list))
	}
}
