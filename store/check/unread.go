package check

// Reasons why it does not matter that a change is not found.
const (
	gone  = "What was pruned cannot be compared."
	ended = "What has ended gives nobody access, and nothing is sent to it. That it has ended is compared."
	once  = "What may be used once, within minutes. What it was used for is logged."
	when  = "When a row was made, for display. The event about it has its time."
	rowID = "The row id of a row to which no other refers."
)

// An unreadColumn is a change that is not found. -row is a deleted row, and +row an added one. A table (pruned) has
// the rows from which something was pruned, a table (ended) those of what has ended, a table (unsigned) those of logs
// without a checkpoint, and a table (idle) the overlaps that block no commit. What is listed of the whole table holds
// for them, too.
type unreadColumn struct{ tables, columns, why string }

// unread lists what can be changed in a database without being found, and why that does not matter.
// docs/check.md has the list.
var unread = []unreadColumn{
	{"attempts", "-row +row at delivery_id duration_ms error number request response status webhook_id",
		"The requests of deliveries, for people who look for a mistake. Nothing follows from them."},
	{"outbox", "-row +row attempts created_at delivery_id due_at ended_at event leased ping tries webhook_id",
		"What is to be sent, and what was. Receivers verify what they get, and a replay queues what is missing."},
	{"clock", "-row accepted_at stamp",
		"The time that an operator has accepted. What is recorded has its own time, which its leaf commits to."},
	{"cursor_key", "-row key",
		"A random key for the cursors of lists. With another one, clients begin at the first page again."},
	{"backlog", "-row +row again cause_id cause_type error held_until holder kind not_before org_id position ref " +
		"repo_id since tries",
		"What is done later. A state that is to be derived, and for which no job waits, is found. Without its jobs, a repo " +
			"keeps more than it should."},
	{"repos", "mapping_version remapped_to",
		"How far an upgrade has mapped what was recorded before. The results are compared with what was signed."},
	{"restores", "-row +row at next_seq",
		"When a backup was restored, for the clients of streams. It is also in the audit."},
	{"review_drafts", "-row +row digest repo_id token_id until", once},
	{"passkey_challenges", "-row +row digest token_id until", once},
	{"used_tokens", "-row +row digest org_id until", once},
	{"former_names", "name",
		"A former name that none of the repo's own events has: it is shown in errors, and as the name of a deleted repo."},
	{"former_names", "+row", "A name that an org or a repo has only for events that do not exist."},
	{"former_names", "until_seq", "Another time before the next event, which is the same."},
	{"repo_states", "-row +row repo_id state", "A count of 0, which is the same as no row."},

	{"logs", "epoch", "A later number of the last log: numbers may be left out."},
	{"logs", "origin vkey", "The name and the key of a log without a checkpoint, which is listed as *not checked*."},
	{"events (unsigned)", "at", "The time of an event in such a log. What the event says is compared with its leaf."},
	{"logs", "signed_at", "The time of the checkpoint. The checkpoint itself is checked."},
	{"receipt_keys", "-row", "A key that is not listed is announced again."},
	{"orgs", "keyring_version distrusts distrusting",
		"Numbers that change with the keyring, so that servers read it again."},
	{"orgs", "unlogged_settings",
		"How far an upgrade has logged access and settings. Events say so, and a server that does it again is found."},
	{"orgs", "log_built", "How far an upgrade has built the log. The leaves that are there are checked."},

	{"commits", "base committed_at message registered_at",
		"What a registration has said, for display and for the radar."},
	{"commits", "basis distrusts expires policy_version",
		"When the state is derived again. A state that does not follow from the evidence is found."},
	{"commits", "facts",
		"The digest of what was logged last, so that nothing is logged twice. What is known is compared with the events."},
	{"commits", "failing_since", "Since when a requirement fails, for the list of what needs attention."},
	{"commits", "merged", "A mark that claims of merges are to be looked for. One that is missing is found."},
	{"commits", "target", "The newest of several targets. The list of them is compared with the event."},
	{"commits", "gap standing", "Those of a DEPLOYED commit that does not run, which nothing reads."},
	{"commit_details", "ancestors contained parents",
		"What a registration has said of the history of a branch, for the radar. Parents of known objects are compared."},
	{"commit_details", "changes",
		"Hunks of changes, for the radar. The paths are compared with the events, and stored overlaps with the hunks."},
	{"commit_details", "+row paths paths_key", "Paths of a commit without a change record, which nothing reads."},
	{"corrections", "by", "Who has corrected a commit, for display. The audit has it, too."},
	{"tips", "-row branch ended_at flight level lineage opened_at place policy_version seq truncated",
		"Which commits the radar compares, and since when: no event says which were withdrawn. They are compared with " +
			"their commits and their overlaps."},
	{"overlaps", "+row announced since",
		"A row that blocks no commit. When an overlap was found, and what an event has reported of it."},
	{"overlaps (idle)", "-row +row later level path reason",
		"No state follows from them. One that blocks a commit, or should, is found."},

	{"attestations", "aged_from",
		"Since when evidence ages, if an operator has accepted the clock: that is listed as *not checked*."},
	{"attestations", "while_promotable",
		"Whether a commit was PROMOTABLE that was DEPLOYED, too, or has been rolled back: its transitions do not say it. " +
			"Whether a violation shipped what was not covered: `ledgerd verify --rederive` derives it again."},
	{"predicates", "last_at", "When a predicate was attested last, for the list of predicates."},
	{"predicate_types", "+row", "A type that no attestation has."},
	{"predicate_types", "org_id", "In whose list a type is. Attestations refer to its row."},
	{"expressions", "+row", "An expression that has no verdicts."},
	{"verdicts", "-row +row attestation_id",
		"A verdict that no state needs. One that is wrong is found, and one that is missing is evaluated."},
	{"verdicts", "error", "Why an expression cannot be evaluated, in other words."},
	{"merge_sides, trees", "+row", "A row to which no evidence refers."},
	{"merges", "reason", "Why nothing carries, in words. That something may carry is compared with the commit's object."},
	{"violations (pruned)", "missing opened_at state", gone},

	{"identities", "pem", "The same key or certificate, written in another way."},
	{"keys", "-row +row", "A key that nobody has signed with."},
	{"keys", "claimed", "A mark to derive states again once somebody signs with the key. One that is missing is found."},
	{"policies", "event", "No event, as in databases that early releases created. Another one is found."},
	{"policies", "created_at created_by", "When a repo was created with its first contract, and by whom."},
	{"sessions", "-row token_id", "The end of a session: the browser is signed out."},
	{"exchange_rule_repos, token_repos", "+row", "A repo of another org, to which it gives no access."},
	{"tokens", "is_limited", "A limit to no repos, so that the token can do nothing. One that permits more is found."},
	{"tokens", "revoked_at", "The end of a sign-in: the member signs in again."},
	{"tokens", "client client_at last_used_at", "When a token was last used, and by which version of ledgerd."},
	{"tokens", "created_by", "Who has created a token, for display. The audit has it, too."},
	{"members", "email name signed_in_at", "What a provider has said of a member, for display, and when."},
	{"webhooks", "changed_at disabled_at disabled_reason failing_since failures", "How the receiver has answered."},
	{"webhooks", "previous_secret previous_until",
		"No event has the previous secret. A receiver refuses what another one has signed."},
	{"cas, exchange_rules, identities, issuers, member_rules, members, orgs, passkeys, repos, sessions, tokens, " +
		"trusted_roots, webhooks", "created_at", when},
	{"cas, corrections, identities, keys, passkeys, trusted_roots, violations", "id", rowID},

	{"cas (ended)", "retired_at", ended},
	{"exchange_rule_repos (ended)", "-row +row repo_id", ended},
	{"exchange_rules (ended)", "+row dn issuer_id org_id removed_at rule rule_id subject", ended},
	{"issuers (ended)", "+row issuer_id jwks org_id removed_at url", ended},
	{"member_rules (ended)", "-row +row claim dn id issuer org_id removed_at role rule_id value", ended},
	{"members (ended)", "id removed_at", ended},
	{"passkeys (ended)", "credential_id name", ended},
	{"sessions (ended)", "+row expires_at hash token_id", ended},
	{"token_repos (ended)", "-row +row repo_id token_id", ended},
	{"tokens (ended)", "-row +row auth_time expires_at hash id is_sign_in member_id name org_id permission " +
		"rule_id token_id", ended},
	{"webhooks (ended)", "+row active auth_header deleted_at description events repo_id secret url webhook_id", ended},

	{"attestations (pruned)",
		"attestation_id base duration_ms finished_at identity_id mapping_version payload_digest reason status type_id", gone},
	{"commits (pruned)", "sha", gone},
	{"envelopes (pruned)", "body payload", gone},
	{"events (pruned)", "repo_id", gone},
	{"transitions (pruned)", "at cause_id cause_type event", gone},
}

// unreadOnPostgres lists in the same way what is only found on SQLite, which checks all references between rows:
// some tables of PostgreSQL have none.
var unreadOnPostgres = []unreadColumn{
	{"envelopes", "+row", "An envelope of no attestation, which nothing reads."},
	{"tips", "+row commit_id repo_id",
		"A tip of no commit or no repo, which nothing reads. One that has overlaps is found."},
	{"events", "repo_id", "The number 0 in an event of no repo, which is the same."},
	{"webhooks", "id", "The row id of a webhook without deliveries."},
}
