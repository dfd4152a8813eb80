package check

import (
	"database/sql"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// readEvidence reads the attestations of events, with their envelopes. It calls full with the
// events whose envelopes together are large; the others have theirs when it returns.
func (c *checker) readEvidence(conn *sqldb.Conn, events []*event, full func([]*event)) error {
	type place struct{ repo, at int64 }
	byEvent := make(map[string]*event)
	seen := make(map[place]bool)
	var keys []any
	for _, e := range events {
		if e.kind != ledger.EventAttestation {
			continue
		}
		byEvent[e.public] = e
		if p := (place{e.repoID, int64(e.at)}); !seen[p] {
			seen[p] = true
			keys = append(keys, p.repo, p.at)
		}
	}

	byID := make(map[int64]*event, len(byEvent))
	var ids []any
	err := conn.EachIn(func(row sqldb.Scanner) error {
		a, err := scanEvidence(row)
		if err != nil {
			return err
		}
		if e := byEvent[a.event]; e != nil && e.evidence == nil && a.at == e.at {
			a.again = a.id < c.mapping.below
			e.evidence, byID[a.id] = a, e
			ids = append(ids, a.id)
		}
		return nil
	}, selectEvidence, 2, keys)
	if err != nil {
		return fmt.Errorf("read attestations: %w", err)
	}

	for _, e := range byID {
		if e.evidence.Voucher, err = c.vouchers.Of(conn, e.evidence.identity); err != nil {
			return err
		}
	}
	if err := readVerdicts(conn, byID, ids); err != nil {
		return err
	}
	return readEnvelopes(conn, byID, ids, full)
}

// readVerdicts reads what expressions are said to say of attestations.
func readVerdicts(conn *sqldb.Conn, byID map[int64]*event, ids []any) error {
	err := conn.EachIn(func(row sqldb.Scanner) error {
		var id int64
		var expression string
		var v policy.Verdict
		err := row.Scan(&id, &expression, &v.True, &v.Error)
		a := byID[id].evidence
		a.expressions, a.verdicts = append(a.expressions, expression), append(a.verdicts, v)
		return err
	}, `
SELECT v.attestation_id, x.text, v.verdict, v.error
FROM verdicts v /*+ordered*/ JOIN expressions x ON x.id = v.expression_id WHERE v.attestation_id IN `, 1, ids)
	if err != nil {
		return fmt.Errorf("read verdicts: %w", err)
	}
	return nil
}

// pageBytes limits the envelopes of the events of a page that are in memory at the same time.
const pageBytes = 4 << 20

// readEnvelopes reads the envelopes of attestations.
func readEnvelopes(conn *sqldb.Conn, byID map[int64]*event, ids []any, full func([]*event)) error {
	size := 0
	var read []*event
	err := conn.EachIn(func(row sqldb.Scanner) error {
		var id int64
		var body, payload, assertion []byte
		var at sql.NullInt64
		if err := row.Scan(&id, &body, &payload, &at, &assertion); err != nil {
			return err
		}

		e := byID[id]
		e.evidence.body, e.evidence.payload, e.evidence.payloadAt = body, payload, at
		e.evidence.assertion = assertion
		read = append(read, e)
		if size += len(body) + len(payload) + len(assertion); size > pageBytes {
			full(read)
			size, read = 0, nil
		}
		return nil
	}, "SELECT attestation_id, body, payload, payload_at, assertion FROM envelopes WHERE attestation_id IN ", 1, ids)
	if err != nil {
		return fmt.Errorf("read envelopes: %w", err)
	}
	return nil
}
