package witness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
)

// A Shown is what a witness shows of a log.
type Shown struct {
	Witness string // its name in the policy
	// Checkpoint is the latest one that it has cosigned. It is nil if it has cosigned none, or if
	// there is an error.
	Checkpoint []byte
	Err        error
}

// Shown asks each witness for the latest checkpoint of a log that it has cosigned, as monitors
// do (C2SP tlog-witness). Their monitoring prefix is taken to be their submission prefix, since a
// policy names no other.
func (p *Pool) Shown(ctx context.Context, origin string) []Shown {
	var list []Shown
	for _, r := range p.witnesses {
		checkpoint, err := p.client.shown(ctx, r.Witness, origin)
		list = append(list, Shown{r.Name, checkpoint, err})
	}
	return list
}

func (c *client) shown(ctx context.Context, w trustpolicy.Witness, origin string) ([]byte, error) {
	sum := sha256.Sum256([]byte(origin))
	url := strings.TrimSuffix(w.URL, "/") + "/" + hex.EncodeToString(sum[:]) + "/checkpoint"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", c.userAgent)
	response, err := c.http.Do(req)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, proof.MaxCheckpoint+1))
	if err != nil {
		return nil, withoutURL(err)
	}

	switch {
	case response.StatusCode == http.StatusNotFound:
		return nil, nil
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("status %d: %.200q", response.StatusCode, body)
	case len(body) > proof.MaxCheckpoint:
		return nil, fmt.Errorf("the checkpoint has more than %d bytes", proof.MaxCheckpoint)
	}
	return body, nil
}
