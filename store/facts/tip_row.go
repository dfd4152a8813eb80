package facts

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Conditions on a tip's flight. The numbers are literals, because SQLite does not use a
// partial index if they are parameters.
const (
	IsInFlight = "flight = " + inFlightNumber
	isDeployed = "flight = " + deployedNumber
	IsLive     = "flight < " + supersededNumber // compared, or may be compared again
	IsDone     = "flight IN (" + supersededNumber + ", " + withdrawnNumber + ")"

	inFlightNumber   = string('0' + rune(radarindex.InFlight))
	deployedNumber   = string('0' + rune(radarindex.Deployed))
	supersededNumber = string('0' + rune(radarindex.Superseded))
	withdrawnNumber  = string('0' + rune(radarindex.Withdrawn))
)

// Renumber gives a changed tip the highest seq of its repo, so that the radar's indexes
// read it again.
const Renumber = "seq = 1 + (SELECT max(o.seq) FROM tips o WHERE o.repo_id = tips.repo_id)"

// TipColumns are the columns of a tip t that ScanTip reads.
const TipColumns = "t.commit_id, t.flight, t.place, t.seq, t.opened_at, t.ended_at, t.policy_version, " +
	"t.branch, t.lineage, t.sha"

// ScanTip reads the TipColumns.
func ScanTip(row txn.Scanner) (radarindex.Tip, error) { return ScanTipAnd(row) }

// ScanTipAnd reads the TipColumns, followed by the columns in rest.
func ScanTipAnd(row txn.Scanner, rest ...any) (radarindex.Tip, error) {
	var t radarindex.Tip
	var lineage string
	err := row.Scan(append([]any{
		&t.CommitID, &t.Flight, &t.Place, &t.Seq, &t.OpenedAt, &t.EndedAt, &t.PolicyVersion,
		&t.Branch, &lineage, &t.SHA,
	}, rest...)...)
	if err == nil {
		t.Base, t.Parents, t.Ancestors = splitLineage(lineage)
	}
	return t, err
}

// JoinLineage encodes the commits that a tip is built on: its base, its parents and its
// ancestors, separated by spaces. Commas separate the elements of a list.
func JoinLineage(t radar.Tip) string {
	return t.Base + " " + strings.Join(t.Parents, ",") + " " + strings.Join(t.Ancestors, ",")
}

func splitLineage(text string) (base string, parents, ancestors []string) {
	base, lists, _ := strings.Cut(text, " ")
	first, second, _ := strings.Cut(lists, " ")
	list := func(s string) []string {
		if s == "" {
			return nil
		}
		return strings.Split(s, ",")
	}
	return base, list(first), list(second)
}

const selectTip = "SELECT " + TipColumns + " FROM tips t WHERE t.commit_id = ?"

// FindTip reads the tip that a commit is or was. It returns false if the commit was never
// a tip.
func FindTip(rd txn.Reader, commitID int64) (radarindex.Tip, bool, error) {
	return AskTip(rd, commitID)()
}

// AskTip asks the query of FindTip.
func AskTip(rd txn.Reader, commitID int64) func() (radarindex.Tip, bool, error) {
	asked := txn.Ask(rd, ScanTip, selectTip, commitID)
	return func() (radarindex.Tip, bool, error) {
		t, err := asked()
		if errors.Is(err, sql.ErrNoRows) {
			return t, false, nil
		}
		if err != nil {
			return t, false, fmt.Errorf("read tip: %w", err)
		}
		return t, true, nil
	}
}

// ReposWith returns the repos of the query for which the function tips returns at least
// one tip.
func (fa *Facts) ReposWith(
	ctx context.Context, query string, tips func(txn.Reader, int64) ([]int64, error),
) ([]int64, error) {
	return txn.Read(ctx, fa.db, txn.ForWrite(""), func(rd txn.Reader) (repos []int64, err error) {
		ids, err := txn.All(rd, txn.ScanID, query)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			list, err := tips(rd, id)
			if err != nil {
				return nil, err
			}
			if len(list) > 0 {
				repos = append(repos, id)
			}
		}
		return repos, nil
	})
}
