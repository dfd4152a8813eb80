package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// Orgs lists the orgs of the server. Only the administrator of its host can.
func (c *Client) Orgs(ctx context.Context) iter.Seq2[ledger.Org, error] {
	return list[ledger.Org](ctx, c, pathOf("orgs"), parameters())
}

// Org returns one org.
func (c *Client) Org(ctx context.Context, org string) (ledger.Org, error) {
	return get[ledger.Org](ctx, c, pathOf("orgs", org))
}

// CreateOrg creates an org. Only the administrator of the server's host can.
func (c *Client) CreateOrg(ctx context.Context, n ledger.NewOrg) (ledger.Org, error) {
	return post[ledger.Org](ctx, c, pathOf("orgs"), n)
}

// ChangeOrg changes the settings of an org, archives it or, for the administrator of the server's
// host, renames it.
func (c *Client) ChangeOrg(ctx context.Context, org string, change ledger.OrgChange) (ledger.Org, error) {
	return patch[ledger.Org](ctx, c, pathOf("orgs", org), change)
}

// DeletedOrgs lists the deleted orgs of the server. Only the administrator of its host can.
func (c *Client) DeletedOrgs(ctx context.Context) iter.Seq2[ledger.Org, error] {
	return list[ledger.Org](ctx, c, pathOf("orgs"), parameters("deleted", "true"))
}

// DeleteOrg deletes an org; ends its tokens, and keeps what it has recorded. Only the
// administrator of the server's host can.
func (c *Client) DeleteOrg(ctx context.Context, org string) error {
	return c.remove(ctx, pathOf("orgs", org), "confirm", org)
}

// PurgeOrg makes the deletion of an org final: it cannot be restored, and what the retention of its
// repos can prune is pruned. Only the administrator of the server's host can.
func (c *Client) PurgeOrg(ctx context.Context, org string) error {
	return c.remove(ctx, pathOf("orgs", org), "confirm", org, "purge", "true")
}

// remove deletes a resource. query has names and values of parameters.
func (c *Client) remove(ctx context.Context, path string, query ...string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: path, query: parameters(query...)})
	return err
}

// Repos lists the repos of an org.
func (c *Client) Repos(ctx context.Context, org string) iter.Seq2[ledger.Repo, error] {
	return list[ledger.Repo](ctx, c, pathOf("orgs", org, "repos"), parameters())
}

// DeletedRepos lists the deleted repos of an org.
func (c *Client) DeletedRepos(ctx context.Context, org string) iter.Seq2[ledger.Repo, error] {
	return list[ledger.Repo](ctx, c, pathOf("orgs", org, "repos"), parameters("deleted", "true"))
}

// DeleteRepo deletes a repo, and keeps what it has recorded.
func (c *Client) DeleteRepo(ctx context.Context, org, repo string) error {
	return c.remove(ctx, pathOf("orgs", org, "repos", repo), "confirm", repo)
}

// PurgeRepo makes the deletion of a repo final: it cannot be restored, and what a retention can prune
// is pruned.
func (c *Client) PurgeRepo(ctx context.Context, org, repo string) error {
	return c.remove(ctx, pathOf("orgs", org, "repos", repo), "confirm", repo, "purge", "true")
}

// ReposPage returns one page of the list of Repos.
func (c *Client) ReposPage(ctx context.Context, org string, q Query) (ledger.Page[ledger.Repo], error) {
	return page[ledger.Repo](ctx, c, pathOf("orgs", org, "repos"), parameters(), q)
}

// Repo returns one repo with the number of its commits in each state.
func (c *Client) Repo(ctx context.Context, org, repo string) (ledger.Repo, error) {
	return get[ledger.Repo](ctx, c, pathOf("orgs", org, "repos", repo))
}

// CreateRepo creates a repo with the default contract.
func (c *Client) CreateRepo(ctx context.Context, org string, n ledger.NewRepo) (ledger.Repo, error) {
	return post[ledger.Repo](ctx, c, pathOf("orgs", org, "repos"), n)
}

