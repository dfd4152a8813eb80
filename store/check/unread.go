package check

// Reasons why it does not matter that a change is not found.
const (
	gone = "What was pruned cannot be compared."
	once = "What may be used once, within minutes. What it was used for is logged."
	// notYet is no such reason.
	notYet = "TODO(46): not compared yet"
)

// unread lists what can be changed in a database without being found, and why that does not matter. -row
// is a deleted row, and +row an added one. A table (pruned) has the rows from which something was pruned; what
// is listed of the whole table holds for them, too. docs/check.md has the list.
var unread = []struct{ tables, columns, why string }{
	{"attempts", "-row +row at delivery_id duration_ms error number request response status webhook_id",
		"The requests of deliveries, for people who look for a mistake. Nothing follows from them."},
	{"outbox", "-row +row attempts created_at delivery_id due_at ended_at event leased ping tries webhook_id",
		"What is to be sent, and what was. Receivers verify what they get, and a replay queues what is missing."},
	{"clock", "-row accepted_at stamp",
		"The time that an operator has accepted. What is recorded has its own time, which its leaf commits to."},
	{"cursor_key", "-row key",
		"A random key for the cursors of lists. With another one, clients begin at the first page again."},
	{"prunings", "-row +row envelope envelopes_at events_seq radar_seq repo_id",
		"How far pruning is. What was pruned is counted, and the digests of it stay."},
	{"remapping", "-row below changed total version",
		"How far an upgrade has mapped what was recorded before. The results are compared with what was signed."},
	{"restores", "-row +row at next_seq",
		"When a backup was restored, for the clients of streams. It is also in the audit."},
	{"review_drafts", "-row +row digest repo_id token_id until", once},
	{"passkey_challenges", "-row +row digest token_id until", once},
	{"used_tokens", "-row +row digest org_id until", once},
	{"expressions", "+row", "An expression that has no verdicts."},
	{"predicate_types", "+row", "A type that no attestation has."},
	{"repo_states", "-row +row repo_id state", "A count of 0, which is the same as no row."},
	{"former_names", "until_seq", "Another time before the next event, which is the same."},
	{"logs", "epoch", "A later number of the last log: numbers may be left out."},
	{"logs", "origin vkey", "The name and the key of a log without a checkpoint, which is listed as *not checked*."},
	{"logs", "signed_at", "The time of the checkpoint. The checkpoint itself is checked."},
	{"orgs", "keyring_version distrusts distrusting",
		"Numbers that change with the keyring, so that servers read it again."},
	{"orgs", "unlogged_settings",
		"How far an upgrade has logged access and settings. Events say so, and a server that does it again is found."},
	{"orgs", "log_built", "How far an upgrade has built the log. The leaves that are there are checked."},
	{"commits", "base committed_at message registered_at",
		"What a registration has said, for display and for the radar."},
	{"commits", "basis expires policy_version",
		"When the state is derived again. A state that does not follow from the evidence is found."},
	{"commits", "facts",
		"The digest of what was logged last, so that nothing is logged twice. What is known is compared with the events."},
	{"commits", "failing_since", "Since when a requirement fails, for the list of what needs attention."},
	{"commits", "target", "The newest of several targets. The list of them is compared with the event."},
	{"commits", "standing", "The standing of a commit that does not run, which nothing reads."},
	{"commit_details", "ancestors contained", "What a registration has said of the history of a branch, for the radar."},
	{"identities", "sigstore", "A text that is no entry for keyless signers, which counts as none."},
	{"signers", "distinct_by", "Another reason why a signer is distinct."},
	{"passkeys", "name", "What the member calls it."},
	{"tokens", "client client_at last_used_at", "When a token was last used, and by which version of ledgerd."},
	{"webhooks", "failing_since failures", "How the receiver has answered."},
	{"webhooks", "previous_secret secret", "No event has secrets. A receiver refuses what another one has signed."},
	{"cas, corrections, identities, keys, member_rules, members, passkeys, tokens, trusted_roots, violations", "id",
		"The row id of a row to which no other refers."},
	{"attestations (pruned)",
		"attestation_id duration_ms identity_id key_id payload_digest signer_id slot status type_id", gone},
	{"commits (pruned)", "sha", gone},
	{"envelopes (pruned)", "body payload", gone},
	{"events (pruned)", "repo_id", gone},
	{"transitions (pruned)", "cause_id cause_type event", gone},
}

