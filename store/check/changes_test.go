package check_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/store/check"
)

// unlikeEvent is reported of a commit of which not that is known what the log says.
const unlikeEvent = ": author, branch, targets, tree, changed paths or another part of the record are not " +
	"those in the log"

// Ways to change a stopped database, each with the start of a line that must be reported.
var changes = []struct {
	name   string
	change func(testing.TB, *sql.DB)
	want   []string
}{
	{"a body", run(`
		UPDATE events SET body = CAST(replace(CAST(body AS TEXT), '"pass"', '"fail"') AS BLOB)
		WHERE seq = (SELECT min(seq) FROM events WHERE CAST(body AS TEXT) LIKE '%"pass"%')`),
		[]string{"body acme event ", ": the body of evt_", " is not the one in the log"}},
	{"a salt", run(`UPDATE events SET salt = randomblob(16) WHERE seq = 20`),
		[]string{"body acme event 20 (evt_", ": the body of evt_", " is not the one in the log"}},
	{"a short salt", run(`UPDATE events SET salt = randomblob(15) WHERE seq = 20`),
		[]string{"body acme event 20 (evt_", ": the salt has 15 bytes"}},
	{"a lost salt", run(`UPDATE events SET salt = NULL WHERE seq = 20`),
		[]string{"body acme event 20 (evt_", ": the salt has 0 bytes"}},
	{"a lost body", run(`UPDATE events SET body = x'' WHERE seq = 20`),
		[]string{"body acme event 20 (evt_", ": the body of evt_", " is not the one in the log"}},
	{"a leaf", run(`UPDATE events SET leaf = randomblob(32) WHERE seq = 20`),
		[]string{"body acme event 20 (evt_", ": the body of evt_", " is not the one in the log"}},
	{"a leaf, in its tile", run(`UPDATE events SET leaf = randomblob(32) WHERE seq = 20`),
		[]string{"tile acme log tile 0/000: 1 hashes are not those of the leaves: the first is that of event 20"}},
	{"a leaf, under the checkpoint", run(`UPDATE events SET leaf = randomblob(32) WHERE seq = 20`),
		[]string{"checkpoint acme log: the stored checkpoint says that the first "}},
	{"a short leaf", run(`UPDATE events SET leaf = randomblob(31) WHERE seq = 20`),
		[]string{"body acme event 20 (evt_", ": the leaf has 31 bytes, want 32"}},
	{"a lost leaf", run(`UPDATE events SET leaf = NULL, salt = NULL WHERE seq = 20`),
		[]string{"body acme event 20 (evt_", ": it has no leaf"}},
	{"the time of a leaf", run(`UPDATE events SET at = at + 1 WHERE seq = 20`),
		[]string{"tile acme log tile 0/000: 1 hashes are not those of the leaves: the first is that of event 20"}},
	{"a body with a leaf for it", rewrite(20),
		[]string{"tile acme log tile 0/000: 1 hashes are not those of the leaves: the first is that of event 20"}},
	{"a body after the last tile, with a leaf for it", rewrite(-4),
		[]string{"checkpoint acme log: the stored checkpoint says that the first "}},

	{"a deleted event", run(`DELETE FROM events WHERE seq = 20`), []string{"events acme event 20: missing"}},
	{"deleted events", run(`DELETE FROM events WHERE seq BETWEEN 20 AND 25`),
		[]string{"events acme events 20 to 25: missing"}},
	{"the last event deleted", run(`DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)`),
		[]string{"events acme event ", ": missing"}},
	{"the last events deleted, and the counter with them", run(`
		DELETE FROM events WHERE seq > (SELECT max(seq) - 5 FROM events); UPDATE orgs SET next_seq = next_seq - 5`),
		[]string{"checkpoint acme log: the stored checkpoint has "}},
	{"a swapped pair", swap("20", "21"), []string{
		"events acme event 21 (evt_", ": it was recorded before the event with the number before"}},
	{"a swapped pair, in its tile", swap("20", "21"),
		[]string{"tile acme log tile 0/000: 2 hashes are not those of the leaves: the first is that of event 20"}},
	{"a swapped pair after the last tile", swap("(SELECT max(seq) FROM events)", "(SELECT max(seq) - 1 FROM events)"),
		[]string{"events acme event ", ": it was recorded before the event with the number before"}},
	{"an event of another org", run(`
		INSERT INTO orgs (name, created_at) VALUES ('umbrella', 0); UPDATE events SET org_id = 2 WHERE seq = 20`),
		[]string{"events umbrella: 1 events are not numbered from 0 to -1"}},
	{"an event after the last", run(`UPDATE orgs SET next_seq = next_seq - 1`),
		[]string{"events acme: 1 events are not numbered from 0 to "}},
	{"an event before the first", run(`UPDATE events SET seq = -1 WHERE seq = 20`),
		[]string{"events acme: 1 events are not numbered from 0 to "}},
	{"the id of an event", run(`UPDATE events SET event_id = 'evt_x' WHERE seq = 20`),
		[]string{"body acme event 20 (evt_x): the leaf of event evt_x, type ", ", has the body of evt_"}},
	{"the type of an event", run(`UPDATE events SET type = 'radar' WHERE seq = 20`),
		[]string{"body acme event 20 (evt_", ", type radar, has the body of evt_"}},
	{"the repo of an event", run(`UPDATE events SET repo_id = 3 - repo_id WHERE seq = 20`),
		[]string{"body acme event 20 (evt_", `): it is an event of "`, `, and the ledger has it as one of "`}},
	{"a signer who is distinct", run(`UPDATE signers SET distinct_by = 1 WHERE id = 1`),
		[]string{"the row says that it is distinct: true, and the events: false"}},
	{"a signer who counts as another", run(`UPDATE signers SET individual = individual + 1 WHERE id = 1`),
		[]string{"it counts as the individual 2, and by its names it is 1"}},
	{"the name of an org", run(`UPDATE orgs SET name = 'umbrella'`),
		[]string{"body umbrella event ", ` in "acme", and the ledger has it as one of "`, ` in "umbrella"`}},

	{"an envelope", run(`
		UPDATE envelopes SET body = CAST(replace(CAST(body AS TEXT), '"sig":"', '"sig":"AAAA') AS BLOB)
		WHERE attestation_id = 7`),
		[]string{"signature acme attestation att_", ": the signature does not match"}},
	{"a payload", run(`
		UPDATE envelopes SET payload = CAST(replace(CAST(payload AS TEXT), '1200', '1201') AS BLOB)
		WHERE attestation_id = 7`),
		[]string{"signature acme attestation att_", ": the signature does not match"}},
	{"the place of a payload", run(`UPDATE envelopes SET payload_at = 100000 WHERE attestation_id = 7`),
		[]string{"digests acme attestation att_", ": there is no envelope, or its parts do not fit"}},
	{"a negative place of a payload", run(`UPDATE envelopes SET payload_at = -1 WHERE attestation_id = 7`),
		[]string{"digests acme attestation att_", ": there is no envelope, or its parts do not fit"}},
	{"an envelope deleted", run(`DELETE FROM envelopes WHERE attestation_id = 7`),
		[]string{"digests acme attestation att_", ": there is no envelope, or its parts do not fit"}},
	{"envelopes swapped", run(`
		CREATE TEMP TABLE two AS SELECT id FROM attestations WHERE predicate_id = 1 ORDER BY id LIMIT 2; -- by one signer
		CREATE TEMP TABLE pair AS SELECT e.*, (SELECT sum(id) FROM two) - attestation_id AS other
		  FROM envelopes e WHERE attestation_id IN (SELECT id FROM two);
		UPDATE envelopes SET payload = (SELECT payload FROM pair WHERE other = envelopes.attestation_id),
		  body = (SELECT body FROM pair WHERE other = envelopes.attestation_id)
		WHERE attestation_id IN (SELECT id FROM two)`),
		[]string{"digests acme attestation att_", ": the payload has the digest sha256:", ", and the event says sha256:"}},
	{"a result", run(`UPDATE attestations SET status = 'warn' WHERE id = 7`),
		[]string{"record acme attestation att_", ": result: the ledger says warn after 1200 ms, and it is "}},
	{"a duration", run(`UPDATE attestations SET duration_ms = 1 WHERE id = 7`),
		[]string{"record acme attestation att_", ": result: the ledger says ", " after 1 ms, and it is "}},
	{"a slot", run(`UPDATE attestations SET slot = 'x' WHERE id = 7`),
		[]string{"record acme attestation att_", ": slot: the ledger says x, and it is "}},
	{"a predicate", run(`UPDATE attestations SET predicate_id = predicate_id % 3 + 1 WHERE id = 7`),
		[]string{"record acme attestation att_", ": predicate: the ledger says "}},
	{"the name of a predicate", run(`UPDATE predicates SET name = 'test:rust' WHERE name = 'test:go'`),
		[]string{"record acme attestation att_", ": predicate: the ledger says test:rust, and it is test:go"}},
	{"a type", run(`UPDATE predicate_types SET uri = 'https://example.com/x'`),
		[]string{"record acme attestation att_", ": predicate type: the ledger says https://example.com/x, and it is "}},
	{"the commit of an attestation", run(`
		UPDATE attestations SET commit_id = (SELECT min(id) FROM commits WHERE id > commit_id) WHERE id = 7`),
		[]string{"record acme attestation att_", ": commit: the ledger says ", ", and it is "}},
	{"a signer", run(`UPDATE attestations SET signer_id = 3 - signer_id WHERE id = 7`),
		[]string{"record acme attestation att_", ": signer: the ledger says "}},
	{"the name of a signer", run(`UPDATE signers SET dn = 'cn=eve,o=acme' WHERE dn LIKE 'cn=build%'`),
		[]string{"record acme attestation att_", ": signer: the ledger says eve, and it is build"}},
	{"a key", run(`UPDATE attestations SET key_id = 3 - key_id WHERE id = 7`),
		[]string{"record acme attestation att_", ": key: the ledger says "}},
	{"a lost key", run(`UPDATE attestations SET key_id = 99 WHERE id = 7`),
		[]string{"record acme attestation att_", ": key: the ledger says none, and it is "}},
	{"an envelope with the same statement and signature", run(`
		UPDATE envelopes SET body = CAST(CAST(body AS TEXT) || ' ' AS BLOB) WHERE attestation_id = 7`),
		[]string{"digests acme attestation att_", ": the envelope has the digest sha256:", ", and the event says sha256:"}},
	{"the digest of a payload", run(`UPDATE attestations SET payload_digest = randomblob(32) WHERE id = 7`),
		[]string{"record acme attestation att_", ": payload digest: the ledger says sha256:", ", and it is sha256:"}},
	{"the identity of an attestation", run(`UPDATE attestations SET identity_id = 'idn_x' WHERE id = 7`),
		[]string{"signature acme attestation att_", ": it cannot be verified: there is no usable identity idn_x"}},
	{"an attestation deleted, with its envelope", run(`
		DELETE FROM attestations WHERE id = 7; DELETE FROM envelopes WHERE attestation_id = 7`),
		[]string{"attestations acme event ", ": the ledger does not have its attestation"}},
	{"an attestation without an event", run(`
		CREATE TEMP TABLE more AS SELECT * FROM attestations WHERE id = 7;
		UPDATE more SET id = 100000, attestation_id = 'att_x', payload_digest = randomblob(32), event_id = 'evt_x';
		INSERT INTO attestations SELECT * FROM more`),
		[]string{"attestations acme: there are 182 attestations, and 181 of them have an event"}},
	{"the time of an attestation", run(`UPDATE attestations SET recorded_at = recorded_at + 1 WHERE id = 7`),
		[]string{"attestations acme event ", ": the ledger does not have its attestation"}},
	{"the id of an attestation", run(`UPDATE attestations SET attestation_id = 'att_x' WHERE id = 7`),
		[]string{"record acme attestation att_x: ID: the ledger says att_x, and it is att_"}},

	{"a state", run(`UPDATE commits SET state = 3 WHERE state = 1`),
		[]string{"states acme commit ", "@", ": the ledger shows the commit ",
			" as PROMOTABLE, and by the events in the log it is VALIDATING"}},
	{"a state that does not follow", run(`UPDATE commits SET state = 3 WHERE state = 1`),
		[]string{"derivation acme commit ", "@", ": it is PROMOTABLE, and its evidence makes it VALIDATING"}},
	{"the standing of what runs", run(`UPDATE commits SET standing = 1 WHERE standing = 3`),
		[]string{"derivation acme commit ", "@",
			": its standing is stored as VALIDATING, and its evidence gives PROMOTABLE"}},
	{"a transition", run(`UPDATE transitions SET to_state = 3 WHERE to_state = 4`),
		[]string{"states acme commit ", "@", ": it moved from "}},
	{"the cause of a transition", run(`UPDATE transitions SET cause_id = 'x' WHERE to_state = 4`),
		[]string{"states acme commit ", " because of attestation x, and by its event from "}},
	{"a deleted transition", run(`DELETE FROM transitions WHERE to_state = 2`),
		[]string{"states acme commit ", ": the event evt_", " moves the commit ", " from ATTESTED to ",
			", and it was VALIDATING"}},
	{"the last transition deleted", run(`DELETE FROM transitions WHERE to_state = 4`),
		[]string{"states acme commit ", ": the ledger shows the commit ",
			" as DEPLOYED, and by the events in the log it is PROMOTABLE"}},
	{"a transition without an event", run(`
		UPDATE transitions SET event = (SELECT id FROM events WHERE type = 'policy') WHERE to_state = 1 AND commit_id = 1`),
		[]string{"states acme commit ", ": the transition from DRAFT to VALIDATING has no event"}},
	{"evidence left out", run(`DELETE FROM latest WHERE commit_id IN (SELECT id FROM commits WHERE state < 4)`),
		[]string{"derivation acme commit ", "and its evidence makes it "}},

	{"a branch", run(`UPDATE commits SET branch = 'main' WHERE branch = 'fix'`), []string{unlikeEvent}},
	{"a target", run(`UPDATE commits SET target = 'dev' WHERE branch = 'fix'`), []string{unlikeEvent}},
	{"further targets", run(`UPDATE commits SET targets = 'dev' WHERE branch = 'fix'`), []string{unlikeEvent}},
	{"an author", run(`UPDATE commits SET author_name = 'Eve' WHERE branch = 'fix'`), []string{unlikeEvent}},
	{"a committer", run(`UPDATE commits SET writers = '' WHERE branch = 'fix'`), []string{unlikeEvent}},
	{"a signing key", run(`UPDATE commits SET signing_keys = '' WHERE branch = 'fix'`), []string{unlikeEvent}},
	{"a proof", run(`UPDATE commits SET tree = 'abcd' WHERE branch = 'fix'`), []string{unlikeEvent}},
	{"changed paths", run(`UPDATE commit_details SET paths_key = 'x'`), []string{unlikeEvent}},
	{"changed paths, forgotten", run(`UPDATE commit_details SET changes = NULL`), []string{unlikeEvent}},
	{"a commit that was never registered", run(`UPDATE commits SET branch = 'x' WHERE id = 3`), []string{unlikeEvent}},
	{"the ID of a commit", run(`UPDATE commits SET sha = 'x' WHERE branch = 'fix'`),
		[]string{"facts acme: there are events about 1 commits that have no row"}},

	{"a contract", run(`
		UPDATE policies SET contract = CAST(replace(CAST(contract AS TEXT), 'test:go', 'test:no') AS BLOB)
		WHERE version = 2`),
		[]string{"policy acme policy 2 of api: the contract has the digest sha256:", ", and the ledger says sha256:"}},
	{"the digest of a contract", run(`UPDATE policies SET digest = 'sha256:00' WHERE version = 2`),
		[]string{"policy acme policy 2 of api: the contract has the digest sha256:", ", and the ledger says sha256:00"}},
	{"a version deleted", run(`DELETE FROM policies WHERE version = 2`),
		[]string{"policy acme policy 2 of api: there is an event of the version, and no row"}},
	{"the first version deleted", run(`DELETE FROM policies WHERE version = 1 AND repo_id = 1`),
		[]string{"policy acme policy 2 of api: the version before is missing"}},
	{"an added version", run(`
		INSERT INTO policies (repo_id, version, digest, contract, created_at, created_by)
			SELECT repo_id, 3, digest, contract, created_at, created_by FROM policies WHERE version = 2`),
		[]string{"policy acme policy 3 of api: the log has no event of this version"}},
	{"the active version", run(`UPDATE repos SET policy_version = 1 WHERE name = 'api'`),
		[]string{"policy acme repo api: version 1 (sha256:"}},
	{"the active digest", run(`UPDATE repos SET policy_digest = 'sha256:00' WHERE name = 'api'`),
		[]string{"policy acme repo api: version 2 (sha256:00) is active"}},
	{"a contract that cannot be read", contract("{}x"),
		[]string{"policy acme policy 2 of api: the contract cannot be read"}},

	{"the fingerprint of an identity", run(`UPDATE identities SET fingerprint = 'x' WHERE id = 1`),
		[]string{"identity acme identity idn_", ": the row has the fingerprint x, and its key or certificate "}},
	{"the key of an identity", run(`
		UPDATE identities SET pem = (SELECT pem FROM identities i WHERE i.id = 3 - identities.id) WHERE id = 1`),
		[]string{"identity acme identity idn_", ": the row has the fingerprint "}},
	{"the key of an identity, for its signatures", run(`
		UPDATE identities SET pem = (SELECT pem FROM identities i WHERE i.id = 3 - identities.id) WHERE id = 1`),
		[]string{"signature acme attestation att_"}},
	{"the expiry of an identity", run(`UPDATE identities SET not_after = 1000 WHERE id = 1`),
		[]string{"identity acme identity idn_", ": the row has the expiry 1970"}},
	{"the name of an identity", run(`UPDATE identities SET dn = 'cn=eve,o=acme' WHERE id = 1`),
		[]string{"signature acme attestation att_", ": it is by cn=eve,o=acme, and the event says cn=build,ou=ci,o=acme"}},

	{"the end of an identity", run(`UPDATE identities SET revoked_at = 1 WHERE id = 1`),
		[]string{"identity acme identity idn_", `: revoked_at: the ledger lists "1970`}},
	{"an identity that is trusted again", run(`UPDATE identities SET revoked_at = 0, distrusted_since = 0 WHERE id = 4`),
		[]string{"identity acme identity idn_", `: distrusted_since: the ledger lists none, and event evt_`}},
	{"an identity without an end", run(`UPDATE identities SET revoked_at = 0 WHERE id = 4`),
		[]string{"identity acme identity idn_", `: revoked_at: the ledger lists none, and event evt_`}},
	{"the distrust of an identity", run(`UPDATE identities SET distrusted_since = 0 WHERE id = 4`),
		[]string{"identity acme identity idn_", `: distrusted_since: the ledger lists none, and event evt_`}},
	{"what an identity may attest", run(`UPDATE identities SET may = 'deploy:*' WHERE id = 1`),
		[]string{"identity acme identity idn_", `: may: the ledger lists ["deploy:*"], and event evt_`,
			` has ["*","merge:*","baseline:*","changes:*"]`}},
	{"what a changed identity may attest", run(`UPDATE identities SET may = '' WHERE id = 3`),
		[]string{"identity acme identity idn_", `: may: the ledger lists none, and event evt_`, ` has ["test:*","lint:*"]`}},
	{"the e-mail address of an identity", run(`UPDATE identities SET email = 'eve@example.com' WHERE id = 1`),
		[]string{"identity acme identity idn_", `: email: the ledger lists "eve@example.com", and event evt_`}},
	{"the subjects of an identity", run(`UPDATE identities SET dn_pattern = 'o=acme' WHERE id = 1`),
		[]string{"identity acme identity idn_", `: dn_pattern: the ledger lists "o=acme", and event evt_`}},
	{"the kind of an identity", run(`UPDATE identities SET kind = 'root' WHERE id = 1`),
		[]string{"identity acme identity idn_", `: kind: the ledger lists "root", and event evt_`}},
	{"the key of an identity, with its fingerprint", run(`
		UPDATE identities SET (pem, fingerprint) = (SELECT pem, fingerprint FROM identities i WHERE i.id = 4) WHERE id = 3`),
		[]string{"identity acme identity idn_", `: key: the ledger lists "`, `, and event evt_`}},
	{"the event of an identity", run(`UPDATE identities SET event_id = 'evt_x' WHERE id = 1`),
		[]string{"identity acme identity idn_", `: the row has the event "evt_x", and the last event about it is "evt_`}},
	{"an identity without an event", run(`
		INSERT INTO identities (identity_id, org_id, kind, dn, email, pem, fingerprint, not_after, created_at, event_id)
		SELECT 'idn_x', org_id, kind, 'cn=eve,o=acme', email, pem, 'x', not_after, created_at, 'evt_x'
		FROM identities WHERE id = 1`),
		[]string{"identity acme identity idn_x", `: the row has the event "evt_x", and the last event about it is ""`}},
	{"a deleted identity", run(`DELETE FROM identities WHERE id = 4`),
		[]string{"identity acme identity idn_", ": there are events about it, the last is evt_", ", and no row"}},

	{"an audit event that the list lacks", run(`DELETE FROM audits WHERE action = 'repo.created'`),
		[]string{"audit acme event ", ": the list of administrative actions does not have it"}},
	{"the actor of an audit event", run(`UPDATE audits SET actor = 'tok_x' WHERE action = 'policy.applied'`),
		[]string{"audit acme event ", ": the list of administrative actions has {", " actor:tok_x} of it, want {"}},
	{"the kind of an audit event", run(`UPDATE audits SET kind = 'x' WHERE action = 'policy.applied'`),
		[]string{"audit acme event ", " kind:x "}},
	{"the action of an audit event", run(`UPDATE audits SET action = 'x' WHERE action = 'policy.applied'`),
		[]string{"audit acme event ", " action:x "}},
	{"the repo of an audit event", run(`UPDATE audits SET repo = 'x' WHERE action = 'policy.applied'`),
		[]string{"audit acme event ", " repo:x "}},
	{"another event in the list of audit events", run(`
		INSERT INTO audits SELECT org_id, 20, (SELECT id FROM events WHERE seq = 20), kind, action, repo, actor
		FROM audits LIMIT 1`),
		[]string{"audit acme event 20", ": the list of administrative actions has it, and it is not of the type audit"}},

	{"the status of a delivery", run(`UPDATE outbox SET status = 'lost'`),
		[]string{"outbox acme delivery dlv_", `: the status "lost" is not one of a delivery`}},
	{"a delivery that would not be sent", run(`UPDATE outbox SET due_at = 0`),
		[]string{"outbox acme delivery dlv_", ": it is pending, and has the times "}},
	{"a delivery that is said to have failed", run(`UPDATE outbox SET status = 'failed', ended_at = 1`),
		[]string{"outbox acme delivery dlv_", ": it is failed, and has the times "}},
	{"a delivery that is pending and ended", run(`UPDATE outbox SET ended_at = 1`),
		[]string{"outbox acme delivery dlv_", ": it is pending, and has the times "}},
	{"a delivery that is ended without a time", run(`UPDATE outbox SET status = 'succeeded', due_at = 0`),
		[]string{"outbox acme delivery dlv_", ": it is succeeded, and has the times "}},
	{"a lease of a delivery that is done", run(`
		UPDATE outbox SET status = 'succeeded', due_at = 0, ended_at = 1, leased = 1`),
		[]string{"outbox acme delivery dlv_", ": it is succeeded, and being attempted"}},
	{"the attempts of a delivery", run(`UPDATE outbox SET tries = 1`),
		[]string{"outbox acme delivery dlv_", ": it has 0 attempts, 1 of them since it was queued"}},
	{"negative attempts of a delivery", run(`UPDATE outbox SET tries = -1`),
		[]string{"outbox acme delivery dlv_", ": it has 0 attempts, -1 of them since it was queued"}},
	{"a delivery of an event of another repo", run(`
		UPDATE outbox SET event = (SELECT min(id) FROM events WHERE repo_id = 2)
		WHERE event = (SELECT max(event) FROM outbox)`),
		[]string{"outbox acme delivery dlv_", ": its event is not one of the webhook's repo or org"}},
	{"a delivery of an event of another org", run(`
		INSERT INTO orgs (name, created_at) VALUES ('umbrella', 0);
		INSERT INTO events (org_id, seq, event_id, type, at, body) VALUES (2, 0, 'evt_x', 'key', 1, x'00');
		UPDATE outbox SET event = (SELECT id FROM events WHERE org_id = 2) WHERE event = (SELECT max(event) FROM outbox)`),
		[]string{"outbox acme delivery dlv_", ": its event is not one of the webhook's repo or org"}},
	{"a delivery of nothing", run(`UPDATE outbox SET event = NULL WHERE event = (SELECT max(event) FROM outbox)`),
		[]string{"outbox acme delivery dlv_", ": it has not one body, of an event or a ping"}},
	{"a delivery of an event and a ping", run(`UPDATE outbox SET ping = '{}'`),
		[]string{"outbox acme delivery dlv_", ": it has not one body, of an event or a ping"}},
	{"a ping", run(`UPDATE outbox SET ping = replace(ping, '"repo":"api"', '"repo":"web"') WHERE ping IS NOT NULL`),
		[]string{"outbox acme delivery dlv_", ": its body is not that of a ping to this webhook"}},
	{"a ping of another org", run(`UPDATE outbox SET ping = replace(ping, 'acme', 'acne') WHERE ping IS NOT NULL`),
		[]string{"outbox acme delivery dlv_", ": its body is not that of a ping to this webhook"}},
	{"a ping to another webhook", run(`UPDATE outbox SET ping = replace(ping, 'whk_', 'whk_x') WHERE ping IS NOT NULL`),
		[]string{"outbox acme delivery dlv_", ": its body is not that of a ping to this webhook"}},
	{"the type of a ping", run(`UPDATE outbox SET ping = replace(ping, '"ping"', '"state"') WHERE ping IS NOT NULL`),
		[]string{"outbox acme delivery dlv_", ": its body is not that of a ping to this webhook"}},
	{"a ping that cannot be read", run(`UPDATE outbox SET ping = ping || '}' WHERE ping IS NOT NULL`),
		[]string{"outbox acme delivery dlv_", ": its body is not that of a ping to this webhook"}},

	{"the counter of a commit", run(`UPDATE commits SET attestations = 7 WHERE id = 1`),
		[]string{"counter acme commit ", ": it counts 7 attestations"}},
	{"the newest attestation of a commit", run(`UPDATE commits SET newest = 100000 WHERE id = 1`),
		[]string{"counter acme commit ", " attestations, the last of them row 100000, and has 3"}},
	{"the counter of a repo", run(`UPDATE repos SET attestations = 7 WHERE name = 'api'`),
		[]string{"counter acme attestations of repo api: the counter is 7, and there are 90"}},
	{"the counter of a predicate", run(`UPDATE predicates SET attestations = 7 WHERE name = 'test:late'`),
		[]string{"counter acme attestations of predicate test:late: the counter is 7, and there are 1"}},
	{"the counter of a state", run(`UPDATE repo_states SET commits = 70 WHERE repo_id = 1 AND state = 4`),
		[]string{"counter acme commits of api in DEPLOYED: the counter is 70, and there are "}},
	{"a deleted counter of a state", run(`DELETE FROM repo_states WHERE repo_id = 1 AND state = 4`),
		[]string{"counter acme commits of api in DEPLOYED: the counter is 0, and there are "}},
	{"the counter of violations", run(`UPDATE orgs SET violations = violations + 1`),
		[]string{"counter acme violations of org acme: the counter is "}},
	{"the counter of open violations", run(`UPDATE orgs SET open_violations = open_violations + 1`),
		[]string{"counter acme open violations of org acme: the counter is "}},
	{"the counter of open violations of a repo", run(`UPDATE repos SET open_violations = open_violations + 1`),
		[]string{"counter acme open violations of repo api: the counter is "}},

	{"a tile", run(`
		UPDATE tiles SET hashes = CAST(randomblob(32) || substr(hashes, 33) AS BLOB) WHERE level = 0 AND n = 0`),
		[]string{"tile acme log tile 0/000: 1 hashes are not those of the leaves: the first is that of event 0"}},
	{"a short tile", run(`UPDATE tiles SET hashes = substr(hashes, 33) WHERE level = 0 AND n = 0`),
		[]string{"tile acme log tile 0/000: it has 8160 bytes, want 8192"}},
	{"a tile of level 1", run(`UPDATE tiles SET hashes = randomblob(length(hashes)) WHERE level = 1`),
		[]string{"tile acme log tile 1/000.p/", "hashes are not those of the leaves: the first is that of events 0 to 255"}},
	{"a deleted tile", run(`DELETE FROM tiles WHERE level = 0 AND n = 0`), []string{"tile acme log: "}},
	{"a tile too many", run(`INSERT INTO tiles SELECT log_id, 2, 0, hashes FROM tiles WHERE level = 0 AND n = 0`),
		[]string{"tile acme log: "}},
	{"a checkpoint", run(`UPDATE logs SET checkpoint = replace(checkpoint, 'ledger.example.com', 'ledger.example.org')`),
		[]string{"checkpoint acme log: the stored checkpoint is not signed by the log's key"}},
	{"the size of a checkpoint", run(`UPDATE logs SET size = size - 1`),
		[]string{"checkpoint acme log: the stored checkpoint is of "}},
	{"the key of a log", run(`UPDATE logs SET vkey = 'x'`),
		[]string{`checkpoint acme log: the key "x" is not a verifier key`}},
	{"the origin of a log", run(`UPDATE logs SET origin = origin || '/2'`),
		[]string{"checkpoint acme log: the stored checkpoint is of "}},
	{"the epoch of a log", run(`UPDATE logs SET epoch = 2`),
		[]string{"log acme log of epoch 2: it is number 1 of the org's logs"}},
	{"the start of a log", run(`UPDATE logs SET first_seq = 1; UPDATE orgs SET log_first = 1`),
		[]string{"log acme log: it is number 1 of the org's logs, and has the events from 1"}},
	{"the present log", run(`UPDATE orgs SET log_id = 7`),
		[]string{"log acme: the org's present log is row 7 from event 0"}},

	{"a missing index", run(`
		PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'events_by_time'`),
		[]string{"schema: index \"events_by_time\" of \"events\" is missing"}},
	{"a trigger", run(`CREATE TRIGGER raise AFTER UPDATE ON tokens BEGIN UPDATE tokens SET permission = 4; END`),
		[]string{`schema: trigger "raise" of "tokens" is unknown`}},
	{"a view in place of a table", run(`ALTER TABLE tips RENAME TO kept; CREATE VIEW tips AS SELECT * FROM kept`),
		[]string{`schema: view "tips" is unknown`}},
	{"a row that refers to nothing", run(`UPDATE events SET repo_id = 77 WHERE seq = 20`),
		[]string{"file: row ", " of events refers to a missing row of repos"}},
}

