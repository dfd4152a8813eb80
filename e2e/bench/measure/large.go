package measure

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ledgerd/ledgerd/e2e/bench/load"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// The org of the crowd large has a contract with as many requirements and patterns as are
// allowed, and a commit with as much evidence.
const (
	largeOrg          = "large"
	largePath         = "/v1/orgs/" + largeOrg + "/repos/" + repoName
	largeRequirements = 200
	largePatterns     = 20 // of each requirement
	largeTopics       = 1000
)

// A largeClient attests and reads the large commit.
type largeClient struct {
	Token string
	Key   []byte // the seed of the signer's key
}

// setUpLarge creates the org of the crowd large. The contract comes after the evidence.
func (b *Core) setUpLarge(ctx context.Context) (c largeClient, err error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return c, err
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return c, err
	}
	c.Key = private.Seed()
	file := filepath.Join(b.Dir, "large.pub")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600); err != nil {
		return c, err
	}

	for _, args := range [][]string{
		{"org", "create", largeOrg},
		{"repo", "create", largeOrg + "/" + repoName},
		{"identity", "add", "--org", largeOrg, "--key", file, "--dn", "cn=ci,ou=build,o=large"},
	} {
		if _, err := b.ledgerd(ctx, args...); err != nil {
			return c, err
		}
	}
	c.Token, err = b.ledgerd(ctx, "token", "create", "--org", largeOrg, "--name", "large", "--scope", "write")
	return c, err
}

// fillLarge records the evidence of the large commit.
func (b *Core) fillLarge(c largeClient) error {
	requests := make([][]byte, largeTopics)
	for i := range requests {
		var err error
		if requests[i], err = c.attestation(i); err != nil {
			return err
		}
	}
	_, err := load.Load{Address: b.server.address, Conns: b.Connections, Requests: requests}.Run()
	return err
}

// applyLarge applies the large contract. All its patterns have wildcards.
func (b *Core) applyLarge(ctx context.Context) error {
	var requirements []string
	for i := range largeRequirements {
		patterns := []string{`"cn=ci"`}
		for n := range largePatterns - 1 {
			patterns = append(patterns, fmt.Sprintf(`"cn=*a*%d-%d*"`, i, n))
		}
		requirements = append(requirements, fmt.Sprintf(`{"state":"ATTESTED","predicate":"test:*","signers":[%s]}`,
			strings.Join(patterns, ",")))
	}
	file := filepath.Join(b.Dir, "large.json")
	contract := `{"requirements":[` + strings.Join(requirements, ",") + `]}`
	if err := os.WriteFile(file, []byte(contract), 0o600); err != nil {
		return err
	}
	_, err := b.ledgerd(ctx, "policy", "apply", largeOrg+"/"+repoName, "--file", file)
	return err
}

// attestation returns the request that records the n-th attestation of the large commit.
// After largeTopics, they replace earlier ones.
func (c largeClient) attestation(n int) ([]byte, error) {
	status := ledger.Pass
	if n/largeTopics%2 == 1 {
		status = ledger.Fail
	}
	const repo = "git+https://git.example/large/repo"
	payload, err := attestation.NewStatement(repo, commitID(0), attestation.ResultPredicate{
		Predicate:   fmt.Sprintf("test:%04d", n%largeTopics),
		Result:      ledger.Result{Status: status, DurationMS: 1200},
		Repo:        largeOrg + "/" + repoName,
		Annotations: map[string]string{"run": fmt.Sprint(n, " at ", time.Now().UnixNano())},
	})
	if err != nil {
		return nil, err
	}
	envelope, err := attestation.SignDSSE(ed25519.NewKeyFromSeed(c.Key), payload)
	if err != nil {
		return nil, err
	}
	return load.Request(http.MethodPost, largePath+"/attestations", c.Token, envelope), nil
}

// use records attestations of the large commit, or reads its record, again and again.
func (c largeClient) use(
	ctx context.Context, address string, counted *load.Tally, sent *atomic.Int64, writes bool,
) error {
	next := func() ([]byte, error) { return c.attestation(int(sent.Add(1))) }
	if !writes {
		read := load.Request(http.MethodGet, largePath+"/commits/"+commitID(0), c.Token, nil)
		next = func() ([]byte, error) { return read, nil }
	}

	return connected(ctx, address, func(conn *load.Conn) error {
		for ctx.Err() == nil {
			request, err := next()
			if err != nil {
				return err
			}

			began := time.Now()
			r, err := conn.Send(request)
			if err != nil {
				return err
			}
			counted.Note(r, time.Since(began))
			if r.Status/100 != 2 {
				return nil
			}
		}
		return nil
	})
}
