package store

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/lists"
	"github.com/ledgerd/ledgerd/store/record"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// TestSetEqualsOneByOne records random attestations in two ledgers: in one ledger one by
// one, in the other as sets. Both must return the same results and have the same events.
func TestSetEqualsOneByOne(t *testing.T) {
	t.Parallel()
	template := newTwinFile(t)
	testenv.Check(t, func(r *rapid.T) {
		single, sets := openTwin(t, template), openTwin(t, template)
		defer single.Close()
		defer sets.Close()

		var earlier []*record.Recording
		for i := range rapid.IntRange(1, 5).Draw(r, "sets") {
			if i > 0 { // a deployed commit only blocks the new one if it is rolled back
				for _, w := range []twin{single, sets} {
					_, _, err := w.Register(t.Context(), "acme", "api", numbered(2+i), changesF(fmt.Sprint("branch", i)))
					must.OK(t, err)
				}
			}

			set := drawSet(r, &earlier)
			for i, result := range single.recordEach(t, set) {
				set[i].want = result
			}
			for i, got := range sets.recordSet(t, set) {
				if got != set[i].want {
					r.Fatalf("%s: result in a set of %d is %q, want %q", set[i], len(set), got, set[i].want)
				}
			}
			if got, want := sets.dump(t), single.dump(t); got != want {
				r.Fatalf("after the set %v the ledger is\n%s\nwant\n%s", set, got, want)
			}
		}
	})
}

// A twin is one of two ledgers that record the same attestations.
type twin struct{ *Store }

// newTwin returns a ledger whose radar blocks. Its branches one, two and three change the
// same file, so the earlier ones block the later ones.
func newTwin(t *testing.T) twin {
	t.Helper()
	return openTwin(t, newTwinFile(t))
}

// openTwin returns the ledger in a copy of a file.
func openTwin(t testing.TB, file string) twin {
	t.Helper()
	content := must.Read(t, file)
	path := filepath.Join(t.TempDir(), "ledger.db")
	must.OK(t, os.WriteFile(path, content, 0o600))

	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	s, err := Open(t.Context(), path, Options{Now: func() time.Time { return now }})
	must.OK(t, err)
	return twin{s}
}

