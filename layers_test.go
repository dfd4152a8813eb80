package main

// mayImport lists which packages of this module each package may import.
var mayImport = map[string][]string{
	".": {"cmd"},
	// Commands access the ledger as clients of a server or of internal/service.
	"cmd": {
		"cmd/browse", "cmd/internal/cli", "cmd/manage", "cmd/people", "cmd/record", "cmd/run", "cmd/start",
		"internal/flagvalue",
	},
	"cmd/people": {
		"client", "cmd/internal/cli", "cmd/internal/display", "internal/flagvalue", "internal/terminal", "ledger",
		"ledger/identity", "ledger/member", "ledger/passkey",
	},
	"cmd/browse": {
		"client", "cmd/internal/cli", "cmd/internal/display", "cmd/internal/events", "cmd/internal/evidence",
		"cmd/internal/seen", "cmd/internal/verify", "internal/atomicfile", "internal/buildinfo", "internal/flagvalue",
		"internal/gitrepo", "internal/terminal", "ledger", "ledger/insights", "ledger/proof/receipt",
		"ledger/proof/trustpolicy", "ledger/proof/verify", "ledger/search",
	},
	"cmd/manage": {
		"client", "cmd/internal/await", "cmd/internal/ci/idtoken", "cmd/internal/cli", "cmd/internal/contractfile",
		"cmd/internal/display", "cmd/internal/events", "cmd/internal/signing", "internal/atomicfile",
		"internal/config", "internal/flagvalue", "internal/terminal", "ledger", "ledger/ca", "ledger/exchange",
		"ledger/forge", "ledger/identity", "ledger/outbound", "ledger/policy",
	},
	"cmd/record": {
		"client", "cmd/internal/await", "cmd/internal/ci", "cmd/internal/ci/checkout", "cmd/internal/ci/idtoken",
		"cmd/internal/ci/report", "cmd/internal/cli", "cmd/internal/display", "cmd/internal/mergeclaim",
		"cmd/internal/merges", "cmd/internal/registration", "cmd/internal/signing", "cmd/internal/subprocess",
		"internal/atomicfile", "internal/flagvalue", "internal/gitrepo", "internal/terminal", "ledger",
		"ledger/attention", "ledger/attestation", "ledger/attestation/bulk", "ledger/attestation/foreign",
		"ledger/ca", "ledger/exchange", "ledger/facts", "ledger/identity", "ledger/policy",
		"ledger/policy/candidate", "ledger/proof/receipt", "ledger/radar", "ledger/review",
	},
	"deploy/man":       {"cmd"},
	"deploy/container": {},
	"cmd/run": {
		"client", "cmd/internal/cli", "cmd/internal/demo", "cmd/internal/doctor", "cmd/internal/seen",
		"internal/backup", "internal/buildinfo", "internal/config", "internal/flagvalue", "internal/service",
		"internal/terminal", "ledger", "ledger/identity/sigstore", "ledger/proof", "store/check", "store/sqlite",
		"store/transfer", "transparency",
	},
	"cmd/start": {
		"client", "cmd/internal/cli", "cmd/internal/contexts", "cmd/internal/signing", "cmd/internal/workfile",
		"internal/atomicfile", "internal/buildinfo", "internal/flagvalue", "internal/gitrepo", "internal/terminal",
		"ledger", "ledger/forge", "ledger/identity",
	},
	"cmd/internal/await": {
		"client", "cmd/internal/connect", "cmd/internal/display", "ledger",
	},
	"cmd/internal/ci":          {"ledger", "ledger/forge"}, // detects the CI job
	"cmd/internal/ci/checkout": {"cmd/internal/ci", "internal/gitrepo"},
	"cmd/internal/ci/idtoken":  {"cmd/internal/ci", "ledger"}, // requests tokens
	"cmd/internal/ci/report":   {"cmd/internal/ci", "internal/terminal", "ledger", "ledger/radar"},
	// What all commands share.
	"cmd/internal/cli": {
		"client", "cmd/internal/ci", "cmd/internal/ci/report", "cmd/internal/connect", "cmd/internal/contexts",
		"cmd/internal/display", "cmd/internal/jq", "cmd/internal/workfile", "internal/config", "internal/flagvalue",
		"internal/gitrepo", "internal/terminal", "ledger", "ledger/exchange", "ledger/identity", "ledger/member",
		"ledger/outbound",
	},
	"cmd/internal/connect":      {"client", "internal/buildinfo", "internal/config", "internal/service", "ledger"},
	"cmd/internal/contexts":     {"internal/atomicfile"},
	"cmd/internal/contractfile": {"ledger", "ledger/identity", "ledger/policy", "ledger/policy/document"},
	"cmd/internal/demo": {
		"client", "cmd/internal/events", "cmd/internal/signing", "internal/buildinfo", "internal/config",
		"internal/gitrepo", "internal/parallel", "internal/service", "internal/terminal", "ledger",
		"ledger/attestation", "ledger/identity", "ledger/outbound",
	},
	"cmd/internal/display": {
		"cmd/internal/contractfile", "internal/terminal", "ledger", "ledger/identity", "ledger/outbound",
		"ledger/policy", "ledger/policy/lint", "ledger/radar",
	},
	"cmd/internal/doctor": {
		"internal/buildinfo", "internal/config", "internal/idp", "internal/parallel", "internal/service",
		"internal/terminal", "ledger", "ledger/member", "store", "store/postgres", "store/sqlite", "transparency",
	},
	// Events as webhooks, as bodies and as lines.
	"cmd/internal/events": {"client", "internal/terminal", "ledger", "ledger/eventstream", "webhook"},
	// Exports of evidence: written from what a server says, and read.
	"cmd/internal/evidence": {
		"client", "internal/parallel", "ledger", "ledger/attestation", "ledger/facts", "ledger/identity",
		"ledger/passkey", "ledger/policy", "ledger/proof", "ledger/proof/verify",
	},
	"cmd/internal/jq": {"internal/flagvalue", "internal/terminal"},
	"cmd/internal/mergeclaim": {
		"internal/buildinfo", "internal/flagvalue", "internal/gitrepo", "ledger", "ledger/attestation",
	},
	"cmd/internal/merges":       {"internal/gitrepo", "ledger", "ledger/attestation"},
	"cmd/internal/registration": {"client", "internal/gitrepo", "internal/parallel", "ledger", "ledger/lineage"},
	"cmd/internal/seen":         {"internal/atomicfile", "ledger"},
	"cmd/internal/signing": {
		"internal/atomicfile", "ledger", "ledger/attestation", "ledger/identity", "ledger/identity/sshkey",
	},
	"cmd/internal/subprocess": {"internal/config", "ledger"},
	// Verifies what a server says, as its client.
	"cmd/internal/verify": {
		"client", "cmd/internal/evidence", "cmd/internal/seen", "internal/parallel", "ledger", "ledger/attestation",
		"ledger/facts", "ledger/identity", "ledger/identity/sigstore", "ledger/lineage", "ledger/policy", "ledger/proof",
		"ledger/proof/receipt", "ledger/proof/rederive", "ledger/proof/trustpolicy", "ledger/proof/verify",
	},
	"cmd/internal/workfile": {"internal/gitrepo"},
	"client": {
		"ledger", "ledger/attention", "ledger/ca", "ledger/eventstream", "ledger/exchange", "ledger/identity",
		"ledger/insights", "ledger/lineage", "ledger/member", "ledger/outbound", "ledger/passkey", "ledger/policy",
		"ledger/policy/lint", "ledger/proof/receipt", "ledger/radar", "ledger/review", "ledger/search",
	},
	"server": {
		"authority", "internal/oidc", "internal/rate", "ledger", "ledger/attention", "ledger/attestation",
		"ledger/attestation/bulk", "ledger/ca", "ledger/exchange", "ledger/identity", "ledger/insights",
		"ledger/lineage", "ledger/member", "ledger/outbound", "ledger/passkey", "ledger/policy",
		"ledger/policy/lint", "ledger/proof", "ledger/radar", "ledger/review", "ledger/search",
		"server/internal/budget", "server/internal/live", "server/internal/reviews", "server/internal/tokenexchange",
		"server/internal/wire", "store", "transparency",
	},
	// The pages are a client of the API.
	"server/web": {
		"client", "internal/idp", "ledger", "ledger/member", "ledger/radar", "server/internal/budget",
		"server/internal/wire", "server/web/board", "server/web/browse", "server/web/commits", "server/web/conflicts",
		"server/web/format", "server/web/home", "server/web/page", "server/web/policies", "server/web/session",
		"server/web/settings", "server/web/turns",
	},
	// Packages of pages. They do not import each other.
	"server/web/board": {
		"client", "ledger", "server/web/commitview", "server/web/format", "server/web/page",
	},
	"server/web/commits": {
		"client", "ledger", "ledger/attestation", "ledger/ca", "ledger/identity", "ledger/policy", "ledger/radar",
		"ledger/review", "server/web/commitview", "server/web/draw", "server/web/format", "server/web/page",
	},
	"server/web/browse": {
		"client", "ledger", "ledger/insights", "ledger/search", "server/web/draw", "server/web/format",
		"server/web/page",
	},
	"server/web/conflicts": {
		"client", "ledger", "ledger/forge", "ledger/radar", "server/web/commitview", "server/web/draw",
		"server/web/format", "server/web/page", "server/web/policytext",
	},
	"server/web/policies": {
		"client", "ledger", "ledger/policy", "ledger/policy/document", "ledger/policy/lint", "server/web/format",
		"server/web/page", "server/web/policytext",
	},
	"server/web/settings": {
		"client", "ledger", "ledger/identity", "ledger/member", "ledger/outbound", "ledger/passkey",
		"server/web/format", "server/web/page",
	},
	// What their handlers share.
	"server/web/page": {
		"client", "ledger", "ledger/radar", "server/internal/budget", "server/internal/wire", "server/web/format",
	},
	"server/web/session": {"ledger"}, // cookies and links
	"server/web/turns":   {"ledger"}, // whose page is rendered next
	"server/web/home":    {"client", "ledger", "ledger/attention", "server/web/format", "server/web/page"},
	// Pure parts of the pages.
	"server/web/draw":       {"ledger", "ledger/radar", "server/web/format"},
	"server/web/commitview": {"ledger", "ledger/radar", "server/web/format"},
	"server/web/format":     {"ledger", "ledger/identity"},
	"server/web/policytext": {
		"ledger", "ledger/identity", "ledger/policy", "ledger/policy/conflicts", "ledger/policy/linking",
		"ledger/radar", "server/web/format",
	},
	// HTTP helpers of the API and the pages.
	"server/internal/live":   {"ledger", "ledger/eventstream", "server/internal/wire", "store"},
	"server/internal/wire":   {"ledger", "server/internal/budget"},
	"server/internal/budget": {},
	// Exchanges tokens of OpenID Connect issuers for API tokens.
	// Where members review.
	"server/internal/reviews": {
		"authority", "ledger", "ledger/attestation", "ledger/identity", "ledger/passkey", "ledger/review", "store",
	},
	"server/internal/tokenexchange": {"internal/oidc", "ledger", "ledger/exchange", "store"},
	"server/metrics":                {"ledger", "server"},
	"store": {
		"ledger", "ledger/identity", "ledger/member", "ledger/policy", "ledger/policy/linking", "ledger/policy/size",
		"store/access", "store/backlog", "store/boards", "store/delivery", "store/events", "store/facts",
		"store/history", "store/lists", "store/orgs", "store/overlaps", "store/policies", "store/postgres",
		"store/recheck", "store/record", "store/search", "store/signers", "store/sqldb", "store/sqlite",
		"store/sqlite/migrations", "store/states", "store/txn", "store/upkeep", "store/webhooks",
	},
	"store/internal/cursor":   {},
	"store/internal/envelope": {},
	"store/internal/lookup":   {},
	"store/internal/sealed":   {},
	// Checks a database file on its host.
	"store/check": {
		"internal/parallel", "ledger", "ledger/attestation", "ledger/identity", "ledger/member", "ledger/policy",
		"ledger/policy/linking", "ledger/proof", "ledger/proof/verify", "ledger/settings", "store",
		"store/check/derived", "store/check/report", "store/check/signers", "store/internal/envelope", "store/sqldb",
	},
	"store/check/derived": {
		"internal/parallel", "ledger", "ledger/attestation", "ledger/facts", "ledger/identity", "ledger/outbound",
		"ledger/policy", "ledger/proof/verify", "ledger/running", "store", "store/check/report", "store/check/signers",
		"store/recheck", "store/sqldb",
	},
	"store/check/report": {
		"ledger", "ledger/proof/verify", "store", "store/sqldb",
	},
	"store/check/signers": {
		"ledger", "ledger/ca", "ledger/identity", "ledger/passkey", "ledger/proof/verify", "store",
		"store/check/report", "store/sqldb",
	},
	// Copies a ledger from one engine to another.
	"store/transfer": {"store", "store/postgres", "store/sqldb", "store/sqlite"},
	"store/metrics":  {"ledger", "store", "store/sqldb"},
	"store/sqldb":    {},
	"store/access": {
		"ledger", "ledger/ca", "ledger/exchange", "ledger/identity", "ledger/member", "ledger/passkey",
		"ledger/settings", "store/events", "store/internal/lookup", "store/signers", "store/sqldb", "store/txn",
	},
	"store/backlog": {
		"ledger", "store/sqldb", "store/txn",
	},
	"store/facts": {
		"ledger", "ledger/ancestry", "ledger/attestation", "ledger/authors", "ledger/facts", "ledger/identity",
		"ledger/policy", "ledger/policy/conflicts", "ledger/policy/linking", "ledger/radar", "store/backlog",
		"store/events", "store/history", "store/internal/envelope", "store/policies", "store/radarindex",
		"store/signers", "store/sqldb", "store/txn",
	},
	"store/delivery": {"ledger", "ledger/delivery", "ledger/lineage", "store/facts", "store/history", "store/txn"},
	"store/history":  {"ledger/ancestry", "ledger/gitobject", "ledger/lineage", "store/txn"},
	"store/overlaps": {
		"ledger", "ledger/gitobject", "ledger/policy/conflicts", "ledger/radar", "store/backlog", "store/events",
		"store/facts", "store/policies", "store/radarindex", "store/sqldb", "store/txn",
	},
	"store/states": {
		"ledger", "ledger/ancestry", "ledger/attestation", "ledger/identity", "ledger/policy", "ledger/where",
		"store/backlog", "store/events", "store/facts", "store/overlaps", "store/radarindex", "store/signers", "store/sqldb",
		"store/txn",
	},
	"store/policies": {
		"ledger", "ledger/policy", "store/txn",
	},
	"store/orgs": {
		"ledger", "ledger/attestation", "ledger/policy", "ledger/policy/size", "ledger/settings", "store/access",
		"store/backlog", "store/events", "store/facts", "store/overlaps", "store/policies", "store/radarindex",
		"store/sqldb", "store/states", "store/txn", "store/webhooks",
	},
	"store/lists": {
		"ledger", "ledger/attestation", "ledger/identity", "ledger/policy", "ledger/policy/earlier",
		"ledger/policy/lint", "ledger/policy/size", "ledger/proof", "ledger/proof/receipt", "ledger/running",
		"store/backlog", "store/delivery", "store/events", "store/facts", "store/overlaps", "store/policies",
		"store/radarindex", "store/signers", "store/sqldb", "store/states", "store/txn",
	},
	"store/boards": {
		"ledger", "ledger/attention", "ledger/identity", "ledger/outbound", "ledger/radar", "store/facts",
		"store/lists", "store/orgs", "store/overlaps", "store/radarindex", "store/signers", "store/states",
		"store/txn",
	},
	"store/search": {
		"ledger", "ledger/identity", "ledger/insights", "ledger/policy/linking", "ledger/search", "store/events",
		"store/facts", "store/lists", "store/signers", "store/states", "store/txn",
	},
	"store/record": {
		"ledger", "ledger/ancestry", "ledger/attestation", "ledger/facts", "ledger/gitobject", "ledger/identity",
		"ledger/lineage", "ledger/passkey", "ledger/policy", "ledger/policy/room", "ledger/review", "store/access",
		"store/events", "store/facts", "store/history", "store/internal/envelope", "store/lists", "store/overlaps",
		"store/radarindex", "store/signers", "store/sqldb", "store/states", "store/txn",
	},
	"store/recheck": {
		"ledger", "ledger/ancestry", "ledger/attestation", "ledger/facts", "ledger/gitobject", "ledger/lineage",
		"ledger/policy/conflicts", "ledger/radar", "store/backlog", "store/facts", "store/history", "store/overlaps",
		"store/radarindex", "store/states", "store/txn",
	},
	"store/upkeep": {
		"ledger", "store/access", "store/backlog", "store/events", "store/facts", "store/orgs", "store/overlaps",
		"store/signers", "store/sqldb", "store/states", "store/txn", "store/webhooks",
	},
	"store/signers": {
		"ledger", "ledger/ca", "ledger/identity", "store/backlog", "store/events", "store/policies", "store/sqldb",
		"store/txn",
	},
	"store/events": {
		"ledger", "ledger/facts", "ledger/outbound", "ledger/policy", "ledger/proof", "store/sqldb", "store/txn",
	},
	"store/webhooks": {
		"ledger", "ledger/outbound", "ledger/settings", "store/events", "store/internal/sealed", "store/sqldb",
		"store/txn",
	},
	"store/txn": {
		"ledger", "store/internal/cursor", "store/sqldb",
	},
	"store/sqlite": {"internal/atomicfile", "store/engine", "store/sqldb"},
	// The steps of migrations that need the rules of the ledger.
	"store/sqlite/migrations": {
		"ledger", "ledger/attestation", "ledger/identity", "ledger/policy", "store/signers", "store/sqldb", "store/txn",
	},
	"store/engine":     {"store/sqldb"},
	"store/postgres":   {"store/engine", "store/sqldb"},
	"store/radarindex": {"ledger", "ledger/policy/conflicts", "ledger/radar"},
	// What tests of the storage need.
	"store/storetest": {
		"internal/must", "internal/oidc/oidctest", "internal/sigstoretest", "internal/testenv", "ledger",
		"ledger/attestation", "ledger/ca", "ledger/identity", "ledger/identity/sigstore", "ledger/member",
		"ledger/passkey", "ledger/passkey/passkeytest", "ledger/policy", "ledger/proof/verify", "store", "store/check",
	},
	// The conformance suite of the storage, by rooms.
	"store/storetest/access": {
		"internal/must", "internal/oidc/oidctest", "internal/sigstoretest", "internal/testenv", "ledger",
		"ledger/attestation", "ledger/ca", "ledger/exchange", "ledger/identity", "ledger/member", "ledger/passkey",
		"ledger/policy", "store", "store/storetest",
	},
	"store/storetest/conformance": {
		"internal/testenv", "store/storetest", "store/storetest/access", "store/storetest/delivery",
		"store/storetest/overlaps", "store/storetest/record", "store/storetest/states", "store/storetest/webhooks",
	},
	"store/storetest/delivery": {
		"internal/must", "internal/testenv", "ledger", "ledger/attestation", "ledger/lineage", "ledger/policy",
		"ledger/radar", "store/storetest",
	},
	"store/storetest/overlaps": {
		"internal/must", "internal/testenv", "ledger", "ledger/policy", "ledger/policy/conflicts", "ledger/radar",
		"store", "store/storetest",
	},
	"store/storetest/record": {
		"internal/must", "internal/testenv", "ledger", "ledger/attention", "ledger/attestation", "ledger/identity",
		"ledger/lineage", "ledger/policy", "ledger/radar", "store", "store/storetest",
	},
	"store/storetest/states": {
		"internal/must", "internal/testenv", "ledger", "ledger/attention", "ledger/attestation", "ledger/ca",
		"ledger/identity", "ledger/outbound", "ledger/policy", "store", "store/storetest",
	},
	"store/storetest/webhooks": {"internal/must", "ledger", "ledger/outbound", "store", "store/storetest"},
	"store/postgres/model":     {}, // only a test
	// Issues certificates with keys that the store never sees.
	"authority": {"ledger", "ledger/attestation", "ledger/ca", "ledger/identity", "store", "transparency"},
	// Signs what the store has, with keys that the store never sees.
	"transparency": {
		"internal/atomicfile", "internal/parallel", "ledger", "ledger/ca", "ledger/identity", "ledger/proof",
		"ledger/proof/verify", "store",
	},
	"transparency/witness":             {"ledger", "ledger/proof", "ledger/proof/trustpolicy", "transparency"},
	"transparency/witness/metrics":     {"transparency/witness"},
	"transparency/witness/witnesstest": {"internal/must"}, // for tests
	// Receivers import webhook to verify deliveries, so it does not import the
	// dispatcher.
	"webhook":                  {"ledger"},
	"webhook/dispatch":         {"ledger", "ledger/outbound", "webhook"},
	"webhook/dispatch/metrics": {"webhook/dispatch"},
	// Only gitrepo runs git. It does not depend on a server.
	"internal/gitrepo": {
		"internal/parallel", "ledger", "ledger/attestation", "ledger/gitobject", "ledger/lineage", "ledger/radar",
	},
	"internal/gitrepo/gitrepotest": {"internal/testenv"}, // repositories for tests
	"internal/parallel":            {},
	"internal/config": {
		"internal/flagvalue", "internal/idp", "ledger", "ledger/member", "ledger/passkey", "ledger/proof/trustpolicy",
		"store", "webhook/dispatch",
	},
	"internal/flagvalue": {"ledger", "ledger/identity", "ledger/radar"},
	"internal/service": {
		"authority", "client", "internal/backup", "internal/buildinfo", "internal/config", "internal/idp",
		"internal/logqueue", "internal/oidc", "internal/terminal", "ledger", "ledger/identity/sigstore", "server",
		"server/metrics", "server/web", "store", "store/check", "store/metrics", "transparency",
		"transparency/witness", "transparency/witness/metrics", "webhook/dispatch", "webhook/dispatch/metrics",
	},
	"internal/atomicfile": {},
	"internal/backup": {
		"ledger", "ledger/identity", "store", "store/check", "store/sqldb", "store/sqlite",
	},
	"internal/logqueue": {},

	"internal/tlstest": {"internal/must"},
	"internal/must":    {}, // what tests rely on
	"internal/testenv": {}, // which tests run, and how much they try
	// PostgreSQL servers for tests.
	"internal/pgtest": {"internal/must", "internal/testenv"},
	"internal/rate":   {},
	// HTTP clients for OpenID Connect issuers and providers.
	"internal/boundedhttp": {},
	// Reads the keys of OpenID Connect issuers.
	"internal/oidc":          {"internal/boundedhttp", "ledger", "ledger/exchange"},
	"internal/oidc/oidctest": {"internal/must"}, // for tests
	"internal/sigstoretest":  {},                // for tests
	// Signs people in with OpenID Connect providers.
	"internal/idp":         {"internal/boundedhttp", "ledger", "ledger/exchange", "ledger/member"},
	"internal/idp/idptest": {"internal/oidc/oidctest"}, // for tests
	"internal/terminal":    {"ledger"},
	"internal/buildinfo":   {},
	// The domain. The types that all share are in ledger, which imports only radar and forge.
	"ledger/identity":          {"ledger", "ledger/identity/sshkey", "ledger/internal/publickey", "ledger/internal/text"},
	"ledger/identity/sshkey":   {"ledger/internal/publickey", "ledger/internal/text"},
	"ledger/identity/sigstore": {"ledger", "ledger/identity", "ledger/internal/publickey", "ledger/internal/text"},
	"ledger":                   {"ledger/forge", "ledger/internal/text", "ledger/radar"},
	"ledger/exchange": {
		"ledger", "ledger/ca", "ledger/forge", "ledger/identity", "ledger/internal/glob", "ledger/internal/issuer",
		"ledger/internal/publickey", "ledger/internal/text", "ledger/where",
	},
	"ledger/member": {
		"ledger", "ledger/ca", "ledger/identity", "ledger/internal/issuer", "ledger/internal/text",
	},
	"ledger/forge":               {},
	"ledger/radar":               {"ledger/internal/glob", "ledger/internal/text"},
	"ledger/ca":                  {"ledger", "ledger/identity"},
	"ledger/passkey":             {"ledger", "ledger/attestation", "ledger/identity", "ledger/internal/publickey"},
	"ledger/passkey/passkeytest": {"ledger/passkey"},
	"ledger/review":              {"ledger", "ledger/attestation", "ledger/identity", "ledger/passkey"},
	"ledger/attestation": {
		"ledger", "ledger/attestation/foreign", "ledger/forge", "ledger/gitobject", "ledger/identity",
		"ledger/internal/glob", "ledger/internal/text",
	},
	"ledger/attestation/foreign": {}, // what is no envelope
	"ledger/attestation/bulk": {
		"ledger", "ledger/internal/text",
	},
	"ledger/facts": {"ledger", "ledger/attestation", "ledger/identity", "ledger/internal/text", "ledger/policy",
		"ledger/radar"},
	"ledger/proof/rederive": {
		"ledger", "ledger/ancestry", "ledger/attestation", "ledger/authors", "ledger/delivery", "ledger/facts",
		"ledger/gitobject", "ledger/identity", "ledger/lineage", "ledger/policy", "ledger/proof/verify",
		"ledger/running", "ledger/where",
	},
	// Webhooks and their deliveries.
	"ledger/outbound": {"ledger", "ledger/internal/text"},
	"ledger/authors":  {"ledger", "ledger/identity"},
	"ledger/ancestry": {"ledger", "ledger/attestation", "ledger/authors", "ledger/gitobject", "ledger/identity",
		"ledger/policy"},
	"ledger/policy": {
		"ledger", "ledger/authors", "ledger/identity", "ledger/internal/glob", "ledger/internal/text",
		"ledger/policy/conflicts", "ledger/policy/internal/assign", "ledger/policy/internal/fields",
		"ledger/policy/scope", "ledger/radar", "ledger/where",
	},
	"ledger/policy/internal/fields": {"ledger", "ledger/identity", "ledger/internal/glob", "ledger/internal/text",
		"ledger/radar", "ledger/where"},
	"ledger/attention":        {"ledger", "ledger/identity", "ledger/outbound", "ledger/policy", "ledger/review"},
	"ledger/proof":            {"ledger"},
	"ledger/policy/candidate": {"ledger", "ledger/policy"},
	"ledger/policy/conflicts": {"ledger", "ledger/internal/text", "ledger/radar"},
	"ledger/policy/earlier":   {"ledger", "ledger/internal/text", "ledger/policy"},
	"ledger/policy/lint": {
		"ledger", "ledger/identity", "ledger/internal/text", "ledger/policy", "ledger/policy/linking",
		"ledger/policy/size",
	},
	"ledger/policy/document":        {"ledger", "ledger/policy"},
	"ledger/policy/linking":         {"ledger", "ledger/identity", "ledger/policy"},
	"ledger/policy/room":            {"ledger", "ledger/policy"},
	"ledger/policy/scope":           {"ledger/internal/glob", "ledger/internal/text"},
	"ledger/policy/size":            {"ledger", "ledger/identity", "ledger/policy", "ledger/policy/internal/fields"},
	"ledger/policy/internal/assign": {},
	"ledger/gitobject":              {"ledger", "ledger/internal/publickey", "ledger/internal/text"},
	"ledger/delivery":               {"ledger", "ledger/lineage", "ledger/policy", "ledger/policy/scope"},
	"ledger/insights":               {"ledger"},
	"ledger/lineage":                {"ledger", "ledger/internal/text"},
	"ledger/running":                {"ledger", "ledger/policy"},
	"ledger/search":                 {"ledger", "ledger/identity", "ledger/internal/text"},
	"ledger/settings":               {"ledger", "ledger/internal/text", "ledger/member"},
	"ledger/where":                  {"ledger/internal/text"},
	"ledger/policy/policytest":      {"ledger/policy", "ledger/policy/conflicts"}, // for tests
	"ledger/eventstream":            {"ledger", "ledger/identity", "ledger/internal/text", "ledger/radar"},
	"ledger/internal/glob":          {"ledger/internal/text"},
	"ledger/proof/receipt":          {"ledger", "ledger/attestation", "ledger/identity", "ledger/proof"},
	"ledger/proof/trustpolicy":      {"ledger/internal/publickey"},
	"ledger/proof/verify": {
		"ledger", "ledger/attestation", "ledger/facts", "ledger/identity", "ledger/identity/sshkey", "ledger/passkey",
		"ledger/policy", "ledger/proof", "ledger/proof/receipt", "ledger/proof/trustpolicy",
	},
	"ledger/internal/issuer":     {},
	"ledger/internal/publickey":  {}, // which keys are accepted
	"ledger/internal/text":       {},
	"ledger/internal/ledgertest": {"ledger", "ledger/identity"}, // for tests
	"e2e":                        {},                            // only tests
	"e2e/fault":                  {},                            // only tests
	// A benchmark starts its server as a process, so it does not import it.
	"e2e/bench": {"e2e/bench/measure", "internal/flagvalue", "internal/terminal"},
	"e2e/bench/measure": {
		"client", "e2e/bench/load", "e2e/bench/network", "internal/gitrepo", "internal/terminal", "ledger",
		"ledger/attestation", "ledger/eventstream", "ledger/identity", "ledger/outbound", "ledger/radar",
	},
	"e2e/bench/load":         {"ledger"},
	"e2e/bench/network":      {},
	"e2e/internal/fastclock": {},                  // clocks that run faster, for tests
	"e2e/internal/filecheck": {"ledger", "store"}, // for tests
	"e2e/internal/daemon":    {"internal/testenv"},
	"e2e/internal/load": {
		"client", "e2e/internal/filecheck", "internal/config", "internal/service", "ledger", "ledger/attestation",
		"ledger/identity", "ledger/outbound", "ledger/policy", "ledger/radar", "webhook",
	},
	"e2e/internal/powercut": {}, // for tests
}
