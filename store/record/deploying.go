package record

import (
	"fmt"

	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A deploying is what a write keeps in memory of deployments until it ends. Only the writer's goroutine uses it.
type deploying struct {
	deployments, environments *sqldb.Rows
	// deployed and changed hold the rows to be written. A key that the write sets several times is written once.
	deployed map[deploymentKey]deployed
	changed  map[environmentKey]environmentChange
}

// A deploymentKey is the key of the table deployments, and deployed the rest of its row.
type (
	deploymentKey struct{ repo, predicate, commit int64 }
	deployed      struct {
		attestation int64
		required    bool
	}
)

// An environmentKey is the key of the table environments, and an environmentChange the rest
// of its row.
type (
	environmentKey    struct{ predicate, repo int64 }
	environmentChange struct{ org, latest int64 }
)

func newDeploying(db *txn.DB) *deploying {
	d := &deploying{
		deployments: sqldb.NewRows(`
INSERT INTO deployments (repo_id, predicate_id, commit_id, attestation_id, required) VALUES `, `
ON CONFLICT (repo_id, predicate_id, commit_id) DO UPDATE SET attestation_id = excluded.attestation_id,
  required = excluded.required, ended_id = 0`, 5),
		environments: sqldb.NewRows("INSERT INTO environments (predicate_id, repo_id, org_id, latest_id) VALUES ", `
ON CONFLICT (predicate_id, repo_id) DO UPDATE SET latest_id = excluded.latest_id`, 4),
		deployed: make(map[deploymentKey]deployed), changed: make(map[environmentKey]environmentChange),
	}
	db.Attach(txn.Part{Flush: d.flush, Discard: d.discard, AfterRollback: d.discard})
	return d
}

// flush writes the changed deployments and environments.
func (d *deploying) flush(t *txn.Tx) error {
	for key, row := range d.deployed {
		d.deployments.Add(key.repo, key.predicate, key.commit, row.attestation, row.required)
	}
	for key, row := range d.changed {
		d.environments.Add(key.predicate, key.repo, row.org, row.latest)
	}
	clear(d.deployed)
	clear(d.changed)
	for _, rows := range [...]*sqldb.Rows{d.deployments, d.environments} {
		if err := rows.Flush(t.Conn); err != nil {
			return fmt.Errorf("write deployments: %w", err)
		}
	}
	return nil
}

// discard drops what a failed write has left in memory.
func (d *deploying) discard() {
	clear(d.deployed)
	clear(d.changed)
	d.deployments.Reset()
	d.environments.Reset()
}
