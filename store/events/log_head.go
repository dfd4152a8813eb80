package events

import (
	"fmt"

	"github.com/ledgerd/ledgerd/store/txn"
)

// takeSeq returns the next sequence number for an event of the org.
func (j *Journal) takeSeq(t *txn.Tx, orgID int64) (int64, error) {
	seq, err := j.NextSeq(t, orgID)
	if err == nil {
		j.left.appended[orgID]++
	}
	return seq, err
}

const selectHead = "SELECT next_seq, log_id, log_first, log_built FROM orgs WHERE id = ?"

// NextSeq returns the sequence number that the org's next event will have.
func (j *Journal) NextSeq(t *txn.Tx, orgID int64) (int64, error) {
	head, ok := j.heads[orgID]
	if !ok {
		err := t.Row(selectHead, orgID).Scan(&head.seq, &head.log, &head.first, &head.built)
		if err != nil {
			return 0, fmt.Errorf("number event: %w", err)
		}
		j.heads[orgID] = head
	}
	return head.seq + j.total.appended[orgID] + j.left.appended[orgID], nil
}

// AnnounceHead announces the query for the end of an org's events.
func (j *Journal) AnnounceHead(t *txn.Tx, orgID int64) {
	if _, ok := j.heads[orgID]; !ok {
		t.Ahead(selectHead, orgID)
	}
}
