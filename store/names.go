package store

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/ledgerd/ledgerd/ledger"
)

// names remembers predicates and signers, whose rows never change, so that
// neither lists nor derivations have to join them. The writer puts in what it
// has just inserted, and clears all of it whenever it takes that back.
type names struct {
	mu         sync.RWMutex
	predicates map[int64]string
	signers    map[int64]ledger.DN
	ids        map[orgName]int64
}

// An orgName is the key of a predicate by its name, or of a signer by its DN.
type orgName struct {
	orgID  int64
	signer bool
	name   string
}

// maxNames bounds each map; past it the cache starts anew.
const maxNames = 10_000

func newNames() *names {
	n := new(names)
	n.clear()
	return n
}

func (n *names) clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.predicates = make(map[int64]string)
	n.signers = make(map[int64]ledger.DN)
	n.ids = make(map[orgName]int64)
}

// remember puts key and v into one of the maps of n.
func remember[K comparable, V any](n *names, m *map[K]V, key K, v V) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(*m) >= maxNames {
		*m = make(map[K]V)
	}
	(*m)[key] = v
}

// predicate returns the name of a predicate.
func (n *names) predicate(c *conn, id int64) (string, error) {
	n.mu.RLock()
	name, ok := n.predicates[id]
	n.mu.RUnlock()
	if ok {
		return name, nil
	}
	if err := c.row("SELECT name FROM predicates WHERE id = ?", id).Scan(&name); err != nil {
		return "", fmt.Errorf("read predicate %d: %w", id, err)
	}
	remember(n, &n.predicates, id, name)
	return name, nil
}

// signer returns the DN of a signer.
func (n *names) signer(c *conn, id int64) (ledger.DN, error) {
	n.mu.RLock()
	dn, ok := n.signers[id]
	n.mu.RUnlock()
	if ok {
		return dn, nil
	}
	var text string
	if err := c.row("SELECT dn FROM signers WHERE id = ?", id).Scan(&text); err != nil {
		return dn, fmt.Errorf("read signer %d: %w", id, err)
	}
	dn, err := ledger.ParseDN(text)
	if err != nil {
		return dn, fmt.Errorf("signer %d: %w", id, err)
	}
	remember(n, &n.signers, id, dn)
	return dn, nil
}

// predicateID returns the id of a predicate, which it inserts where it is new.
func (n *names) predicateID(t *tx, orgID int64, name string) (int64, error) {
	return n.id(t, orgName{orgID: orgID, name: name}, "SELECT id FROM predicates WHERE org_id = ? AND name = ?", func() (int64, error) {
		return t.insert("INSERT INTO predicates (org_id, name) VALUES (?, ?)", orgID, name)
	})
}

// signerID returns the id of a signer, whom it inserts where he is new.
func (n *names) signerID(t *tx, orgID int64, dn ledger.DN) (int64, error) {
	name := dn.String()
	return n.id(t, orgName{orgID, true, name}, "SELECT id FROM signers WHERE org_id = ? AND dn = ?", func() (int64, error) {
		return t.insert("INSERT INTO signers (org_id, dn, cn) VALUES (?, ?, ?)", orgID, name, dn.CN)
	})
}

func (n *names) id(t *tx, key orgName, query string, insert func() (int64, error)) (int64, error) {
	n.mu.RLock()
	id, ok := n.ids[key]
	n.mu.RUnlock()
	if ok {
		return id, nil
	}
	err := t.row(query, key.orgID, key.name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		id, err = insert()
		t.named = true
	}
	if err != nil {
		return 0, fmt.Errorf("find %q: %w", key.name, err)
	}
	remember(n, &n.ids, key, id)
	return id, nil
}
