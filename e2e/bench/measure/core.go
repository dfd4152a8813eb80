package measure

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/e2e/bench/load"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// predicates returns the predicates of the statements. Each has its own signer. The
// first takes the commits to ATTESTED.
func predicates() []string {
	return []string{"test:go", "lint:golangci", "build:docker", "test:e2e"}
}

// orgName and repoName name the benchmark's repo.
const orgName, repoName = "bench", "repo"

// setUp creates the signers, and the org bench with its repo and token.
func (b *Core) setUp(ctx context.Context) error {
	for _, predicate := range predicates() {
		_, private, err := ed25519.GenerateKey(nil)
		if err != nil {
			return err
		}
		b.signers = append(b.signers, signer{private, predicate})
	}
	token, err := b.createOrg(ctx, orgName)
	b.token = token
	return err
}

// createOrg creates an org with its repo, and registers the signers. It returns a token.
func (b *Core) createOrg(ctx context.Context, org string) (token string, err error) {
	if _, err := b.ledgerd(ctx, "org", "create", org); err != nil {
		return "", err
	}
	if _, err := b.ledgerd(ctx, "repo", "create", org+"/"+repoName); err != nil {
		return "", err
	}
	for _, s := range b.signers {
		if err := b.register(ctx, org, s); err != nil {
			return "", err
		}
	}
	return b.ledgerd(ctx, "token", "create", "--org", org, "--name", "bench", "--scope", "write")
}

// register registers a signer in an org.
func (b *Core) register(ctx context.Context, org string, s signer) error {
	n, err := s.identity()
	if err != nil {
		return err
	}
	file := filepath.Join(b.Dir, "signer.pub")
	if err := os.WriteFile(file, []byte(n.PEM), 0o600); err != nil {
		return err
	}
	_, err = b.ledgerd(ctx, "identity", "add", "--org", org, "--key", file, "--dn", n.DN)
	return err
}

// identity returns the signer as an identity to register.
func (s signer) identity() (n identity.NewIdentity, err error) {
	der, err := x509.MarshalPKIXPublicKey(s.key.Public())
	if err != nil {
		return n, err
	}
	dn := identity.DN{CN: strings.ReplaceAll(s.predicate, ":", "-"), OU: "build", O: orgName}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return identity.NewIdentity{Kind: identity.KeyIdentity, PEM: string(text), DN: dn.String()}, nil
}

// commitID returns the id of the i-th commit.
func commitID(i int) string { return fmt.Sprintf("%08x%032x", uint32(i)*2654435761, i) }

// sign returns requests that record the next n attestations.
func (b *Core) sign(n int) ([][]byte, error) {
	requests := make([][]byte, n)
	for i := range requests {
		envelope, err := b.envelope(b.recorded + i)
		if err != nil {
			return nil, err
		}
		requests[i] = attestRequest(orgName, b.token, envelope)
	}
	return requests, nil
}

// attestRequest returns a request that records an attestation.
func attestRequest(org, token string, envelope []byte) []byte {
	return load.Request(http.MethodPost, "/v1/orgs/"+org+"/repos/"+repoName+"/attestations", token, envelope)
}

// commitOf returns the index of the commit that an attestation is about. The commits
// take turns; after PerCommit turns, new ones replace them.
func (b *Core) commitOf(number int) int {
	turn, i := number/b.Commits, number%b.Commits
	if b.PerCommit == 0 {
		return i
	}
	return turn/b.PerCommit*b.Commits + i
}

// envelope returns the signed statement of the attestation with this number.
func (b *Core) envelope(number int) ([]byte, error) { return b.envelopeOf(orgName, number) }

// envelopeOf is like envelope, for another org.
func (b *Core) envelopeOf(org string, number int) ([]byte, error) {
	signer := b.signers[number/b.Commits%len(b.signers)]
	payload, err := attestation.NewStatement("git+https://git.example/bench/repo", commitID(b.commitOf(number)),
		attestation.ResultPredicate{
			Predicate: signer.predicate,
			Result:    ledger.Result{Status: ledger.Pass, DurationMS: 1200},
			Repo:      org + "/" + repoName,
			Annotations: map[string]string{
				"run": fmt.Sprint(number), "log": strings.Repeat("all of the tests have passed on this one. ", 13)},
		})
	if err != nil {
		return nil, err
	}
	if b.images && number/b.Commits%b.PerCommit == 0 {
		payload = withImage(payload, b.commitOf(number))
	}
	return attestation.SignDSSE(signer.key, payload)
}

// imageOf returns the digest of the image that was built from the i-th commit.
func imageOf(i int) string { return fmt.Sprintf("%08x%056x", uint32(i)*2654435761, i) }

// withImage adds to a statement an image that was built from the commit.
func withImage(statement []byte, commit int) []byte {
	subject := fmt.Sprintf(`"subject":[{"name":"bench/image","digest":{"sha256":"%s"}},`, imageOf(commit))
	return bytes.Replace(statement, []byte(`"subject":[`), []byte(subject), 1)
}

// record records n attestations as fast as possible.
func (b *Core) record(n int) (load.Result, error) {
	requests, err := b.sign(n)
	if err != nil {
		return load.Result{}, fmt.Errorf("sign statements: %w", err)
	}
	return b.post(requests, b.Connections)
}

// post records the attestations of the requests.
func (b *Core) post(requests [][]byte, conns int) (load.Result, error) {
	result, err := load.Load{Address: b.server.address, Conns: conns, Requests: requests}.Run()
	if err != nil {
		return result, fmt.Errorf("attest: %w", err)
	}
	b.recorded += len(requests)
	return result, nil
}

