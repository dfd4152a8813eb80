package measure

import "testing"

func TestCommitOf(t *testing.T) {
	tests := []struct {
		name               string
		commits, perCommit int
		number, want       int
	}{
		{"first turn, first commit", 3, 2, 0, 0},
		{"first turn, last commit", 3, 2, 2, 2},
		{"second turn, first commit", 3, 2, 3, 0},
		{"second turn, last commit", 3, 2, 5, 2},
		{"second set, first commit", 3, 2, 6, 3},
		{"second set, last turn", 3, 2, 11, 5},
		{"third set", 3, 2, 12, 6},
		{"no limit, first commit", 3, 0, 600, 0},
		{"no limit, last commit", 3, 0, 602, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := &Core{Commits: tt.commits, PerCommit: tt.perCommit}
			if got := b.commitOf(tt.number); got != tt.want {
				t.Errorf("attestation %d is about commit %d, want %d", tt.number, got, tt.want)
			}
		})
	}
}
