package states

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/where"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Expressions are evaluated outside the writer. What they say is then stored, and never
// changes: an expression and a statement are all that it depends on.

// EvaluatedBatch is the number of verdicts that one write stores.
const EvaluatedBatch = 256

// errPruned is why the statement of a deleted envelope cannot be evaluated.
const errPruned = "the envelope was pruned"

// Evaluate evaluates expressions on the payload of an attestation.
func (st *States) Evaluate(ctx context.Context, payload []byte, expressions []string) ([]policy.Verdict, error) {
	select {
	case st.evaluating <- struct{}{}:
		defer func() { <-st.evaluating }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-st.closing:
		return nil, sqldb.ErrClosed
	}

	return st.Verdicts(payload, expressions), nil
}

// Verdicts evaluates expressions on the payload of an attestation. It may take some milliseconds.
func (st *States) Verdicts(payload []byte, expressions []string) []policy.Verdict {
	statement := where.Read(payload)
	verdicts := make([]policy.Verdict, len(expressions))
	for i, x := range expressions {
		program, err := st.program(x)
		if err != nil { // accepted by another release
			verdicts[i].Error = "the expression is not valid in this release: " + err.Error()
			continue
		}
		verdicts[i] = policy.Verdict(program.Eval(statement))
	}
	return verdicts
}

// program returns a compiled expression.
func (st *States) program(expression string) (*where.Program, error) {
	if p, ok := st.programs.Get(expression); ok {
		return p, nil
	}
	p, err := where.Compile(expression)
	if err == nil {
		st.programs.Put(expression, p)
	}
	return p, err
}

// EvaluateStored evaluates expressions on recorded attestations, and calls visit with each
// verdict. It has one envelope in memory at a time. The list is grouped by attestation.
func (st *States) EvaluateStored(ctx context.Context, org string, list []facts.Unevaluated,
	visit func(facts.VerdictRow)) error {
	for len(list) > 0 {
		n := slices.IndexFunc(list, func(u facts.Unevaluated) bool { return u.Row != list[0].Row })
		if n < 0 {
			n = len(list)
		}
		var expressions []string
		for _, u := range list[:n] {
			expressions = append(expressions, u.Expression)
		}

		verdicts, err := st.evaluateEnvelope(ctx, org, list[0].Row, expressions)
		if err != nil {
			return fmt.Errorf("evaluate %s: %w", list[0].Attestation, err)
		}
		for i, v := range verdicts {
			visit(facts.VerdictRow{Unevaluated: list[i], Verdict: v})
		}
		list = list[n:]
	}
	return nil
}

// evaluateEnvelope evaluates expressions on a recorded attestation.
func (st *States) evaluateEnvelope(
	ctx context.Context, org string, row int64, expressions []string,
) ([]policy.Verdict, error) {
	payload, err := txn.ReadLoose(ctx, st.db, txn.ForWrite(org), func(rd txn.Reader) ([]byte, error) {
		return payload(rd, row)
	})
	if err == nil {
		return st.Evaluate(ctx, payload, expressions)
	}
	if !facts.IsPruned(err) {
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
func payload(rd txn.Reader, row int64) ([]byte, error) {
	body, payload, _, err := facts.Packed(rd, row)
	if err != nil || len(payload) > 0 {
		return payload, err
	}
	payload, err = attestation.Payload(body)
	if err != nil {
		return nil, nil //nolint:nilerr // the verdict says that it cannot be read
	}
	return payload, nil
}

// StoreMissing evaluates expressions on recorded attestations and stores the verdicts, in
// small writes.
func (st *States) StoreMissing(ctx context.Context, org string, list []facts.Unevaluated) error {
	for batch := range slices.Chunk(list, EvaluatedBatch) {
		var rows []facts.VerdictRow
		err := st.EvaluateStored(ctx, org, batch, func(v facts.VerdictRow) { rows = append(rows, v) })
		if err != nil {
			return err
		}
		err = st.db.Change(ctx, org, func(t *txn.Tx) error {
			for _, v := range rows {
				if err := st.facts.AddVerdict(t, v.Row, v.Expression, v.Verdict); err != nil {
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

// EvaluateNext stores missing verdicts on the evidence of the next commits that a job settles, at most
// EvaluatedBatch. It reports whether there may be more.
func (st *States) EvaluateNext(ctx context.Context, j backlog.Job) (more bool, err error) {
	list, err := txn.Read(ctx, st.db, txn.ForWrite(""), func(rd txn.Reader) ([]facts.Unevaluated, error) {
		d, err := st.facts.DeriverByID(rd, j.Repo)
		if err != nil || !d.Contract.NeedsVerdicts() {
			return nil, err
		}
		return st.nextUnevaluated(rd, d, j)
	})
	if err != nil {
		return false, fmt.Errorf("read what is to be evaluated: %w", err)
	}
	n := min(len(list), EvaluatedBatch)
	return n < len(list), st.StoreMissing(ctx, "", list[:n])
}

func (st *States) nextUnevaluated(rd txn.Reader, d *facts.Deriver, j backlog.Job) ([]facts.Unevaluated, error) {
	query, args := "WHERE repo_id = ? AND id > ? ORDER BY id LIMIT ?", []any{j.Repo, j.Position, MaxSettled}
	if j.Ref != 0 {
		query, args = "WHERE id = ?", []any{j.Ref}
	}
	commits, err := txn.All(rd, facts.ScanCommitRow, facts.SelectCommitRow+query, args...)
	if err != nil {
		return nil, err
	}

	var list []facts.Unevaluated
	for _, c := range commits {
		s, err := st.facts.GatherOne(rd, d, c)
		if err != nil {
			return nil, err
		}
		if len(s.Unevaluated) > 0 {
			list = append(list, s.Unevaluated...)
		}
		if len(list) >= EvaluatedBatch {
			break
		}
	}
	return list, nil
}

// evaluatedFirst returns the commits up to the first one with evidence on which an
// expression of its contract was not evaluated yet. The state of deployed commits does not
// need it, but their requirements are shown.
func (st *States) evaluatedFirst(t *txn.Tx, d *facts.Deriver, commits []int64) ([]int64, error) {
	if !d.Contract.NeedsVerdicts() || len(commits) == 0 {
		return commits, nil
	}
	list, err := st.readCommits(t, d, commits)
	if err != nil {
		return nil, err
	}
	for i, s := range list {
		if len(s.Unevaluated) > 0 {
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
