package txn

import (
	"context"
	"fmt"
)

// OwnersOfRepo returns the row id of the org of a repo, for a write about the repo.
func (db *DB) OwnersOfRepo(ctx context.Context, repoID int64) ([]int64, error) {
	if id, ok := db.orgOfRepo.Get(repoID); ok {
		return []int64{id}, nil
	}
	id, err := ReadLoose(ctx, db, ForWrite(""), func(rd Reader) (id int64, err error) {
		return id, rd.Row("SELECT org_id FROM repos WHERE id = ?", repoID).Scan(&id)
	})
	if err != nil {
		return nil, fmt.Errorf("read the org of a repo: %w", err)
	}
	db.orgOfRepo.Put(repoID, id)
	return []int64{id}, nil
}
