"""Checks a database of ledgerd with Python's SQLite, which shares no code with ledgerd's.

It reads {"database": path, "notes": [...], "now": ms} from standard input (for the notes
see Note in notebook.go), and prints {"problems": [...], "pending": bool}: what is wrong,
and whether the server has left states to be derived in the background.
"""

import base64
import hashlib
import json
import sqlite3
import sys

STATES = ["DRAFT", "VALIDATING", "ATTESTED", "PROMOTABLE", "DEPLOYED"]
BITS = {"attestation": 1, "state": 2, "policy": 4, "radar": 8, "violation": 16, "commit": 32}
KEEP = 30 * 24 * 3600 * 1000  # how long deliveries are kept after their end, in ms
MOST = 5  # how many problems of one kind are listed

# Each query returns rows that must not exist.
QUERIES = [
    # Events.
    ("org {}: its {} events are numbered from {} to {}, and the next number is {}", """
        SELECT o.name, count(e.id), min(e.seq), max(e.seq), o.next_seq
        FROM orgs o LEFT JOIN events e ON e.org_id = o.id GROUP BY o.id
        HAVING count(e.id) <> o.next_seq OR min(e.seq) <> 0 OR max(e.seq) <> count(e.id) - 1"""),
    ("event {} (number {}) does not ascend: the one before is {}", """
        SELECT event_id, seq, before FROM (SELECT event_id, seq, id, at, lag(event_id) OVER w AS before,
          lag(id) OVER w AS id_before, lag(at) OVER w AS at_before FROM events WINDOW w AS (PARTITION BY org_id ORDER BY seq))
        WHERE event_id <= before OR id <= id_before OR at < at_before"""),
    ("event {} has the body of {} {}", """
        SELECT event_id, json(cast(body AS TEXT)) ->> 'type', json(cast(body AS TEXT)) ->> 'id' FROM events
        WHERE json(cast(body AS TEXT)) ->> 'id' <> event_id OR json(cast(body AS TEXT)) ->> 'type' <> type"""),

    # Attestations.
    ("attestation {} has no event {}", """
        SELECT a.attestation_id, a.event_id FROM attestations a LEFT JOIN events e ON e.event_id = a.event_id
          AND e.repo_id = a.repo_id AND e.type = 'attestation'
          AND json(cast(e.body AS TEXT)) ->> 'attestation' = a.attestation_id
        WHERE e.id IS NULL"""),
    ("event {} has no attestation", """
        SELECT e.event_id FROM events e LEFT JOIN attestations a ON a.event_id = e.event_id
        WHERE e.type = 'attestation' AND a.id IS NULL"""),
    ("attestation {} has no envelope, or another payload", """
        SELECT a.attestation_id FROM attestations a LEFT JOIN envelopes v ON v.attestation_id = a.id
        WHERE v.body IS NULL OR (v.payload IS NOT NULL AND sha256(v.payload) <> a.payload_digest)"""),
    ("attestation {} has the previous one {}, want {}", """
        SELECT attestation_id, previous, want FROM (SELECT attestation_id, previous,
          lag(id, 1, 0) OVER (PARTITION BY commit_id ORDER BY id) AS want FROM attestations)
        WHERE previous <> want"""),
    ("commit {} has the newest attestation {}, want {}", """
        SELECT sha, newest, want FROM (SELECT sha, newest,
          coalesce((SELECT max(id) FROM attestations WHERE commit_id = c.id), 0) AS want FROM commits c)
        WHERE newest <> want"""),
    ("latest of commit {}, predicate {}, signer {} is {}, want {}", """
        WITH want AS (SELECT commit_id, predicate_id, slot, signer_id, max(id) AS id FROM attestations GROUP BY 1, 2, 3, 4)
        SELECT w.commit_id, w.predicate_id, w.signer_id, l.attestation_id, w.id
        FROM want w LEFT JOIN latest l USING (commit_id, predicate_id, slot, signer_id)
        WHERE l.attestation_id IS NOT w.id
        UNION ALL SELECT l.commit_id, l.predicate_id, l.signer_id, l.attestation_id, NULL
        FROM latest l LEFT JOIN want w USING (commit_id, predicate_id, slot, signer_id) WHERE w.id IS NULL"""),

    # Counters.
    ("repo {} counts {} attestations, has {}", """
        SELECT name, attestations, n FROM (SELECT name, attestations,
          (SELECT count(*) FROM attestations WHERE repo_id = r.id) AS n FROM repos r) WHERE attestations <> n"""),
    ("predicate {} counts {} attestations, has {}", """
        SELECT name, attestations, n FROM (SELECT name, attestations,
          (SELECT count(*) FROM attestations WHERE predicate_id = p.id) AS n FROM predicates p) WHERE attestations <> n"""),
    ("commit {} counts {} attestations, has {}", """
        SELECT sha, attestations, n FROM (SELECT sha, attestations,
          (SELECT count(*) FROM attestations WHERE commit_id = c.id) AS n FROM commits c) WHERE attestations <> n"""),
    ("repo {}: the count of commits in state {} is wrong by {}", """
        SELECT repo_id, state, sum(n) FROM (
          SELECT repo_id, state, commits AS n FROM repo_states
          UNION ALL SELECT repo_id, state, -count(*) FROM commits GROUP BY 1, 2)
        GROUP BY 1, 2 HAVING sum(n) <> 0"""),

    # Transitions.
    ("commit {}: the transition of event {} is from {}, but the commit was in {}", """
        SELECT commit_id, event, from_state, want FROM (SELECT *,
          lag(to_state, 1, 0) OVER (PARTITION BY commit_id ORDER BY event) AS want FROM transitions)
        WHERE from_state <> want OR from_state = to_state"""),
    ("commit {} is in state {}, its transitions end in {}", """
        SELECT sha, state, want FROM (SELECT sha, state,
          coalesce((SELECT to_state FROM transitions WHERE commit_id = c.id ORDER BY event DESC LIMIT 1), 0) AS want
          FROM commits c)
        WHERE state <> want"""),
    ("event {} has no transition, or another one", """
        SELECT e.event_id FROM events e LEFT JOIN transitions t ON t.event = e.id LEFT JOIN commits c ON c.id = t.commit_id
        WHERE e.type = 'state' AND (c.id IS NULL OR c.repo_id <> e.repo_id
          OR json(cast(e.body AS TEXT)) ->> 'commit' <> c.sha
          OR json(cast(e.body AS TEXT)) ->> 'from' <> state(t.from_state)
          OR json(cast(e.body AS TEXT)) ->> 'to' <> state(t.to_state))"""),
    ("commit {}: the transition to {} has no event", """
        SELECT t.commit_id, t.to_state FROM transitions t LEFT JOIN events e ON e.id = t.event AND e.type = 'state'
        WHERE e.id IS NULL"""),
    ("commit {}: the transition to {} has the cause {}, which is not recorded", """
        SELECT t.commit_id, t.to_state, t.cause_id FROM transitions t
        LEFT JOIN attestations a ON a.attestation_id = t.cause_id
        WHERE t.cause_type = 'attestation' AND a.id IS NULL"""),

    # Policies.
    ("repo {} has the active version {}, and {} versions from {} to {}", """
        SELECT r.name, r.policy_version, count(p.version), min(p.version), max(p.version)
        FROM repos r LEFT JOIN policies p ON p.repo_id = r.id GROUP BY r.id
        HAVING count(p.version) <> r.policy_version OR max(p.version) <> r.policy_version OR min(p.version) <> 1
          OR r.policy_digest <> (SELECT digest FROM policies WHERE repo_id = r.id AND version = r.policy_version)"""),
    ("repo {}: version {} of the policy has {} events", """
        SELECT r.name, p.version, count(e.id) FROM repos r JOIN policies p ON p.repo_id = r.id
        LEFT JOIN events e ON e.repo_id = r.id AND e.type = 'policy' AND json(cast(e.body AS TEXT)) ->> 'version' = p.version
        WHERE p.version > 1 GROUP BY r.id, p.version HAVING count(e.id) <> 1"""),
    ("commit {} expires at {}, and it is not planned to settle it then", """
        SELECT c.sha, c.expires FROM commits c WHERE c.expires > 0 AND NOT EXISTS (
          SELECT 1 FROM backlog b WHERE b.repo_id = c.repo_id AND b.kind = 'expire')"""),

    # Webhooks. Ids of all kinds ascend in the order in which they were created.
    ("webhook {} has no delivery of event {}", """
        SELECT w.webhook_id, e.event_id FROM webhooks w JOIN events e ON e.repo_id = w.repo_id
        LEFT JOIN outbox x ON x.webhook_id = w.id AND x.event = e.id
        WHERE w.active = 1 AND w.deleted_at = 0 AND w.changed_at = w.created_at AND w.events & bit(e.type)
          AND substr(e.event_id, 5) > substr(w.webhook_id, 5) AND x.event IS NULL
          AND e.at > (SELECT max(at) FROM events) - keep()"""),
    ("webhook {} has {} deliveries of event {}, to which it does not subscribe", """
        SELECT w.webhook_id, count(*), e.event_id FROM outbox x JOIN webhooks w ON w.id = x.webhook_id
        JOIN events e ON e.id = x.event WHERE w.deleted_at = 0
        GROUP BY w.id, e.id HAVING count(*) > 1 OR e.repo_id <> w.repo_id OR NOT w.events & bit(e.type)"""),
    ("delivery {} is {}, with due_at {}, ended_at {} and {} of {} attempts", """
        SELECT * FROM (SELECT x.delivery_id, x.status, x.due_at, x.ended_at,
          (SELECT count(*) FROM attempts a WHERE a.webhook_id = x.webhook_id AND a.delivery_id = x.delivery_id) AS n,
          x.attempts FROM outbox x JOIN webhooks w ON w.id = x.webhook_id WHERE w.deleted_at = 0)
        WHERE (status = 'pending') <> (due_at > 0) OR (status = 'pending') <> (ended_at = 0) OR n <> attempts
          OR (status <> 'pending' AND n = 0)"""),
    ("repo {} has the event types {}, want {}", """
        SELECT name, webhook_events, want FROM (SELECT name, webhook_events,
          (SELECT coalesce(max(events & 1) + max(events & 2) + max(events & 4) + max(events & 8)
            + max(events & 16) + max(events & 32), 0)
           FROM webhooks WHERE repo_id = r.id AND active = 1 AND deleted_at = 0) AS want FROM repos r)
        WHERE webhook_events <> want"""),

    # The radar.
    ("repo {}: branch {} has {} tips in flight", """
        SELECT repo_id, branch, count(*) FROM tips WHERE flight = 1 GROUP BY 1, 2 HAVING count(*) > 1"""),
]

