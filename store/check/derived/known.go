package derived

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// known compares what is known of commits with the latest events about them.
func (o *Org) known(ctx context.Context, r repo, list []facts.Commit) error {
	differing := make(map[string]bool)
	for _, f := range list {
		for _, key := range f.SigningKeys {
			o.Signers.Claim(key)
		}
		key := commitKey(r.id, f.ID)
		if f.Tree != "" {
			delete(o.facts.objects, key)
		}
		logged, isLogged := o.facts.latest[key]
		delete(o.facts.latest, key)
		if isLogged && logged != shorten(f.Digest()) || !isLogged && f.IsRegistered() {
			differing[f.ID] = true
		}
	}
	if len(differing) == 0 || o.facts.unread+o.facts.left > 0 { // perhaps by one of those events
		return nil
	}

	var isPending bool
	err := o.Read(ctx, func(conn *sqldb.Conn) error {
		if err := conn.Row(`
SELECT EXISTS (SELECT 1 FROM backlog WHERE repo_id = ? AND kind = 'log')`, r.id).Scan(&isPending); err != nil {
			return err
		}
		return o.changedSince(conn, r.id, differing)
	})
	if err != nil {
		return fmt.Errorf("read events of commits: %w", err)
	}
	if isPending {
		o.facts.unlogged += int64(len(differing))
		return nil
	}
	for _, f := range list {
		if differing[f.ID] {
			o.Problemf(verify.CheckFacts, o.Name, "commit "+r.name+"@"+f.ID, "%v", verify.ErrOtherFacts)
		}
	}
	return nil
}

// changedSince removes the commits of a repo that have an event since the check of the events.
func (o *Org) changedSince(conn *sqldb.Conn, repo int64, commits map[string]bool) error {
	return conn.Each(func(row sqldb.Scanner) error {
		var body []byte
		if err := row.Scan(&body); err != nil {
			return err
		}
		var e ledger.CommitEvent
		if json.Unmarshal(body, &e) == nil {
			for _, sha := range append(e.Objects, e.Commit) {
				delete(commits, sha)
			}
		}
		return nil
	}, "SELECT body FROM events WHERE org_id = ? AND seq >= ? AND type = 'commit' AND repo_id = ?",
		o.ID, o.End, repo)
}

// reportKnown reports events about commits that do not exist, and what was not compared.
func (o *Org) reportKnown() {
	if n := len(o.facts.latest); n > 0 {
		o.Problemf(verify.CheckFacts, o.Name, "", "there are events about %d commits that have no row", n)
	}
	if n := len(o.facts.objects); n > 0 {
		o.Problemf(checkObjects, o.Name, "", "there are events that list %d commits whose objects are missing", n)
	}
	if o.facts.unlogged > 0 {
		o.Incompletef("%s: what is known of %d commits: the server is still logging what was known before an upgrade",
			o.Name, o.facts.unlogged)
	}
	if o.facts.unread > 0 {
		o.Uncheckedf("%s: what %d events say of commits: their bodies are pruned or wrong", o.Name, o.facts.unread)
	}
	if o.facts.left > 0 {
		o.Incompletef("%s: what is known of more than %d commits", o.Name, o.facts.limit)
	}
	if o.facts.leftObjects > 0 {
		o.Incompletef("%s: whether the objects of more than %d commits are there", o.Name, o.facts.limit)
	}
}
