package cmd_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
)

// A victim is a real server on a real database, which tests kill.
type victim struct {
	t        *testing.T
	database string          // a file, or the URL of a PostgreSQL database
	env      []string        // variables for the database
	flags    []string        // additional flags of serve
	log      *os.File        // receives its log; nil to discard it
	prepare  func(*exec.Cmd) // if set, is called before the server starts
	server   *exec.Cmd
	url      string
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	folder := t.TempDir()
	database, err := pgtest.NewLocation(t.Cleanup, folder, "ledger.db")
	must.OK(t, err)
	keys, err := pgtest.NewKeys(folder)
	must.OK(t, err)
	v := &victim{t: t, database: database, env: append(os.Environ(), keys...)}
	v.ledgerd("org", "create", "acme")
	v.ledgerd("repo", "create", "acme/api")
	return v
}

// ledgerd runs a command on the database and returns its output.
func (v *victim) ledgerd(args ...string) string {
	v.t.Helper()
	command := exec.Command("ledgerd", append(args, "--database", v.database)...)
	command.Env, command.Stderr = v.env, os.Stderr
	out, err := command.Output()
	if err != nil {
		v.t.Fatalf("ledgerd %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

func (v *victim) start() {
	v.t.Helper()
	v.url = "http://" + v.listen("127.0.0.1:0")
}

// listen starts the server and returns its address.
func (v *victim) listen(address string) string {
	v.t.Helper()
	v.server = exec.Command(
		"ledgerd", append([]string{"serve", "--listen", address, "--database", v.database}, v.flags...)...)
	v.server.Env = v.env
	if v.log != nil {
		v.server.Stderr = v.log
	}
	if v.prepare != nil {
		v.prepare(v.server)
	}

	stdout, err := v.server.StdoutPipe()
	must.OK(v.t, err)
	must.OK(v.t, v.server.Start())
	v.t.Cleanup(v.kill)
	line := make([]byte, 4096)
	n, err := stdout.Read(line)
	must.OK(v.t, err)
	_, url, ok := strings.Cut(string(line[:n]), "http://")
	if !ok {
		v.t.Fatalf("serve printed %q, want its address", line[:n])
	}
	go io.Copy(io.Discard, stdout) // ends with the process
	return strings.TrimRight(strings.Fields(url)[0], "/")
}

// kill kills the server without a chance to clean up, like a power failure.
func (v *victim) kill() {
	v.server.Process.Kill()
	v.server.Wait()
}

func (v *victim) open() *store.Store {
	v.t.Helper()
	return must.Get(store.Open(v.t.Context(), v.database, store.Options{}))(v.t)
}

// scan reads the row of a query.
func (v *victim) scan(query string, row ...any) {
	v.t.Helper()
	if pgtest.OnPostgreSQL() {
		c, err := pgx.Connect(v.t.Context(), v.database)
		must.OK(v.t, err)
		defer c.Close(v.t.Context())
		must.OK(v.t, c.QueryRow(v.t.Context(), query).Scan(row...))
		return
	}
	db := must.Get(sql.Open("sqlite", v.database+"?_pragma=busy_timeout(5000)"))(v.t)
	defer db.Close()
	must.OK(v.t, db.QueryRow(query).Scan(row...))
}

// checkIntegrity checks that the numbers of the events have no gaps. On SQLite, it also runs the
// integrity check of the file.
func (v *victim) checkIntegrity() {
	v.t.Helper()
	if !pgtest.OnPostgreSQL() {
		var verdict string
		v.scan("PRAGMA integrity_check", &verdict)
		if verdict != "ok" {
			v.t.Fatalf("integrity_check: %s", verdict)
		}
	}
	var events, first, last, next int64
	v.scan("SELECT count(*), coalesce(min(seq), 0), coalesce(max(seq), -1) FROM events", &events, &first, &last)
	v.scan("SELECT next_seq FROM orgs", &next)
	if first != 0 || last != events-1 || next != events {
		v.t.Fatalf("%d events have the numbers %d to %d, and the next number is %d", events, first, last, next)
	}
}

// TestKillLosesNoAttestation checks that attestations survive a kill if the server has
// responded with 201.
func TestKillLosesNoAttestation(t *testing.T) {
	t.Parallel()
	rounds, writers := testenv.Pick(3, 5, 20), 64
	v := newVictim(t)
	keys := make([]ed25519.PrivateKey, 4)
	for i := range keys {
		keys[i] = v.addSigner(fmt.Sprintf("cn=signer-%d,ou=build,o=acme", i))
	}
	token := v.ledgerd("token", "create", "--org", "acme", "--name", "ci", "--scope", "write")
	v.registerAuthors()

	var mu sync.Mutex
	var confirmed []string
	for round := range rounds {
		v.start()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for writer := range writers {
			wg.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					id, err := v.attest(token, keys[writer%len(keys)], fmt.Sprint(round, writer, n))
					if err != nil {
						return // the server is dead
					}
					mu.Lock()
					confirmed = append(confirmed, id)
					mu.Unlock()
				}
			})
		}
		must.Wait(t, "the server to be under load", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(confirmed) >= (round+1)*writers
		})
		time.Sleep(time.Duration(rand.IntN(250)) * time.Millisecond)
		v.kill()
		cancel()
		wg.Wait()
		v.checkIntegrity()
	}
	s := v.open()
	defer s.Close()
	recorded := replay(t, s)
	for _, id := range confirmed {
		if !recorded[id] {
			t.Errorf("%s got a 201 but is not recorded", id)
		}
	}
	t.Logf("%d kills, %d attestations confirmed, %d recorded", rounds, len(confirmed), len(recorded))
}

