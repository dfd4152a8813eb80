package evidence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/parallel"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// A reader reads a repo from a server.
type reader struct {
	client    *client.Client
	org, repo string
}

// How often to repeat a request that the server has no time for, and how long to wait before it.
const (
	maxTries  = 60
	tryAfter  = time.Second
	maxStable = 10 // how often to read a commit that changes while it is read
)

// again repeats a request while the server has too many.
func again[T any](ctx context.Context, do func() (T, error)) (v T, err error) {
	for range maxTries {
		v, err = do()
		if code := client.CodeOf(err); code != ledger.CodeTooManyRequests && code != ledger.CodeServerBusy {
			return v, err
		}
		if waitErr := wait(ctx, tryAfter); waitErr != nil {
			return v, waitErr
		}
	}
	return v, err
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// each calls visit for each record of a list, until it reports that it has seen enough.
func each[T any](ctx context.Context, page func(client.Query) (ledger.Page[T], error),
	visit func(T) (enough bool, err error),
) error {
	q := client.Query{Limit: 500}
	for {
		p, err := again(ctx, func() (ledger.Page[T], error) { return page(q) })
		if err != nil {
			return err
		}
		for _, record := range p.Data {
			if enough, err := visit(record); err != nil || enough {
				return err
			}
		}
		if q.Cursor = p.NextCursor; q.Cursor == "" {
			return nil
		}
	}
}

// all returns the records of a list, which has at most limit of them.
func all[T any](ctx context.Context, limit int, page func(client.Query) (ledger.Page[T], error)) (list []T, err error) {
	list = []T{}
	err = each(ctx, page, func(record T) (bool, error) {
		if len(list) == limit {
			return false, fmt.Errorf("the ledger lists more than %d", limit)
		}
		list = append(list, record)
		return false, nil
	})
	return list, err
}

// attested lists the commits that got an attestation between two times, in the order of the first.
func (r *reader) attested(ctx context.Context, since, until ledger.Time) (list []string, err error) {
	known := make(map[string]bool)
	f := client.AttestationFilter{Since: since, OldestFirst: true}
	err = each(ctx, func(q client.Query) (ledger.Page[ledger.AttestationRecord], error) {
		return r.client.AttestationsPage(ctx, r.org, r.repo, f, q)
	}, func(a ledger.AttestationRecord) (bool, error) {
		if a.RecordedAt > until || known[a.Commit] {
			return a.RecordedAt > until, nil
		}
		if len(list) == MaxCommits {
			return false, fmt.Errorf("more than %d commits got an attestation since then (use a later --since, or --until)",
				MaxCommits)
		}
		known[a.Commit] = true
		list = append(list, a.Commit)
		return false, nil
	})
	return list, err
}

// A Commit is what the ledger shows of a commit, at one moment.
type Commit struct {
	Record       ledger.Commit
	Transitions  []ledger.Transition        // oldest first
	Attestations []ledger.AttestationRecord // in the order of their IDs
}

// commit reads a commit. Its parts come from several responses, so it is read again if it has
// changed between them.
func (r *reader) commit(ctx context.Context, rev string) (c Commit, err error) {
	record := func() (ledger.Commit, error) { return r.client.Commit(ctx, r.org, r.repo, rev) }
	if c.Record, err = again(ctx, record); err != nil {
		return c, err
	}

	for range maxStable {
		before := c.Record
		if c.Attestations, err = r.attestationsOf(ctx, before.SHA); err != nil {
			return c, err
		}
		if c.Transitions, err = r.transitionsOf(ctx, before.SHA); err != nil {
			return c, err
		}
		if c.Record, err = again(ctx, record); err != nil {
			return c, err
		}

		if reflect.DeepEqual(before.CommitSummary, c.Record.CommitSummary) && before.PolicyVersion == c.Record.PolicyVersion {
			return c, nil
		}
		if err := wait(ctx, tryAfter); err != nil {
			return c, err
		}
	}
	return c, errors.New("it changes all the time (try again)")
}

func (r *reader) attestationsOf(ctx context.Context, sha string) ([]ledger.AttestationRecord, error) {
	f := client.AttestationFilter{Commit: sha, OldestFirst: true, Verification: true}
	list, err := all(ctx, MaxFiles, func(q client.Query) (ledger.Page[ledger.AttestationRecord], error) {
		return r.client.AttestationsPage(ctx, r.org, r.repo, f, q)
	})
	slices.SortFunc(list, func(a, b ledger.AttestationRecord) int { return cmp.Compare(a.ID, b.ID) })
	return list, err
}

func (r *reader) transitionsOf(ctx context.Context, sha string) ([]ledger.Transition, error) {
	list, err := all(ctx, MaxFiles, func(q client.Query) (ledger.Page[ledger.Transition], error) {
		return r.client.TransitionsPage(ctx, r.org, r.repo, sha, q)
	})
	slices.Reverse(list)
	return list, err
}

// An evidenceOf is what makes an attestation evidence. Parts that were pruned are nil. The assertion is also
// nil if no passkey has confirmed the attestation.
type evidenceOf struct{ envelope, statement, event, assertion []byte }

// name returns the name of the file with the envelope.
func (v evidenceOf) name() string {
	if attestation.IsCommitObject(v.envelope) {
		return objectFile
	}
	return envelopeFile
}

// evidence reads the envelope, the assertion and the event of an attestation.
func (r *reader) evidence(ctx context.Context, a ledger.AttestationRecord) (v evidenceOf, err error) {
	v.envelope, err = again(ctx, func() ([]byte, error) { return r.client.Envelope(ctx, r.org, r.repo, a.ID) })
	switch {
	case client.CodeOf(err) == ledger.CodePruned:
		v.envelope = nil
	case err != nil:
		return v, err
	case !attestation.IsCommitObject(v.envelope):
		if v.statement, err = attestation.Payload(v.envelope); err != nil {
			return v, err
		}
	}
	if a.AssertionDigest != "" {
		v.assertion, err = again(ctx, func() ([]byte, error) { return r.client.Assertion(ctx, r.org, r.repo, a.ID) })
		if err != nil {
			return v, fmt.Errorf("read its assertion: %w", err)
		}
	}
	v.event, err = r.body(ctx, a.Event)
	return v, err
}

// body reads the body of an event; nil if it was pruned.
func (r *reader) body(ctx context.Context, event string) ([]byte, error) {
	body, err := again(ctx, func() ([]byte, error) { return r.client.Event(ctx, r.org, event) })
	if client.CodeOf(err) == ledger.CodePruned {
		return nil, nil
	}
	return body, err
}

// concurrent is how many requests are sent at the same time.
const concurrent = 4

// A result is what a function has returned.
type result[V any] struct {
	value V
	err   error
}

// concurrently calls a function for each item, and returns the results in their order.
func concurrently[T, V any](items []T, f func(T) (V, error)) []result[V] {
	results := make([]result[V], len(items))
	indexes := make([]int, len(items))
	for i := range indexes {
		indexes[i] = i
	}
	parallel.Each(concurrent, indexes, func(i int) { results[i].value, results[i].err = f(items[i]) })
	return results
}