// newTwinFile returns the file of a ledger for newTwin.
func newTwinFile(t testing.TB) string {
	t.Helper()
	path := NewFile(t)
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	s, err := Open(t.Context(), path, Options{Now: func() time.Time { return now }})
	must.OK(t, err)
	createAcme(t, s)
	contract, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"test:*"},
		{"state":"DEPLOYED","predicate":"deploy:*"}],"radar":{"block":"LOW"}}`))
	must.OK(t, err)
	_, err = s.SetPolicy(t.Context(), "acme", "api", contract, 0, "host")
	must.OK(t, err)
	must.OK(t, s.Settle(t.Context()))

	for i, branch := range []string{"one", "two", "three"} {
		_, _, err := s.Register(t.Context(), "acme", "api", numbered(i), changesF(branch))
		must.OK(t, err)
	}
	must.OK(t, s.db.Change(t.Context(), "", proveTwin))
	must.OK(t, s.Close()) // moves everything into the file
	return path
}

// proveTwin makes one commit the first parent of two and two that of three, as if their
// objects were known.
func proveTwin(t *txn.Tx) error {
	for i := range 3 {
		_, err := t.Exec("UPDATE commits SET tree = ? WHERE sha = ?", numbered(100+i), numbered(i))
		if err == nil && i > 0 {
			_, err = t.Exec("UPDATE commit_details SET parents = ? WHERE commit_id = (SELECT id FROM commits WHERE sha = ?)",
				[]byte(`["`+numbered(i-1)+`"]`), numbered(i))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A drawn is a recording for both ledgers, with the wanted result.
type drawn struct {
	record.Recording
	want string
}

func (d drawn) String() string {
	a := d.Attestation
	return fmt.Sprintf("%s/%s@%s %s %s by %s", d.Org, d.Repo, a.Commit[38:], a.Predicate, a.Result.Status, d.Identity)
}

// drawSet draws a set of recordings: new statements, repeated statements from earlier, and
// some that are refused. It adds the new ones to earlier.
func drawSet(r *rapid.T, earlier *[]*record.Recording) []*drawn {
	set := make([]*drawn, rapid.IntRange(1, 12).Draw(r, "attestations"))
	for i := range set {
		if len(*earlier) > 0 && rapid.IntRange(0, 4).Draw(r, "repeated") == 0 {
			set[i] = &drawn{Recording: *rapid.SampledFrom(*earlier).Draw(r, "statement")}
			continue
		}

		d := &drawn{Recording: *record.NewRecording("acme", "api", drawStatement(r, len(*earlier)), 0)}
		switch rapid.IntRange(0, 15).Draw(r, "refused") {
		case 0:
			d.Repo = "none"
		case 1:
			d.Org = "nobody"
		case 2:
			d.KeyringVersion = 9
		}
		*earlier = append(*earlier, &d.Recording)
		set[i] = d
	}
	return set
}

func drawStatement(r *rapid.T, number int) *attestation.Attestation {
	payload := fmt.Append(nil, "statement ", number)
	signer := rapid.SampledFrom([]string{"ci", "ann"}).Draw(r, "signer")
	a := &attestation.Attestation{
		Commit: numbered(rapid.IntRange(0, 6).Draw(r, "commit")),
		Outcome: attestation.Outcome{
			Predicate: rapid.SampledFrom([]string{
				"test:go", "test:go", "deploy:prod", "deploy:prod", "lint:go",
			}).Draw(r, "predicate"),
			Result: ledger.Result{
				Status: rapid.SampledFrom([]ledger.Status{ledger.Pass, ledger.Pass, ledger.Fail, ledger.Skip}).Draw(r, "status"),
			},
		},
		PredicateType: attestation.ResultPredicateType,
		Signer: identity.Signer{
			DN: identity.DN{CN: signer, OU: "build", O: "acme"}, Identity: "idn_drawn",
			Key: sha256.Sum256([]byte(rapid.SampledFrom([]string{signer, signer + "2", signer, signer, signer + "2", "shared"}).
				Draw(r, "key"))),
		},
		Payload: payload, PayloadDigest: sha256.Sum256(payload), Envelope: payload,
	}
	if rapid.IntRange(0, 4).Draw(r, "claims") == 0 {
		setClaim(r, a)
	}
	return a
}

// setClaim makes an attestation a claim of a squash. It agrees with what is proven of commits
// one and two, except for the tree of some.
func setClaim(r *rapid.T, a *attestation.Attestation) {
	n := rapid.IntRange(1, 3).Draw(r, "merge")
	setMerge(a, n, rapid.IntRange(4, 8).Draw(r, "source"), rapid.SampledFrom([]int{100 + n, 100 + n, 100}).Draw(r, "tree"))
}

// setMerge makes an attestation a claim that commit n is a squash.
func setMerge(a *attestation.Attestation, n, source, tree int) {
	m := attestation.Merge{
		Kind: attestation.Squashed, Parent: attestation.MergedCommit{SHA: numbered(n - 1)},
		Source: attestation.MergedCommit{SHA: numbered(source)}, Tree: numbered(tree),
	}
	a.Commit, a.PredicateType, a.Merge = numbered(n), attestation.MergePredicateType, &m
	a.Outcome = attestation.Outcome{Predicate: attestation.MergePredicate(m.Kind), Slot: m.Source.SHA,
		Result: ledger.Result{Status: ledger.Pass}}
}

// recordEach records the attestations one by one, and returns the results.
func (w twin) recordEach(t *testing.T, set []*drawn) []string {
	results := make([]string, len(set))
	for i, d := range set {
		rec, created, err := w.Record(t.Context(), d.Org, d.Repo, d.Attestation, d.KeyringVersion)
		results[i] = resultOf(rec, created, err)
	}
	return results
}

// recordSet records the attestations as one set, and returns the results.
func (w twin) recordSet(t testing.TB, set []*drawn) []string {
	items := make([]any, len(set))
	copies := make([]record.Recording, len(set))
	for i, d := range set {
		copies[i] = d.Recording
		items[i] = &copies[i]
	}
	must.OK(t, w.db.Write(t.Context(), sqldb.Write{Do: func(c *sqldb.Conn) error {
		return record.Set{Recorder: w.Recorder}.WriteAll(c, items)
	}}))
	results := make([]string, len(set))
	for i, c := range copies {
		results[i] = resultOf(c.Record, c.Created, c.Err)
	}
	return results
}

// resultOf formats the result of a recording without its ids.
func resultOf(rec ledger.AttestationRecord, created bool, err error) string {
	if e, ok := errors.AsType[*ledger.Error](err); ok {
		return string(e.Code)
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(created, rec.Commit, rec.Predicate, rec.Result, rec.PayloadDigest)
}

var anyID = regexp.MustCompile(`(evt|att)_[0-9A-Z]{26}`)

// dump formats the ledger's events, commits and counts. It replaces ids by numbers, in the
// order of their first use.
func (w twin) dump(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	events, err := w.Events(t.Context(), "acme",
		EventFilter{Query: txn.Query{Limit: 500}, Types: ledger.EventTypes()})
	must.OK(t, err)
	for _, body := range events.Data {
		fmt.Fprintf(&text, "%s\n", body)
	}
	commits, err := w.Commits(t.Context(), "acme", "api", lists.CommitFilter{Query: txn.Query{Limit: 500}, Standing: true})
	must.OK(t, err)
	for _, c := range commits.Data {
		full, err := w.Commit(t.Context(), "acme", "api", c.SHA)
		must.OK(t, err)
		fmt.Fprintf(&text, "%+v\n%+v\n%+v\n%+v\n%+v\n", c, full.Requirements, full.Transitions, full.Attestations,
			full.Merges)
	}
	repo, err := w.Repo(t.Context(), "acme", "api")
	must.OK(t, err)
	predicates, err := w.Predicates(t.Context(), "acme", txn.Query{Limit: 500})
	must.OK(t, err)
	fmt.Fprintf(&text, "%+v\n%+v\n", repo, predicates.Data)

	numbers := make(map[string]string)
	return anyID.ReplaceAllStringFunc(text.String(), func(id string) string {
		if numbers[id] == "" {
			numbers[id] = fmt.Sprint(id[:4], len(numbers))
		}
		return numbers[id]
	})
}

// A rollback by one signer leaves a commit DEPLOYED if the deployment of another signer
// counts. The rest of the set must see that.
func TestSetKeepsDeploymentOfAnotherSigner(t *testing.T) {
	single, sets := newTwin(t), newTwin(t)
	defer single.Close()
	defer sets.Close()
	for _, w := range []twin{single, sets} {
		w.recordEach(t, []*drawn{stated("ci", 0, "test:go", ledger.Pass), stated("ci", 0, "deploy:prod", ledger.Pass)})
	}

	set := []*drawn{stated("ann", 0, "deploy:prod", ledger.Skip), stated("ci", 0, "test:go", ledger.Fail)}
	single.recordEach(t, set)
	sets.recordSet(t, set)
	if got, want := sets.dump(t), single.dump(t); got != want {
		t.Errorf("after the set the ledger is\n%s\nwant\n%s", got, want)
	}
	if c, err := sets.Commit(t.Context(), "acme", "api", numbered(0)); err != nil || c.State != ledger.Deployed {
		t.Errorf("state is %s, %v; want %s", c.State, err, ledger.Deployed)
	}
}

// What a person says under one name does not change which attestation is the latest of another name.
func TestSetKeepsTheLatestOfEachName(t *testing.T) {
	single, sets := newTwin(t), newTwin(t)
	defer single.Close()
	defer sets.Close()
	set := []*drawn{
		stated("ci", 0, "test:go", ledger.Pass), stated("ann", 0, "test:go", ledger.Pass),
		stated("ci", 0, "test:go", ledger.Recorded), // does not replace an outcome
	}
	for _, d := range set { // by one person
		d.Attestation.Signer.Key = [sha256.Size]byte{1}
		d.SetVerified(d.Attestation, 0)
	}
	single.recordEach(t, set)
	sets.recordSet(t, set)

	for _, w := range []twin{single, sets} {
		var status ledger.Status
		must.OK(t, w.db.Change(t.Context(), "", func(t *txn.Tx) error {
			return t.Row(`