// warmUp records an attestation of each predicate for every commit. After that,
// attestations change no state, and each causes a single event.
func (b *Core) warmUp(context.Context) error {
	_, err := b.record(b.Commits * len(b.signers))
	return err
}

// attest records n attestations and reports the rate.
func (b *Core) attest(n int) error {
	result, err := b.record(n)
	if err != nil {
		return err
	}
	b.figure(rateFigure(fmt.Sprintf("attest: %d, of %d in the ledger then", n, b.recorded), result))
	return nil
}

// attestChunk is how many statements are signed in advance, so that signing is not
// measured.
const attestChunk = 50_000

// earlyReads is the number of attestations at which reads are measured first, for
// comparison with the full ledger.
const earlyReads = 10_000

// workloads records the attestations, and measures reads early and at the end.
func (b *Core) workloads(ctx context.Context) error {
	if err := b.attest(min(earlyReads, b.Attestations)); err != nil {
		return err
	}
	if err := b.read(); err != nil {
		return err
	}
	if b.recorded == b.Attestations {
		return b.finish(ctx)
	}

	for b.recorded < b.Attestations {
		if err := b.attest(min(attestChunk, b.Attestations-b.recorded)); err != nil {
			return err
		}
	}
	if err := b.read(); err != nil {
		return err
	}
	return b.finish(ctx)
}

func (b *Core) read() error {
	if err := b.readPages(); err != nil {
		return err
	}
	return b.readCommits()
}

func (b *Core) finish(ctx context.Context) error {
	b.reportMemory()
	return b.restart(ctx)
}

func (b *Core) readPages() error {
	query := url.Values{"predicate": {"test:go"}, "since": {time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)},
		"limit": {"50"}}
	page := load.Request(http.MethodGet, "/v1/orgs/bench/repos/repo/attestations?"+query.Encode(), b.token, nil)
	pages := load.Load{Address: b.server.address, Conns: b.Readers, Requests: [][]byte{page}, Repeat: b.ReadingTime}
	result, err := pages.Run()
	if err != nil {
		return fmt.Errorf("read pages: %w", err)
	}
	b.figure(rateFigure(fmt.Sprintf("page of 50 by predicate and since, of %d", b.recorded), result))
	return nil
}

// readCommits measures reading the first commits. They have the same number of
// attestations, except while their last turn is in progress.
func (b *Core) readCommits() error {
	each := (b.recorded + b.Commits - 1) / b.Commits
	if b.PerCommit > 0 {
		each = min(each, b.PerCommit)
	}
	for _, of := range []struct{ what, path string }{
		{fmt.Sprintf("commit record with %d attestations", min(100, each)), ""},
		{fmt.Sprintf("open gate of a commit with %d attestations", each), "/gate?state=VALIDATING"},
		{fmt.Sprintf("shut gate of a commit with %d attestations", each), "/gate?state=PROMOTABLE"},
	} {
		requests := make([][]byte, min(b.Commits, b.recorded))
		for i := range requests {
			requests[i] = load.Request(http.MethodGet, "/v1/orgs/bench/repos/repo/commits/"+commitID(i)+of.path, b.token, nil)
		}
		result, err := load.Load{Address: b.server.address, Conns: b.Readers, Requests: requests, Repeat: b.ReadingTime}.Run()
		if err != nil {
			return fmt.Errorf("read commits: %w", err)
		}
		b.figure(rateFigure(fmt.Sprintf("%s, of %d", of.what, b.recorded), result))
	}
	return nil
}

func (b *Core) reportMemory() {
	if bytes, ok := b.server.residentMemory(); ok {
		b.print("%-58s %8.0f MB", "memory of the server", float64(bytes)/1e6)
	}
}

// restart reports the size of the full database, and measures how long a server
// takes to start on it.
func (b *Core) restart(ctx context.Context) error {
	if err := b.server.stop(); err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	if info, err := os.Stat(b.database); err == nil { // stop has checkpointed the WAL
		b.print("%-58s %8.0f MB", "size of the database", float64(info.Size())/1e6)
	}

	start := time.Now()
	if err := b.startServer(ctx); err != nil {
		return err
	}
	if err := b.checkReady(); err != nil {
		return err
	}
	took := load.MS(time.Since(start))
	b.print("%-58s %8.0f ms", fmt.Sprintf("start until ready with %d attestations", b.recorded), took)
	return nil
}

func (b *Core) checkReady() error {
	response, err := http.Get("http://" + b.server.address + "/readyz")
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server is not ready: %s", response.Status)
	}
	return nil
}

// Check returns an error if an option is invalid.
func (b *Core) Check() error {
	if b.Attestations < 1 || b.Commits < 1 || b.Connections < 1 || b.Readers < 1 {
		return fmt.Errorf("--attestations, --commits, --connections and --readers must be at least 1")
	}
	if b.PerCommit < 0 {
		return fmt.Errorf("--per-commit must not be negative: use 0 for no limit")
	}
	return nil
}

// Measure runs the benchmark.
func (b *Core) Measure(ctx context.Context, env Env) error {
	b.Env = env
	return b.withTempDir(ctx, func() error {
		if err := b.describeMachine(ctx); err != nil {
			return err
		}
		if err := b.setUp(ctx); err != nil {
			return err
		}
		if err := b.withServer(ctx, b.workloads); err != nil {
			return err
		}
		return b.printFigures()
	})
}