// swap swaps the numbers of two events.
func swap(a, b string) func(testing.TB, *sql.DB) {
	return run(`CREATE TEMP TABLE pair AS SELECT ` + a + ` AS a, ` + b + ` AS b;
		UPDATE events SET seq = -1 WHERE seq = (SELECT a FROM pair);
		UPDATE events SET seq = (SELECT a FROM pair) WHERE seq = (SELECT b FROM pair);
		UPDATE events SET seq = (SELECT b FROM pair) WHERE seq = -1`)
}

// rewrite changes the body of an event, and gives it a salt and a leaf of their own. Negative
// numbers count from the end.
func rewrite(seq int) func(testing.TB, *sql.DB) {
	return replace(seq, `"timestamp":"2`, `"timestamp":"3`)
}

func replace(seq int, before, after string) func(testing.TB, *sql.DB) {
	return func(t testing.TB, db *sql.DB) {
		t.Helper()
		var id int64
		var body []byte
		must.OK(t, db.QueryRow(`
SELECT id, body FROM events WHERE seq = CASE WHEN ?1 < 0 THEN (SELECT max(seq) FROM events) + 1 + ?1 ELSE ?1 END`, seq).
			Scan(&id, &body))
		body = bytes.Replace(body, []byte(before), []byte(after), 1)
		var salt proof.Salt
		rand.Read(salt[:])
		leaf := proof.HashBody(salt, body)
		_, err := db.Exec("UPDATE events SET body = ?, salt = ?, leaf = ? WHERE id = ?", body, salt[:], leaf[:], id)
		must.OK(t, err)
	}
}

