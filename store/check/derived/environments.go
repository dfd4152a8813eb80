package derived

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/running"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A contractVersion is a contract with the ID of the event since which it is in effect; empty for the first.
type contractVersion struct {
	event    string
	contract policy.Contract
}

// environmentNames are the predicates about an environment; rollbackID and baselineID may be 0.
type environmentNames struct {
	deployID, rollbackID, baselineID int64
	deploy                           string
}

// environments derives again what runs in the environments of a repo, and what was rolled back.
func (o *Org) environments(ctx context.Context, r repo) error {
	return o.Read(ctx, func(conn *sqldb.Conn) error {
		names, err := environmentsOf(conn, o.ID)
		if err != nil {
			return err
		}
		contracts, err := contractsOf(conn, r.id)
		if err != nil {
			return err
		}
		distrusted, _, err := readDistrusted(conn, o.ID)
		if err != nil {
			return err
		}

		var rows, stored int64
		for _, n := range names {
			e := replaying{Org: o, conn: conn, r: r, names: n, contracts: contracts, distrusted: distrusted}
			read, err := e.compare()
			if err != nil {
				return fmt.Errorf("%s: %w", n.deploy, err)
			}
			rows += read
		}
		err = conn.Row(`
SELECT (SELECT count(*) FROM deployments WHERE repo_id = ?) + (SELECT count(*) FROM environments WHERE repo_id = ?)`,
			r.id, r.id).Scan(&stored)
		if err == nil && stored != rows {
			o.Problemf("environment", o.Name, "repo "+r.name, "%d rows of deployments and environments are of no environment",
				stored-rows)
		}
		return err
	})
}

// environmentsOf reads the predicates of the environments of an org.
func environmentsOf(conn *sqldb.Conn, org int64) ([]environmentNames, error) {
	list, err := sqldb.All(conn, func(row sqldb.Scanner) (n environmentNames, err error) {
		return n, row.Scan(&n.deployID, &n.deploy, &n.rollbackID, &n.baselineID)
	}, `
SELECT p.id, p.name, coalesce((SELECT q.id FROM predicates q
  WHERE q.org_id = p.org_id AND q.name = 'rollback:' || substr(p.name, 8)), 0), coalesce((SELECT q.id FROM predicates q
  WHERE q.org_id = p.org_id AND q.name = 'baseline:' || substr(p.name, 8)), 0)
FROM predicates p WHERE p.org_id = ? AND p.name > 'deploy:' AND p.name < 'deploy;' ORDER BY p.id`, org)
	if err != nil {
		return nil, fmt.Errorf("read environments: %w", err)
	}
	return list, nil
}

// contractsOf reads the contracts of a repo, oldest first. One that cannot be read is left out: the
// check of the policies reports it.
func contractsOf(conn *sqldb.Conn, repo int64) (list []contractVersion, err error) {
	err = conn.Each(func(row sqldb.Scanner) error {
		var v contractVersion
		var text []byte
		if err := row.Scan(&v.event, &text); err != nil {
			return err
		}
		var err error
		if v.contract, err = policy.ParseStored(text); err == nil {
			list = append(list, v)
		}
		return nil
	}, `
SELECT coalesce(e.event_id, ''), p.contract FROM policies p LEFT JOIN events e ON e.id = p.event
WHERE p.repo_id = ? ORDER BY p.version`, repo)
	if err != nil {
		return nil, fmt.Errorf("read contracts: %w", err)
	}
	return list, nil
}

// contractAt returns the contract that was in effect at an event; nil if it cannot be read.
func contractAt(list []contractVersion, event string) *policy.Contract {
	for i := range slices.Backward(list) {
		if list[i].event <= event {
			return &list[i].contract
		}
	}
	return nil
}

// A replaying derives again what runs in an environment of a repo.
type replaying struct {
	*Org
	conn       *sqldb.Conn
	r          repo
	names      environmentNames
	contracts  []contractVersion
	distrusted map[string]ledger.Time

	steps     []running.Step
	breaches  []running.Breach
	signers   map[string]identity.DN
	unchecked string // why it cannot be derived again; empty if it can
}

