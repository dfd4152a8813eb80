package bench

import "testing"

func TestTheCommitsOfABenchmarkTakeTurns(t *testing.T) {
	tests := []struct {
		name               string
		commits, perCommit int
		number, want       int
	}{
		{"the first", 3, 2, 0, 0},
		{"each once", 3, 2, 2, 2},
		{"the second turn", 3, 2, 3, 0},
		{"the last of the first commits", 3, 2, 5, 2},
		{"a new one", 3, 2, 6, 3},
		{"a new one's last turn", 3, 2, 11, 5},
		{"the third ones", 3, 2, 12, 6},
		{"no limit", 3, 0, 600, 0},
		{"no limit, the last", 3, 0, 602, 2},
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
