package search

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/search"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/lists"
	"github.com/ledgerd/ledgerd/store/txn"
)

const (
	// maxComparedNames is the number of predicates and of signers whose names a search compares.
	maxComparedNames = 1000
	// afterAll is greater than any character of a name.
	afterAll = "\U0010FFFF"
)

// A Query is a search in an org.
type Query struct {
	search.Query
	// Limit is the maximum number of hits of each type.
	Limit int
	// Cursor is the NextCursor of the previous result; empty for the first.
	Cursor string
	// IsAdmin reports whether webhooks are searched, too.
	IsAdmin bool
}

// A finder searches an org.
type finder struct {
	txn.Reader
	fi       *Finder
	q        Query
	searched searched
	hits     []search.Hit
	// seen are the records that are among the hits.
	seen    map[string]bool
	nameIDs map[string]int64 // row ids of predicates and signers, by type and name
	result  search.Result    // Examined and NextCursor
	stopped []string         // why not everything was compared
}

// add adds a hit, unless its record is among the hits. key identifies it among the records of
// its type.
func (f *finder) add(key string, h search.Hit) {
	key = nameOfHit(h.Type, key)
	if h.Rank == search.No || f.seen[key] {
		return
	}
	f.seen[key] = true
	f.hits = append(f.hits, h)
}

// nameOfHit returns a name that is unique among all types.
func nameOfHit(kind search.Kind, name string) string { return string(kind) + " " + name }

func (f *finder) stop(format string, args ...any) {
	f.stopped = append(f.stopped, fmt.Sprintf(format, args...))
}

