package cmd_test

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/authority"
	"github.com/ledgerd/ledgerd/cmd/internal/doctor"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/internal/tlstest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/transparency"
)

// newSettings returns settings for a ledger with the org acme and the backups of a server that
// is well.
func newSettings(t *testing.T) config.Settings {
	t.Helper()
	s := config.Default()
	s.Database = config.Database(filepath.Join(t.TempDir(), "ledger.db"))
	s.Listen = "127.0.0.1:0"
	db, err := store.Open(t.Context(), string(s.Database), store.Options{})
	must.OK(t, err)
	_, err = db.CreateOrg(t.Context(), "acme")
	must.OK(t, err)
	_, err = db.CreateToken(t.Context(), "acme", ledger.NewToken{Name: "ci", Scope: ledger.Read}, [32]byte{1})
	must.OK(t, errors.Join(err, db.Close()))
	return s
}

// newSeed creates a seed in a folder of keys.
func newSeed(t *testing.T, folder string) {
	t.Helper()
	_, err := transparency.CreateSeed(folder)
	must.OK(t, err)
}

// newCA creates the CA of acme, with its key in the folder of the keys.
func newCA(t *testing.T, s *config.Settings) {
	t.Helper()
	db, err := store.Open(t.Context(), string(s.Database), store.Options{})
	must.OK(t, err)
	keys := func() (*transparency.Keys, error) { return transparency.OpenKeys(s.KeyDir(), s.StateDir()) }
	_, err = authority.New(authority.Config{Store: db, Keys: keys}).Create(t.Context(), "acme", ca.Jobs,
		ca.NewAuthority{May: identity.Predicates{"test:*"}})
	must.OK(t, errors.Join(err, db.Close()))
}

// storeEarlierContract creates repos whose contracts are as a release before the member rules stored
// them: everybody links artifacts in acme/api, and those whom the contract names in acme/web.
func storeEarlierContract(t *testing.T, s *config.Settings) {
	t.Helper()
	db := must.Get(store.Open(t.Context(), string(s.Database), store.Options{}))(t)
	for repo, rest := range map[string]string{"api": "", "web": `,"artifacts":{"signers":["ou=build"]}`} {
		_, err := db.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: repo}, "host")
		must.OK(t, err)
		contract, err := policy.ParseStored([]byte(`{"requirements":[],"targets":"all"` + rest + `}`))
		must.OK(t, err)
		_, err = db.SetPolicy(t.Context(), "acme", repo, contract, 0, "host")
		must.OK(t, err)
	}
	_, err := db.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "new"}, "host")
	must.OK(t, errors.Join(err, db.Close()))
}

// change runs a statement on a file.
func change(t *testing.T, file, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file)
	must.OK(t, err)
	_, err = db.Exec(statement)
	must.OK(t, errors.Join(err, db.Close()))
}

// providersWith returns a function that sets a file with the provider okta, which has one more key.
func providersWith(key string) func(t *testing.T, s *config.Settings) {
	return func(t *testing.T, s *config.Settings) {
		s.BaseURL, s.SignIn.Providers = "http://localhost:8080", filepath.Join(t.TempDir(), "providers.yaml")
		text := "- {name: okta, issuer: https://idp.example, client_id: a, client_secret: b, " + key + "}"
		must.OK(t, os.WriteFile(s.SignIn.Providers, []byte(text), 0o600))
	}
}

// useEarlier replaces the database by one of an earlier release.
func useEarlier(t *testing.T, s *config.Settings) {
	t.Helper()
	unpackSchema(t, 17, string(s.Database))
}

// useSameNames replaces the database by one where signers had one name before an upgrade.
func useSameNames(t *testing.T, s *config.Settings) {
	t.Helper()
	unpackSchema(t, 19, string(s.Database))
	opened := must.Get(store.Open(t.Context(), string(s.Database), store.Options{NoCopy: true}))(t)
	must.OK(t, opened.Close())
}