// compare compares the rows of an environment, and returns their number.
func (e *replaying) compare() (rows int64, err error) {
	e.signers = make(map[string]identity.DN)
	if err := e.readBreaches(); err != nil {
		return 0, err
	}
	if err := e.readSteps(); err != nil {
		return 0, err
	}
	derived := running.New()
	derived.Replay(e.steps, e.breaches)
	if e.unchecked != "" {
		e.Uncheckedf("%s: what runs in %s of %s: %s", e.Name, e.names.deploy, e.r.name, e.unchecked)
		derived.Rows = nil
	}

	rows, err = e.compareRows(e.names.deployID, e.row(), derived.Rows)
	if err != nil {
		return 0, fmt.Errorf("read deployments: %w", err)
	}
	baselines, err := e.compareRows(e.names.baselineID, "the baseline for "+e.row(), derived.Baselines)
	if err != nil {
		return 0, fmt.Errorf("read baselines: %w", err)
	}
	rows += baselines
	var latest int64
	err = e.conn.Each(func(row sqldb.Scanner) error {
		rows++
		return row.Scan(&latest)
	}, "SELECT latest_id FROM environments WHERE predicate_id = ? AND repo_id = ? AND org_id = ?",
		e.names.deployID, e.r.id, e.ID)
	if err != nil {
		return 0, fmt.Errorf("read the last change: %w", err)
	}
	if latest != derived.Latest && e.unchecked == "" {
		e.Problemf("environment", e.Name, e.row(), "the attestation in row %d has changed it last, and its row says that "+
			"in row %d", derived.Latest, latest)
	}
	return rows, nil
}

func (e *replaying) row() string { return e.names.deploy + " of " + e.r.name }

// compareRows compares the deployments or baselines under a predicate with those derived, and removes these from the
// map. If that is nil, it only counts them. Problems are about what name says.
func (e *replaying) compareRows(
	predicateID int64, name string, derived map[int64]running.Deployment,
) (rows int64, err error) {
	isUnchecked := derived == nil
	const different = "the row of the commit in row %d says %s, and the attestations %s"
	err = e.conn.Each(func(row sqldb.Scanner) error {
		var commit int64
		var d running.Deployment
		err := row.Scan(&commit, &d.Attestation, &d.Required, &d.Ended)
		rows++

		want, ok := derived[commit]
		delete(derived, commit)
		switch {
		case err != nil || d == want || isUnchecked:
		case !ok:
			e.Problemf("deployment", e.Name, name, "the commit in row %d was not deployed, and its row says %s", commit, said(d))
		default:
			e.Problemf("deployment", e.Name, name, different, commit, said(d), said(want))
		}
		return err
	}, "SELECT commit_id, attestation_id, required, ended_id FROM deployments WHERE repo_id = ? AND predicate_id = ?",
		e.r.id, predicateID)
	for _, commit := range slices.Sorted(maps.Keys(derived)) {
		e.Problemf("deployment", e.Name, name, different, commit, said(running.Deployment{}), said(derived[commit]))
	}
	return rows, err
}

// said returns what a row says.
func said(d running.Deployment) string {
	return fmt.Sprintf("{attestation:%d required:%t ended:%d}", d.Attestation, d.Required, d.Ended)
}

func (e *replaying) readBreaches() (err error) {
	e.breaches, err = sqldb.All(e.conn, func(row sqldb.Scanner) (b running.Breach, err error) {
		return b, row.Scan(&b.Attestation, &b.Commit, &b.How, &b.By, &b.FinishedAt)
	}, `
SELECT v.attestation_id, v.commit_id, v.closed_how, v.closed_by, a.finished_at
FROM violations v /*+index violations_by_repo*/ /*+ordered*/ JOIN attestations a ON a.id = v.attestation_id
WHERE v.repo_id = ? AND v.predicate_id = ? ORDER BY v.id`, e.r.id, e.names.deployID)
	if err != nil {
		return fmt.Errorf("read violations: %w", err)
	}
	return nil
}