// ChangeRepo renames, archives or restores a repo, or changes where people see it in a browser and
// how long it keeps what it has recorded.
func (c *Client) ChangeRepo(ctx context.Context, org, repo string, change ledger.RepoChange) (ledger.Repo, error) {
	return patch[ledger.Repo](ctx, c, pathOf("orgs", org, "repos", repo), change)
}

// Tokens lists the tokens of an org, revoked and expired ones included.
func (c *Client) Tokens(ctx context.Context, org string) iter.Seq2[ledger.Token, error] {
	return list[ledger.Token](ctx, c, pathOf("orgs", org, "tokens"), parameters())
}

// TokensPage returns one page of the list of Tokens.
func (c *Client) TokensPage(ctx context.Context, org string, q Query) (ledger.Page[ledger.Token], error) {
	return page[ledger.Token](ctx, c, pathOf("orgs", org, "tokens"), parameters(), q)
}

// CreateToken creates a token. The result contains its Secret, which cannot be read
// again.
func (c *Client) CreateToken(ctx context.Context, org string, n ledger.NewToken) (ledger.Token, error) {
	return post[ledger.Token](ctx, c, pathOf("orgs", org, "tokens"), n)
}

// RevokeToken revokes a token, effective immediately.
func (c *Client) RevokeToken(ctx context.Context, org, id string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: pathOf("orgs", org, "tokens", id)})
	return err
}

// OwnToken returns the token that the client uses.
func (c *Client) OwnToken(ctx context.Context) (ledger.Token, error) {
	return get[ledger.Token](ctx, c, pathOf("token"))
}

// Identities lists the keys and roots of an org, revoked ones included.
func (c *Client) Identities(ctx context.Context, org string) iter.Seq2[identity.Identity, error] {
	return list[identity.Identity](ctx, c, pathOf("orgs", org, "identities"), parameters())
}

// IdentitiesPage returns one page of the list of Identities.
func (c *Client) IdentitiesPage(ctx context.Context, org string, q Query) (ledger.Page[identity.Identity], error) {
	return page[identity.Identity](ctx, c, pathOf("orgs", org, "identities"), parameters(), q)
}

// Identity returns one key or root.
func (c *Client) Identity(ctx context.Context, org, id string) (identity.Identity, error) {
	return get[identity.Identity](ctx, c, pathOf("orgs", org, "identities", id))
}

// AddIdentity adds a key or a root to the identities that an org trusts.
func (c *Client) AddIdentity(ctx context.Context, org string, n identity.NewIdentity) (identity.Identity, error) {
	return post[identity.Identity](ctx, c, pathOf("orgs", org, "identities"), n)
}

// ChangeIdentity changes what a key or root may attest, the DNs that a root certifies, or
// a key's e-mail address, effective immediately. Attestations that are recorded stay.
func (c *Client) ChangeIdentity(
	ctx context.Context, org, id string, change identity.Change,
) (identity.Identity, error) {
	return patch[identity.Identity](ctx, c, pathOf("orgs", org, "identities", id), change)
}

// RevokeIdentity revokes a key or root, effective immediately. Attestations that it
// signed before stay recorded, and count.
func (c *Client) RevokeIdentity(ctx context.Context, org, id string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: pathOf("orgs", org, "identities", id)})
	return err
}

// DistrustIdentity revokes a key or root, if it is not revoked, and makes what was recorded
// by it since a time not count. The time can be made earlier, but not later. If it is zero,
// this is RevokeIdentity.
func (c *Client) DistrustIdentity(ctx context.Context, org, id string, since ledger.Time) error {
	_, err := c.do(ctx, request{
		method: http.MethodDelete, path: pathOf("orgs", org, "identities", id), query: parameters("since", since.String()),
	})
	return err
}

// Predicates lists the predicates of an org, with the number of attestations for
// each.
func (c *Client) Predicates(ctx context.Context, org string) iter.Seq2[ledger.PredicateCount, error] {
	return list[ledger.PredicateCount](ctx, c, pathOf("orgs", org, "predicates"), parameters())
}