// registerAuthors registers the commits that attest is about, so that reviews count.
func (v *victim) registerAuthors() {
	v.t.Helper()
	s := v.open()
	defer s.Close()
	for n := range attestedCommits {
		_, _, err := s.Register(v.t.Context(), "acme", "api", fmt.Sprintf("%040x", n),
			ledger.Registration{Author: ledger.Author{Name: "Dora"}})
		must.OK(v.t, err)
	}
}

func (v *victim) addSigner(dn string) ed25519.PrivateKey {
	public, private, err := ed25519.GenerateKey(nil)
	must.OK(v.t, err)
	file := filepath.Join(v.t.TempDir(), "key.pub")
	must.OK(v.t, os.WriteFile(file, []byte(must.PublicPEM(v.t, public)), 0o600))
	v.ledgerd("identity", "add", "--org", "acme", "--key", file, "--dn", dn)
	return private
}

// attestedCommits is the number of commits that attest is about.
const attestedCommits = 50

// attest posts a new statement about one of the commits of acme/api.
func (v *victim) attest(token string, key ed25519.PrivateKey, note string) (id string, err error) {
	return v.attestTo("api", token, key, note)
}

func (v *victim) attestTo(repo, token string, key ed25519.PrivateKey, note string) (id string, err error) {
	sha := fmt.Sprintf("%040x", rand.IntN(attestedCommits))
	payload, err := attestation.NewStatement("git+https://git.example/acme/api", sha,
		attestation.ResultPredicate{
			Predicate:   []string{"test:go", "review:code", "deploy:prod"}[rand.IntN(3)],
			Result:      ledger.Result{Status: []ledger.Status{ledger.Pass, ledger.Pass, ledger.Fail}[rand.IntN(3)]},
			Annotations: map[string]string{"note": note},
		})
	if err != nil {
		return "", err
	}
	envelope, err := attestation.SignDSSE(key, payload)
	if err != nil {
		return "", err
	}

	request, err := http.NewRequest(http.MethodPost, v.url+"/v1/orgs/acme/repos/"+repo+"/attestations",
		bytes.NewReader(envelope))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusCreated {
		v.t.Errorf("%s: %s", response.Status, body)
	}
	var record ledger.AttestationRecord
	return record.ID, json.Unmarshal(body, &record)
}

