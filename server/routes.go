package server

import (
	"net/http"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/server/internal/wire"
)

// A route is one endpoint of the API.
type route struct {
	method  string
	pattern string
	access
	// parameters are the names of the query parameters that the route accepts.
	parameters []string
	handle     func(*call) (*reply, error)
}

// An access says who can use a route.
type access struct {
	// scope is the smallest scope that the route accepts. A public route needs no
	// token.
	scope ledger.Scope
	kind  kind
}

// public is the scope of routes that need no token.
const public ledger.Scope = 0

// A kind is an exception to the rules for all routes.
type kind int

const (
	ordinary    kind = iota // none
	ofToken                 // open to all tokens, even those that are only for some repos
	ofEvents                // about the repo that the query names, if any; can be a live stream
	ofExchange              // fails with the errors of OAuth
	ofPublicLog             // needs no token if the org's log is public
)

// reads reports whether a request is one of the concurrent reads, whose number is
// limited. Live streams have limits of their own.
func (rt route) reads(r *http.Request) bool {
	return wire.IsRead(r) && (rt.kind != ofEvents || !wire.IsStreamRequest(r))
}

// inOrg reports whether the route's path has an org. It follows from the pattern, so that no route
// can lack it.
func (rt route) inOrg() bool { return strings.Contains(rt.pattern, "/:org") }

