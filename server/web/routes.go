package web

import (
	"net/http"

	"github.com/ledgerd/ledgerd/ledger"
)

// routes returns all pages and forms. The paths below /v1 belong to the API.
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

		{get, orgViolationsPattern, read, live(showViolations)},
		{get, environmentsPattern, read, live(showEnvironments)},

		{get, artifactsPattern, read, showArtifacts},
		{get, artifactPattern, read, live(showArtifact)},

		{get, repoPattern, read, live(showRepo)},
		{get, commitPattern, read, live(showCommit)},
		{get, commitPattern + "/transitions", read, showTransitions},
		{get, repoPattern + "/attestations/{id}", read, showAttestation},
		{get, repoPattern + "/attestations/{id}/envelope", read, downloadEnvelope},
		{get, policyPattern, read, live(showPolicy)},
		{get, versionsPattern, read, live(showPolicyVersions)},
		{get, versionsPattern + "/{version}", read, showPolicyVersion},
		{get, policyPattern + "/edit", admin, editPolicy},
		{post, policyPattern + "/edit", admin, changePolicy},
		{get, repoViolationsPattern, read, live(showViolations)},
		{get, radarPattern, read, live(showRadar)},

		{get, settingsPattern, read, showSettings},
		{get, tokensPattern, admin, showTokens},
		{get, tokensPattern + "/new", admin, showTokenForm},
		{post, tokensPattern + "/new", admin, createToken},
		{post, tokensPattern + "/{id}/revoke", admin, revokeToken},
		{get, identitiesPattern, read, showIdentities},
		{get, identitiesPattern + "/new", admin, showIdentityForm},
		{post, identitiesPattern + "/new", admin, addIdentity},
		{get, identitiesPattern + "/{id}/edit", admin, editIdentityForm},
		{post, identitiesPattern + "/{id}/edit", admin, editIdentity},
		{post, identitiesPattern + "/{id}/revoke", admin, revokeIdentity},
		{get, identitiesPattern + "/{id}/distrust", admin, showDistrustForm},
		{post, identitiesPattern + "/{id}/distrust", admin, distrustIdentity},

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
