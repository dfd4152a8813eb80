package verify

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger/proof"
)

// A View is how somebody else sees the log.
type View struct {
	Name string
	// read reads a file of the log in an epoch, such as checkpoint.
	read func(ctx context.Context, epoch int, file string) ([]byte, error)
	// hasTiles reports whether tiles can be read too.
	hasTiles bool
}

// FileView returns the view of a checkpoint that somebody has saved.
func FileView(name string, checkpoint []byte) *View {
	return &View{Name: name, read: func(context.Context, int, string) ([]byte, error) { return checkpoint, nil }}
}

// ServerView returns the view of another server, which serves the log of an org.
func ServerView(name, org string, c *client.Client) *View {
	read := func(ctx context.Context, epoch int, file string) ([]byte, error) {
		return c.LogFile(ctx, org, epoch, file)
	}
	return &View{name, read, true}
}

const (
	checkpointFile = "checkpoint"
	viewTimeout    = 30 * time.Second
	maxViewFile    = proof.MaxCheckpoint
)

// URLView returns the view at the URL of a checkpoint, with the tiles next to it (C2SP
// tlog-tiles), as a static copy of a log has them.
func URLView(address string) *View {
	prefix := strings.TrimSuffix(address, checkpointFile)
	c := &http.Client{Timeout: viewTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	read := func(ctx context.Context, _ int, file string) ([]byte, error) { return get(ctx, c, prefix+file) }
	return &View{address, read, true}
}

// IsCheckpointURL reports whether a URL is that of a checkpoint, and not of a server.
func IsCheckpointURL(address string) bool { return strings.HasSuffix(address, "/"+checkpointFile) }

func get(ctx context.Context, c *http.Client, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()

	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: the server returned %s", address, resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxViewFile+1))
	if err == nil && len(body) > maxViewFile {
		err = fmt.Errorf("%s is larger than %d bytes", address, maxViewFile)
	}
	return body, err
}
