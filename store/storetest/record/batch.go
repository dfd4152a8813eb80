package record

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// commitsOfBatches is the number of commits that the random writes are about. The author of
// half of them is known.
const commitsOfBatches = 16

// A write holds the arguments of one call of Record.
type write struct {
	org, repo      string
	statement      *attestation.Attestation
	keyringVersion int64
}

// TestBatchesAgreeWithSingleWrites records random statements in two ledgers, in one of
// them concurrently. It compares the results and the contents of the ledgers.
func (s suite) TestBatchesAgreeWithSingleWrites(t *testing.T) {
	testenv.Check(t, func(r *rapid.T) {
		alone, together := s.newFixture(t), s.newFixture(t)
		defer alone.CloseAll()
		defer together.CloseAll()
		for _, fx := range []*fixture{alone, together} {
			fx.NewSigner("cn=ci,ou=build,o=acme") // creates an older version of the keyring
			for i := range commitsOfBatches / 2 {
				fx.RegisterAuthor(sha(i)) // so that reviews count
			}
		}
		_, version, err := alone.Keyring(t.Context(), "acme")
		must.OK(t, err)

		for i, batch := range independent(drawWrites(r, version)) {
			want := make([]string, len(batch))
			for j, w := range batch {
				want[j] = alone.write(w).outcome
			}
			for j, got := range together.writeAll(batch) {
				if got.outcome != want[j] {
					r.Fatalf("batch %d: %+v is %q in a batch of %d, but %q alone", i, batch[j], got.outcome, len(batch), want[j])
				}
			}
		}
		if got, want := together.dump(), alone.dump(); got != want {
			r.Fatalf("after batches the ledger has\n%s\nafter single writes\n%s", got, want)
		}
		if t.Failed() {
			r.FailNow()
		}
	})
}

// drawWrites draws random writes. Some are rejected, and some repeat an earlier one.
func drawWrites(r *rapid.T, keyringVersion int64) (writes []write) {
	n := rapid.IntRange(1, 60).Draw(r, "writes")
	for i := range n {
		if i > 0 && rapid.IntRange(0, 4).Draw(r, "repeat") == 0 {
			writes = append(writes, rapid.SampledFrom(writes).Draw(r, "earlier"))
			continue
		}
		writes = append(writes, write{
			org:  "acme",
			repo: rapid.SampledFrom([]string{"api", "api", "api", "api", "none"}).Draw(r, "repo"),
			statement: statement(i,
				rapid.SampledFrom([]string{
					"cn=ci,ou=build,o=acme", "cn=ann,ou=dev,o=acme", "cn=bob,ou=dev,o=acme",
				}).Draw(r, "signer"),
				sha(rapid.IntRange(0, commitsOfBatches-1).Draw(r, "commit")),
				rapid.SampledFrom([]string{"test:go", "review:code", "deploy:prod", "lint:go"}).Draw(r, "predicate"),
				rapid.SampledFrom([]ledger.Status{ledger.Pass, ledger.Pass, ledger.Fail, ledger.Skip}).Draw(r, "status")),
			keyringVersion: keyringVersion + rapid.SampledFrom([]int64{0, 0, 0, 0, 0, 0, -1, 1}).Draw(r, "keyring version"),
		})
	}
	return writes
}

// independent splits writes into batches. No two writes of a batch are about the same
// commit, nor are two deployments, which may close each other's violations. The writes
// about one commit keep their order, and the deployments too.
func independent(writes []write) (batches [][]write) {
	next := make(map[string]int) // by subject: the batch of its next write
	for _, w := range writes {
		subjects := []string{w.statement.Commit}
		if strings.HasPrefix(w.statement.Predicate, "deploy:") {
			subjects = append(subjects, w.repo+" "+w.statement.Predicate)
		}
		i := 0
		for _, subject := range subjects {
			i = max(i, next[subject])
		}
		if i == len(batches) {
			batches = append(batches, nil)
		}
		batches[i] = append(batches[i], w)
		for _, subject := range subjects {
			next[subject] = i + 1
		}
	}
	return batches
}

