package store

// An unprepared is the error of a write that would keep others waiting: deriving the states
// of these commits takes long. The caller prepares them, outside the writer, and writes
// again.
type unprepared struct{ list []*subject }

func (*unprepared) Error() string {
	return "the states of commits take too long to derive in the writer"
}

func (u *unprepared) prepare() {
	for _, s := range u.list {
		s.d.contract.Prepare(&s.facts)
	}
}
