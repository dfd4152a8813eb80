package check

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/check/signers"
	"github.com/ledgerd/ledgerd/store/internal/envelope"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// An event is a row of the table events.
type event struct {
	id, seq    int64
	public     string
	kind       ledger.EventType
	at         ledger.Time
	repoID     int64  // 0 if it has none
	repo       string // its name at that time; empty if it has none
	org        string // a former name that its org had at that time; empty if it had the present one
	body       []byte
	salt, leaf []byte

	// evidence is the attestation of an event of this type.
	evidence  *evidence
	isChecked bool // by eachEvent

	hash tlog.Hash // of the leaf in the tree
	// said is the body, if it can be read and is that of the leaf; nil otherwise.
	said ledger.Event
}

func (e *event) row() string { return fmt.Sprintf("event %d (%s)", e.seq, e.public) }

// eventRange names events in a problem.
func eventRange(from, to int64) string {
	if to-from == 1 {
		return fmt.Sprintf("event %d", from)
	}
	return fmt.Sprintf("events %d to %d", from, to-1)
}

const selectEvents = `
SELECT e.id, e.seq, e.event_id, e.type, e.at, coalesce(e.repo_id, 0),
  coalesce((SELECT f.name FROM former_names f WHERE f.org_id = e.org_id AND f.repo_id = e.repo_id
    AND f.until_seq > e.seq ORDER BY f.until_seq LIMIT 1), r.name, ''),
  coalesce((SELECT f.name FROM former_names f WHERE f.org_id = e.org_id AND f.repo_id = 0
    AND f.until_seq > e.seq ORDER BY f.until_seq LIMIT 1), ''), e.body, e.salt, e.leaf
FROM events e LEFT JOIN repos r ON r.id = e.repo_id
WHERE e.org_id = ? AND e.seq >= ? AND e.seq < ? ORDER BY e.seq`

func scanEvent(row sqldb.Scanner) (*event, error) {
	var e event
	return &e, row.Scan(&e.id, &e.seq, &e.public, &e.kind, &e.at, &e.repoID, &e.repo, &e.org, &e.body, &e.salt, &e.leaf)
}

// An evidence is a row of the table attestations, with its envelope.
type evidence struct {
	id                   int64
	public, event        string
	repo                 string
	commit               string
	predicate, typ, slot string
	dn                   string
	key                  []byte // digest of the signer's key; nil before release 0.4
	identity             string
	result               ledger.Result
	at                   ledger.Time
	payloadDigest        []byte
	assertionDigest      []byte // of the assertion of a passkey; nil without one
	mappingVersion       int
	again                bool // its outcome is by later rules than those by which it was recorded
	emails               []string
	reason, base         string
	agedFrom, finishedAt ledger.Time
	commitID, signerID   int64
	isUnmapped           bool // it is about to be mapped by later rules

	body, payload   []byte // of the envelope
	payloadAt       sql.NullInt64
	assertion       []byte // of a passkey; nil without one
	signers.Voucher        // of its identity

	// expressions were evaluated, each with a verdict.
	expressions []string
	verdicts    []policy.Verdict
	// What the envelope says.
	links linksOf
	says
	certified []string    // e-mail addresses in the certificate of the signer
	isRead    bool        // whether the statement was read
	isLate    bool        // finishedAt is later than it says
	saidAt    ledger.Time // when it finished, as it says
}

func (e *evidence) row() string { return "attestation " + e.public }

// selectEvidence finds attestations by repo and time. There is no index on their IDs, but the
// event of an attestation has its time.
const selectEvidence = `
SELECT a.id, a.attestation_id, a.event_id, r.name, c.sha, p.name, t.uri, a.slot, s.dn, k.digest, a.identity_id,
  a.status, a.duration_ms, a.recorded_at, a.payload_digest, a.mapping_version, a.assertion, a.emails,
  a.reason, a.base, a.aged_from, a.finished_at, a.commit_id, a.signer_id
FROM attestations a /*+index attestations_by_time*/
  /*+ordered*/ JOIN repos r ON r.id = a.repo_id /*+ordered*/ JOIN commits c ON c.id = a.commit_id
  /*+ordered*/ JOIN predicates p ON p.id = a.predicate_id /*+ordered*/ JOIN predicate_types t ON t.id = a.type_id
  /*+ordered*/ JOIN signers s ON s.id = a.signer_id LEFT JOIN keys k ON k.id = a.key_id
WHERE (a.repo_id, a.recorded_at) IN `

func scanEvidence(row sqldb.Scanner) (*evidence, error) {
	var e evidence
	var emails string
	err := row.Scan(&e.id, &e.public, &e.event, &e.repo, &e.commit, &e.predicate, &e.typ, &e.slot, &e.dn, &e.key,
		&e.identity, &e.result.Status, &e.result.DurationMS, &e.at, &e.payloadDigest, &e.mappingVersion,
		&e.assertionDigest, &emails, &e.reason, &e.base, &e.agedFrom, &e.finishedAt, &e.commitID, &e.signerID)
	e.emails = sqldb.Lines(emails)
	return &e, err
}

// isPruned reports whether the envelope was pruned. Then body is its digest.
func (e *evidence) isPruned() bool { return envelope.IsPruned(e.payloadAt) }

// envelope returns the envelope as it was posted. It reports false if it is missing.
func (e *evidence) envelope() (whole []byte, ok bool) {
	if !e.payloadAt.Valid {
		return e.body, len(e.body) > 0
	}
	at := e.payloadAt.Int64
	if at < 0 || at > int64(len(e.body)) {
		return nil, false
	}
	return envelope.Unpack(e.body, e.payload, int(at)), true
}

// A link is what an attestation links with its commit: a row of the table artifacts, if no earlier one of
// the same signer has linked it.
type link struct {
	digest  string // as stored
	isBuild int64
}

// linksOf are the links of an attestation.
type linksOf struct {
	list []link
	// former may also be there: by earlier rules, the attestation was a build, or was none.
	former []link
}

// A linkKey is the key of a row of artifacts in an org.
type linkKey struct {
	link
	commit, signer int64
	identity       string
}

// says is what an attestation says in addition to its outcome; nil if it is not of that type.
type says struct {
	exception *attestation.Exception
	merge     *attestation.Merge
	rollback  *attestation.Rollback
	changes   *attestation.Changes
}

// digestText returns a digest as events have it; "" without one.
func digestText(digest []byte) string {
	if digest == nil {
		return ""
	}
	return "sha256:" + hex.EncodeToString(digest)
}

func hashOf(text []byte) []byte {
	sum := sha256.Sum256(text)
	return sum[:]
}