// unpackSchema writes the database of a schema to a file.
func unpackSchema(t *testing.T, version int, file string) {
	t.Helper()
	packed := must.Get(os.Open(fmt.Sprintf("../store/testdata/schemas/v%d.db.gz", version)))(t)
	defer packed.Close()
	unpacked := must.Get(gzip.NewReader(packed))(t)
	text := must.Get(io.ReadAll(unpacked))(t)
	must.OK(t, os.WriteFile(file, text, 0o600))
}

// certificateFor returns a function that sets a certificate with so much of its time left.
func certificateFor(left time.Duration) func(t *testing.T, s *config.Settings) {
	return func(t *testing.T, s *config.Settings) {
		files := tlstest.NewFiles(t)
		files.Make(t, 1, time.Now().Add(left), nil)
		s.TLS.Cert, s.TLS.Key = files.Cert, files.Key
	}
}

func TestExamine(t *testing.T) {
	taken := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	cases := []struct {
		name  string
		spoil func(t *testing.T, s *config.Settings)
		later time.Duration // is the clock
		check string
		level doctor.Level
		want  string // in the text
		// others reports that there are problems, too, which have other reasons.
		others bool
	}{
		{name: "nothing to say of the schema", check: "schema", level: doctor.OK, want: "of this release"},
		{name: "the clock is right", check: "clock", level: doctor.OK, want: "not behind"},
		{name: "it is a second behind", later: -time.Second, check: "clock", level: doctor.OK, want: "not behind"},
		{name: "it is minutes behind", later: -5 * time.Minute, check: "clock", level: doctor.Warning, want: "half speed"},
		{name: "it is hours behind", later: -3 * time.Hour, check: "clock", level: doctor.Problem,
			want: "if it is right, run 'ledgerd doctor --accept-clock'"},
		{name: "a contract of an earlier release", spoil: storeEarlierContract, check: "policy", level: doctor.Warning,
			want: "any artifact with any commit in acme/api (name the builders"},
		{name: "names that count twice", spoil: useSameNames, check: "policy", level: doctor.Warning,
			want: "same_name: signers with one name count as several people, because they did before an upgrade, in acme ("},
		{name: "no backups", check: "backup", level: doctor.Warning, want: "writes no backups"},
		{name: "backups on the same disk", spoil: func(t *testing.T, s *config.Settings) {
			s.Backup.Folder = t.TempDir()
		}, check: "backup", level: doctor.Warning, want: "on the disk of the database"},
		{name: "no folder of backups", spoil: func(t *testing.T, s *config.Settings) {
			s.Backup.Folder = filepath.Join(t.TempDir(), "missing")
		}, check: "backup", level: doctor.Problem, want: "cannot be written to"},
		{name: "another program's file", spoil: func(t *testing.T, s *config.Settings) {
			must.OK(t, os.WriteFile(string(s.Database), []byte(strings.Repeat("text", 100)), 0o600))
		}, check: "database", level: doctor.Problem, want: "is not a ledgerd database"},
		{name: "a newer schema", spoil: func(t *testing.T, s *config.Settings) {
			change(t, string(s.Database), "PRAGMA user_version = 999")
		}, check: "schema", level: doctor.Problem, want: "too new"},
		{name: "an earlier schema", spoil: func(t *testing.T, s *config.Settings) {
			useEarlier(t, s)
		}, check: "schema", level: doctor.Warning, want: "keeps a copy"},
		{name: "an earlier schema without a copy", spoil: func(t *testing.T, s *config.Settings) {
			useEarlier(t, s)
			s.NoCopy = true
		}, check: "schema", level: doctor.Warning, want: "without a copy"},
		{name: "a trigger", spoil: func(t *testing.T, s *config.Settings) {
			change(t, string(s.Database), "CREATE TRIGGER raise AFTER INSERT ON tokens BEGIN SELECT 1; END")
		}, check: "schema", level: doctor.Problem, want: `trigger "raise" of "tokens" is unknown`},
		{name: "a database that others read", spoil: func(t *testing.T, s *config.Settings) {
			must.OK(t, os.Chmod(string(s.Database), 0o644))
		}, check: "database", level: doctor.Warning, want: "chmod 600"},
		{name: "keys that others read", spoil: func(t *testing.T, s *config.Settings) {
			must.OK(t, os.Mkdir(s.KeyDir(), 0o700))
			must.OK(t, os.Chmod(s.KeyDir(), 0o755))
		}, check: "keys", level: doctor.Problem, want: "chmod 700"},
		{name: "a seed", spoil: func(t *testing.T, s *config.Settings) {
			newSeed(t, s.KeyDir())
		}, check: "keys", level: doctor.OK, want: "derived from the seed in"},
		{name: "a damaged seed", spoil: func(t *testing.T, s *config.Settings) {
			newSeed(t, s.KeyDir())
			must.OK(t, os.WriteFile(filepath.Join(s.KeyDir(), "seed"), []byte("AAAA\n"), 0o600))
		}, check: "keys", level: doctor.Problem, want: "is damaged"},
		{name: "a new state folder", spoil: func(t *testing.T, s *config.Settings) {
			newSeed(t, s.KeyDir())
			s.Log.StateDir = filepath.Join(t.TempDir(), "state")
		}, check: "keys", level: doctor.OK, want: "state does not exist yet: serve creates it"},
		{name: "the seed next to a new state folder", spoil: func(t *testing.T, s *config.Settings) {
			newSeed(t, s.KeyDir())
			s.Log.StateDir = filepath.Join(t.TempDir(), "state")
		}, check: "keys", level: doctor.OK, want: "derived from the seed in"},
		{name: "a state folder without the keys", spoil: func(t *testing.T, s *config.Settings) {
			s.Log.StateDir = filepath.Join(t.TempDir(), "state")
		}, check: "keys", level: doctor.Problem, want: "open log.key_dir"},
		{name: "a state folder that others read", spoil: func(t *testing.T, s *config.Settings) {
			newSeed(t, s.KeyDir())
			s.Log.StateDir = t.TempDir()
			must.OK(t, os.Chmod(s.Log.StateDir, 0o755))
		}, check: "keys", level: doctor.Problem, want: "in log.state_dir"},
		{name: "no seed on a server", spoil: func(t *testing.T, s *config.Settings) {
			s.Log.KeyDir = t.TempDir()
			must.OK(t, os.Chmod(s.Log.KeyDir, 0o700))
			s.Database = "postgres://127.0.0.1:1/ledger"
		}, check: "keys", level: doctor.Warning, want: "has no seed: other servers", others: true},
		{name: "a folder of keys that is read-only", spoil: func(t *testing.T, s *config.Settings) {
			if runtime.GOOS != "linux" {
				t.Skip("needs a folder to which nobody can write")
			}
			s.Log.KeyDir, s.Log.StateDir = "/proc/self/fd", filepath.Join(t.TempDir(), "state")
		}, check: "keys", level: doctor.Problem, want: "has no seed and cannot be written to"},
		{name: "a state folder that is read-only", spoil: func(t *testing.T, s *config.Settings) {
			if runtime.GOOS != "linux" {
				t.Skip("needs a folder to which nobody can write")
			}
			newSeed(t, s.KeyDir())
			s.Log.StateDir = "/proc/self/fd"
		}, check: "keys", level: doctor.Problem, want: "/proc/self/fd/"},
		{name: "the key of a CA", spoil: newCA, check: "keys", level: doctor.OK,
			want: "the keys of the CAs of CI jobs are in"},
		{name: "no key of a CA", spoil: func(t *testing.T, s *config.Settings) {
			newCA(t, s)
			must.OK(t, os.RemoveAll(s.KeyDir()))
		}, check: "keys", level: doctor.Problem, want: "CI jobs of acme get no certificates: read the key of the CA: open"},
		{name: "another key of a CA", spoil: func(t *testing.T, s *config.Settings) {
			newCA(t, s)
			must.OK(t, os.RemoveAll(s.KeyDir()))
			newSeed(t, s.KeyDir())
		}, check: "keys", level: doctor.Problem, want: "is not the key of the CA acme CI CA"},
		{name: "a revoked CA without its key", spoil: func(t *testing.T, s *config.Settings) {
			newCA(t, s)
			must.OK(t, os.RemoveAll(s.KeyDir()))
			change(t, string(s.Database), "UPDATE identities SET revoked_at = 1")
		}, check: "keys", level: doctor.OK, want: "does not exist yet"},
		{name: "the CA of a deleted org without its key", spoil: func(t *testing.T, s *config.Settings) {
			newCA(t, s)
			must.OK(t, os.RemoveAll(s.KeyDir()))
			change(t, string(s.Database), "UPDATE orgs SET deleted_at = 1")
		}, check: "keys", level: doctor.OK, want: "does not exist yet"},
		{name: "an address that is taken", spoil: func(_ *testing.T, s *config.Settings) {
			s.Listen = taken.Addr().String()
		}, check: "address", level: doctor.Problem, want: "in use"},
		{name: "an address of metrics that is taken", spoil: func(_ *testing.T, s *config.Settings) {
			s.Metrics.Listen = taken.Addr().String()
		}, check: "address", level: doctor.Problem, want: "in use"},
		{name: "a socket of systemd", spoil: func(_ *testing.T, s *config.Settings) {
			s.Listen = config.ListenSystemd
		}, check: "address", level: doctor.OK, want: "systemd passes the socket"},
		{name: "a certificate", spoil: certificateFor(365 * 24 * time.Hour), check: "certificate", level: doctor.OK,
			want: "valid until"},
		{name: "a certificate that ends soon", spoil: certificateFor(13 * 24 * time.Hour), check: "certificate",
			level: doctor.Warning, want: "expires at"},
		{name: "a certificate that has expired", spoil: certificateFor(-time.Hour), check: "certificate",
			level: doctor.Problem, want: "expired at"},
		{name: "a certificate of the future", spoil: certificateFor(24 * time.Hour), later: -2 * 365 * 24 * time.Hour,
			check: "certificate", level: doctor.Problem, want: "is the clock right"},
		{name: "a certificate without its key", spoil: func(t *testing.T, s *config.Settings) {
			certificateFor(time.Hour)(t, s)
			must.OK(t, os.Remove(s.TLS.Key))
		}, check: "certificate", level: doctor.Problem, want: "cannot be used"},
		{name: "orgs of a provider", spoil: providersWith("orgs: [acme]"), check: "sign-in", level: doctor.OK,
			want: "the orgs that may use the provider okta exist"},
		{name: "all orgs may use it", spoil: providersWith(`orgs: ["*"]`), check: "sign-in", level: doctor.OK, want: "exist"},
		{name: "orgs that do not exist", spoil: providersWith("orgs: [acme, acme-old, none]"), check: "sign-in",
			level: doctor.Warning, want: "names orgs that do not exist: acme-old, none ("},
		{name: "a provider without orgs", spoil: providersWith(""), check: "sign-in", level: doctor.Warning,
			want: "the provider okta has no orgs in the file of sign_in.providers: only orgs that used it before the upgrade " +
				"may (none)"},
		{name: "a provider that an org has used", spoil: func(t *testing.T, s *config.Settings) {
			providersWith("")(t, s)
			change(t, string(s.Database), "INSERT INTO provider_orgs (issuer, org_id) SELECT 'https://idp.example', id "+
				"FROM orgs")
		}, check: "sign-in", level: doctor.Warning, want: "may (acme)"},
		{name: "a witness policy that is missing", spoil: func(_ *testing.T, s *config.Settings) {
			s.Log.Policy = "missing"
		}, check: "configuration", level: doctor.Problem, want: "missing"},
	}

	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			s := newSettings(t)
			if test.spoil != nil {
				test.spoil(t, &s)
			}
			findings := doctor.Examine(t.Context(), s, time.Now().Add(test.later))
			found := slices.ContainsFunc(findings, func(f doctor.Finding) bool {
				return f.Check == test.check && f.Level == test.level && strings.Contains(f.Text, test.want)
			})
			if !found {
				t.Errorf("%s is not found: %s", test.name, findings)
			}
			if test.level == doctor.Problem || test.others {
				return
			}
			for _, f := range findings {
				if f.Level == doctor.Problem {
					t.Errorf("a problem without a reason: %s", f)
				}
			}
		})
	}
}

