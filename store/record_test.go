package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// TestASetAgreesWithTheSameAttestationsOneByOne records random attestations in two
// ledgers: in one of them each alone, in the other as sets of several. Both must
// answer the same and end with the same log, event by event.
func TestASetAgreesWithTheSameAttestationsOneByOne(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		alone, together := newTwin(t), newTwin(t)
		defer alone.Close()
		defer together.Close()
		var said []*recording
		for i := range rapid.IntRange(1, 5).Draw(r, "sets") {
			if i > 0 { // a deployed commit does not block the new one, unless it is rolled back
				for _, w := range []twin{alone, together} {
					_, _, err := w.Register(t.Context(), "acme", "api", numbered(2+i), changesF(fmt.Sprint("branch", i)))
					check(t, err)
				}
			}
			set := drawSet(r, &said)
			for i, a := range alone.recordAlone(t, set) {
				set[i].want = a
			}
			for i, got := range together.recordSet(t, set) {
				if got != set[i].want {
					r.Fatalf("%s in a set of %d is answered %q, alone %q", set[i], len(set), got, set[i].want)
				}
			}
			if got, want := together.account(t), alone.account(t); got != want {
				r.Fatalf("after the set %v the ledger shows\n%s\nafter the same one by one\n%s", set, got, want)
			}
		}
	})
}

// A twin is one of two ledgers that get the same calls.
type twin struct{ *Store }