// Of 200 concurrent writes, 120 are rejected or repeat a statement. A second ledger
// gets the other 80 one by one.
func (s suite) TestRejectedWritesDoNotAffectTheirBatch(t *testing.T) {
	const ci = "cn=ci,ou=build,o=acme"
	alone, together := s.newFixture(t), s.newFixture(t)
	for _, fx := range []*fixture{alone, together} {
		fx.NewSigner(ci)
	}
	_, version, err := together.Keyring(t.Context(), "acme")
	must.OK(t, err)
	before := func(w write) (rec ledger.AttestationRecord) {
		for _, fx := range []*fixture{alone, together} {
			var created bool
			rec, created, err = fx.Record(t.Context(), w.org, w.repo, w.statement, w.keyringVersion)
			must.OK(t, err)
			if !created {
				t.Fatalf("%+v is a duplicate", w)
			}
		}
		return rec // of together
	}

	isRejected := func(i int) bool { return i%10 >= 6 && i%10 <= 8 }
	writes, want, first := make([]write, 200), make([]string, 200), make(map[int]ledger.AttestationRecord)
	states := make(map[string]ledger.State) // of the commits that are recorded
	for i := range writes {
		w := write{"acme", "api", statement(i, ci, sha(i), "test:go", ledger.Pass), version}
		switch i % 10 {
		case 0:
			want[i], states[sha(i)] = recorded, ledger.Attested
		case 1:
			w.statement = statement(i, ci, sha(i), "test:go", ledger.Fail)
			want[i], states[sha(i)] = recorded, ledger.Validating
		case 2:
			w.statement = statement(i, ci, sha(i), fmt.Sprint("lint:", i), ledger.Pass)
			want[i], states[sha(i)] = recorded, ledger.Validating
		case 3:
			w.statement = statement(i, fmt.Sprintf("cn=ci%d,ou=build,o=acme", i), sha(i), "test:js", ledger.Pass)
			want[i], states[sha(i)] = recorded, ledger.Attested
		case 4, 5:
			before(w)
			newer := w
			newer.statement = statement(1000+i, ci, sha(i), "test:go", ledger.Fail)
			before(newer)
			want[i] = string(ledger.CodeStaleStatement)
		case 6:
			w.repo, want[i] = "none", string(ledger.CodeNotFound)
		case 7:
			w.org, want[i] = "none", string(ledger.CodeNotFound)
		case 8:
			w.keyringVersion, want[i] = version-1, keyringChanged
		case 9:
			first[i], want[i] = before(w), duplicate
		}
		if isRejected(i) { // its commit and predicate must not be stored
			w.statement.Predicate = fmt.Sprint("refused:", i)
		}
		writes[i] = w
	}

	for i, got := range together.writeAll(writes) {
		if got.outcome != want[i] {
			t.Errorf("write %d is %q, want %q", i, got.outcome, want[i])
		}
		switch want[i] {
		case recorded:
			alone.write(writes[i])
		case duplicate:
			if got.record != first[i] {
				t.Errorf("write %d returned %+v, want the first record %+v", i, got.record, first[i])
			}
		}
	}
	for sha, state := range states {
		together.WantState(sha, state)
	}
	for i := range writes {
		if isRejected(i) {
			_, err := together.Commit(t.Context(), "acme", "api", sha(i))
			storetest.WantCode(t, err, ledger.CodeNotFound)
		}
	}
	if got, want := together.dump(), alone.dump(); got != want {
		t.Errorf("with rejected writes the ledger has\n%s\nwithout them\n%s", got, want)
	}
}

// statement returns a verified statement; n makes it unique.
func statement(n int, signer, sha, predicate string, status ledger.Status) *attestation.Attestation {
	dn, err := identity.ParseDN(signer)
	if err != nil {
		panic(err)
	}
	envelope := fmt.Appendf(nil, "statement %d", n)
	return &attestation.Attestation{
		Outcome: attestation.Outcome{Predicate: predicate, Result: ledger.Result{Status: status, DurationMS: 1200}},
		Commit:  sha, PredicateType: attestation.ResultPredicateType,
		Signer:        identity.Signer{DN: dn, Identity: "idn_made", Key: sha256.Sum256([]byte(signer))},
		PayloadDigest: sha256.Sum256(envelope), Envelope: envelope,
	}
}

// A writeResult is the result of a write.
type writeResult struct {
	record  ledger.AttestationRecord
	outcome string // the code of an error, or a constant below
}

const (
	recorded       = "recorded"
	duplicate      = "duplicate"
	keyringChanged = "keyring changed"
)

func (fx *fixture) write(w write) (result writeResult) {
	rec, created, err := fx.Record(fx.T.Context(), w.org, w.repo, w.statement, w.keyringVersion)
	rejected, isRejected := errors.AsType[*ledger.Error](err)
	digest := fmt.Sprintf("sha256:%x", w.statement.PayloadDigest)
	switch {
	case errors.Is(err, store.ErrKeyringChanged):
		result.outcome = keyringChanged
	case isRejected:
		result.outcome = string(rejected.Code)
	case err != nil:
		result.outcome = err.Error()
	case rec.PayloadDigest != digest || rec.Commit != w.statement.Commit:
		result.outcome = "the record of another statement"
	case created:
		result.outcome = recorded
	default:
		result.outcome = duplicate
	}
	result.record = rec
	return result
}

// writeAll runs all writes concurrently and returns their results.
func (fx *fixture) writeAll(writes []write) []writeResult {
	results := make([]writeResult, len(writes))
	var wg sync.WaitGroup
	for i, w := range writes {
		wg.Go(func() { results[i] = fx.write(w) })
	}
	wg.Wait()
	return results
}

