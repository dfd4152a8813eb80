package derived

import (
	"context"
	"fmt"
)

// Check checks what the events of the org led to. It calls step for each repo.
func (o *Org) Check(ctx context.Context, step func(done, total int)) error {
	repos, err := o.repos(ctx)
	if err != nil {
		return err
	}
	err = o.part(ctx, "counters", "", func(ctx context.Context) error { return o.counters(ctx, repos) })
	if err != nil {
		return err
	}

	for i, r := range repos {
		step(i, len(repos))
		for _, p := range []struct {
			name  string
			check func(context.Context, repo) error
		}{
			{"policies", o.checkPolicies}, {"deliveries", o.deliveries}, {"commits", o.commits},
			{"environments", o.environments}, {"radar", o.radar}, {"ancestors", o.ancestors},
			{"states", o.derive},
		} {
			err := o.part(ctx, p.name, "/"+r.name, func(ctx context.Context) error { return p.check(ctx, r) })
			if err != nil {
				return err
			}
		}
	}
	o.reportKnown()
	return o.part(ctx, "violations", "", o.checkViolations)
}

// part does a part of the check.
func (o *Org) part(ctx context.Context, name, repo string, check func(context.Context) error) error {
	if err := o.Tolerate(ctx, name+" of "+o.Name+repo, check(ctx)); err != nil {
		return fmt.Errorf("check %s: %w", name, err)
	}
	return nil
}