# What a confirmed note says is in the file, as the notes have it.
RECORDED = {
    "attestation": """
        SELECT lower(hex(a.payload_digest)) AS key, a.attestation_id AS id, a.event_id AS event, o.name || '/' || r.name AS repo,
          c.sha AS "commit", p.name AS predicate, a.status, envelope(v.body, v.payload, v.payload_at) AS content
        FROM attestations a JOIN repos r ON r.id = a.repo_id JOIN orgs o ON o.id = r.org_id
        JOIN commits c ON c.id = a.commit_id JOIN predicates p ON p.id = a.predicate_id
        JOIN envelopes v ON v.attestation_id = a.id""",
    "commit": """
        SELECT c.sha || ' ' || c.message AS key, o.name || '/' || r.name AS repo, c.sha AS "commit", c.branch
        FROM commits c JOIN repos r ON r.id = c.repo_id JOIN orgs o ON o.id = r.org_id""",
    "policy": """
        SELECT p.digest AS key, o.name || '/' || r.name AS repo, p.version, lower(hex(sha256(p.contract))) AS content
        FROM policies p JOIN repos r ON r.id = p.repo_id JOIN orgs o ON o.id = r.org_id""",
    "webhook": """
        SELECT w.url AS key, w.webhook_id AS id, o.name || '/' || r.name AS repo
        FROM webhooks w JOIN repos r ON r.id = w.repo_id JOIN orgs o ON o.id = r.org_id WHERE w.deleted_at = 0""",
}