// newTwin returns a ledger whose radar blocks. Its branches one, two and three
// change the same file, so that the later ones wait for the earlier ones.
func newTwin(t *testing.T) twin {
	t.Helper()
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), Options{Now: func() time.Time { return now }})
	check(t, err)
	_, err = s.CreateOrg(t.Context(), "acme")
	check(t, err)
	_, err = s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"}, "host")
	check(t, err)
	contract, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"test:*"},
		{"state":"DEPLOYED","predicate":"deploy:*"}],"radar":{"block":"LOW"}}`))
	check(t, err)
	_, err = s.SetPolicy(t.Context(), "acme", "api", contract, 0, "host")
	check(t, err)
	check(t, s.Settle(t.Context()))
	for i, branch := range []string{"one", "two", "three"} {
		_, _, err := s.Register(t.Context(), "acme", "api", numbered(i), changesF(branch))
		check(t, err)
	}
	return twin{s}
}

// A drawn is a recording for both ledgers.
type drawn struct {
	recording
	want string
}

func (d drawn) String() string {
	a := d.attestation
	return fmt.Sprintf("%s/%s@%s %s %s by %s", d.org, d.repo, a.Commit[38:], a.Predicate, a.Result.Status, d.identity)
}

// drawSet draws recordings that are next to each other in the queue: new statements,
// repeated ones, and some that are refused.
func drawSet(r *rapid.T, said *[]*recording) []*drawn {
	set := make([]*drawn, rapid.IntRange(1, 12).Draw(r, "attestations"))
	for i := range set {
		if len(*said) > 0 && rapid.IntRange(0, 4).Draw(r, "repeated") == 0 {
			set[i] = &drawn{recording: *rapid.SampledFrom(*said).Draw(r, "statement")}
			continue
		}
		d := &drawn{recording: recording{org: "acme", repo: "api", attestation: drawStatement(r, len(*said))}}
		d.identity = d.attestation.Signer.DN.String()
		d.envelope = pack(d.attestation.Envelope, d.attestation.Payload)
		switch rapid.IntRange(0, 15).Draw(r, "refused") {
		case 0:
			d.repo = "none"
		case 1:
			d.org = "nobody"
		case 2:
			d.keyringVersion = 9
		}
		*said = append(*said, &d.recording)
		set[i] = d
	}
	return set
}

func drawStatement(r *rapid.T, number int) *attestation.Attestation {
	payload := fmt.Append(nil, "statement ", number)
	signer := rapid.SampledFrom([]string{"ci", "ann"}).Draw(r, "signer")
	return &attestation.Attestation{
		Commit: numbered(rapid.IntRange(0, 6).Draw(r, "commit")),
		Predicate: rapid.SampledFrom([]string{
			"test:go", "test:go", "deploy:prod", "deploy:prod", "lint:go",
		}).Draw(r, "predicate"),
		PredicateType: attestation.ResultPredicateType,
		Result: ledger.Result{
			Status: rapid.SampledFrom([]ledger.Status{ledger.Pass, ledger.Pass, ledger.Fail, ledger.Skip}).Draw(r, "status"),
		},
		Signer: identity.Signer{
			DN: identity.DN{CN: signer, OU: "build", O: "acme"}, Identity: "idn_drawn",
			Key: sha256.Sum256([]byte{byte(rapid.IntRange(0, 1).Draw(r, "key"))}),
		},
		Payload: payload, PayloadDigest: sha256.Sum256(payload), Envelope: payload,
	}
}

func (w twin) recordAlone(t *testing.T, set []*drawn) []string {
	answers := make([]string, len(set))
	for i, d := range set {
		rec, created, err := w.Record(t.Context(), d.org, d.repo, d.attestation, d.keyringVersion)
		answers[i] = answerOf(rec, created, err)
	}
	return answers
}

// recordSet writes the recordings as one set, in their order.
func (w twin) recordSet(t *testing.T, set []*drawn) []string {
	items := make([]any, len(set))
	copies := make([]recording, len(set))
	for i, d := range set {
		copies[i] = d.recording
		items[i] = &copies[i]
	}
	check(t, w.db.Write(t.Context(), sqldb.Write{Do: func(c *sqldb.Conn) error {
		return recorder{w.Store}.WriteAll(c, items)
	}}))
	answers := make([]string, len(set))
	for i, c := range copies {
		answers[i] = answerOf(c.rec, c.created, c.err)
	}
	return answers
}

// answerOf formats an answer without its ids.
func answerOf(rec ledger.AttestationRecord, created bool, err error) string {
	if e, ok := errors.AsType[*ledger.Error](err); ok {
		return string(e.Code)
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(created, rec.Commit, rec.Predicate, rec.Result, rec.PayloadDigest)
}

var anyID = regexp.MustCompile(`(evt|att)_[0-9A-Z]{26}`)

// account formats the ledger's log, its commits and its counts. Ids are replaced by
// numbers, in the order in which they appear.
func (w twin) account(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	events, err := w.Events(t.Context(), "acme", EventFilter{Query: Query{Limit: 500}, Types: ledger.EventTypes()})
	check(t, err)
	for _, body := range events.Data {
		fmt.Fprintf(&text, "%s\n", body)
	}
	commits, err := w.Commits(t.Context(), "acme", "api", CommitFilter{Query: Query{Limit: 500}, Standing: true})
	check(t, err)
	for _, c := range commits.Data {
		whole, err := w.Commit(t.Context(), "acme", "api", c.SHA)
		check(t, err)
		fmt.Fprintf(&text, "%+v\n%+v\n%+v\n%+v\n", c, whole.Requirements, whole.Transitions, whole.Attestations)
	}
	repo, err := w.Repo(t.Context(), "acme", "api")
	check(t, err)
	predicates, err := w.Predicates(t.Context(), "acme", Query{Limit: 500})
	check(t, err)
	fmt.Fprintf(&text, "%+v\n%+v\n", repo, predicates.Data)

	numbers := make(map[string]string)
	return anyID.ReplaceAllStringFunc(text.String(), func(id string) string {
		if numbers[id] == "" {
			numbers[id] = fmt.Sprint(id[:4], len(numbers))
		}
		return numbers[id]
	})
}

// A rollback by one signer leaves the commit DEPLOYED if another's deployment
// counts. That applies to the rest of the set, too.
func TestADeploymentThatAnotherSignerKeepsUpStaysInASet(t *testing.T) {
	alone, together := newTwin(t), newTwin(t)
	defer alone.Close()
	defer together.Close()
	for _, w := range []twin{alone, together} {
		w.recordAlone(t, []*drawn{say("ci", 0, "test:go", ledger.Pass), say("ci", 0, "deploy:prod", ledger.Pass)})
	}
	set := []*drawn{say("ann", 0, "deploy:prod", ledger.Skip), say("ci", 0, "test:go", ledger.Fail)}
	alone.recordAlone(t, set)
	together.recordSet(t, set)
	if got, want := together.account(t), alone.account(t); got != want {
		t.Errorf("the ledger shows\n%s\nafter the same one by one\n%s", got, want)
	}
	if c, err := together.Commit(t.Context(), "acme", "api", numbered(0)); err != nil || c.State != ledger.Deployed {
		t.Errorf("the commit is %s, %v", c.State, err)
	}
}

// Repo names ignore the case of ASCII letters only, as in the database: the Kelvin
// sign is not a k.
func TestASetComparesNamesOfReposAsTheDatabaseDoes(t *testing.T) {
	w := newTwin(t)
	defer w.Close()
	_, err := w.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "kit"}, "host")
	check(t, err)
	set := []*drawn{
		say("ci", 0, "test:go", ledger.Pass), say("ci", 1, "test:go", ledger.Pass), say("ci", 2, "test:go", ledger.Pass),
	}
	for i, name := range []string{"\u212ait", "kit", "KIT"} {
		set[i].repo = name
	}
	answers := w.recordSet(t, set)
	if answers[0] != string(ledger.CodeNotFound) ||
		!strings.HasPrefix(answers[1], "true") || !strings.HasPrefix(answers[2], "true") {
		t.Errorf("the answers are %q", answers)
	}
}

// say returns a signer's statement about a commit.
func say(signer string, commit int, predicate string, status ledger.Status) *drawn {
	payload := fmt.Append(nil, signer, commit, predicate, status)
	a := &attestation.Attestation{
		Commit: numbered(commit), Predicate: predicate, PredicateType: attestation.ResultPredicateType,
		Result:  ledger.Result{Status: status},
		Signer:  identity.Signer{DN: identity.DN{CN: signer, OU: "build", O: "acme"}, Identity: "idn_drawn"},
		Payload: payload, PayloadDigest: sha256.Sum256(payload), Envelope: payload,
	}
	return &drawn{recording: recording{
		org: "acme", repo: "api", attestation: a, envelope: pack(payload, nil), identity: a.Signer.DN.String(),
	}}
}

// A rollback in the middle of a set blocks another commit. The rest of the set must
// take that into account.
func TestWhatFollowsARollbackInASetSeesItsOverlaps(t *testing.T) {
	w := newTwin(t)
	defer w.Close()
	for i := 1; i < 3; i++ {
		check(t, w.Withdraw(t.Context(), "acme", "api", numbered(i)))
	}
	w.recordSet(t, []*drawn{say("ci", 0, "test:go", ledger.Pass), say("ci", 0, "deploy:prod", ledger.Pass)})
	_, _, err := w.Register(t.Context(), "acme", "api", numbered(3), changesF("four"))
	check(t, err)

	w.recordSet(t, []*drawn{
		say("ci", 3, "test:go", ledger.Pass),     // PROMOTABLE: what it overlaps with is deployed
		say("ci", 0, "deploy:prod", ledger.Fail), // rolled back, and in its way again
		say("ci", 3, "deploy:prod", ledger.Pass), // so that this does not count
	})
	c, err := w.Commit(t.Context(), "acme", "api", numbered(3))
	check(t, err)
	var path []string
	for _, step := range c.Transitions {
		path = append(path, step.To.String())
	}
	if got, want := strings.Join(path, " "), "VALIDATING ATTESTED PROMOTABLE ATTESTED"; got != want {
		t.Errorf("the commit went through %s, want %s", got, want)
	}
}
