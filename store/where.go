package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/where"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Expressions are evaluated outside the writer. What they say is then stored, and never
// changes: an expression and a statement are all that it depends on.

const (
	// evaluatedBatch is the number of verdicts that one write stores.
	evaluatedBatch = 256
	// maxEvaluating limits the statements that are evaluated at the same time. Each takes
	// at most a few tens of megabytes and of milliseconds.
	maxEvaluating = 4
)

// errPruned is why the statement of a deleted envelope cannot be evaluated.
const errPruned = "the envelope was pruned"

// evaluate evaluates expressions on the payload of an attestation.
func (s *Store) evaluate(ctx context.Context, payload []byte, expressions []string) ([]policy.Verdict, error) {
	select {
	case s.evaluating <- struct{}{}:
		defer func() { <-s.evaluating }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.closing:
		return nil, sqldb.ErrClosed
	}

	return s.Verdicts(payload, expressions), nil
}

// Verdicts evaluates expressions on the payload of an attestation. It may take some milliseconds.
func (s *Store) Verdicts(payload []byte, expressions []string) []policy.Verdict {
	statement := where.Read(payload)
	verdicts := make([]policy.Verdict, len(expressions))
	for i, x := range expressions {
		program, err := s.program(x)
		if err != nil { // accepted by another release
			verdicts[i].Error = "the expression is not valid in this release: " + err.Error()
			continue
		}
		verdicts[i] = policy.Verdict(program.Eval(statement))
	}
	return verdicts
}

// program returns a compiled expression.
func (s *Store) program(expression string) (*where.Program, error) {
	if p, ok := s.caches.programs.Get(expression); ok {
		return p, nil
	}
	p, err := where.Compile(expression)
	if err == nil {
		s.caches.programs.Put(expression, p)
	}
	return p, err
}

// evaluateStored evaluates expressions on recorded attestations, and calls visit with each
// verdict. It has one envelope in memory at a time. The list is grouped by attestation.
func (s *Store) evaluateStored(ctx context.Context, org string, list []unevaluated, visit func(verdictRow)) error {
	for len(list) > 0 {
		n := slices.IndexFunc(list, func(u unevaluated) bool { return u.row != list[0].row })
		if n < 0 {
			n = len(list)
		}
		var expressions []string
		for _, u := range list[:n] {
			expressions = append(expressions, u.expression)
		}

		verdicts, err := s.evaluateEnvelope(ctx, org, list[0].row, expressions)
		if err != nil {
			return fmt.Errorf("evaluate %s: %w", list[0].attestation, err)
		}
		for i, v := range verdicts {
			visit(verdictRow{list[i], v})
		}
		list = list[n:]
	}
	return nil
}

// evaluateEnvelope evaluates expressions on a recorded attestation.
func (s *Store) evaluateEnvelope(
	ctx context.Context, org string, row int64, expressions []string,
) ([]policy.Verdict, error) {
	payload, err := readLoose(ctx, s, txn.ForWrite(org), func(rd reader) ([]byte, error) { return rd.payload(row) })
	if err == nil {
		return s.evaluate(ctx, payload, expressions)
	}
	if !isPruned(err) {
		return nil, err
	}
	verdicts := make([]policy.Verdict, len(expressions))
	for i := range verdicts {
		verdicts[i].Error = errPruned
	}
	return verdicts, nil
}

// payload returns the payload of an attestation. It is empty if the envelope is not one
// by the present rules. If it was pruned, payload returns CodePruned.
func (rd reader) payload(row int64) ([]byte, error) {
	body, payload, _, err := rd.packed(row)
	if err != nil || len(payload) > 0 {
		return payload, err
	}
	payload, err = attestation.Payload(body)
	if err != nil {
		return nil, nil //nolint:nilerr // the verdict says that it cannot be read
	}
	return payload, nil
}

// storeMissing evaluates expressions on recorded attestations and stores the verdicts, in
// small writes.
func (s *Store) storeMissing(ctx context.Context, org string, list []unevaluated) error {
	for batch := range slices.Chunk(list, evaluatedBatch) {
		var rows []verdictRow
		err := s.evaluateStored(ctx, org, batch, func(v verdictRow) { rows = append(rows, v) })
		if err != nil {
			return err
		}
		err = s.write(ctx, org, func(t *tx) error {
			for _, v := range rows {
				if err := t.addVerdict(v.row, v.expression, v.verdict); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("store verdicts: %w", err)
		}
	}
	return nil
}

// evaluateNext stores missing verdicts on the evidence of the next commits that a job settles, at most
// evaluatedBatch. It reports whether there may be more.
func (s *Store) evaluateNext(ctx context.Context, j backlog.Job) (more bool, err error) {
	list, err := read(ctx, s, txn.ForWrite(""), func(rd reader) ([]unevaluated, error) {
		d, err := rd.deriverByID(j.Repo)
		if err != nil || !d.contract.NeedsVerdicts() {
			return nil, err
		}
		return rd.nextUnevaluated(d, j)
	})
	if err != nil {
		return false, fmt.Errorf("read what is to be evaluated: %w", err)
	}
	n := min(len(list), evaluatedBatch)
	return n < len(list), s.storeMissing(ctx, "", list[:n])
}

func (rd reader) nextUnevaluated(d *deriver, j backlog.Job) ([]unevaluated, error) {
	query, args := "WHERE repo_id = ? AND id > ? ORDER BY id LIMIT ?", []any{j.Repo, j.Position, maxSettled}
	if j.Ref != 0 {
		query, args = "WHERE id = ?", []any{j.Ref}
	}
	commits, err := all(rd, scanCommitRow, selectCommitRow+query, args...)
	if err != nil {
		return nil, err
	}

	var list []unevaluated
	for _, c := range commits {
		s, err := rd.gatherOne(d, c)
		if err != nil {
			return nil, err
		}
		if len(s.unevaluated) > 0 {
			list = append(list, s.unevaluated...)
		}
		if len(list) >= evaluatedBatch {
			break
		}
	}
	return list, nil
}

// evaluatedFirst returns the commits up to the first one with evidence on which an
// expression of its contract was not evaluated yet. The state of deployed commits does not
// need it, but their requirements are shown.
func (t *tx) evaluatedFirst(d *deriver, commits []int64) ([]int64, error) {
	if !d.contract.NeedsVerdicts() || len(commits) == 0 {
		return commits, nil
	}
	list, err := t.subjects(d, commits)
	if err != nil {
		return nil, err
	}
	for i, s := range list {
		if len(s.unevaluated) > 0 {
			return commits[:i], nil
		}
	}
	return commits, nil
}

// maxIdle is how often in a row a job may find that the verdicts it needs were not evaluated, because the policy
// or the evidence has changed since.
const maxIdle = 100

// errIdle means that this does not end. The job is then tried again later.
var errIdle = errors.New("the verdicts on a commit's evidence are missing")
