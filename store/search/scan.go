package search

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/search"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/txn"
)

// maxCompared is the number of commits, or of attestations, that one search compares with
// the query.
const maxCompared = 4000

// compare compares the query with what no index finds: the digits of a digest with payloads,
// an ID with nothing, and everything else with commits.
func (f *finder) compare() error {
	prefix, _ := f.q.ID()
	sha, isPayload := f.q.Commit(), f.q.Digest().Algorithm == "sha256"
	switch {
	case isPayload:
		return f.comparePayloads()
	case prefix != "", f.q.Digest().Algorithm != "", ledger.IsCommit(sha):
		if f.q.Cursor != "" {
			return txn.ErrCursor
		}
		return nil
	}
	return f.compareCommits()
}

// compareCommits compares the texts of commits, until there are enough.
func (f *finder) compareCommits() error {
	l := f.Listing("searched commits", f.searched.orgID)
	below, err := l.After(txn.Query{Cursor: f.q.Cursor}, math.MaxInt64)
	if err != nil {
		return err
	}
	tracks, err := commitTracks(f.Reader, f.searched, below)
	if err != nil {
		return err
	}

	type found struct {
		commit       txn.Keyed[newestCommit]
		branch, text search.Rank
	}
	var list []found
	visit := func(c txn.Keyed[newestCommit]) error {
		if branch, text := f.q.MatchCommit(c.Row.CommitSummary); branch != search.No || text != search.No {
			list = append(list, found{c, branch, text})
		}
		return nil
	}
	full := func(end []any) bool { // down to end, no commit that matches is missing
		n := 0
		for _, m := range list {
			if m.commit.ID >= end[0].(int64) {
				n++
			}
		}
		return n >= f.q.Limit
	}
	examined, end, err := readNewest(f.Reader, tracks, maxCompared, visit, full)
	if err != nil {
		return fmt.Errorf("compare commits: %w", err)
	}

	slices.SortFunc(list, func(a, b found) int { return txn.CompareKeys(txn.IDOf(b.commit), txn.IDOf(a.commit)) })
	for n, m := range list {
		if end != nil && m.commit.ID < end[0].(int64) {
			break // other commits that are newer have not been compared yet
		}
		if n == f.q.Limit {
			end = []any{list[n-1].commit.ID}
			break
		}
		f.addBranch(m.commit, m.branch)
		f.addCommit(m.commit, m.text)
	}
	f.end(l, examined, end, "commits")
	return nil
}

// end notes where the comparison for a list ended: at a key, or at the last record if it is nil.
func (f *finder) end(l txn.Listing, examined int, end []any, what string) {
	f.result.Examined = examined
	if end == nil {
		return
	}
	f.result.NextCursor = l.CursorOf(end)
	f.stop("%d %s were compared, newest first: older ones follow at next_cursor", examined, what)
}

// A payload is the digest of an attestation's payload.
type payload struct {
	at     ledger.Time
	digest []byte
}

func scanPayload(row txn.Scanner) (p txn.Keyed[payload], err error) {
	return p, row.Scan(&p.ID, &p.Row.at, &p.Row.digest)
}

// comparePayloads compares the digests of payloads.
func (f *finder) comparePayloads() error {
	l := f.Listing("searched attestations", f.searched.orgID)
	position, err := l.Position(txn.Query{Cursor: f.q.Cursor}, 2)
	if err != nil {
		return err
	}
	var tracks []track[payload]
	for _, r := range f.searched.list {
		t, err := attestationTrack(f.Reader, "attestations_by_time", "a.repo_id = ?", []any{r.id}, 0,
			"a.id, a.recorded_at, a.payload_digest", scanPayload, func(p payload) ledger.Time { return p.at })
		if err != nil {
			return err
		}
		if t == nil {
			continue
		}
		if position != nil {
			t.position = slices.MinFunc([][]any{t.position, {position[0], position[1]}}, txn.CompareKeys)
		}
		tracks = append(tracks, *t)
	}

	d := f.q.Digest()
	first, last := d.Range()
	var list []int64
	visit := func(p txn.Keyed[payload]) error {
		if bytes.Compare(p.Row.digest, first) >= 0 && bytes.Compare(p.Row.digest, last) <= 0 {
			list = append(list, p.ID)
		}
		return nil
	}
	full := func([]any) bool { return len(list) > f.q.Limit }
	examined, end, err := readNewest(f.Reader, tracks, maxCompared, visit, full)
	if err != nil {
		return fmt.Errorf("compare payloads: %w", err)
	}
	f.end(l, examined, end, "attestations")

	rank := search.Prefix
	if d.IsFull() {
		rank = search.Equal
	}
	for _, id := range list {
		err := f.addAttestation(f.Row(selectFound+`
FROM attestations a /*+ordered*/ JOIN commits c ON c.id = a.commit_id /*+ordered*/ JOIN repos r ON r.id = a.repo_id
WHERE a.id = ?`, id), rank)
		if err != nil {
			return fmt.Errorf("read attestation: %w", err)
		}
	}
	return nil
}

// Search returns what a query finds in an org. IDs, digests and names are looked up by
// indexes. Words are compared with the newest commits, and the digits of a digest with the
// payloads of the newest attestations; with a cursor, only with those before it.
func (fi *Finder) Search(ctx context.Context, org string, q Query) (search.Result, error) {
	return txn.Read(ctx, fi.db, txn.ByOrg(org), func(rd txn.Reader) (result search.Result, err error) {
		p, err := findSearched(rd, org, "")
		if err != nil {
			return result, err
		}
		f := &finder{Reader: rd, fi: fi, q: q, searched: p, seen: make(map[string]bool), nameIDs: make(map[string]int64)}
		if q.Cursor == "" {
			if err := f.lookUp(); err != nil {
				return result, fmt.Errorf("search by index: %w", err)
			}
		}
		if err := f.compare(); err != nil {
			return result, err
		}

		result = f.result
		result.Data, result.More = search.Ranked(f.hits, q.Limit)
		if err := f.addRepos(result.Data); err != nil {
			return result, fmt.Errorf("find the repos of names: %w", err)
		}
		result.Stopped = strings.Join(f.stopped, "; ")
		return result, nil
	})
}
