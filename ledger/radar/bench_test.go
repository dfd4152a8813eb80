package radar

import (
	"fmt"
	"testing"
)

// typicalRecord returns a record with 20 files and 60 hunks.
func typicalRecord(side int) []Change {
	var changes []Change
	for f := range 20 {
		c := edited(fmt.Sprintf("services/payments/%d/handler.go", f), f*10+side%2, 1000+f*10+side)
		for h := range 3 {
			hunk := put(100*h+10+side*7, 6, a1).in(
				fmt.Sprintf("func (s *Server) handle%d(w http.ResponseWriter, r *http.Request) {", h))
			for g := range hunk.Far {
				n := ((side*20+f)*3+h)*7 + g + 1
				hunk.Far[g], hunk.Near[g] = fmt.Sprintf("%016x", n*0x9e3779b9), fmt.Sprintf("%016x", n*0x85ebca6b)
			}
			c.Hunks = append(c.Hunks, hunk)
		}
		changes = append(changes, c)
	}
	return changes
}

func BenchmarkRadar(b *testing.B) {
	r := New([]string{"**/go.sum", "docs/**", "*.lock"})
	record := typicalRecord(0)
	one, sameBase, otherBase := r.Footprint(record), r.Footprint(typicalRecord(2)), r.Footprint(typicalRecord(1))
	unrelated := r.Footprint([]Change{edited("elsewhere/f", 1, 2)})
	b.Run("footprint", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Footprint(record)
		}
	})
	packed := []PackedChange{AppendPacked(nil, &record[0])}
	b.Run("unpack-one-path", func(b *testing.B) {
		b.ReportAllocs()
		b.ReportMetric(float64(len(packed[0])), "bytes")
		for b.Loop() {
			r.FootprintOfPacked(packed)
		}
	})

	for _, test := range []struct {
		name  string
		other *Footprint
	}{{"compare-same-base", sameBase}, {"compare-other-base", otherBase}, {"compare-nothing-shared", unrelated}} {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Compare(one, test.other, Options{})
			}
		})
	}
	b.Run("compare-one-path", func(b *testing.B) {
		o := Options{Only: []string{"services/payments/7/handler.go"}}
		b.ReportAllocs()
		for b.Loop() {
			Compare(one, otherBase, o)
		}
	})
}

func BenchmarkRadarPack(b *testing.B) {
	record, packed := typicalRecord(0), []byte(nil)
	b.ReportAllocs()
	for b.Loop() {
		packed = packed[:0]
		for i := range record {
			packed = AppendPacked(packed, &record[i])
		}
	}
}
