package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// A handler makes the answer to a visit of a page.
type handler func(*visit) (*answer, error)

// A route is one page, or one form that is sent.
type route struct {
	method  string
	pattern string // of http.ServeMux
	// scope is the least that the visitor's token needs; open for none, nor to
	// be signed in. The API asks for it too.
	scope  ledger.Scope
	handle handler
}

const open ledger.Scope = 0

// makesNoPage tells that the answer costs next to nothing to begin with, or
// mostly waits for a receiver, so that nobody waits for their turn.
func (rt route) makesNoPage() bool {
	return slices.Contains([]string{eventsPattern, assetPattern, pingPattern, redeliverPattern}, rt.pattern)
}

// asksNobody tells that it is the same who visits, so that nobody is looked up.
func (rt route) asksNobody() bool {
	return rt.pattern == assetPattern || rt.pattern == logoutPattern
}

// routes is all there is to visit. The paths of /v1 are the API's.
func routes() []route {
	const (
		get, post = http.MethodGet, http.MethodPost
		read      = ledger.Read
		admin     = ledger.Admin
	)
	return []route{
		{get, "/{$}", open, showHome},
		{get, "/login", open, showLogin},
		{post, "/login", open, signIn},
		{post, logoutPattern, open, signOut},
		{get, "/setup", open, showSetup},
		{post, "/setup", open, setUp},
		{get, assetPattern, open, serveAsset},

		{get, orgPattern, read, showOrg},
		{get, eventsPattern, read, followEvents},
		{get, activityPattern, read, live(showActivity)},

		{get, repoPattern, read, live(showRepo)},
		{get, commitPattern, read, live(showCommit)},
		{get, repoPattern + "/attestations/{id}", read, showAttestation},
		{get, repoPattern + "/attestations/{id}/envelope", read, downloadEnvelope},
		{get, policyPattern, read, live(showPolicy)},
		{get, policyPattern + "/versions", read, live(showPolicyVersions)},
		{get, policyPattern + "/versions/{version}", read, showPolicyVersion},
		{get, policyPattern + "/edit", admin, editPolicy},
		{post, policyPattern + "/edit", admin, changePolicy},
		{get, radarPattern, read, live(showRadar)},

		{get, settingsPattern, read, showSettings},
		{get, tokensPattern, admin, showTokens},
		{get, tokensPattern + "/new", admin, showTokenForm},
		{post, tokensPattern + "/new", admin, createToken},
		{post, tokensPattern + "/{id}/revoke", admin, revokeToken},
		{get, identitiesPattern, read, showIdentities},
		{get, identitiesPattern + "/new", admin, showIdentityForm},
		{post, identitiesPattern + "/new", admin, addIdentity},
		{post, identitiesPattern + "/{id}/revoke", admin, revokeIdentity},

		{get, webhooksPattern, admin, showWebhooks},
		{get, webhooksPattern + "/new", admin, showWebhookForm},
		{post, webhooksPattern + "/new", admin, createWebhook},
		{get, webhookPattern, admin, showWebhook},
		{get, webhookPattern + "/edit", admin, editWebhookForm},
		{post, webhookPattern + "/edit", admin, editWebhook},
		{get, webhookPattern + "/rotate", admin, rotateWebhookForm},
		{post, webhookPattern + "/rotate", admin, rotateWebhook},
		{get, webhookPattern + "/replay", admin, replayWebhookForm},
		{post, webhookPattern + "/replay", admin, replayWebhook},
		{post, webhookPattern + "/active", admin, activateWebhook},
		{post, pingPattern, admin, pingWebhook},
		{post, webhookPattern + "/remove", admin, removeWebhook},
		{get, webhookPattern + "/deliveries/{delivery}", admin, showDelivery},
		{post, redeliverPattern, admin, redeliver},
	}
}

// mux makes the table answer requests. HEAD works where GET does.
func (s *Site) mux() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range routes() {
		mux.Handle(rt.method+" "+rt.pattern, s.serve(rt))
	}
	// What the table has not comes here, a page by another method too: a pattern
	// without a method would clash with more special ones that have one.
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if known := methodsOf(mux, r); len(known) > 0 {
			allow := strings.Join(known, ", ")
			w.Header().Set("Allow", allow)
			s.fail(w, r, ledger.Errorf(ledger.CodeMethodNotAllowed, "%s does not work here: use %s", r.Method, allow))
			return
		}
		s.fail(w, r, ledger.Errorf(ledger.CodeNotFound, "there is no page at %s", r.URL.Path))
	})
	return mux
}

// methodsOf returns by which methods there is something at the request's path.
func methodsOf(mux *http.ServeMux, r *http.Request) []string {
	var known []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		asked := r.Clone(r.Context())
		asked.Method = method
		if _, pattern := mux.Handler(asked); pattern != "/" {
			known = append(known, method)
		}
	}
	return known
}
