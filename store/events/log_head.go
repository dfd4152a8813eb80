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
		j.AskHead(t, orgID)
		var err error
		if head, err = j.asked[orgID](); err != nil {
			return 0, fmt.Errorf("number event: %w", err)
		}
		delete(j.asked, orgID)
		j.heads[orgID] = head
	}
	return head.seq + j.total.appended[orgID] + j.left.appended[orgID], nil
}

// AskHead asks for the end of an org's events, for a write that is going to append some.
func (j *Journal) AskHead(t *txn.Tx, orgID int64) {
	if _, ok := j.heads[orgID]; !ok && j.asked[orgID] == nil {
		j.asked[orgID] = txn.Ask(t.Reader, scanHead, selectHead, orgID)
	}
}

func scanHead(row txn.Scanner) (h logHead, err error) {
	return h, row.Scan(&h.seq, &h.log, &h.first, &h.built)
}