// unreadYet lists in the same way what is to be found. Its reason is notYet.
var unreadYet = []struct{ tables, columns string }{
	{"artifacts", "-row attestation_id commit_id digest identity_id is_build org_id signer_id"},
	{"attestations", "aged_from emails finished_at mapping_version previous reason while_promotable"},
	{"audits", "+row"},
	{"cas", "+row created_at purpose retired_at"},
	{"commit_details", "-row +row changes commit_id parents paths paths_key"},
	{"commit_objects", "-row +row commit_id object"},
	{"commits", "merged state_since tree_id"},
	{"corrections", "-row after +row at before by commit_id field"},
	{"deployments", "-row +row attestation_id commit_id ended_id predicate_id repo_id required"},
	{"environments", "-row +row latest_id org_id predicate_id repo_id"},
	{"exceptions", "-row +row attestation_id commit_id ends_at reason repo_id requirement"},
	{"exchange_rule_repos", "-row +row repo_id"},
	{"exchange_rules", "+row created_at dn issuer_id org_id removed_at rule rule_id subject"},
	{"expressions", "text"},
	{"former_names", "+row"},
	{"identities", "created_at pem"},
	{"issuers", "+row created_at issuer_id jwks org_id removed_at url"},
	{"keys", "-row +row claimed digest org_id person"},
	{"latest", "-row +row attestation_id commit_id predicate_id signer_id slot"},
	{"member_rules", "-row +row claim created_at dn issuer org_id removed_at role rule_id value"},
	{"members", "-row by_rule created_at email issuer member_id name org_id removed_at role signed_in_at subject"},
	{"merge_sources", "-row +row commit_id version"},
	{"merges", "-row +row attestation_id commit_id kind parent_state reason source_id"},
	{"orgs", "archived_at created_at deleted_at log_public purged_at"},
	{"overlaps", "-row +row earlier later level path reason since told"},
	{"passkeys", "created_at credential_id"},
	{"policies", "created_at created_by event"},
	{"predicate_types", "org_id"},
	{"predicates", "last_at"},
	{"provider_orgs", "-row +row issuer"},
	{"receipt_keys", "-row +row event_id key log_id not_after not_before public_key"},
	{"repos", "archived_at created_at default_branch deleted_at forge keep_deliveries keep_envelopes keep_events " +
		"name purged_at web_url webhook_events"},
	{"sessions", "-row +row created_at expires_at hash token_id"},
	{"signer_names", "-row +row name org_id signer_id"},
	{"signers", "+row cn dn folded org_id person"},
	{"tips", "-row +row branch commit_id ended_at flight level lineage opened_at place policy_version repo_id seq " +
		"sha truncated"},
	{"token_repos", "-row +row repo_id token_id"},
	{"tokens", "-row +row auth_time created_at created_by expires_at hash is_limited is_sign_in member_id name " +
		"org_id permission revoked_at rule_id token_id"},
	{"transitions", "at"},
	{"tree_latest", "-row +row attestation_id commit_id failed predicate_id signer_id slot stated"},
	{"trees", "+row commits version"},
	{"trusted_roots", "created_at"},
	{"verdicts", "-row +row attestation_id error verdict"},
	{"violation_events", "-row +row"},
	{"violations", "attestation_id commit_id missing opened_at state"},
	{"webhooks", "active +row changed_at created_at deleted_at description disabled_at disabled_reason events " +
		"previous_until repo_id url webhook_id"},
}

// unreadOnPostgres lists in the same way what is to be found on PostgreSQL, too: SQLite checks all references
// between rows, and some tables of PostgreSQL have none.
var unreadOnPostgres = []struct{ tables, columns string }{
	{"envelopes", "+row"},
	{"events", "repo_id"},
	{"expressions, trees, webhooks", "-row id"},
}
