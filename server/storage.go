package server

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// A Store is what the server needs of the ledger's storage, part by part.
type Store interface {
	orgs
	repos
	tokens
	sessions
	identities
	attestations
	commits
	radar
	policies
	events
	webhooks
	deliveries
	// Ready reports why nothing can be answered, if so.
	Ready(context.Context) error
}

var _ Store = (*store.Store)(nil)

type orgs interface {
	CreateOrg(ctx context.Context, name string) (ledger.Org, error)
	Org(ctx context.Context, name string) (ledger.Org, error)
	Orgs(context.Context, store.Query) (ledger.Page[ledger.Org], error)
}

type repos interface {
	CreateRepo(ctx context.Context, org string, n ledger.NewRepo, by string) (ledger.Repo, error)
	Repo(ctx context.Context, org, repo string) (ledger.Repo, error)
	Repos(ctx context.Context, org string, q store.Query) (ledger.Page[ledger.Repo], error)
}

type tokens interface {
	CreateToken(ctx context.Context, org string, n ledger.NewToken, hash [32]byte) (ledger.Token, error)
	Tokens(ctx context.Context, org string, q store.Query) (ledger.Page[ledger.Token], error)
	RevokeToken(ctx context.Context, org, id string) error
	// TokenByHash returns revoked and expired tokens too.
	TokenByHash(ctx context.Context, hash [32]byte) (ledger.Token, error)
	// TouchToken notes that a token is used now. It never waits.
	TouchToken(id string)
}

type sessions interface {
	// CreateSession begins one, of which hash is the SHA-256 of the secret.
	CreateSession(ctx context.Context, tokenID string, hash [32]byte, expires ledger.Time) error
	// SessionToken returns revoked and expired tokens too.
	SessionToken(ctx context.Context, hash [32]byte) (token ledger.Token, expires ledger.Time, err error)
	DeleteSession(ctx context.Context, hash [32]byte) error
}

type identities interface {
	AddIdentity(ctx context.Context, org string, i ledger.Identity) (ledger.Identity, error)
	Identity(ctx context.Context, org, id string) (ledger.Identity, error)
	Identities(ctx context.Context, org string, q store.Query) (ledger.Page[ledger.Identity], error)
	RevokeIdentity(ctx context.Context, org, id string) error
	// LastKeyring returns what Keyring last returned for an org, without a look at
	// whether it is still up to date. ok is false if nothing was read yet.
	LastKeyring(org string) (keyring *ledger.Keyring, version int64, ok bool)
	// Keyring returns what an attestation is verified with, and its version.
	Keyring(ctx context.Context, org string) (*ledger.Keyring, int64, error)
}

type attestations interface {
	// Record answers store.ErrKeyringChanged where the keyring is not of that version any more.
	Record(ctx context.Context, org, repo string, a *ledger.Attestation, keyringVersion int64) (rec ledger.AttestationRecord, created bool, err error)
	Attestation(ctx context.Context, org, repo, id string) (ledger.AttestationRecord, error)
	Envelope(ctx context.Context, org, repo, id string) ([]byte, error)
	Attestations(ctx context.Context, org, repo string, f store.AttestationFilter) (ledger.Page[ledger.AttestationRecord], error)
	Predicates(ctx context.Context, org string, q store.Query) (ledger.Page[ledger.PredicateCount], error)
}

type commits interface {
	Register(ctx context.Context, org, repo, sha string, r ledger.Registration) (c ledger.Commit, created bool, err error)
	Commit(ctx context.Context, org, repo, shaOrPrefix string) (ledger.Commit, error)
	Commits(ctx context.Context, org, repo string, f store.CommitFilter) (ledger.Page[ledger.CommitSummary], error)
}

type radar interface {
	// Overlaps lists the open ones, the strongest first.
	Overlaps(ctx context.Context, org, repo string, f store.RadarFilter) (ledger.Page[ledger.RadarPair], error)
	// Foresee writes nothing.
	Foresee(ctx context.Context, org, repo string, q ledger.RadarQuery) (ledger.RadarResult, error)
	Withdraw(ctx context.Context, org, repo, shaOrPrefix string) error
}

type policies interface {
	// Policy returns the active version for 0.
	Policy(ctx context.Context, org, repo string, version int) (ledger.Policy, error)
	SetPolicy(ctx context.Context, org, repo string, c ledger.Contract, ifVersion int, by string) (ledger.Policy, error)
	Policies(ctx context.Context, org, repo string, q store.Query) (ledger.Page[ledger.Policy], error)
	Simulate(ctx context.Context, org, repo string, c ledger.Contract) (ledger.Simulation, error)
}

type events interface {
	// Tail returns a reader of the org's events as they come.
	Tail(ctx context.Context, org string) (*store.Tail, error)
	// Events returns the bodies as they were rendered.
	Events(ctx context.Context, org string, f store.EventFilter) (ledger.Page[jsontext.Value], error)
}

type webhooks interface {
	// CreateWebhook makes a webhook whose deliveries the secret signs.
	CreateWebhook(ctx context.Context, org, repo string, n ledger.NewWebhook, secret string) (ledger.Webhook, error)
	Webhook(ctx context.Context, org, repo, id string) (ledger.Webhook, error)
	Webhooks(ctx context.Context, org, repo string, q store.Query) (ledger.Page[ledger.Webhook], error)
	ChangeWebhook(ctx context.Context, org, repo, id string, c ledger.WebhookChange) (ledger.Webhook, error)
	DeleteWebhook(ctx context.Context, org, repo, id string) error
	// RotateWebhook lets the old secret sign beside the new one for the overlap.
	RotateWebhook(ctx context.Context, org, repo, id, secret string, overlap time.Duration) (ledger.Webhook, error)
	ReplayWebhook(ctx context.Context, org, repo, id string, since ledger.Time) (queued int64, err error)
}

type deliveries interface {
	PingWebhook(ctx context.Context, org, repo, id string) (ledger.Delivery, error)
	Redeliver(ctx context.Context, org, repo, id, delivery string) (ledger.Delivery, error)
	Deliveries(ctx context.Context, org, repo, id string, f store.DeliveryFilter) (ledger.Page[ledger.Delivery], error)
	Delivery(ctx context.Context, org, repo, id, delivery string) (ledger.DeliveryRecord, error)
}
