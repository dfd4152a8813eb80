package store

import (
	"testing"
	"time"
)

// By default, a jump is measured against the time since boot.
func TestTimeSinceBoot(t *testing.T) {
	boot := Options{}.monotonic()
	before := boot()
	time.Sleep(time.Millisecond)
	if after := boot(); after-before < time.Millisecond || after-before > time.Minute || before < -time.Second {
		t.Errorf("the time since boot went from %v to %v", before, after)
	}
	if (Options{Now: time.Now}).monotonic() != nil {
		t.Error("a clock of its own is measured against the time since boot")
	}
}
