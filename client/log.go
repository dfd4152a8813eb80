package client

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/receipt"
)

// maxLogFile is the maximum size of a file of a log, and maxEvent that of an event, in bytes.
const maxLogFile, maxEvent = 2 << 20, 1 << 20

// Event returns the body of an event, byte for byte as it was recorded. It is what the leaf
// of the event in the log commits to.
func (c *Client) Event(ctx context.Context, org, id string) ([]byte, error) {
	return c.bytes(ctx, pathOf("orgs", org, "events", id), maxEvent)
}

// Log returns what is known about the present transparency log of an org.
func (c *Client) Log(ctx context.Context, org string) (ledger.Log, error) {
	return get[ledger.Log](ctx, c, pathOf("orgs", org, "log"))
}

// LogFile returns a file of the log of an org in an epoch, which counts from 1: checkpoint, or
// a tile such as tile/0/x001/234 (C2SP tlog-tiles).
func (c *Client) LogFile(ctx context.Context, org string, epoch int, file string) ([]byte, error) {
	if strings.ContainsAny(file, "?#%") {
		return nil, fmt.Errorf("a log has no file %q", file)
	}
	path := pathOf("orgs", org, "log")
	if epoch > 1 {
		path += "/" + strconv.Itoa(epoch)
	}
	return c.bytes(ctx, path+"/"+file, maxLogFile)
}

// Receipt returns a signed receipt that a commit has reached a state, with its proofs. state
// is nil for the commit's present state. If target is not empty, the requirements are
// evaluated for that branch alone.
func (c *Client) Receipt(
	ctx context.Context, org, repo, sha string, state *ledger.State, target string,
) (ledger.Receipt, error) {
	query := parameters("target", target)
	if state != nil {
		query.Set("state", state.String())
	}
	asked := request{
		method: http.MethodGet, path: pathOf("orgs", org, "repos", repo, "commits", sha, "receipt"), query: query,
	}
	r, _, err := call[ledger.Receipt](ctx, c, asked)
	if err != nil {
		return r, err
	}

	says, err := receipt.Read(r.Envelope)
	if err != nil {
		return ledger.Receipt{}, fmt.Errorf("read the receipt in the response: %w", err)
	}
	if err := asked.check(says); err != nil {
		return ledger.Receipt{}, err
	}
	if says.Target != target {
		return ledger.Receipt{}, &AnotherError{What: "target", Requested: target, Received: says.Target}
	}
	return r, nil
}

// EventProof returns the proof that an event is in the log (C2SP tlog-proof).
func (c *Client) EventProof(ctx context.Context, org, id string) ([]byte, error) {
	return c.bytes(ctx, pathOf("orgs", org, "events", id, "proof"), maxLogFile)
}

// AttestationProof returns the proof that the event of an attestation is in the log (C2SP
// tlog-proof).
func (c *Client) AttestationProof(ctx context.Context, org, repo, id string) ([]byte, error) {
	return c.bytes(ctx, pathOf("orgs", org, "repos", repo, "attestations", id, "proof"), maxLogFile)
}

// bytes returns what is at a path, which has at most that many bytes.
func (c *Client) bytes(ctx context.Context, path string, most int) ([]byte, error) {
	a, err := c.do(ctx, request{method: http.MethodGet, path: path, accept: "*/*", most: most})
	if err != nil {
		return nil, err
	}
	return a.body, nil
}