// An anyEvent holds the members of events that the tests use.
type anyEvent struct {
	Type        ledger.EventType `json:"type"`
	Commit      string           `json:"commit"`
	Predicate   string           `json:"predicate"`
	Identity    string           `json:"identity"`
	Result      ledger.Result    `json:"result"`
	Timestamp   ledger.Time      `json:"timestamp"`
	Attestation string           `json:"attestation"`
	From        ledger.State     `json:"from"`
	To          ledger.State     `json:"to"`
}

// replay derives the states of all commits again from the org's events. It checks that
// the ledger recorded exactly these transitions, and that the commits have the resulting
// states. It returns the ids of the attestations.
func replay(t *testing.T, s *store.Store) map[string]bool {
	t.Helper()
	contract := policy.Default()
	facts, states, pending := make(map[string]*policy.Facts), make(map[string]ledger.State), []ledger.State{}
	attestations := make(map[string]bool)
	for e := range events(t, s) {
		if e.Type == ledger.EventViolation {
			continue
		}
		if e.Type == ledger.EventState {
			if len(pending) == 0 || e.From != states[e.Commit] || e.To != pending[0] {
				t.Fatalf("commit %s moved from %s to %s, want from %s to %v", e.Commit, e.From, e.To, states[e.Commit],
					pending)
			}
			states[e.Commit], pending = e.To, pending[1:]
			continue
		}

		if len(pending) > 0 {
			t.Fatalf("missing transitions to %v before %s", pending, e.Attestation)
		}
		attestations[e.Attestation] = true
		f := facts[e.Commit]
		if f == nil {
			c, err := s.Commit(t.Context(), "acme", "api", e.Commit)
			must.OK(t, err)
			f = &policy.Facts{Authors: []ledger.Author{c.Author}, Targets: []string{"main"}, Target: "main"}
			facts[e.Commit] = f
		}

		f.Deployed = false
		promotable := contract.Derive(*f, e.Timestamp).State >= ledger.Promotable
		evidence := evidenceOf(t, e, promotable)
		f.Evidence = slices.DeleteFunc(f.Evidence, func(o policy.Evidence) bool {
			return o.Predicate == evidence.Predicate && o.Signer == evidence.Signer
		})
		f.Evidence, f.Attested = append(f.Evidence, evidence), true
		f.Deployed = states[e.Commit] == ledger.Deployed && !contract.RollsBack(*f, evidence)
		pending = policy.Path(states[e.Commit], contract.Derive(*f, e.Timestamp).State)
	}

	for sha, want := range states {
		c, err := s.Commit(t.Context(), "acme", "api", sha)
		must.OK(t, err)
		if c.State != want {
			t.Errorf("commit %s is %s, want %s after its events", sha, c.State, want)
		}
	}
	return attestations
}

func evidenceOf(t *testing.T, e anyEvent, promotable bool) policy.Evidence {
	t.Helper()
	dn := must.Get(identity.ParseDN(e.Identity))(t)
	return policy.Evidence{
		Attestation: e.Attestation, Predicate: e.Predicate, Signer: dn, Status: e.Result.Status,
		RecordedAt: e.Timestamp, WhilePromotable: promotable,
	}
}

// events yields all events of the org's repos.
func events(t *testing.T, s *store.Store) func(func(anyEvent) bool) {
	return func(yield func(anyEvent) bool) {
		f := store.EventFilter{Query: store.Query{Limit: 500},
			Types: append(ledger.DefaultEventTypes(), ledger.EventViolation)}
		for {
			page, err := s.Events(t.Context(), "acme", f)
			must.OK(t, err)
			for _, body := range page.Data {
				var e anyEvent
				must.OK(t, json.Unmarshal(body, &e))
				if !yield(e) {
					return
				}
			}
			if f.Cursor = page.NextCursor; f.Cursor == "" {
				return
			}
		}
	}
}