// contract replaces a contract, and its digest everywhere but in the event.
func contract(text string) func(testing.TB, *sql.DB) {
	sum := sha256.Sum256([]byte(text))
	digest := "sha256:" + hex.EncodeToString(sum[:])
	return run(`UPDATE policies SET contract = CAST('` + text + `' AS BLOB), digest = '` + digest + `' WHERE version = 2;
		UPDATE repos SET policy_digest = '` + digest + `' WHERE name = 'api'`)
}

func TestChangesAreFound(t *testing.T) {
	d := newDatabase(t, 60)
	if lines := d.problems(t); len(lines) > 0 {
		t.Fatalf("an intact database has these problems:\n%s", strings.Join(lines, "\n"))
	}
	for _, test := range changes {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			lines := d.copy(t, test.change).problems(t)
			if !slices.ContainsFunc(lines, func(line string) bool { return containsAll(line, test.want) }) {
				t.Errorf("got the problems\n%s\nwant %q", strings.Join(lines, "\n"), test.want)
			}
		})
	}
}

// What an event says in words that this release does not know is not checked.
func TestUnknownWords(t *testing.T) {
	d := newDatabase(t, 3).copy(t, replace(20, `"timestamp":`, `"tomorrow":1,"timestamp":`))
	report, err := check.Run(t.Context(), d.path, check.Options{})
	must.OK(t, err)
	unchecked := strings.Join(report.Unchecked, "\n")
	if report.Complete || !strings.Contains(unchecked, "it has the field tomorrow, which this version") {
		t.Errorf("not checked are %q", report.Unchecked)
	}
}

// containsAll reports whether a line has all parts, the first at its start if it names a
// check.
func containsAll(line string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(line, part) {
			return false
		}
	}
	return true
}