SELECT a.status FROM latest l JOIN attestations a ON a.id = l.attestation_id JOIN signers s ON s.id = l.signer_id
WHERE s.cn = 'ci'`).Scan(&status)
		}))
		if status != ledger.Pass {
			t.Errorf("the latest says %s, want %s", status, ledger.Pass)
		}
	}
}

// A name that an administrator has taken from a signer is the signer's again with the next certificate
// that has it, also if another process has taken it.
func TestANameThatWasTakenIsStoredAgain(t *testing.T) {
	file := newTwinFile(t)
	ctx := t.Context()
	s := must.Get(Open(ctx, file, Options{}))(t)
	defer s.Close()
	record := func(commit int) {
		t.Helper()
		d := stated("ci", commit, "test:go", ledger.Pass)
		d.Attestation.Signer.Emails = []string{"x@acme.example"}
		_, version, err := s.Keyring(ctx, "acme")
		must.OK(t, err)
		_, _, err = s.Record(ctx, "acme", "api", d.Attestation, version)
		must.OK(t, err)
	}
	record(0)

	other := must.Get(Open(ctx, file, Options{}))(t)
	public, _, err := ed25519.GenerateKey(nil)
	must.OK(t, err)
	i := must.Get(identity.NewIdentity{Kind: identity.KeyIdentity, PEM: must.PublicPEM(t, public),
		DN: "cn=ci,ou=build,o=acme", Email: "x@acme.example"}.Identity())(t)
	i = must.Get(other.AddIdentity(ctx, "acme", i))(t)
	_, err = other.ChangeIdentity(ctx, "acme", i.ID, identity.Change{Email: new("y@acme.example")})
	must.OK(t, err)
	must.OK(t, other.Close())

	record(1)
	var n int
	must.OK(t, s.db.Change(ctx, "", func(t *txn.Tx) error {
		return t.Row("SELECT count(*) FROM signer_names WHERE name = 'x@acme.example'").Scan(&n)
	}))
	if n != 1 {
		t.Errorf("%d signers have the name, want 1", n)
	}
}

// Like the database, a set only ignores the case of ASCII letters in repo names: the Kelvin
// sign is not a k.
func TestSetComparesRepoNamesLikeTheDatabase(t *testing.T) {
	w := newTwin(t)
	defer w.Close()
	_, err := w.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "kit"}, "host")
	must.OK(t, err)
	set := []*drawn{
		stated("ci", 0, "test:go", ledger.Pass),
		stated("ci", 1, "test:go", ledger.Pass),
		stated("ci", 2, "test:go", ledger.Pass),
	}
	for i, name := range []string{"\u212ait", "kit", "KIT"} {
		set[i].Repo = name
	}
	results := w.recordSet(t, set)
	if results[0] != string(ledger.CodeNotFound) ||
		!strings.HasPrefix(results[1], "true") || !strings.HasPrefix(results[2], "true") {
		t.Errorf("results are %q, want only the first to be refused", results)
	}
}

// A set reads what the contract of each commit needs, if those of others in the set do not need it.
func TestSetOfReposWithDifferentContracts(t *testing.T) {
	w := newTwin(t)
	defer w.Close()
	ctx := t.Context()
	_, err := w.CreateRepo(ctx, "acme", ledger.NewRepo{Name: "web"}, "host")
	must.OK(t, err)
	contract := must.Get(policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"review:*","name":"review",
		"exclude_author":true}],"exceptions":{"signers":["cn=ci"],"max_duration":"24h"}}`)))(t)
	_, err = w.SetPolicy(ctx, "acme", "web", contract, 0, "host")
	must.OK(t, err)
	must.OK(t, w.Settle(ctx))
	web := func(d *drawn) *drawn { d.Repo = "web"; return d }

	_, _, err = w.Register(ctx, "acme", "web", numbered(7), ledger.Registration{
		Author: ledger.Author{Name: "A", Email: "a@home.example"}})
	must.OK(t, err)
	named := web(stated("ann", 9, "test:go", ledger.Pass))
	named.Attestation.Signer.Emails = []string{"a@home.example"}
	excused := web(stated("ci", 8, "exception:review", ledger.Pass))
	excused.Attestation.PredicateType = attestation.ExceptionPredicateType
	excused.Attestation.Exception = &attestation.Exception{Requirement: "review", Reason: "an outage",
		Until: w.Now().Add(time.Hour)}
	w.recordSet(t, []*drawn{named, excused})
	w.recordSet(t, []*drawn{stated("ci", 0, "test:go", ledger.Pass), web(stated("ann", 7, "review:code", ledger.Pass)),
		web(stated("ci", 8, "test:go", ledger.Pass))})

	for commit, want := range map[int]ledger.State{7: ledger.Validating, 8: ledger.Promotable} {
		c, err := w.Commit(ctx, "acme", "web", numbered(commit))
		if err != nil || c.State != want {
			t.Errorf("commit %d is %s, %v; want %s", commit, c.State, err, want)
		}
	}
}