def sha256(data):
    return None if data is None else hashlib.sha256(data).digest()


def envelope(body, payload, at):
    """Returns the digest of an envelope as it was posted."""
    if payload is not None:
        body = body[:at] + base64.b64encode(payload) + body[at:]
    return hashlib.sha256(body).hexdigest()


def connect(path):
    db = sqlite3.connect(f"file:{path}?mode=rw", uri=True)
    db.row_factory = sqlite3.Row
    db.create_function("sha256", 1, sha256)
    db.create_function("envelope", 3, envelope)
    db.create_function("state", 1, lambda n: STATES[n])
    db.create_function("bit", 1, lambda kind: BITS[kind])
    db.create_function("keep", 0, lambda: KEEP)
    return db


def structure(db):
    """Yields the problems of the file itself."""
    verdict = [row[0] for row in db.execute("PRAGMA integrity_check")]
    if verdict != ["ok"]:
        yield from (f"integrity_check: {line}" for line in verdict[:MOST])
    for row in db.execute("PRAGMA foreign_key_check").fetchmany(MOST):
        yield f"foreign_key_check: row {row[1]} of {row[0]} refers to a row of {row[2]} that does not exist"
    for text, query in QUERIES:
        rows = db.execute(query).fetchall()
        yield from (text.format(*row) for row in rows[:MOST])
        if len(rows) > MOST:
            yield f"… and {len(rows) - MOST} more like this"


