package search

import (
	"fmt"
	"math"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/lists"
	"github.com/ledgerd/ledgerd/store/txn"
)

// maxTracks is the maximum number of repos, or of environments, whose rows one request
// reads together: those that were created last.
const maxTracks = 1000

// A track is one of several walks that are read together, newest first.
type track[T any] struct {
	walk txn.Walk[T]
	// position is the key of the row before the next one, or a greater one.
	position []any
}

// readNewest visits the rows of several tracks, and examines about budget rows. It reads the
// newest first, but some rows of a track together. full is called between the tracks' rows
// with the key down to which all rows have been visited: if it returns true, the reading
// ends. end is this key, or nil if there are no more rows.
func readNewest[T any](
	rd txn.Reader, tracks []track[T], budget int, visit func(txn.Keyed[T]) error, full func(end []any) bool,
) (examined int, end []any, err error) {
	rows := min(max(txn.WindowRows/max(len(tracks), 1), 50), txn.WindowRows)
	for len(tracks) > 0 {
		i := newestTrack(tracks)
		end = tracks[i].position
		if examined >= budget || full(end) {
			return examined, end, nil
		}
		if examined >= txn.WindowRows {
			if err := rd.Long(); err != nil {
				return examined, end, err
			}
		}

		var p txn.Section[T]
		err := rd.InTurn(func() (err error) {
			p, err = tracks[i].walk.Read(rd.Conn, end, nil, min(rows, budget-examined))
			return err
		})
		if err != nil {
			return examined, end, err
		}
		examined += len(p.Rows)
		for _, r := range p.Rows {
			if err := visit(r); err != nil {
				return examined, end, err
			}
		}
		if tracks[i].position = p.End; p.End == nil {
			tracks[i] = tracks[len(tracks)-1]
			tracks = tracks[:len(tracks)-1]
		}
	}
	return examined, nil, nil
}

// newestTrack returns the index of the track whose next row may be the newest.
func newestTrack[T any](tracks []track[T]) (newest int) {
	for i := range tracks {
		if txn.CompareKeys(tracks[i].position, tracks[newest].position) > 0 {
			newest = i
		}
	}
	return newest
}

func neverFull([]any) bool { return false }

// A searchedRepo is a repo that a request reads, with its row id.
type searchedRepo struct {
	id   int64
	name string
}

// searched are the repos that a request reads.
type searched struct {
	orgID int64
	list  []searchedRepo
	// more reports whether there are other repos, with ids below oldest.
	more   bool
	oldest int64
}

// findSearched returns the repos of an org that were created last, at most maxTracks. If repo
// is not empty, it returns only this one.
func findSearched(rd txn.Reader, org, repo string) (p searched, err error) {
	if repo != "" {
		r, err := rd.FindRepo(org, repo)
		return searched{orgID: r.OrgID, list: []searchedRepo{{r.ID, r.Name}}, oldest: r.ID}, err
	}
	if p.orgID, err = rd.OrgID(org); err != nil {
		return p, err
	}
	p.list, err = txn.All(rd, func(row txn.Scanner) (r searchedRepo, err error) {
		return r, row.Scan(&r.id, &r.name)
	}, "SELECT id, name FROM repos /*+index repos_by_org*/ WHERE org_id = ? AND deleted_at = 0 ORDER BY id DESC LIMIT ?",
		p.orgID, maxTracks+1)
	if err != nil {
		return p, fmt.Errorf("read repos: %w", err)
	}

	if p.more = len(p.list) > maxTracks; p.more {
		p.list = p.list[:maxTracks]
	}
	if len(p.list) > 0 {
		p.oldest = p.list[len(p.list)-1].id
	}
	if len(p.list) > txn.WindowRows { // something is looked up in each
		return p, rd.Long()
	}
	return p, nil
}

// A newestCommit is a commit in a track, with its repo.
type newestCommit struct {
	ledger.CommitSummary
	repoID int64
}

// commitTracks returns a track for each repo with commits, of those with row ids below a
// limit.
func commitTracks(rd txn.Reader, p searched, below int64) (tracks []track[newestCommit], err error) {
	for _, r := range p.list {
		var newest int64
		err := rd.Row("SELECT coalesce(max(id), 0) FROM commits /*+index commits_by_repo*/ WHERE repo_id = ? AND id < ?",
			r.id, below).Scan(&newest)
		if err != nil {
			return nil, fmt.Errorf("find the newest commit of %s: %w", r.name, err)
		}
		if newest == 0 {
			continue
		}

		scan := func(row txn.Scanner) (c txn.Keyed[newestCommit], err error) {
			summary, err := lists.ScanSummary(row)
			c.ID, c.Row = summary.ID, newestCommit{summary.Row, r.id}
			c.Row.Repo = r.name
			return c, err
		}
		tracks = append(tracks, track[newestCommit]{position: []any{newest + 1}, walk: txn.Walk[newestCommit]{
			From: "commits c /*+index commits_by_repo*/", Where: "c.repo_id = ?", Args: []any{r.id},
			Keys: []string{"c.id"}, Key: txn.IDOf[newestCommit], Down: true, Columns: lists.SummaryColumns, Scan: scan,
		}})
	}
	return tracks, nil
}

// attestationTrack returns a track of attestations a by their time, or nil if there are
// none. where and args select them by an index of the given name, which ends with
// recorded_at. If since is not 0, older ones are left out. key returns the time of a row.
func attestationTrack[T any](
	rd txn.Reader, index, where string, args []any, since ledger.Time, columns string,
	scan func(txn.Scanner) (txn.Keyed[T], error), at func(T) ledger.Time,
) (*track[T], error) {
	from := "attestations a /*+index " + index + "*/"
	var newest ledger.Time
	err := rd.Row("SELECT coalesce(max(a.recorded_at), 0) FROM "+from+" WHERE "+where, args...).Scan(&newest)
	if err != nil {
		return nil, fmt.Errorf("find the newest attestation: %w", err)
	}
	if newest == 0 || newest < since {
		return nil, nil
	}

	w := txn.Walk[T]{
		From: from, Where: where, Args: args, Keys: []string{"a.recorded_at", "a.id"}, Down: true,
		Key:     func(r txn.Keyed[T]) []any { return []any{int64(at(r.Row)), r.ID} },
		Columns: columns, Scan: scan,
	}
	if since != 0 {
		w.Stop = []any{int64(since), int64(-1)}
	}
	return &track[T]{w, []any{int64(newest), int64(math.MaxInt64)}}, nil
}