// readSteps reads the attestations about the environment.
func (e *replaying) readSteps() error {
	opened, byCommit := make(map[int64]bool), make(map[int64][]running.Breach)
	for _, b := range e.breaches {
		opened[b.Attestation] = true
		byCommit[b.Commit] = append(byCommit[b.Commit], b)
	}

	err := e.conn.Each(func(row sqldb.Scanner) error {
		var s running.Step
		var v policy.Evidence
		var dn, event, id string
		var at ledger.Time
		err := row.Scan(&s.ID, &s.Public, &s.Commit, &v.Predicate, &v.PredicateType, &v.Status, &dn, &s.FinishedAt, &event,
			&id, &at)
		if err != nil {
			return err
		}
		if v.Signer, err = e.signer(dn); err != nil {
			return err
		}
		isOpen := func(b running.Breach) bool { return b.IsOpenAt(s.ID, s.Public) }
		e.judge(&s, v, event, opened[s.ID] || slices.ContainsFunc(byCommit[s.Commit], isOpen))
		since, isDistrusted := e.distrusted[id]
		switch {
		case s.Effect == policy.Based: // its row depends on nothing else
		case s.ID < e.MappedBelow:
			e.unchecked = "it was recorded by an earlier release"
		case isDistrusted && since <= at:
			e.unchecked = "evidence about it is distrusted"
		}
		if len(e.breaches) == 0 {
			s.Public = ""
		}
		if s.Effect != policy.NoEffect && s.Effect != policy.Refused {
			e.steps = append(e.steps, s)
		}
		return nil
	}, `
SELECT a.id, a.attestation_id, a.commit_id, p.name, t.uri, a.status, s.dn, a.finished_at, a.event_id, a.identity_id,
  CASE a.aged_from WHEN 0 THEN a.recorded_at ELSE a.aged_from END
FROM attestations a /*+index attestations_by_predicate*/ /*+ordered*/ JOIN predicates p ON p.id = a.predicate_id
  /*+ordered*/ JOIN predicate_types t ON t.id = a.type_id /*+ordered*/ JOIN signers s ON s.id = a.signer_id
WHERE a.repo_id = ? AND a.predicate_id IN (?, ?, ?)`, e.r.id, e.names.deployID, e.names.rollbackID, e.names.baselineID)
	if err != nil {
		return fmt.Errorf("read attestations: %w", err)
	}

	for i := range e.steps {
		if err := e.resolve(&e.steps[i]); err != nil {
			return err
		}
	}
	return nil
}

// judge sets what an attestation has done to the environment, by the contract of its time.
func (e *replaying) judge(s *running.Step, v policy.Evidence, event string, isBreach bool) {
	if _, isBaseline := ledger.BaselineOf(v.Predicate, v.PredicateType); isBaseline {
		s.Effect = policy.Based
		return
	}

	contract := contractAt(e.contracts, event)
	if contract == nil {
		e.unchecked = "the contract of its time cannot be read"
		return
	}
	_, isRollback := ledger.RollbackOf(v.Predicate, v.PredicateType)
	if !isRollback && v.Predicate != e.names.deploy {
		return // a result of an earlier release whose predicate begins like that of a rollback or baseline
	}

	environment, _ := ledger.EnvironmentOf(e.names.deploy)
	s.Judge(contract, policy.Facts{}, v, environment, isBreach)
	isTakenBack := s.Effect == policy.TakenBack
	if contract.IsScoped() && s.Required && (isTakenBack || s.Effect == policy.Refused) {
		e.unchecked = "which requirements applied to its commits is not known"
	}
	if _, ok := e.rollbacks[s.ID]; isRollback && isTakenBack && !ok {
		e.unchecked = "to which commit it was rolled back is not known: an envelope was pruned, or it is being changed"
	}
}

// resolve sets what only the statement of an attestation says.
func (e *replaying) resolve(s *running.Step) error {
	s.SaidAt = s.FinishedAt
	if at, ok := e.finished[s.ID]; ok {
		s.SaidAt = at
	}
	sha := e.rollbacks[s.ID]
	if sha == "" {
		return nil
	}
	err := e.conn.Each(func(row sqldb.Scanner) error { return row.Scan(&s.To) },
		"SELECT id FROM commits WHERE repo_id = ? AND sha = ?", e.r.id, sha)
	if err != nil {
		return fmt.Errorf("find commit: %w", err)
	}
	return nil
}

func (e *replaying) signer(name string) (dn identity.DN, err error) {
	dn, ok := e.signers[name]
	if ok {
		return dn, nil
	}
	if dn, err = identity.ParseDN(name); err != nil {
		return dn, fmt.Errorf("signer %q: %w", name, err)
	}
	e.signers[name] = dn
	return dn, nil
}