// lookUp finds records by indexes.
func (f *finder) lookUp() error {
	if f.searched.more {
		f.stop("only the %d repos created last were searched", maxTracks)
	}
	steps := []func() error{f.findRepos, f.findPredicates, f.findSigners, f.findCommits}
	if sha := f.q.Commit(); sha != "" {
		steps = append(steps, func() error { return f.commitsBySHA(sha) })
	}
	if d := f.q.Digest(); d.Algorithm != "" {
		steps = append(steps, func() error { return f.findArtifacts(d) })
	}
	if prefix, id := f.q.ID(); prefix != "" {
		steps = append(steps, func() error { return f.findID(prefix, id) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// findRepos compares the names of repos.
func (f *finder) findRepos() error {
	for _, r := range f.searched.list {
		f.add(r.name, search.Hit{Type: search.Repo, Title: r.name, Repo: r.name, Rank: f.q.Match(r.name), Order: r.id})
	}
	if !f.searched.more {
		return nil
	}
	return f.Each(func(row txn.Scanner) error {
		var r searchedRepo
		err := row.Scan(&r.id, &r.name)
		f.add(r.name, search.Hit{Type: search.Repo, Title: r.name, Repo: r.name, Rank: search.Equal, Order: r.id})
		return err
	}, "SELECT id, name FROM repos WHERE org_id = ? AND name = ? AND deleted_at = 0", f.searched.orgID, f.q.Text)
}

// findPredicates looks up the predicates that begin with the query, and compares the names
// of the newest.
func (f *finder) findPredicates() error {
	const columns = "SELECT id, name, attestations, last_at FROM predicates "
	compared := 0
	visit := func(row txn.Scanner) error {
		var count, id int64
		h := search.Hit{Type: search.Predicate}
		if err := row.Scan(&id, &h.Title, &count, &h.At); err != nil {
			return err
		}
		compared++
		f.nameIDs[nameOfHit(search.Predicate, h.Title)] = id
		h.Detail, h.Order, h.Rank = plural(count, "attestation"), int64(h.At), f.q.Match(h.Title)
		f.add(h.Title, h)
		return nil
	}

	err := f.Each(visit, columns+"WHERE org_id = ? AND name >= ? AND name < ? ORDER BY name LIMIT ?",
		f.searched.orgID, f.q.Text, f.q.Text+afterAll, f.q.Limit+1)
	if err != nil {
		return fmt.Errorf("look up predicates: %w", err)
	}
	compared = 0
	err = f.Each(visit, columns+"/*+index predicates_by_org*/ WHERE org_id = ? ORDER BY id DESC LIMIT ?",
		f.searched.orgID, maxComparedNames)
	if err != nil {
		return fmt.Errorf("read predicates: %w", err)
	}
	if compared == maxComparedNames {
		f.stop("only the newest %d predicates were compared in full, others by their begin", maxComparedNames)
	}
	return nil
}

// findSigners looks up the signers whose name or e-mail address begins with the query, and
// compares the names of others.
func (f *finder) findSigners() error {
	compared := 0
	add := func(row txn.Scanner, rank func(cn, dn string) search.Rank) error {
		var id int64
		h := search.Hit{Type: search.Signer}
		if err := row.Scan(&id, &h.Title, &h.Detail); err != nil {
			return err
		}
		compared++
		f.nameIDs[nameOfHit(search.Signer, h.Detail)] = id
		h.Order, h.Rank = id, rank(h.Title, h.Detail)
		f.add(h.Detail, h)
		return nil
	}

	const columns = "SELECT s.id, s.cn, s.dn FROM "
	if name := identity.FoldName(f.q.Text); name != "" {
		err := f.Each(func(row txn.Scanner) error {
			return add(row, func(cn, _ string) search.Rank {
				if rank := f.q.Match(cn); rank != search.No {
					return rank
				}
				return search.Prefix // by an e-mail address, or by an earlier name
			})
		}, columns+`signer_names n /*+ordered*/ JOIN signers s ON s.id = n.signer_id
WHERE n.org_id = ? AND n.name >= ? AND n.name < ? ORDER BY n.name LIMIT ?`,
			f.searched.orgID, name, name+afterAll, f.q.Limit+1)
		if err != nil {
			return fmt.Errorf("look up signers: %w", err)
		}
	}

	compared = 0
	err := f.Each(func(row txn.Scanner) error {
		return add(row, func(cn, dn string) search.Rank {
			if rank := f.q.Match(cn); rank != search.No {
				return rank
			}
			return f.q.Match(dn)
		})
	}, columns+"signers s WHERE s.org_id = ? ORDER BY s.dn LIMIT ?", f.searched.orgID, maxComparedNames)
	if err != nil {
		return fmt.Errorf("read signers: %w", err)
	}
	if compared == maxComparedNames {
		f.stop("only %d signers were compared in full, others by the begin of their name", maxComparedNames)
	}
	return nil
}

// fromCommits begins a query for commits c of the org's repos r. Its parameters are the org
// and the first repo.
const fromCommits = "SELECT " + lists.SummaryColumns + `, r.id, r.name
FROM repos r /*+index repos_by_org*/ /*+ordered*/ JOIN commits c ON `

const inOrg = " WHERE r.org_id = ? AND r.id >= ? AND r.deleted_at = 0"

// eachCommit visits the commits of a query that begins with fromCommits.
func (f *finder) eachCommit(visit func(txn.Keyed[newestCommit]), query string, args ...any) error {
	err := f.Each(func(row txn.Scanner) error {
		var repoID int64
		var repo string
		c, err := lists.ScanSummaryAnd(row, &repoID, &repo)
		if err != nil {
			return err
		}
		c.Row.Repo = repo
		visit(txn.Keyed[newestCommit]{ID: c.ID, Row: newestCommit{c.Row, repoID}})
		return nil
	}, query, args...)
	if err != nil {
		return fmt.Errorf("look up commits: %w", err)
	}
	return nil
}

// commitsBySHA finds commits by their IDs.
func (f *finder) commitsBySHA(prefix string) error {
	rank := search.Prefix
	if ledger.IsCommit(prefix) {
		rank = search.Equal
	}
	return f.eachCommit(func(c txn.Keyed[newestCommit]) { f.addCommit(c, rank) },
		fromCommits+"c.repo_id = r.id"+inOrg+" AND c.sha >= ? AND c.sha < ? LIMIT ?",
		f.searched.orgID, f.searched.oldest, prefix, prefix+"g", f.q.Limit+1)
}

// findCommits finds the newest commit of each repo for a branch with exactly this name, and
// by an author with exactly this name or e-mail address, however old it is.
func (f *finder) findCommits() error {
	newest := func(column string) string {
		return fromCommits + "c.id = (SELECT max(b.id) FROM commits b /*+index commits_by_" + column + "*/" +
			" WHERE b.repo_id = r.id AND b." + column + " <> '' AND b." + column + " = ?)" + inOrg + " LIMIT ?"
	}
	for column, add := range map[string]func(txn.Keyed[newestCommit], search.Rank){
		"branch": f.addBranch, "author_name": f.addCommit, "author_email": f.addCommit,
	} {
		err := f.eachCommit(func(c txn.Keyed[newestCommit]) { add(c, search.Equal) },
			newest(column), f.q.Text, f.searched.orgID, f.searched.oldest, f.q.Limit+1)
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *finder) addCommit(c txn.Keyed[newestCommit], rank search.Rank) {
	h := hitOf(search.Commit, c, rank)
	h.Title, h.Detail = c.Row.Message, c.Row.Author.Name
	f.add(fmt.Sprint(c.ID), h)
}

// addBranch adds the branch of a commit. The first commit of a branch that is added is the
// newest.
func (f *finder) addBranch(c txn.Keyed[newestCommit], rank search.Rank) {
	h := hitOf(search.Branch, c, rank)
	h.Title, h.Detail = c.Row.Branch, c.Row.Message
	f.add(fmt.Sprint(c.Row.repoID, " ", c.Row.Branch), h)
}

func hitOf(kind search.Kind, c txn.Keyed[newestCommit], rank search.Rank) search.Hit {
	state := c.Row.State
	return search.Hit{Type: kind, Repo: c.Row.Repo, Commit: c.Row.SHA, Branch: c.Row.Branch, State: &state,
		At: c.Row.RegisteredAt, Rank: rank, Order: c.ID}
}

// maxArtifactRows is the number of links that a search for an artifact reads.
const maxArtifactRows = 500

// findArtifacts finds artifacts by their digests, with the newest commit that each is linked
// with.
func (f *finder) findArtifacts(d search.Digest) error {
	first, last := d.Range()
	rank := search.Prefix
	if d.IsFull() {
		rank = search.Equal
	}
	read := 0

	err := f.Each(func(row txn.Scanner) error {
		var digest []byte
		h := search.Hit{Type: search.Artifact, State: new(ledger.State), Rank: rank}
		if err := row.Scan(&digest, &h.Order, &h.Commit, h.State, &h.Branch, &h.At, &h.Repo); err != nil {
			return err
		}
		if read++; len(digest) != len(first) {
			return nil
		}
		h.Title = fmt.Sprintf("%s:%x", d.Algorithm, digest)
		f.add(h.Title, h)
		return nil
	}, `
SELECT l.digest, l.commit_id, c.sha, c.state, c.branch, c.registered_at, r.name
FROM artifacts l /*+ordered*/ JOIN commits c ON c.id = l.commit_id /*+ordered*/ JOIN repos r
  ON r.id = c.repo_id AND r.deleted_at = 0
WHERE l.org_id = ? AND l.digest >= ? AND l.digest <= ? ORDER BY l.digest DESC, l.commit_id DESC LIMIT ?`,
		f.searched.orgID, first, last, maxArtifactRows)
	if err != nil {
		return fmt.Errorf("look up artifacts: %w", err)
	}
	if read == maxArtifactRows {
		f.stop("only %d links of artifacts were read", maxArtifactRows)
	}
	return nil
}

// findID finds the record with an ID.
func (f *finder) findID(prefix, id string) error {
	h := search.Hit{ID: id, Rank: search.Equal}
	var err error

	switch prefix {
	case search.Attestations:
		return f.findAttestationID(id)
	case search.Events:
		h, err = f.findEventID(h)
	case search.Identities:
		h.Type = search.Identity
		err = f.Row("SELECT dn, kind, created_at FROM identities WHERE identity_id = ? AND org_id = ?", id, f.searched.orgID).
			Scan(&h.Title, &h.Detail, &h.At)
	case search.Webhooks:
		if !f.q.IsAdmin {
			return nil
		}
		h.Type = search.Webhook
		err = f.Row(`
SELECT w.url, w.description, w.created_at, r.name FROM webhooks w JOIN repos r ON r.id = w.repo_id
WHERE w.webhook_id = ? AND w.deleted_at = 0 AND r.deleted_at = 0 AND r.org_id = ?`, id, f.searched.orgID).
			Scan(&h.Title, &h.Detail, &h.At, &h.Repo)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	f.add(id, h)
	return err
}

// findAttestationID finds an attestation by the time in its ID.
func (f *finder) findAttestationID(id string) error {
	at, _ := txn.IDTime(txn.AttestationPrefix, id)
	err := f.Each(func(row txn.Scanner) error {
		return f.addAttestation(row, search.Equal)
	}, selectFound+`
FROM repos r /*+index repos_by_org*/ /*+ordered*/ JOIN attestations a ON a.repo_id = r.id
/*+ordered*/ JOIN commits c ON c.id = a.commit_id`+inOrg+" AND a.recorded_at = ? AND a.attestation_id = ? LIMIT 1",
		f.searched.orgID, f.searched.oldest, at, id)
	if err != nil {
		return fmt.Errorf("look up attestation: %w", err)
	}
	return nil
}

// selectFound has the columns of an attestation a for addAttestation.
const selectFound = `
SELECT a.attestation_id, a.id, a.predicate_id, a.signer_id, a.status, ` + facts.AgeOf + `, c.sha, r.name`

// addAttestation adds the attestation in a row of selectFound.
func (f *finder) addAttestation(row txn.Scanner, rank search.Rank) error {
	h := search.Hit{Type: search.Attestation, Rank: rank}
	var predicateID, signerID int64
	var status string
	err := row.Scan(&h.ID, &h.Order, &predicateID, &signerID, &status, &h.At, &h.Commit, &h.Repo)
	if err != nil {
		return err
	}
	if h.Title, err = f.fi.signers.Predicate(f.Reader, predicateID); err != nil {
		return err
	}
	signer, err := f.fi.signers.Signer(f.Reader, signerID)
	if err != nil {
		return err
	}
	h.Detail = status + " by " + signer.Text
	f.add(h.ID, h)
	return nil
}

// findEventID finds an event by the time in its ID.
func (f *finder) findEventID(h search.Hit) (search.Hit, error) {
	h.Type = search.Event
	var body struct {
		Commit string `json:"commit"`
	}
	var data []byte
	e, err := events.Find(f.Reader, f.searched.orgID, h.ID)
	if err != nil {
		return h, err
	}
	err = f.Row(`
SELECT e.type, e.at, e.body, coalesce(r.name, '') FROM events e LEFT JOIN repos r ON r.id = e.repo_id
WHERE e.id = ?`, e.Row).Scan(&h.Title, &h.At, &data, &h.Repo)
	if err != nil {
		return h, err
	}

	if len(data) == 0 { // pruned
		return h, nil
	}
	err = json.Unmarshal(data, &body)
	h.Commit = body.Commit
	return h, err
}

func plural(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// maxRepoLookups limits the repos in which the predicates and signers of one result are looked
// up.
const maxRepoLookups = 2 * maxTracks

// addRepos adds to predicates and signers the repo in which they were last attested.
func (f *finder) addRepos(hits []search.Hit) error {
	left := maxRepoLookups
	for i := range hits {
		h := &hits[i]
		index, column, name := "attestations_by_predicate", "predicate_id", h.Title
		switch h.Type {
		case search.Predicate:
		case search.Signer:
			index, column, name = "attestations_by_signer", "signer_id", h.Detail
		default:
			continue
		}
		if left -= len(f.searched.list); left < 0 {
			return nil
		}

		var latest ledger.Time
		for _, r := range f.searched.list {
			var at ledger.Time
			err := f.Row("SELECT coalesce(max(a.recorded_at), 0) FROM attestations a /*+index "+index+
				"*/ WHERE a.repo_id = ? AND a."+column+" = ?", r.id, f.nameIDs[nameOfHit(h.Type, name)]).Scan(&at)
			if err != nil {
				return err
			}
			if at > latest {
				latest, h.At, h.Repo = at, at, r.name
			}
		}
	}
	return nil
}