def answers(db, notes):
    """Yields what the file has and the notes do not, and the other way round."""
    for kind, query in RECORDED.items():
        recorded, outcomes = {}, {}
        for row in db.execute(query):
            recorded.setdefault(row["key"], []).append(row)
        for note in notes:
            if note["kind"] == kind:
                outcomes.setdefault(note["key"], []).append(note)
        for key, sent in outcomes.items():
            yield from compare(kind, key, sent, recorded.get(key, []))
    yield from order(notes)


def compare(kind, key, sent, rows):
    """Yields how the rows of one request differ from its answers. It may have been sent several times."""
    confirmed = [note for note in sent if note["outcome"] == "confirmed"]
    if rows and all(note["outcome"] == "refused" for note in sent):
        yield f"{kind} {key} was refused, but is recorded"
    if len(rows) > 1:
        yield f"{kind} {key} is recorded {len(rows)} times"
    for note in confirmed:
        if not rows:
            yield f"{kind} {key} was confirmed, but is not recorded"
            continue
        for name in rows[0].keys():
            if name != "key" and note.get(name) and note[name] != rows[0][name]:
                yield f"{kind} {key}: {name} is {rows[0][name]}, but {note[name]} was confirmed"


def order(notes):
    """Yields the answers whose event comes before one that was answered before they were sent."""
    new = [n for n in notes if n["outcome"] == "confirmed" and n.get("event") and not n.get("again")]
    by_end, latest, i = sorted(new, key=lambda n: n["answered"]), "", 0
    for note in sorted(new, key=lambda n: n["sent"]):
        while by_end[i]["answered"] < note["sent"]:
            latest, i = max(latest, by_end[i]["event"]), i + 1
        if note["event"] <= latest:
            yield f"event {note['event']} comes before {latest}, which was answered before it was sent"


PENDING = """
    SELECT EXISTS (SELECT 1 FROM backlog WHERE kind NOT IN ('expire', 'prune'))
      OR EXISTS (SELECT 1 FROM tips WHERE policy_version = 0 AND flight = 1)
      OR EXISTS (SELECT 1 FROM commits WHERE expires > 0 AND expires <= ?)"""


def main():
    task = json.load(sys.stdin)
    problems, pending = [], False
    try:
        db = connect(task["database"])
        for problem in structure(db):
            problems.append(problem)
        for problem in answers(db, task["notes"]):
            problems.append(problem)
        pending = bool(db.execute(PENDING, [task["now"]]).fetchone()[0])
        db.close()
    except sqlite3.Error as e:
        problems.append(f"SQLite {sqlite3.sqlite_version}: {e}")
    json.dump({"problems": problems, "pending": pending}, sys.stdout)


main()