// A preview says which statements of an older database this release reads otherwise, and leaves the file as it is.
func TestPreview(t *testing.T) {
	s := newSettings(t)
	unpackSchema(t, 17, string(s.Database))
	before := must.Read(t, string(s.Database))
	findings, err := doctor.Preview(t.Context(), s)
	must.OK(t, err)
	if len(findings) != 2 || findings[0].Level != doctor.OK || findings[0].Text != "all are read as before" ||
		findings[1].Check != "claims" || findings[1].Level != doctor.OK {
		t.Errorf("of statements of our own: %+v", findings)
	}

	change(t, string(s.Database),
		"UPDATE attestations SET slot = 'x' WHERE id = (SELECT min(id) FROM attestations)")
	changed := must.Read(t, string(s.Database))
	findings, err = doctor.Preview(t.Context(), s)
	must.OK(t, err)
	if len(findings) != 2 || findings[0].Level != doctor.Warning || !strings.Contains(findings[0].Text, "for 1 of ") {
		t.Errorf("of a statement with another slot: %+v", findings)
	}
	if bytes.Equal(before, changed) || !bytes.Equal(changed, must.Read(t, string(s.Database))) {
		t.Error("the preview has changed the database")
	}
	files := must.Get(os.ReadDir(filepath.Dir(string(s.Database))))(t)
	if len(files) != 1 {
		t.Errorf("the preview has left %v", files)
	}
}