// TestSettlingSurvivesKills checks that settling 10,000 commits after a change of the policy goes on after
// kills at random moments, with the result of a simulation.
func TestSettlingSurvivesKills(t *testing.T) {
	testenv.From(t, testenv.Push, "takes many seconds")
	t.Parallel()
	const commits = 10_000
	v := newVictim(t)
	s := v.open()
	fill(t, s, commits)
	draft, err := policy.Parse(
		[]byte(`{"requirements":[{"state":"ATTESTED","predicate":"lint:*"},{"state":"PROMOTABLE","predicate":"test:*"}]}`))
	must.OK(t, err)
	simulated, err := s.Simulate(t.Context(), "acme", "api", draft)
	must.OK(t, err)
	_, err = s.SetPolicy(t.Context(), "acme", "api", draft, 1, "host")
	must.OK(t, err)
	must.OK(t, s.Close())

	random := testenv.Rand(t)
	kills := testenv.Pick(1, 2, 20)
	for i := range kills {
		v.start()
		least := (i + random.IntN(2)) * commits / (kills + 1)
		v.waitForSettled(func(done, all int) bool { return done > least })
		v.kill()
		v.checkIntegrity()
	}
	v.start()
	v.waitForSettled(func(done, all int) bool { return done == all })
	v.kill()
	v.checkIntegrity()

	s = v.open()
	defer s.Close()
	want := make(map[string][]ledger.State)
	for _, move := range simulated.Moves {
		want[move.Commit] = policy.Path(move.From, move.To)
	}
	for e := range events(t, s) {
		if steps := want[e.Commit]; e.Type == ledger.EventState && len(steps) > 0 && e.To == steps[0] {
			want[e.Commit] = steps[1:]
		}
	}
	for sha, steps := range want {
		if len(steps) > 0 {
			t.Errorf("commit %s has no transitions to %v", sha, steps)
		}
	}
	repo, err := s.Repo(t.Context(), "acme", "api")
	must.OK(t, err)
	if simulated.Total() != commits || repo.Commits[ledger.Validating] != commits/2 ||
		repo.Commits[ledger.Attested] != commits/2 {
		t.Errorf("%d moves were simulated, and the commits per state are %v", simulated.Total(), repo.Commits)
	}
}

// fill records an attestation for each of n commits, half of them test:go and half
// lint:go. They are not signed, since the store does not verify signatures.
func fill(t *testing.T, s *store.Store, n int) {
	t.Helper()
	_, version, err := s.Keyring(t.Context(), "acme")
	must.OK(t, err)

	var wg sync.WaitGroup
	for lane := range 64 {
		wg.Go(func() {
			for i := lane; i < n; i += 64 {
				envelope := fmt.Appendf(nil, "%d", i)
				_, _, err := s.Record(t.Context(), "acme", "api", &attestation.Attestation{
					Outcome: attestation.Outcome{Predicate: []string{"test:go", "lint:go"}[i%2],
						Result: ledger.Result{Status: ledger.Pass}},
					Commit: fmt.Sprintf("%040x", i), PredicateType: attestation.ResultPredicateType,
					Signer:        identity.Signer{DN: identity.DN{CN: "ci", OU: "build", O: "acme"}},
					PayloadDigest: sha256.Sum256(envelope), Envelope: envelope,
				}, version)
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// waitForSettled waits until enough commits are settled by version 2 of the
// policy.
func (v *victim) waitForSettled(enough func(done, all int) bool) {
	v.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var done, all int
		v.scan("SELECT count(*) FILTER (WHERE policy_version = 2), count(*) FROM commits", &done, &all)
		if enough(done, all) {
			return
		}
		if time.Now().After(deadline) {
			v.t.Fatalf("%d of %d commits are settled after one minute", done, all)
		}
	}
}
