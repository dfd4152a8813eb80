package attestation

import "github.com/ledgerd/ledgerd/ledger"

func parseException(predicate []byte) (body, error) {
	var p struct {
		Repo        string       `json:"repo"`
		Requirement string       `json:"requirement"`
		Reason      string       `json:"reason"`
		Until       ledger.Time  `json:"until"`
		IssuedOn    ledger.Time  `json:"issuedOn"`
		Other       otherMembers `json:",embed"`
	}
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}

	x := Exception{Repo: p.Repo, Requirement: p.Requirement, Reason: p.Reason, Until: p.Until, IssuedOn: p.IssuedOn}
	if err := x.check(); err != nil {
		return body{}, err
	}
	return body{predicate: ExceptionPredicate(x.Requirement), result: ledger.Result{Status: ledger.Recorded},
		repo: x.Repo, exception: x}, nil
}

func parseRollback(predicate []byte) (body, error) {
	var p struct {
		Repo        string `json:"repo"`
		Environment string `json:"environment"`
		Reason      string `json:"reason"`
		To          struct {
			SHA   string       `json:"sha"`
			Other otherMembers `json:",embed"`
		} `json:"to"`
		IssuedOn ledger.Time  `json:"issuedOn"`
		Other    otherMembers `json:",embed"`
	}
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}

	r := &Rollback{Repo: p.Repo, Environment: p.Environment, Reason: p.Reason, To: RunningCommit{p.To.SHA},
		IssuedOn: p.IssuedOn}
	if err := r.check(); err != nil {
		return body{}, err
	}
	return body{predicate: ledger.RollbackPredicate(r.Environment), result: ledger.Result{Status: ledger.Recorded},
		repo: r.Repo, rollback: r}, nil
}

func parseBaseline(predicate []byte) (body, error) {
	var p struct {
		Repo        string       `json:"repo"`
		Environment string       `json:"environment"`
		Reason      string       `json:"reason"`
		IssuedOn    ledger.Time  `json:"issuedOn"`
		Other       otherMembers `json:",embed"`
	}
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}

	b := &Baseline{Repo: p.Repo, Environment: p.Environment, Reason: p.Reason, IssuedOn: p.IssuedOn}
	if err := b.check(); err != nil {
		return body{}, err
	}
	return body{predicate: ledger.BaselinePredicate(b.Environment), result: ledger.Result{Status: ledger.Recorded},
		repo: b.Repo, baseline: b}, nil
}

func parseMerge(predicate []byte) (body, error) {
	type commit struct {
		SHA   string       `json:"sha"`
		Other otherMembers `json:",embed"`
	}
	var p struct {
		Repo       string       `json:"repo"`
		Kind       MergeKind    `json:"kind"`
		Source     commit       `json:"source"`
		Parent     commit       `json:"parent"`
		Tree       string       `json:"tree"`
		Tools      skipped      `json:"tools"` // known, so that few statements have others
		StartedOn  moment       `json:"startedOn"`
		FinishedOn moment       `json:"finishedOn"`
		Other      otherMembers `json:",embed"`
	}
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}

	m := &Merge{Repo: p.Repo, Kind: p.Kind, Source: MergedCommit{p.Source.SHA}, Parent: MergedCommit{p.Parent.SHA},
		Tree: p.Tree, StartedOn: p.StartedOn.time(), FinishedOn: p.FinishedOn.time()}
	if err := m.check(); err != nil {
		return body{}, err
	}
	result := ledger.Result{Status: ledger.Pass, DurationMS: durationMS(p.StartedOn, p.FinishedOn)}
	return body{predicate: MergePredicate(m.Kind), slot: m.Source.SHA, result: result, finishedAt: m.FinishedOn,
		repo: m.Repo, merge: m}, nil
}

func parseChanges(predicate []byte) (body, error) {
	var p struct {
		Repo  string       `json:"repo"`
		Base  string       `json:"base"`
		Paths []string     `json:"paths"`
		Other otherMembers `json:",embed"`
	}
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}

	c := &Changes{Repo: p.Repo, Base: p.Base, Paths: p.Paths}
	if err := c.check(); err != nil {
		return body{}, err
	}
	return body{predicate: ledger.ChangesPredicate, slot: c.Base, result: ledger.Result{Status: ledger.Recorded},
		repo: c.Repo, changes: c}, nil
}