// TestExamineLeavesNothing looks at the folder of the database after an examination.
func TestExamineLeavesNothing(t *testing.T) {
	s := newSettings(t)
	before := must.Get(os.ReadDir(filepath.Dir(string(s.Database))))(t)
	doctor.Examine(t.Context(), s, time.Now())
	after := must.Get(os.ReadDir(filepath.Dir(string(s.Database))))(t)
	if len(before) != len(after) {
		t.Errorf("the folder has %v, and had %v", after, before)
	}
}

func TestDatabaseOnAServer(t *testing.T) {
	cluster := pgtest.Start(t)
	s := config.Default()
	s.Listen, s.Log.KeyDir = "127.0.0.1:0", t.TempDir()+"/keys"
	s.Database = config.Database(cluster.NewDatabase(t))
	expect := func(level doctor.Level, part string) {
		t.Helper()
		findings := doctor.Examine(t.Context(), s, time.Now())
		if !slices.ContainsFunc(findings, func(f doctor.Finding) bool {
			return f.Check == "database" && f.Level == level && strings.Contains(f.Text, part)
		}) {
			t.Errorf("got %+v, want a finding with %q", findings, part)
		}
	}

	expect(doctor.OK, "is empty: serve creates the tables")
	db, err := store.Open(t.Context(), string(s.Database), store.Options{})
	must.OK(t, errors.Join(err, db.Close()))
	expect(doctor.OK, "is reached")

	must.OK(t, cluster.Exec(t.Context(), string(s.Database), "UPDATE ledger SET schema_version = 999"))
	expect(doctor.Problem, "too new")
	s.Database = config.Database(strings.Replace(cluster.AdminURL(), "/postgres?", "/missing?", 1))
	expect(doctor.Problem, `database "missing" does not exist`)
}
