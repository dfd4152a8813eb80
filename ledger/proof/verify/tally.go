package verify

import "fmt"

const (
	// maxFailures is how many failures of a check a Tally lists.
	maxFailures = 20
	// maxReasons is how many reasons of a check that was not made it lists by themselves.
	maxReasons = 20
)

// A Tally sums up the checks of many subjects, by their names.
type Tally struct {
	names  []string
	counts map[string]*tallied
}

type tallied struct {
	passed, failed int
	skipped        map[string]int // by the reason
	failures       []Check
}

// Add adds the checks of a subject, such as an attestation with its ID.
func (t *Tally) Add(subject string, checks ...Check) {
	if t.counts == nil {
		t.counts = make(map[string]*tallied)
	}
	for _, c := range checks {
		n := t.counts[c.Name]
		if n == nil {
			n = &tallied{skipped: make(map[string]int)}
			t.counts[c.Name], t.names = n, append(t.names, c.Name)
		}

		switch c.Status {
		case OK:
			n.passed++
		case NotChecked:
			n.skip(c.Detail)
		default:
			if n.failed++; n.failed <= maxFailures {
				c.Detail = subject + ": " + c.Detail
				n.failures = append(n.failures, c)
			}
		}
	}
}

func (n *tallied) skip(reason string) {
	if _, isKnown := n.skipped[reason]; !isKnown && len(n.skipped) >= maxReasons {
		reason = "for other reasons"
	}
	n.skipped[reason]++
}

// Checks returns a check for each name and each failure, as long as they are few. The
// noun is what was checked, such as "attestation".
func (t *Tally) Checks(noun string) (list []Check) {
	for _, name := range t.names {
		n := t.counts[name]
		list = append(list, n.failures...)
		if n.failed > maxFailures {
			list = append(list, Failure(name, "%d more %s", n.failed-maxFailures, plural(n.failed-maxFailures, noun)))
		}
		if n.failed == 0 && n.passed > 0 {
			list = append(list, Passed(name, "%d %s", n.passed, plural(n.passed, noun)))
		}
		if len(n.skipped) == 0 {
			continue
		}

		total, why := 0, ""
		for reason, count := range n.skipped {
			if total += count; why == "" || reason < why {
				why = reason
			}
		}
		if len(n.skipped) > 1 {
			why += fmt.Sprintf(", and %d other %s", len(n.skipped)-1, plural(len(n.skipped)-1, "reason"))
		}
		list = append(list, Skipped(name, "%d %s: %s", total, plural(total, noun), why))
	}
	return list
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
