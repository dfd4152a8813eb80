package store

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// setLarge gives a repo a contract of 200 requirements, for all of which ci may sign.
func (w twin) setLarge(t testing.TB, patterns int) {
	t.Helper()
	var list []string
	for i := range 200 {
		signers := []string{`"cn=ci"`}
		for len(signers) < 21 && patterns > 0 {
			signers = append(signers, fmt.Sprintf(`"cn=*-%d"`, patterns))
			patterns--
		}
		list = append(list, fmt.Sprintf(`{"state":"ATTESTED","predicate":"test:%d*","signers":[%s]}`,
			i%10, strings.Join(signers, ",")))
	}
	contract, err := policy.Parse([]byte(`{"requirements":[` + strings.Join(list, ",") + `]}`))
	check(t, err)
	before, err := w.Policy(t.Context(), "acme", "api", 0)
	check(t, err)
	_, err = w.SetPolicy(t.Context(), "acme", "api", contract, before.Version, "host")
	check(t, err)
}

// write writes recordings as one set, and returns which of them were deferred.
func (w twin) write(t *testing.T, list ...*recording) (deferred []bool) {
	t.Helper()
	var items []any
	for _, r := range list {
		items = append(items, r)
	}
	check(t, w.db.Write(t.Context(), sqldb.Write{Do: func(c *sqldb.Conn) error {
		return recorder{w.Store}.WriteAll(c, items)
	}}))
	for _, r := range list {
		if r.err != nil && !errors.Is(r.err, errDeferred) {
			t.Fatal(r.err)
		}
		deferred = append(deferred, r.err != nil)
	}
	return deferred
}

// One write links few artifacts.
func TestManyLinksAreDeferred(t *testing.T) {
	w := newTwin(t)
	defer w.Close()
	var set []*recording
	for i := range 4 {
		d := stated("ci", i, "build:image", ledger.Pass)
		for n := range 1024 {
			d.attestation.Artifacts.Digests = append(d.attestation.Artifacts.Digests, fmt.Sprintf("sha256:%064x", 10_000*i+n))
		}
		set = append(set, &d.recording)
	}
	if got := w.write(t, set...); fmt.Sprint(got) != "[false false true true]" {
		t.Errorf("of four attestations with 1,024 artifacts, %v are deferred", got)
	}
}

// One write records few attestations of commits with much evidence under large contracts,
// and lets other orgs go first, but not without end.
func TestMuchWorkIsDeferred(t *testing.T) {
	w := newTwin(t)
	defer w.Close()
	var set []*drawn
	for i := range policy.MaxTopics {
		set = append(set, stated("ci", 0, fmt.Sprint("test:", i), ledger.Pass))
	}
	w.wantAll(t, w.recordSet(t, set), "")
	w.setLarge(t, 0)
	_, err := w.CreateOrg(t.Context(), "small")
	check(t, err)
	_, err = w.CreateRepo(t.Context(), "small", ledger.NewRepo{Name: "api"}, "host")
	check(t, err)

	again := func(i int) *recording { return &stated("ci", 0, fmt.Sprint("test:", i), ledger.Fail).recording }
	if got := w.write(t, again(1), again(2), again(3)); fmt.Sprint(got) != "[false true true]" {
		t.Errorf("of three attestations with much work, %v are deferred", got)
	}
	much := again(4)
	for i, want := range []string{"[true false]", "[true false]", "[true false]", "[false false]"} {
		little := &stated("ci", 9, fmt.Sprint("lint:", i), ledger.Pass).recording
		little.org, little.keyringVersion = "small", keyringVersion(2, 0)
		if got := w.write(t, much, little); fmt.Sprint(got) != want {
			t.Errorf("set %d: %v are deferred, want %s", i, got, want)
		}
	}

	// Callers notice nothing of it.
	var wait sync.WaitGroup
	for i := range 20 {
		wait.Go(func() {
			d := stated("ci", 0, fmt.Sprint("test:", 100+i), ledger.Fail)
			if _, created, err := w.Record(t.Context(), d.org, d.repo, d.attestation, 0); err != nil || !created {
				t.Errorf("attestation %d: %t, %v", i, created, err)
			}
		})
	}
	wait.Wait()
	w.wantEvidence(t, policy.MaxTopics)
}

// After a change of a contract with thousands of patterns, each signer of a commit is
// compared with them outside the writer, before the next attestation is recorded.
func TestLargeContractIsPrepared(t *testing.T) {
	w := newTwin(t)
	defer w.Close()
	for i := range 20 {
		w.wantAll(t, w.recordEach(t, []*drawn{stated(fmt.Sprint("p-", i), 0, "test:0", ledger.Pass)}), "")
	}
	w.setLarge(t, 3000)

	d := stated("ci", 0, "test:1", ledger.Pass)
	if _, ok := errors.AsType[*unprepared](w.try(t, &d.recording)); !ok {
		t.Errorf("the write is not refused: %v", d.err)
	}
	_, created, err := w.Record(t.Context(), d.org, d.repo, d.attestation, 0)
	if err != nil || !created {
		t.Fatalf("recorded: %t, %v", created, err)
	}
	again := stated("ci", 0, "test:1", ledger.Fail)
	if err := w.try(t, &again.recording); err != nil {
		t.Errorf("the second write is refused: %v", err)
	}

	// The states of other commits are derived in the background, the same way.
	w.setLarge(t, 3001)
	check(t, w.Settle(t.Context()))
	c, err := w.Commit(t.Context(), "acme", "api", numbered(0))
	if err != nil || c.PolicyVersion != 4 || c.Requirements[1].Met {
		t.Errorf("%v: policy %d, %+v", err, c.PolicyVersion, c.Requirements[:2])
	}
}

// try writes a recording once, and returns why it was refused.
func (w twin) try(t *testing.T, r *recording) error {
	t.Helper()
	check(t, w.db.Write(t.Context(), sqldb.Write{Do: func(c *sqldb.Conn) error {
		return recorder{w.Store}.WriteAll(c, []any{r})
	}}))
	return r.err
}
