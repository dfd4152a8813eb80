package lists

import (
	"context"
	"fmt"
	"math"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// An ExceptionFilter selects the exceptions of a list. Empty fields do not filter.
type ExceptionFilter struct {
	txn.Query
	Commit string // a full commit id or a prefix
	// Active selects the exceptions that count now. They are listed by their end, the
	// earliest first; without it, the list is by the time of recording, the newest first.
	Active bool
}

// Exceptions lists the exceptions of a repo.
func (li *Lists) Exceptions(
	ctx context.Context, org, repo string, f ExceptionFilter,
) (ledger.Page[ledger.ExceptionRecord], error) {
	keys := 1 // the row id
	if f.Active {
		keys = 2 // the end, and the row id
	}
	return txn.Read(ctx, li.db, txn.ByOrg(org), func(rd txn.Reader) (list ledger.Page[ledger.ExceptionRecord], err error) {
		d, err := li.facts.DeriverOf(rd, org, repo)
		if err != nil {
			return list, err
		}
		l := rd.Listing("exceptions", d.Repo.ID)
		position, err := l.Position(f.Query, keys)
		if err != nil {
			return list, err
		}
		w, err := li.ExceptionWalk(rd, d.Repo, f)
		if err != nil {
			return list, err
		}

		rows, err := w.Run(rd.Conn, f.start(rd, position), f.Limit, txn.MaxExamined)
		if err != nil {
			return list, fmt.Errorf("list exceptions: %w", err)
		}
		p, err := li.Judge(rd, d, w, rows, f.Active)
		return p.Page(l), err
	})
}

// start returns the position at which the walk starts, or nil for the begin.
func (f ExceptionFilter) start(rd txn.Reader, position []int64) (start []any) {
	if f.Active && position == nil {
		return []any{int64(rd.Now), int64(math.MaxInt64)}
	}
	for _, key := range position {
		start = append(start, key)
	}
	return start
}

// An exceptionRow is a row of the list of exceptions.
type exceptionRow struct {
	rec          ledger.ExceptionRecord
	CommitID     int64
	isDistrusted bool
}

// ExceptionWalk returns the walk that reads a list: by the commit's index or one of the repo's.
func (li *Lists) ExceptionWalk(
	rd txn.Reader, r txn.Repo, f ExceptionFilter,
) (w txn.Walk[exceptionRow], err error) {
	w = txn.Walk[exceptionRow]{
		From: "exceptions x /*+index exceptions_by_repo*/", Where: "x.repo_id = ?", Args: []any{r.ID},
		Keys: []string{"x.attestation_id"}, Key: txn.IDOf[exceptionRow], Down: true,
		Columns: exceptionColumns,
		Joins: " /*+ordered*/ JOIN attestations a ON a.id = x.attestation_id" +
			" /*+ordered*/ JOIN commits c ON c.id = x.commit_id",
		Scan: li.exceptionScanner(rd, r),
	}

	var commit int64
	if f.Commit != "" {
		c, err := facts.FindCommit(rd, r, f.Commit)
		if err != nil {
			return w, err
		}
		commit = c.ID
	}
	switch {
	case f.Active:
		w.From, w.Down = "exceptions x /*+index exceptions_by_end*/", false
		w.Keys = []string{"x.ends_at", "x.attestation_id"}
		w.Key = func(x txn.Keyed[exceptionRow]) []any { return []any{int64(x.Row.rec.Until), x.ID} }
		if commit != 0 {
			w.Filter, w.FilterArgs = " AND x.commit_id = ?", []any{commit}
		}
	case commit != 0:
		w.From = "exceptions x /*+index exceptions_by_commit*/"
		w.Where, w.Args = "x.commit_id = ?", []any{commit}
	}
	return w, nil
}

const exceptionColumns = `x.attestation_id, x.commit_id, c.sha, a.attestation_id, x.requirement, x.reason, x.ends_at,
  a.signer_id, ` + facts.AgeOf + `, NOT (` + facts.IsTrusted + ")"

func (li *Lists) exceptionScanner(rd txn.Reader, r txn.Repo) func(txn.Scanner) (txn.Keyed[exceptionRow], error) {
	return func(row txn.Scanner) (x txn.Keyed[exceptionRow], err error) {
		v := &x.Row.rec
		var signerID int64
		err = row.Scan(&x.ID, &x.Row.CommitID, &v.Commit, &v.Attestation, &v.Requirement, &v.Reason, &v.Until, &signerID,
			&v.RecordedAt, &x.Row.isDistrusted)
		if err != nil {
			return x, err
		}
		signer, err := li.signers.Signer(rd, signerID)
		v.Org, v.Repo, v.Identity = r.Org, r.Name, signer.Text
		return x, err
	}
}

// Judge sets which exceptions of a page count, and why the others do not. With onlyActive,
// it omits the others. The page ends earlier if their commits have too many exceptions.
func (li *Lists) Judge(rd txn.Reader,
	d *facts.Deriver, w txn.Walk[exceptionRow], rows txn.Section[exceptionRow], onlyActive bool,
) (p txn.Section[ledger.ExceptionRecord], err error) {
	p.End = rows.End
	reasons := make(map[int64]map[string]string)
	examined := 0
	for i, x := range rows.Rows {
		inactive, known := reasons[x.Row.CommitID]
		if !known && examined > txn.MaxExamined {
			p.End = w.Key(rows.Rows[i-1])
			break
		}
		if !known {
			if inactive, err = li.whyInactive(rd, d, x.Row.CommitID); err != nil {
				return p, err
			}
			reasons[x.Row.CommitID] = inactive
			examined += len(inactive)
		}

		rec := x.Row.rec
		reason, newest := inactive[rec.Attestation]
		switch {
		case x.Row.isDistrusted:
			reason = "its signer's identity is distrusted since before it was recorded"
		case !newest:
			reason = fmt.Sprintf("only the newest %d exceptions of a commit count", facts.MaxExceptions)
		}
		rec.Active, rec.Inactive = reason == "", reason
		if rec.Active || !onlyActive {
			p.Rows = append(p.Rows, txn.Keyed[ledger.ExceptionRecord]{ID: x.ID, Row: rec})
		}
	}
	return p, nil
}

// whyInactive returns why each of the newest exceptions of a commit does not count, by its
// attestation.
func (li *Lists) whyInactive(rd txn.Reader, d *facts.Deriver, commitID int64) (map[string]string, error) {
	list, err := li.facts.ExceptionsOf(rd, commitID)
	if err != nil {
		return nil, err
	}
	reasons := make(map[string]string, len(list))
	for i, reason := range d.Contract.WhyInactive(list, rd.Now) {
		reasons[list[i].Attestation] = reason
	}
	return reasons, nil
}
