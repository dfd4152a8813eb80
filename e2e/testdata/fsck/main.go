// Command fsck checks a transparency log with the fsck of Tessera, which knows nothing of
// ledgerd. It exits with status 1 if the log is not in order.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"
)

// workers is the number of concurrent requests. Check blocks if more tiles than this are
// wrong, so it gets a time limit too.
const (
	workers = 64
	limit   = time.Minute
)

func main() {
	log := flag.String("url", "", "URL of the log, http or file, without /checkpoint")
	key := flag.String("key", "", "verifier key of the log")
	token := flag.String("token", "", "bearer token")
	flag.Parse()
	if err := check(*log, *key, *token); err != nil {
		fmt.Fprintln(os.Stderr, "fsck:", err)
		os.Exit(1)
	}
	fmt.Println("the log is in order")
}

func check(log, key, token string) error {
	verifier, err := note.NewVerifier(key)
	if err != nil {
		return err
	}
	fetcher, err := open(log, token)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	checked := make(chan error, 1)
	go func() {
		checked <- fsck.New(verifier.Name(), verifier, fetcher, leafHashes, fsck.Opts{N: workers}).Check(ctx)
	}()
	select {
	case err := <-checked:
		return err
	case <-ctx.Done():
		return errors.New("the check did not end in time")
	}
}

// open returns the log at a URL.
func open(log, token string) (fsck.Fetcher, error) {
	u, err := url.Parse(log)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "file" {
		return client.FileFetcher{Root: u.Path}, nil
	}
	fetcher, err := client.NewHTTPFetcher(u, nil)
	if err == nil && token != "" {
		fetcher.SetAuthorizationHeader("Bearer " + token)
	}
	return fetcher, err
}

// leafHashes returns the hashes of the leaves in an entry bundle.
func leafHashes(bundle []byte) (hashes [][]byte, err error) {
	var entries api.EntryBundle
	if err := entries.UnmarshalText(bundle); err != nil {
		return nil, err
	}
	for _, entry := range entries.Entries {
		hashes = append(hashes, rfc6962.DefaultHasher.HashLeaf(entry))
	}
	return hashes, nil
}