// stated returns a recording of a signer's statement on a commit.
func stated(signer string, commit int, predicate string, status ledger.Status) *drawn {
	payload := fmt.Append(nil, signer, commit, predicate, status)
	a := &attestation.Attestation{
		Outcome: attestation.Outcome{Predicate: predicate, Result: ledger.Result{Status: status}},
		Commit:  numbered(commit), PredicateType: attestation.ResultPredicateType,
		Signer: identity.Signer{
			May: identity.Predicates{"*", "merge:*"}, DN: identity.DN{CN: signer, OU: "build", O: "acme"}, Identity: "idn_drawn",
			Key: sha256.Sum256([]byte(signer))},
		Payload: payload, PayloadDigest: sha256.Sum256(payload), Envelope: payload,
	}
	return &drawn{Recording: *record.NewRecording("acme", "api", a, 0)}
}

// A rollback in the middle of a set blocks another commit. The rest of the set must see
// that.
func TestSetSettlesCommitsAfterRollback(t *testing.T) {
	w := newTwin(t)
	defer w.Close()
	for i := 1; i < 3; i++ {
		must.OK(t, w.Withdraw(t.Context(), "acme", "api", numbered(i)))
	}
	w.recordSet(t, []*drawn{stated("ci", 0, "test:go", ledger.Pass), stated("ci", 0, "deploy:prod", ledger.Pass)})
	_, _, err := w.Register(t.Context(), "acme", "api", numbered(3), changesF("four"))
	must.OK(t, err)

	w.recordSet(t, []*drawn{
		stated("ci", 3, "test:go", ledger.Pass),     // PROMOTABLE: the overlapping commit is deployed
		stated("ci", 0, "deploy:prod", ledger.Fail), // a rollback: that commit blocks again
		stated("ci", 3, "deploy:prod", ledger.Pass), // so this deployment does not count
	})
	c, err := w.Commit(t.Context(), "acme", "api", numbered(3))
	must.OK(t, err)
	var path []string
	for _, step := range c.Transitions {
		path = append(path, step.To.String())
	}
	if got, want := strings.Join(path, " "), "VALIDATING ATTESTED PROMOTABLE ATTESTED"; got != want {
		t.Errorf("states are %s, want %s", got, want)
	}
}
