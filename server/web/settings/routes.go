// Package settings has the pages of an org's settings: tokens, members, sign-ins, passkeys, identities and
// administrative actions. It also has those of webhooks with their deliveries.
package settings

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// Routes returns the routes of the package.
func Routes() []page.Route { return slices.Concat(orgRoutes(), peopleRoutes(), webhookRoutes()) }

func orgRoutes() []page.Route {
	const (
		admin      = ledger.Admin
		tokens     = page.TokensPattern
		identities = page.IdentitiesPattern
	)
	return []page.Route{
		page.Get(page.SettingsPattern, ledger.Read, showSettings),
		page.Get(tokens, admin, showTokens),
		page.Get(tokens+"/new", admin, showTokenForm),
		page.Post(tokens+"/new", admin, createToken),
		page.Post(tokens+"/{id}/revoke", admin, revokeToken),

		page.Get(identities, ledger.Read, showIdentities),
		page.Get(identities+"/new", admin, showIdentityForm),
		page.Post(identities+"/new", admin, addIdentity),
		page.Get(identities+"/{id}/edit", admin, editIdentityForm),
		page.Post(identities+"/{id}/edit", admin, editIdentity),
		page.Post(identities+"/{id}/revoke", admin, revokeIdentity),
		page.Get(identities+"/{id}/distrust", admin, showDistrustForm),
		page.Post(identities+"/{id}/distrust", admin, distrustIdentity),

		page.Get(page.TrustedRootPattern, admin, showTrustedRootForm),
		page.Post(page.TrustedRootPattern, admin, setTrustedRoot),

		page.Get(page.AuditPattern, admin, showAudit),
		page.Get(page.AuditPattern+"/download", admin, downloadAudit),
	}
}

func webhookRoutes() []page.Route {
	const (
		maintain = ledger.Maintain
		webhook  = page.WebhooksPattern + "/{id}"
	)
	ping := page.Post(webhook+"/ping", maintain, pingWebhook)
	again := page.Post(webhook+"/deliveries/{delivery}/redeliver", maintain, redeliver)
	ping.SkipsLimiter, again.SkipsLimiter = true, true // they wait for the receiver
	return []page.Route{
		page.Get(page.WebhooksPattern, maintain, showWebhooks),
		page.Get(page.WebhooksPattern+"/new", maintain, showWebhookForm),
		page.Post(page.WebhooksPattern+"/new", maintain, createWebhook),
		page.Get(webhook, maintain, showWebhook),
		page.Get(webhook+"/edit", maintain, editWebhookForm),
		page.Post(webhook+"/edit", maintain, editWebhook),
		page.Get(webhook+"/rotate", maintain, rotateWebhookForm),
		page.Post(webhook+"/rotate", maintain, rotateWebhook),
		page.Get(webhook+"/replay", maintain, replayWebhookForm),
		page.Post(webhook+"/replay", maintain, replayWebhook),
		page.Post(webhook+"/active", maintain, activateWebhook),
		ping,
		page.Post(webhook+"/remove", maintain, removeWebhook),
		page.Get(webhook+"/deliveries/{delivery}", maintain, showDelivery),
		again,
	}
}