// dump returns the contents of the org acme as text, without ids and regardless of the
// order of commits. It checks that events are numbered without gaps.
func (fx *fixture) dump() string {
	fx.T.Helper()
	ctx := fx.T.Context()
	var lines []string
	repo, err := fx.Repo(ctx, "acme", "api")
	must.OK(fx.T, err)
	lines = append(lines, fmt.Sprintf("repo: %d attestations, commits %v, %d open violations", repo.Attestations,
		repo.Commits, repo.OpenViolations))
	violations, err := fx.Violations(ctx, "acme", store.ViolationFilter{Query: store.Query{Limit: 500}})
	must.OK(fx.T, err)
	for _, v := range violations.Data {
		lines = append(lines, fmt.Sprintf("violation of %s by %s: %s %q", v.Commit, v.Identity, v.Status, v.Missing))
	}
	predicates, err := fx.Predicates(ctx, "acme", store.Query{Limit: 500})
	must.OK(fx.T, err)
	for _, p := range predicates.Data {
		lines = append(lines, fmt.Sprintf("predicate %s: %d, last at %s", p.Predicate, p.Count, p.LastRecordedAt))
	}

	events := fx.eventsByCommit()
	commits, err := fx.Commits(ctx, "acme", "api", store.CommitFilter{Query: store.Query{Limit: 500}})
	must.OK(fx.T, err)
	for _, summary := range commits.Data {
		c := fx.ReadCommit(summary.SHA)
		var causes []ledger.CauseType
		for _, step := range c.Transitions {
			causes = append(causes, step.Cause.Type)
		}
		lines = append(lines, fmt.Sprintf(
			"commit %s: %s after %s for %v, %d attestations (%d listed), requirements %+v, events %q",
			c.SHA, c.State, storetest.Path(c), causes, c.Attested, len(c.Attestations), c.Requirements, events[c.SHA]))
		delete(events, c.SHA)
	}
	for sha, list := range events {
		lines = append(lines, fmt.Sprintf("commit %s, not registered: events %q", sha, list))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// eventsByCommit returns the org's events by commit: attestations and transitions, and then
// the events of violations, which attestations of other commits can close.
func (fx *fixture) eventsByCommit() map[string][]string {
	fx.T.Helper()
	tail, err := fx.Tail(fx.T.Context(), "acme")
	must.OK(fx.T, err)
	next, err := tail.Next(fx.T.Context())
	must.OK(fx.T, err)
	list, err := tail.Read(fx.T.Context(), 0, 10_000)
	must.OK(fx.T, err)
	if int64(len(list)) != next {
		fx.T.Errorf("%d events, but the next number is %d", len(list), next)
	}

	events, violations := make(map[string][]string), make(map[string][]string)
	for i, e := range list {
		if e.Seq != int64(i) {
			fx.T.Errorf("event %d has the number %d", i, e.Seq)
		}
		switch e.Type {
		case ledger.EventAttestation:
			var a ledger.AttestationEvent
			must.OK(fx.T, ledger.DecodeOpen(e.Body, &a))
			events[a.Commit] = append(events[a.Commit], fmt.Sprintf("%s by %s: %s", a.Predicate, a.Identity, a.Result.Status))
		case ledger.EventViolation:
			var v ledger.ViolationEvent
			must.OK(fx.T, ledger.DecodeOpen(e.Body, &v))
			closed := ""
			if v.ClosedBy != nil {
				closed = string(v.ClosedBy.Type)
			}
			violations[v.Commit] = append(violations[v.Commit], fmt.Sprintf("%s in %s: %s %q %s", v.Predicate, v.State,
				v.Status, v.Missing, closed))
		case ledger.EventState:
			var s ledger.StateEvent
			must.OK(fx.T, ledger.DecodeOpen(e.Body, &s))
			events[s.Commit] = append(events[s.Commit], fmt.Sprintf("%s>%s", s.From, s.To))
		case ledger.EventStanding:
			var s ledger.StandingEvent
			must.OK(fx.T, ledger.DecodeOpen(e.Body, &s))
			events[s.Commit] = append(events[s.Commit], fmt.Sprintf("standing %s>%s", s.From, s.To))
		case ledger.EventCommit:
			var c ledger.CommitEvent
			must.OK(fx.T, ledger.DecodeOpen(e.Body, &c))
			events[c.Commit] = append(events[c.Commit], "known: "+c.Facts)
		case ledger.EventIdentity, ledger.EventAudit:
		default:
			fx.T.Errorf("event %d is of type %s", i, e.Type)
		}
	}

	for commit, list := range violations {
		events[commit] = append(events[commit], list...)
	}
	return events
}