// routes returns all endpoints of the API.
func (s *Server) routes() []route {
	const (
		get, put, post, patch, del = http.MethodGet, http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete

		orgs         = "/v1/orgs"
		org          = orgs + "/:org"
		repos        = org + "/repos"
		repo         = repos + "/:repo"
		commits      = repo + "/commits"
		radar        = repo + "/radar"
		attestations = repo + "/attestations"
		exceptions   = repo + "/exceptions"
		webhooks     = repo + "/webhooks"
		deliveries   = webhooks + "/:id/deliveries"
		policy       = org + "/policies/:repo"
		identities   = org + "/identities"
		trustedRoots = org + "/trusted-roots"
		tokens       = org + "/tokens"
		issuers      = org + "/issuers"
		rules        = org + "/exchange-rules"
		members      = org + "/members"
		memberRules  = org + "/member-rules"
		signIns      = org + "/sign-ins"
		passkeys     = org + "/passkeys"
	)
	var (
		anyone, admin, atHost = access{scope: public}, access{scope: ledger.Admin}, access{scope: ledger.Host}
		read, write, maintain = access{scope: ledger.Read}, access{scope: ledger.Write}, access{scope: ledger.Maintain}

		readSelf   = access{ledger.Read, ofToken}
		readEvents = access{ledger.Read, ofEvents}
		readLog    = access{ledger.Read, ofPublicLog}
		exchange   = access{public, ofExchange}
	)
	list := func(more ...string) []string { return append(more, "limit", "cursor") }

	return []route{
		{get, orgs, atHost, list("deleted"), s.listOrgs},
		{post, orgs, atHost, nil, s.createOrg},
		{get, org, read, nil, s.getOrg},
		{patch, org, admin, nil, s.changeOrg},
		{del, org, atHost, []string{"confirm", "purge"}, s.deleteOrg},

		{get, repos, read, list("deleted"), s.listRepos},
		{post, repos, admin, nil, s.createRepo},
		{get, repo, read, nil, s.getRepo},
		{patch, repo, admin, nil, s.changeRepo},
		{del, repo, admin, []string{"confirm", "purge"}, s.deleteRepo},

		{get, commits, read, list("state", "branch", "author", "text", "in_flight", "standing"), s.listCommits},
		{get, commits + "/:sha", read, []string{"target", "env"}, s.getCommit},
		{get, commits + "/:sha/receipt", read, []string{"state", "target"}, s.getReceipt},
		{get, commits + "/:sha/transitions", read, list(), s.listTransitions},
		{get, commits + "/:sha/gate", read, []string{"state", "target", "env"}, s.getCommitGate},
		{put, commits + "/:sha", write, nil, s.putCommit},
		{patch, commits + "/:sha", admin, nil, s.correctCommit},
		{post, commits + "/:sha/withdraw", write, nil, s.withdrawCommit},
		{post, commits + "/:sha/review-drafts", write, nil, s.draftReview},
		{post, commits + "/:sha/reviews", write, nil, s.recordReview},

		{post, repo + "/objects", write, nil, s.addObjects},
		{get, radar, read, list("level", "commit", "branch"), s.listOverlaps},
		{post, radar, read, nil, s.previewOverlaps},

		{get, attestations, read, list("predicate", "predicate_type", "identity", "since", "status", "commit",
			"order", "verification"), s.listAttestations},
		{post, attestations, write, nil, s.recordAttestation},
		{get, attestations + "/:id", read, nil, s.getAttestation},
		{get, attestations + "/:id/envelope", read, nil, s.getEnvelope},
		{get, attestations + "/:id/assertion", read, nil, s.getAssertion},
		{get, attestations + "/:id/proof", read, nil, s.getAttestationProof},

		{get, org + "/violations", read, list("status", "repo", "commit", "predicate"), s.listViolations},
		{get, repo + "/violations", read, list("status", "commit", "predicate"), s.listViolations},
		{get, org + "/artifacts/:digest", read, []string{"repo", "env"}, s.getArtifact},
		{get, org + "/artifacts/:digest/gate", read, []string{"state", "repo", "env"}, s.getArtifactGate},
		{post, org + "/artifacts", read, nil, s.getArtifacts},
		{get, org + "/attention", read, list("kind", "repo"), s.listAttention},
		{get, org + "/overview", read, list("name", "sort", "reverse"), s.listOverview},
		{get, org + "/environments", read, list("repo", "environment"), s.listEnvironments},
		{get, org + "/search", read, list("q"), s.search},
		{get, org + "/insights", read, []string{"repo", "days"}, s.getInsights},
		{get, exceptions, read, list("commit", "active"), s.listExceptions},

		// Only for maintainers: a webhook's URL is often a secret itself.
		{get, webhooks, maintain, list(), s.listWebhooks},
		{post, webhooks, maintain, nil, s.createWebhook},
		{get, webhooks + "/:id", maintain, nil, s.getWebhook},
		{patch, webhooks + "/:id", maintain, nil, s.changeWebhook},
		{del, webhooks + "/:id", maintain, nil, s.deleteWebhook},
		{post, webhooks + "/:id/ping", maintain, nil, s.pingWebhook},
		{post, webhooks + "/:id/rotate", maintain, nil, s.rotateWebhook},
		{post, webhooks + "/:id/replay", maintain, nil, s.replayWebhook},
		{get, deliveries, maintain, list("status", "event"), s.listDeliveries},
		{get, deliveries + "/:delivery", maintain, nil, s.getDelivery},
		{post, deliveries + "/:delivery/redeliver", maintain, nil, s.redeliver},

		{get, policy, read, []string{"version"}, s.getPolicy},
		{put, policy, maintain, nil, s.putPolicy},
		{get, policy + "/versions", read, list(), s.listPolicies},
		{post, policy + "/simulate", maintain, nil, s.simulatePolicy},
		{post, policy + "/lint", read, nil, s.lintPolicy},

		{get, identities, read, list(), s.listIdentities},
		{post, identities, admin, nil, s.addIdentity},
		{get, identities + "/:id", read, nil, s.getIdentity},
		{patch, identities + "/:id", admin, nil, s.changeIdentity},
		{del, identities + "/:id", admin, []string{"since"}, s.revokeIdentity},
		{get, trustedRoots, read, list(), s.listTrustedRoots},
		{get, trustedRoots + "/:name", read, []string{"version"}, s.getTrustedRoot},
		{put, trustedRoots + "/:name", admin, nil, s.putTrustedRoot},
		{del, trustedRoots + "/:name", admin, nil, s.removeTrustedRoot},

		{get, org + "/ci-ca", read, nil, s.getCA(ca.Jobs)},
		{post, org + "/ci-ca", admin, nil, s.createCA(ca.Jobs)},
		{del, org + "/ci-ca", admin, nil, s.retireCA(ca.Jobs)},
		{get, org + "/people-ca", read, nil, s.getCA(ca.People)},
		{post, org + "/people-ca", admin, nil, s.createCA(ca.People)},
		{del, org + "/people-ca", admin, nil, s.retireCA(ca.People)},
		{post, org + "/certificates", anyone, nil, s.issueCertificate},

		{get, tokens, admin, list(), s.listTokens},
		{post, tokens, admin, nil, s.createToken},
		{del, tokens + "/:id", admin, nil, s.revokeToken},
		{get, "/v1/token", readSelf, nil, s.getOwnToken},
		{get, issuers, admin, list(), s.listIssuers},
		{post, issuers, admin, nil, s.addIssuer},
		{del, issuers + "/:id", admin, nil, s.removeIssuer},
		{get, rules, admin, list(), s.listRules},
		{post, rules, admin, nil, s.createRule},
		{del, rules + "/:id", admin, nil, s.removeRule},
		{post, org + "/token/exchange", exchange, nil, s.exchangeToken},

		{get, members, admin, list(), s.listMembers},
		{post, members, admin, nil, s.addMember},
		{get, members + "/:id", admin, nil, s.getMember},
		{patch, members + "/:id", admin, nil, s.changeMember},
		{del, members + "/:id", admin, nil, s.removeMember},
		{get, memberRules, admin, list(), s.listMemberRules},
		{post, memberRules, admin, nil, s.createMemberRule},
		{del, memberRules + "/:id", admin, nil, s.removeMemberRule},
		{get, signIns, read, list("member"), s.listSignIns},
		{del, signIns + "/:id", read, nil, s.endSignIn},
		{get, passkeys, read, list("member"), s.listPasskeys},
		{post, passkeys, read, nil, s.addPasskey},
		{post, org + "/passkey-challenges", read, nil, s.challengePasskey},
		{del, passkeys + "/:id", read, nil, s.removePasskey},

		{get, org + "/audit", admin, list("action", "by", "repo", "since", "order"), s.listAudit},

		{get, org + "/predicates", read, list(), s.listPredicates},
		{get, org + "/events", readEvents, list("after", "types", "repo", "order", "salts", "last_event_id"), s.listEvents},

		{get, org + "/events/:id", read, nil, s.getEvent},
		{get, org + "/events/:id/proof", read, nil, s.getEventProof},
		{get, org + "/log", read, nil, s.getLog},
		{get, org + "/log/*path", readLog, nil, s.getLogFile},

		{get, "/v1/openapi.yaml", anyone, nil, s.getDescription},
		{get, "/healthz", anyone, nil, s.getHealth},
		{get, "/readyz", anyone, nil, s.getReadiness},
	}
}

// removedRoutes returns the endpoints that were removed. They answer 410 and say what to use instead,
// for one release only: delete them here after the next one. openapi.yaml does not have them.
func removedRoutes() []route {
	removed := func(method, pattern, why string) route {
		return route{method, pattern, access{scope: public}, nil, func(*call) (*reply, error) {
			return nil, ledger.Errorf(ledger.CodeEndpointRemoved, "%s", why)
		}}
	}
	const noWitness = "ledgerd no longer cosigns the checkpoints of other logs: " +
		"use a witness such as litewitness or omniwitness (see docs/witness.md)"

	return []route{
		removed(http.MethodPost, "/v1/witness/add-checkpoint", noWitness),
		removed(http.MethodGet, "/v1/witness/:hash/checkpoint", noWitness),
	}
}
