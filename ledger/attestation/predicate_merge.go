package attestation

import "github.com/ledgerd/ledgerd/ledger"

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
